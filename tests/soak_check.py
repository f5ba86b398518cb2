"""How often `Graph.check` raises an alarm, on random systems with hidden causes:

    python tests/soak_check.py [--count N] [--seed S] [--rows 100,300,1000] [--minutes M]
                               [--csv FILE]

Each system has 5 to 7 variables, at least one arrow and one hidden cause; its rows are checked
against the right graph, against one without one of its arrows, with one arrow turned round, and
without one of its hidden causes. Systems are linear with normal noise, linear with noise that is
uniform, heavy-tailed or skewed, or made of random waves with all these. Under the right graph the
share of systems with an alarm is to be at most the level, 5 %.

`visible` counts the wrong graphs that imply an independence which the true graph does not; no rows
can contradict the others. The file gets a line for each kind, number of rows and fault: that of
the notebook is nbs/data/check_power.csv. Exit code 1 if the level is more than 4 standard errors
too high in the linear systems.
"""

import argparse
import math
import sys
import time
from itertools import combinations

import numpy as np
import pandas as pd

from cocabo.graph import Graph
from cocabo.independence import implied

kinds = ("linear, normal noise", "linear, other noise", "waves, any noise")
faults = ("none", "an arrow is missing", "an arrow is turned round", "a hidden cause is missing")


def noise(rng, kind, n):
    "Noise with mean 0 and variance 1"
    form = "normal" if kind == kinds[0] else rng.choice(["uniform", "heavy", "skewed", "normal"])
    if kind == kinds[1] and form == "normal":
        form = "heavy"
    draws = {
        "normal": lambda: rng.standard_normal(n),
        "uniform": lambda: rng.uniform(-math.sqrt(3), math.sqrt(3), n),
        "heavy": lambda: rng.standard_t(4, n) / math.sqrt(2),
        "skewed": lambda: rng.exponential(size=n) - 1,
    }
    return draws[form]()


def random_graph(rng):
    "A graph with at least one arrow and one hidden cause"
    while True:
        names = [f"V{i}" for i in range(rng.integers(5, 8))]
        pairs = list(combinations(rng.permutation(names).tolist(), 2))
        g = Graph(
            nodes=names,
            directed=[e for e in pairs if rng.random() < 0.35],
            bidirected=[e for e in pairs if rng.random() < 0.12],
        )
        if g.directed and g.bidirected and implied(g)[0]:
            return g


def effect(rng, x, kind):
    "What one cause contributes: a line, or a line and a wave"
    slope = rng.choice([-1, 1]) * rng.uniform(0.4, 1)
    if kind != kinds[2]:
        return slope * x
    where = rng.uniform(0, 2 * math.pi)
    return 0.5 * slope * x + rng.uniform(0.5, 1) * np.sin(rng.uniform(0.8, 2) * x + where)


def sample(rng, g, kind, n):
    "Rows of a random system with this graph"
    hidden = {e: noise(rng, kind, n) for e in sorted(g.bidirected)}
    rows = {}
    for v in g.order():
        total = noise(rng, kind, n)
        for p in sorted(g.parents(v)):
            total = total + effect(rng, rows[p], kind)
        for e, u in hidden.items():
            if v in e:
                total = total + effect(rng, u, kind)
        rows[v] = (total - total.mean()) / total.std()
    return pd.DataFrame(rows)


def broken(rng, g, fault):
    "The graph with this fault, or None if that is not possible"
    if fault == faults[0]:
        return g
    if fault == faults[3]:
        gone = sorted(g.bidirected)[rng.integers(len(g.bidirected))]
        return Graph(nodes=g.nodes, directed=g.directed, bidirected=g.bidirected - {gone})
    for a, b in rng.permutation(sorted(g.directed)).tolist():
        rest = g.directed - {(a, b)}
        if fault == faults[1]:
            return Graph(nodes=g.nodes, directed=rest, bidirected=g.bidirected)
        try:
            return Graph(nodes=g.nodes, directed=rest | {(b, a)}, bidirected=g.bidirected)
        except ValueError:
            continue


def visible(wrong, g):
    "Does the wrong graph imply something that the true one does not?"
    return any(not g.separated(i.a, i.b, i.given) for i in implied(wrong)[0])


def play(seed, number, kind, n):
    "One system under each fault"
    for fault in faults:
        rng = np.random.default_rng([seed, number, n, kinds.index(kind)])
        g = random_graph(rng)
        rows = sample(rng, g, kind, n)
        wrong = broken(rng, g, fault)
        if wrong is None:
            continue
        found = wrong.check(rows, progress=False)
        yield dict(
            kind=kind,
            rows=n,
            fault=fault,
            visible=visible(wrong, g),
            alarm=bool(found.table.contradicted.any()),
            tests=len(found.table),
        )


def summary(records):
    "A line for each kind, number of rows and fault"
    t = pd.DataFrame(records)
    t["alarm_visible"] = t.alarm.where(t.visible)
    out = t.groupby(["kind", "rows", "fault"], sort=False).agg(
        systems=("alarm", "size"),
        tests=("tests", "mean"),
        visible=("visible", "sum"),
        alarm=("alarm", "mean"),
        alarm_if_visible=("alarm_visible", "mean"),
    )
    out = out.reset_index()
    out["error"] = (out.alarm * (1 - out.alarm) / out.systems) ** 0.5
    return out.round(4)


if __name__ == "__main__":
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--count", type=int, default=400)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--rows", default="100,300,1000")
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--csv")
    a = p.parse_args()
    start, records, i = time.time(), [], 0
    for i in range(a.count):
        for kind in kinds:
            for n in map(int, a.rows.split(",")):
                records += play(a.seed, i, kind, n)
        if a.csv and i % 10 == 9:
            summary(records).to_csv(a.csv, index=False)
        if time.time() - start > 60 * a.minutes:
            break
    out = summary(records)
    print(out.to_string())
    if a.csv:
        out.to_csv(a.csv, index=False)
    level = out[(out.fault == "none") & out.kind.str.startswith("linear")]
    allowed = 0.05 + 4 * (0.05 * 0.95 / level.systems) ** 0.5
    print(f"seed {a.seed}, {i + 1} systems of each kind, {time.time() - start:.0f} s")
    sys.exit(bool((level.alarm > allowed).any()))
