"""Rows that the graph licenses never make what an arm knows worse, beyond noise.

    python tests/soak_sharing.py --count 200 --seed 0

Random linear systems with hidden causes and normal noise, so that the function of an arm is known
exactly. An arm learns from experiments of its own, with and without rows of another regime, from
the same draws, several times; the errors are compared in pairs (on a logarithmic scale). With many
of its own a wrong lesson shows; with few the gain does. In one system of twenty a licence is
forged: rows are lent that the graph refuses. The test has to find those and no others.
"""

import argparse
import csv
import math
import sys
import warnings

import numpy as np
import torch
from scipy.stats import t as student

import cocabo as cb
from cocabo.features import Features
from cocabo.gp import GP
from cocabo.recipe import joint
from cocabo.scopes import Scope

LENT, PROBES = 200, 64
NOISE = 0.5  # standard deviation of what each variable has of its own


def random_graph(rng, n):
    "Variables in causal order, the target last; arrows and hidden causes"
    names = [f"V{i}" for i in range(n)] + ["Y"]
    arrows, arcs = [], []
    for j in range(1, n + 1):
        for i in range(j):
            if rng.random() < 0.45:
                arrows.append((names[i], names[j]))
            if rng.random() < 0.25:
                arcs.append((names[i], names[j]))
    return names, cb.Graph(nodes=names, directed=arrows, bidirected=arcs)


def question(rng):
    "A random system, an arm of it, and a regime whose rows it may or may not use"
    while True:
        names, g = random_graph(rng, int(rng.integers(3, 6)))
        if "Y" not in {b for _, b in g.directed} or not g.bidirected:
            continue
        acts = [v for v in names[:-1] if rng.random() < 0.6][:3]
        if not acts:
            continue
        arms = [joint(s) for s in cb.pomps(g, "Y", acts) if s and len(s) < 3]
        arms = [s for s in arms if not any(late(g, s, x) for x in s)]
        if not arms:
            continue
        taker = arms[rng.integers(len(arms))]
        givers = [Scope({}), *(s for s in arms if s != taker)]
        return names, g, taker, givers[rng.integers(len(givers))]


def late(g, scope, x):
    "Is something looked at that answers to the action?"
    return bool(set(scope[x]) & g.do(scope).descendants({x}))


class System:
    "Linear equations with random coefficients"

    def __init__(self, rng, names, g):
        self.names, self.g = names, g
        self.arcs = sorted(tuple(sorted(a)) for a in g.bidirected)
        self.on = {e: rng.choice([-1, 1]) * rng.uniform(0.5, 1.2) for e in sorted(g.directed)}
        self.hidden = {(a, v): rng.choice([-1, 1]) * rng.uniform(0.5, 1.2)
                       for a in self.arcs for v in a}  # fmt: skip

    def rows(self, rng, n, scope=(), spread=1.0):
        "Draws in which the actions of the scope are set at random, whatever is looked at"
        roots = {a: rng.normal(size=n) for a in self.arcs}
        out = {}
        for v in self.names:
            value = NOISE * rng.normal(size=n)
            for (a, w), k in self.hidden.items():
                value = value + k * roots[a] * (w == v)
            for (u, w), k in self.on.items():
                if w == v:
                    value = value + k * out[u]
            out[v] = rng.uniform(-2, 2, n) * spread if v in scope else value
        return out

    def truth(self, scope, known):
        "Slopes of E[Y | known] when the scope is set: exact, from the joint normal law"
        size = len(self.names)
        B, S = np.zeros((size, size)), np.zeros((size, size))
        at = {v: i for i, v in enumerate(self.names)}
        for (u, w), k in self.on.items():
            if w not in scope:
                B[at[w], at[u]] = k
        for v in self.names:
            S[at[v], at[v]] = 4 / 3 if v in scope else NOISE**2
        for a in self.arcs:
            load = np.zeros(size)
            for v in a:
                load[at[v]] = 0.0 if v in scope else self.hidden[a, v]
            S += np.outer(load, load)
        M = np.linalg.inv(np.eye(size) - B)
        C = M @ S @ M.T
        k = [at[v] for v in known]
        return np.linalg.solve(C[np.ix_(k, k)], C[k, at["Y"]])


