"""What rows of other regimes are worth: runs with and without them, and what a step costs.

    python tools/sharing.py cost FILE.csv --systems psa_1 psa_2 fig1
    python tools/sharing.py gain FILE.csv --systems psa_1 psa_2 fig1 --rows 0 30 300 3000 --seeds 10

`gain` plays each system from the same seeds with so many rows of ordinary operation before the
first experiment, with `sharing` as given (`chain:K` are systems made here, in which only averages
may be shared), and keeps the mean noise-free regret of the first 25, 50, ... experiments. Runs
whose rows are in the file already are not played again. `cost` lets an optimiser without and one
with 3,000 rows take turns, and keeps the processor time of each step.
"""

import argparse
import csv
import math
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
import pyro.distributions as dist

import cocabo as cb
from cocabo.environment import Truth
from cocabo.files import one_thread
from cocabo.mechanisms import sin

TIMES = (25, 50, 100, 200)
FIELDS = ("system", "sharing", "rows", "seed", "time", "regret", "gap", "licensed", "ms")
UNITS = 200  # on which a recommendation is judged
JUDGED = 2 * 10**6  # seed of these units
NATURAL = 10**6  # added to the seed of a run: that of its rows of ordinary operation


def chain(k):
    "X -> Z <- C, Z -> Y, a hidden cause of X and Z: rows of ordinary operation teach only averages"
    rng = np.random.default_rng(k)
    a, c, s = rng.uniform(0.6, 1.2), rng.uniform(0.3, 0.8), rng.uniform(0.2, 0.5)
    w, shift, b = rng.uniform(1, 2.2), rng.uniform(0, 6), rng.uniform(0.5, 1.5)
    normal = dist.Normal(0.0, 1.0)
    scm = cb.SCM(
        latents=dict(U=normal, UC=dist.Uniform(-1.0, 1.0), UX=normal, UY=normal),
        mechanisms=dict(
            C=lambda UC: UC,
            X=lambda U, UX: b * U + 0.4 * UX,
            Z=lambda X, C, U: a * X + c * C + s * U,
            Y=lambda Z, UY: sin(w * Z + shift) + 0.3 * UY,
        ),
    )
    fade = math.exp(-((w * s) ** 2) / 2)
    place = (0.5 * math.pi - shift) / w  # of one peak; the others are a period apart

    def best(C):
        peaks = place + 2 * math.pi / w * np.arange(-6, 7)
        x = (peaks - c * C) / a
        return float(x[np.abs(x).argmin()])

    def expected(C, X):
        return fade * math.sin(w * (a * X + c * C) + shift)

    problem = cb.Problem(scm.graph, "Y", {"X": cb.Real(-3, 3)}, {"C": cb.Real(-1, 1)})
    top = Truth(fade, {"X": unit_by_unit_number(best)}, expected)
    return cb.Environment(f"chain:{k}", problem, scm, {"X|C": top}, noise=0.3)


def unit_by_unit_number(f):
    "A function of C for one unit or for many"
    return lambda C: np.vectorize(f)(C) if np.ndim(C) else f(float(C))


def found(name):
    "The environment with a name"
    kind, _, k = name.partition(":")
    return chain(int(k)) if kind == "chain" else cb.environments[name]


def simple_regret(env, opt):
    "What the policy that is recommended loses on fresh units; NaN where nothing is known"
    policy, total = opt.best(), 0.0
    for t in range(UNITS):
        seen, done, _ = env.episode(JUDGED, t).follow(policy)
        total += env.expected(policy.scope, seen, done)
    return abs(env.optimum - total / UNITS)


def licensed(env, opt):
    "How many arms ordinary operation may teach"
    arms = [a.scope for a in opt.recipe.arms]
    found = [cb.licence(env.problem.graph, "", s, env.problem.target) for s in arms]
    return f"{sum(map(bool, found))}/{len(arms)}"


def play(name, sharing, rows, seed, steps, method):
    "One run; a row for each time"
    env = found(name)
    opt = method(env.problem, seed=seed, sharing=sharing)
    if rows:
        opt.observe(env.scm.sample(rows, seed=NATURAL + seed))
    run = opt.run(env, steps, seed=seed, progress=False, see=True)
    for t in TIMES:
        if t > steps:
            break
        part = run[:t]
        gap = simple_regret(env, opt) if t == steps else float("nan")
        yield dict(
            system=name, sharing=sharing, rows=rows, seed=seed, time=t,
            regret=f"{part.regret.mean():.6g}", gap=f"{gap:.6g}", licensed=licensed(env, opt),
            ms=f"{1e3 * median(part.seconds):.3g}",
        )  # fmt: skip


def gain(args):
    "Play what is not in the file yet"
    path = Path(args.file)
    done = set()
    if path.exists():
        with path.open() as f:
            done = {(r["system"], r["sharing"], r["rows"], r["seed"]) for r in csv.DictReader(f)}
    new = not path.exists()
    with path.open("a", newline="") as f:
        out = csv.DictWriter(f, FIELDS)
        if new:
            out.writeheader()
        for seed in range(args.first, args.first + args.seeds):
            for name in args.systems:
                for rows in args.rows:
                    for sharing in args.sharing:
                        key = (name, sharing, str(rows), str(seed))
                        if key in done or (not rows and sharing != args.sharing[0]):
                            continue
                        for row in play(name, sharing, rows, seed, args.steps, cb.CoCaBO):
                            out.writerow(row)
                        f.flush()
                        print(*key, file=sys.stderr)


def cost(args):
    "Optimisers with and without 3,000 rows, step by step in turns"
    with open(args.file, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["system", "rows", "step", "ms"])
        for name in args.systems:
            env, pair = found(name), {}
            for rows in (0, 3000):
                pair[rows] = cb.CoCaBO(env.problem, seed=0)
                if rows:
                    pair[rows].observe(env.scm.sample(rows, seed=NATURAL))
                    pair[rows].learner  # noqa: B018, the background is learnt once, before
            for t in range(args.steps):
                for rows, opt in pair.items():
                    began = time.process_time()
                    trial = opt.ask()
                    e = env.episode(0, t).choose(trial.scope)
                    while not trial.ready:
                        e.set(trial.act(e.observe(trial.needs) if trial.needs else {}))
                    opt.tell(trial, e.target())
                    opt.learner  # noqa: B018
                    took = time.process_time() - began
                    out.writerow([name, rows, t, f"{1e3 * took:.3f}"])


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("what", choices=["gain", "cost"])
    p.add_argument("file")
    p.add_argument("--systems", nargs="+", default=["psa_1", "psa_2", "fig1"])
    p.add_argument("--rows", nargs="+", type=int, default=[0, 30, 300, 3000])
    p.add_argument("--sharing", nargs="+", default=["rows"])
    p.add_argument("--seeds", type=int, default=10)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--steps", type=int, default=200)
    args = p.parse_args()
    with one_thread():
        dict(gain=gain, cost=cost)[args.what](args)


if __name__ == "__main__":
    main()
