"""Play families of random systems, ask for advice on the way, and keep what it said and what is so.

    python tools/advised.py FILE.csv --members report:0-9:6:4 --seeds 1 --jobs 2 --minutes 20

Members are named as in tools/unseen.py, and `classics:report:FIRST:COUNT` counts them by pairs:
even numbers (`choose`) are for choosing constants, odd ones (`report`) for reporting. A row is one
study at one time: what the advice said (the chance that the leading scope is the best, the gain
that is left and its bound, the value and its interval), and the truth (whether the scope is the
best one, what the policy really loses, what it is really worth). Whether a study is told to stop
follows from `bound` for any tolerance, so it is not kept.
Runs that are in the file already are not played again; after the given minutes nothing new begins.
"""

import argparse
import csv
import math
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from unseen import Judged, listed

import cocabo as cb
from cocabo import advice as module
from cocabo.scopes import Scope

TIMES = (10, 20, 30, 45, 70, 100, 150, 200, 300)
WIDTHS = (1.0, 1.25, 1.5, 2.0)  # for which the bound is kept: `_SAFE` is chosen among them


def named(text):
    "The names of members, also of families that unseen.py does not split into even and odd ones"
    kind, *rest = text.split(":")
    if kind in ("choose", "report"):
        return listed(text)
    first, count = int(rest[1]), int(rest[2])
    return [f"{kind}:{2 * k + (rest[0] == 'report')}" for k in range(first, first + count)]


drawn, draw = [], module._possible


def possible(opt, leading, luck):
    "The worlds that the advice is made of, kept, and for more widths than it needs"
    drawn[:] = [draw(opt, leading, luck, tuple(sorted({*WIDTHS, module._SAFE})))]
    return drawn[0]


module._possible = possible


def judge(judged, opt):
    "What the policy really loses and is worth, and whether its scope is within .001 of the best"
    env, policy = judged.env, opt.best()
    top = float(np.mean(judged.top))
    if not policy.scope:
        got = env.truths[Scope({})].value
        return top - got, got, 0
    got = float(np.mean([env.expected(policy.scope, c, policy(c)) for c in judged.contexts]))
    return top - got, got, int(env.optimum - env.value(policy.scope) < 1e-3)


def row(judged, opt, seed):
    "The advice at this time beside the truth"
    env = judged.env
    began = time.perf_counter()
    a = module.advice(opt)
    took = time.perf_counter() - began
    loses, worth, right = judge(judged, opt)
    best, wider, worlds = str(env.best), {}, drawn[0]
    for w in WIDTHS:
        gain = np.quantile(worlds.gain(w), 0.95) if worlds.now else math.nan
        wider[f"bound_{w:g}"] = round(float(gain), 5)
        shares = np.bincount(worlds.best[w].argmax(0), minlength=len(opt.arms))
        i = [str(x.scope) for x in opt.arms].index(a.leading) if worlds.now else 0
        wider[f"chance_{w:g}"] = round(float(shares[i] / shares.sum()), 4)
    return dict(
        member=env.name,
        cell=env.about.split(":")[0],
        arms=len(opt.recipe.arms),
        seed=seed,
        at=opt.told,
        leading=a.leading,
        right=right,
        chance=round(a.chance, 4),
        gain=round(a.gain, 5),
        bound=round(a.bound, 5),
        loses=round(loses, 5),
        looks=len(a.looks),
        value=round(a.value, 5),
        low=round(a.interval[0], 5),
        high=round(a.interval[1], 5),
        worth=round(worth, 5),
        out=len(a.out),
        best_out=int(best in a.out),
        limit=round(a.limit, 5),
        range=round(judged.range, 4),
        seconds=round(took, 3),
        **wider,
    )


def play(judged, seed, steps):
    "The rows of one study"
    env = judged.env
    opt = cb.CoCaBO(env.problem, seed=seed)
    rows = []
    for t in range(steps):
        trial = opt.ask()
        opt._step(env.episode(seed, t).choose(trial.scope), trial)
        if t + 1 in TIMES or t + 1 == steps:
            rows.append(row(judged, opt, seed))
    return rows


def work(name, seeds, steps, end):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = []
    if time.time() > end:
        return rows
    try:
        judged = Judged(name)
        several = len(judged.env.problem.scopes())
        for seed in seeds:
            rows += play(judged, seed, steps if several < 5 else 2 * steps)
    except Exception as e:  # one bad run should not end a night
        print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr)
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("file", type=Path)
    p.add_argument("--members", nargs="+", required=True)
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--minutes", type=float, default=20.0)
    args = p.parse_args()
    from joblib import Parallel, delayed

    done = set()
    if args.file.exists():
        with open(args.file) as f:
            done = {r["member"] for r in csv.DictReader(f)}
    names = [n for m in args.members for n in named(m) if n not in done]
    names = np.random.default_rng(0).permutation(names).tolist()  # if time runs out, some of all
    began, new, writer = time.time(), not args.file.exists(), None
    end = began + 60 * args.minutes
    seeds = range(args.seeds)
    with open(args.file, "a", newline="") as out:
        jobs = Parallel(n_jobs=args.jobs, return_as="generator_unordered")
        played = jobs(delayed(work)(n, seeds, args.steps, end) for n in names)
        for k, rows in enumerate(played):
            if rows and writer is None:
                writer = csv.DictWriter(out, fieldnames=list(rows[0]))
                if new:
                    writer.writeheader()
            for r in rows:
                writer.writerow(r)
            out.flush()
            print(f"{k + 1} of {len(names)} members, {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