def table(rows, names, good=None):
    "Rows as points, and their targets"
    keep = range(len(rows["Y"])) if good is None else good
    points = [{v: float(rows[v][i]) for v in names} for i in keep]
    return points, [float(rows["Y"][i]) for i in keep]


def taught(f, points, ys, like=None):
    "A process with these rows; with hyper-parameters of its own, or those of another one"
    gp = GP(f.width, doubt=1.0)
    for row, y in zip(f.encode(points), ys):
        gp.note(torch.from_numpy(row), y)
    if like is None:
        gp.fit(float(np.mean(ys)), float(np.std(ys)))
    else:
        gp.set(like.t, like.loc, like.scale, like.mean)
        gp.factor()
    return gp


def compare(rng, system, taker, giver, own_rows, repeats):
    "Errors without and with the rows of the other regime, in pairs"
    names = [*sorted(taker), *sorted(set().union(*taker.values()))]
    acts = {x: cb.Real(-2, 2) for x in sorted(taker)}
    f = Features(acts, {c: None for c in names if c not in acts})
    slopes, found, like = system.truth(taker, names), [], None
    for _ in range(repeats):
        own, lent = system.rows(rng, own_rows, taker), system.rows(rng, LENT, giver)
        probe = system.rows(rng, PROBES, taker)
        points, ys = table(own, names)
        good = [i for i in range(LENT) if all(abs(lent[x][i]) <= 2 for x in acts)]
        more, more_ys = table(lent, names, good)
        if like is None:
            f.learn(points)
            like = taught(f, points, ys)
        Z = torch.from_numpy(f.encode(table(probe, names)[0]))
        truth = sum(k * probe[v] for v, k in zip(names, slopes))
        errors = []
        for gp in (taught(f, points, ys, like), taught(f, points + more, ys + more_ys, like)):
            errors.append(float(np.mean((gp.posterior(Z)[0].numpy() - truth) ** 2)))
        found.append(errors)
    return np.array(found)


def judged(errors):
    "The mean logarithm of the ratio of the errors with and without the rows, and its spread"
    ratio = np.log(errors[:, 1] / errors[:, 0])
    return float(ratio.mean()), float(ratio.std(ddof=1))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--own", type=int, default=200)
    p.add_argument("--repeats", type=int, default=24)
    p.add_argument("--file", help="keep a row for each system")
    args = p.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rng, rows = np.random.default_rng(args.seed), []
    while len(rows) < args.count:
        names, g, taker, giver = question(rng)
        forged = len(rows) % 20 == 19
        if bool(cb.licence(g, giver, taker, "Y")) == forged:
            continue
        system = System(rng, names, g)
        effect, spread = judged(compare(rng, system, taker, giver, args.own, args.repeats))
        rows.append(dict(graph=str(g), taker=str(taker), giver=str(giver), forged=forged,
                         effect=round(effect, 4), spread=round(spread, 4)))  # fmt: skip
        print(len(rows), taker, "<-", giver, forged, f"{effect:.3f}", flush=True)
    for r in rows:
        se = r["spread"] / math.sqrt(args.repeats)
        r["chance"] = float(student.sf(r["effect"] / max(se, 1e-300), args.repeats - 1))
    if args.file:
        with open(args.file, "w", newline="") as f:
            out = csv.DictWriter(f, list(rows[0]))
            out.writeheader()
            out.writerows(rows)
    good = [r for r in rows if not r["forged"]]
    bad = [r for r in rows if r["forged"]]
    limit = 0.05 / len(rows)
    wrong = sum(r["chance"] < limit for r in good)
    caught = sum(r["chance"] < limit for r in bad)
    for name, part, number in (("licensed", good, wrong), ("forged", bad, caught)):
        effects = np.array([r["effect"] for r in part] or [0.0])
        print(f"{name}: {len(part)} systems, worse beyond noise {number}, error with the rows "
              f"{math.exp(effects.mean()):.2f} of that without, worst "
              f"{math.exp(effects.max()):.2f}")  # fmt: skip
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
