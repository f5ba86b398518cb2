"""The long runs behind "The theory, executed", each from its seeds:

    python tests/soak_theory.py TASK [--runs N] [--steps T] [--seed S] [--folder DIR]

events   how often each event of the proof fails in runs on functions drawn from the prior, with
         beta, rho or the bound itself at 1 and at smaller parts of it     -> DIR/events.csv
regret   Algorithm 2 with the theorem's and with a practical schedule, and the default arm rule:
         2, 5, 10 arms, 1 and 2 action columns         -> DIR/regret.csv and DIR/last.csv
default  how often bounds with a constant beta fail, under the default and the paper's arm rule,
         and how many runs end on a wrong arm                              -> DIR/default.csv
gaps     the same as regret for two arms whose gap is within a tenth of 2, 1, …, 1/32
                                                                           -> DIR/gaps.csv

Without --folder nothing is written. Exit code 1 if an event fails more often than it may with the
constants that the theorem asks for.
"""

import argparse
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from cocabo.gridplay import Algorithm2, Common, Parts, Table, phi_for, play, steep, values
from cocabo.optimism import Practical
from cocabo.theory import Setting, gamma, worst_case

parts = [1, 0.7, 0.5, 0.35, 0.25, 0.18, 0.125, 0.09, 0.06, 0.04, 0.03, 0.02, 0.01, 0.005]


def at_level(setting):
    """The setting with the phi that makes Assumption 2 true where the proof uses it."""
    level = setting.delta / (4 * setting.arms)
    found = phi_for(steep(setting, 100_000), setting.columns, level)
    return replace(setting, phi=round(found, 3))


def gains(setting, most):
    """Upper bounds of gamma(1), …, gamma(most): each that of the next of some numbers."""
    knots = sorted({min(most, math.ceil(1.08**k)) for k in range(200)})
    high = np.array([gamma(setting, n).high for n in knots])
    return high[np.searchsorted(knots, np.arange(1, most + 1))]


def row(check, part, failed, steps, delta):
    return dict(
        check=check,
        part=part,
        runs=len(failed),
        failed=int(np.sum(failed)),
        delta=delta,
        steps=steps,
    )


def ratios(check, ratio, steps, delta):
    """An inequality that reads ratio <= 1: how often ratio <= part fails."""
    ratio = np.asarray(ratio)
    every = [*parts, 0.003, 0.001, 3e-4, 1e-4]
    return [row(check, p, ratio > p, steps, delta) for p in every]


def one_arm(a, setting, part, high, F, seed):
    """Which of the statements about one arm fail in one run, and ratios that need no shrinking:
    the lemmas with delta/(2 arms), as the proof uses them."""
    m, delta, n = setting.arms, setting.delta, np.arange(1, a.steps + 1)
    run = play(a.table, F[None], Algorithm2(Parts(setting, part)), a.steps, seed)
    pi = np.pi**2 * n**2 / 6
    beta = np.array([part * setting.schedule.beta(k) for k in n])
    slope = setting.phi * math.sqrt(math.log(4 * m * setting.columns * setting.psi / delta))
    lower = run.bound - 2 * np.sqrt(beta) * run.sd
    mean, bounds = run.best.cumsum() / n, run.bound.cumsum() / n
    width = np.sqrt(setting.capacity * beta * high / n)
    failed = {
        "(16): f is above its lower bound": (run.f < lower - 1e-9).any(),
        "(17): f* is below its upper bound": (run.best > run.bound + slope / (m * pi)).any(),
        "the event as printed: f* for f": (run.best < lower - 1e-9).any(),
        "the running mean is not too low": (bounds < mean - slope / (m * n)).any(),
        "the running mean is not too high": (bounds > mean + width).any(),
    }
    failed["(16) and (17)"] = any(list(failed.values())[:2])
    variance = (run.sd**2).cumsum() / (setting.capacity / 4 * high)
    luck = (run.regret - (run.best - run.f)).cumsum()  # one arm has no gap
    action = setting.d * setting.phi * math.sqrt(math.log(4 * m * setting.columns / delta))
    chance = luck / (action * np.sqrt(2 * n * np.log(2 * m * pi / delta)))
    return failed, variance.max(), chance.max()


def hoeffding(setting, F, rng, steps):
    """The largest part of Lemma 3's bound that a running mean of f* needs, for each function."""
    n = np.arange(1, steps + 1)
    pi = np.pi**2 * n**2 / 6
    inner = np.log(4 * setting.arms * (setting.looks * setting.psi + 2 * pi) / setting.delta)
    width = setting.looks * setting.phi * inner / np.sqrt(2 * n)
    found = []
    for f in F:
        best = f.max(0)
        drawn = best[rng.integers(len(best), size=steps)]
        found.append((np.abs(drawn.cumsum() / n - best.mean()) / width).max())
    return found


def two_arms(a, setting, part, high, F, seed):
    """Was a bad arm played too often, and the largest part of the regret's bound that is needed."""
    T = 5 * a.steps
    run = play(a.table, F, Algorithm2(Parts(setting, part, part)), T, seed)
    gap = values(F).max() - values(F)
    s, failed = setting.schedule, False
    for i in np.flatnonzero(gap):
        n = int((run.arm == i).sum())
        gained = setting.capacity * part * s.beta(n) * high[n - 1]
        failed |= math.sqrt(n - 1) * gap[i] > math.sqrt(gained) + 2 * part * s.margin(n)
    t = np.unique(np.geomspace(2, T, 12).astype(int))
    regret = run.regret.cumsum().to_numpy()[t - 1]
    bound = [worst_case(setting, int(k), gap, high[math.ceil(k / 2) - 1]).total for k in t]
    return failed, (regret / bound).max()


def events(a):
    setting = at_level(Setting())
    a.table = Table(setting, a.points)
    high, delta, rows = gains(setting, 5 * a.steps), setting.delta, []
    one = delta / (2 * setting.arms)
    F = a.table.draw(2 * a.runs, np.random.default_rng(a.seed)).reshape(
        a.runs, 2, a.table.actions, a.table.contexts
    )
    for part in tqdm(parts):
        found = []
        for k in range(a.runs):
            found.append(one_arm(a, setting, part, high[: a.steps], F[k, 0], a.seed + k))
        for check in found[0][0]:
            failed = [f[check] for f, _, _ in found]
            rows.append(row(check, part, failed, a.steps, one))
        if part == 1:
            rows += ratios("variances and information", [v for _, v, _ in found], a.steps, one)
            rows += ratios("the luck of the contexts", [c for _, _, c in found], a.steps, 2 * one)
        both = [two_arms(a, setting, part, high, F[k], a.seed + k) for k in range(a.runs)]
        rows.append(row("plays of a bad arm", part, [f for f, _ in both], 5 * a.steps, delta))
        if part == 1:
            rows += ratios("the regret", [r for _, r in both], 5 * a.steps, 2 * delta)
    rng = np.random.default_rng(a.seed + 1)
    ratio = hoeffding(setting, F[:, 0], rng, 10 * a.steps)
    rows += ratios("the running mean of f*", ratio, 10 * a.steps, one)
    sup = steep(setting, 100 * a.runs, seed=a.seed + 2)
    for level, name in ((delta, "delta"), (delta / (4 * setting.arms), "delta/4m")):
        limit = setting.phi * math.sqrt(math.log(setting.columns / level))
        rows += ratios(f"derivatives, at {name}", sup / limit, 0, level)
    table = pd.DataFrame(rows).assign(seed=a.seed)
    whole = table[(table.part == 1) & ~table.check.str.contains("printed|at delta$")]
    spread = np.sqrt(whole.delta * (1 - whole.delta) / whole.runs)
    return dict(events=table), (whole.failed / whole.runs > whole.delta + 3 * spread).any()


def rules(setting):
    return {
        "theorem": Algorithm2(Parts(setting)),
        "practical": Algorithm2(Practical(4.0)),
        "default": Common(),
    }


def played(table, F, player, steps, seed, **facts):
    """One run: its regret at some times, and what was played."""
    run = play(table, F, player, steps, seed)
    gap = values(F).max() - values(F)
    total = run.regret.cumsum().to_numpy()
    bad = (gap[run.arm] > 0).cumsum()
    some = [t for t in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10**4) if t <= steps]
    curve = [dict(**facts, T=t, regret=total[t - 1], bad=int(bad[t - 1])) for t in some]
    for c in curve:
        c |= dict(seed=seed, gaps=gap.sum(), inverse=(1 / gap[gap > 0]).sum())
    return curve


def regret(a):
    curves = []
    cases = [(m, d) for d in (1, 2) for m in (2, 5, 10)]
    for m, d in tqdm(cases):
        setting = at_level(Setting(arms=m, d=d))
        table = Table(setting, a.points)
        for k in range(a.runs):
            F = table.draw(m, np.random.default_rng(a.seed + k))
            for name, rule in rules(setting).items():
                facts = dict(arms=m, d=d, phi=setting.phi, rule=name)
                curves += played(table, F, rule, a.steps, a.seed + k, **facts)
    curves = pd.DataFrame(curves)
    last = curves[curves["T"] == curves["T"].max()].round(4)
    keys = ["arms", "d", "phi", "rule", "T"]
    means = curves.groupby(keys, sort=False).agg(
        regret=("regret", "mean"), error=("regret", "sem"), bad=("bad", "mean")
    )
    return dict(regret=means.round(3).reset_index(), last=last), False


def pair(table, gap, rng):
    """Two functions from the prior whose gap is within a tenth of `gap`."""
    while True:
        F = table.draw(2, rng)
        if 0.9 * gap < abs(np.subtract(*values(F))) < 1.1 * gap:
            return F


def gaps(a):
    setting, rows = at_level(Setting()), []
    table = Table(setting, a.points)
    for gap in tqdm([2.0 / 2**k for k in range(7)]):
        for k in range(a.runs):
            F = pair(table, gap, np.random.default_rng(a.seed + k))
            for name, rule in rules(setting).items():
                facts = dict(gap=gap, phi=setting.phi, rule=name)
                rows += played(table, F, rule, a.steps, a.seed + k, **facts)
    rows = pd.DataFrame(rows)
    rows = rows[rows["T"] == rows["T"].max()]
    means = rows.groupby(["gap", "phi", "rule", "T"], sort=False).agg(
        regret=("regret", "mean"),
        error=("regret", "sem"),
        bad=("bad", "mean"),
        bad_error=("bad", "sem"),
        runs=("bad", "size"),
    )
    return dict(gaps=means.round(3).reset_index()), False


def default(a):
    setting, rows = Setting(), []
    table = Table(setting, a.points)
    kinds = {"default": Common, "paper": Algorithm2}
    for beta, name in tqdm([(b, k) for b in (1.0, 4.0, 16.0, 64.0) for k in kinds]):
        for k in range(a.runs):
            F = table.draw(2, np.random.default_rng(a.seed + k))
            run = play(table, F, kinds[name](Practical(beta)), a.steps, a.seed + k)
            below = run.f < run.bound - 2 * math.sqrt(beta) * run.sd - 1e-9
            above = run.best > run.bound + 1e-9
            gap = values(F).max() - values(F)
            late = run.arm[-a.steps // 10 :]
            rows.append(
                dict(
                    rule=name,
                    beta=beta,
                    runs=1,
                    runs_16=int(below.any()),
                    runs_17=int(above.any()),
                    steps_16=below.mean(),
                    steps_17=above.mean(),
                    wrong=int((gap[late] > 0.05).mean() > 0.5),
                    regret=run.regret.sum(),
                )
            )
    sums = pd.DataFrame(rows).groupby(["rule", "beta"], sort=False)
    how = dict(runs="sum", runs_16="sum", runs_17="sum", steps_16="mean", steps_17="mean")
    found = sums.agg({**how, "wrong": "sum", "regret": "mean"})
    found["error"] = sums.regret.sem()
    return dict(default=found.round(5).reset_index().assign(steps=a.steps)), False


tasks = dict(
    default=(default, 200, 1000),
    events=(events, 400, 200),
    regret=(regret, 20, 5000),
    gaps=(gaps, 20, 5000),
)

if __name__ == "__main__":
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("task", choices=tasks)
    p.add_argument("--runs", type=int, help="functions for each case")
    p.add_argument("--steps", type=int, help="experiments of a run")
    p.add_argument("--points", type=int, default=400, help="of an arm's grid")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--folder", type=Path, help="where the tables are written")
    a = p.parse_args()
    task, runs, steps = tasks[a.task]
    a.runs, a.steps = a.runs or runs, a.steps or steps
    tables, wrong = task(a)
    for name, table in tables.items():
        if not a.folder:
            print(table.to_string(max_rows=400))
        else:
            a.folder.mkdir(parents=True, exist_ok=True)
            table.to_csv(a.folder / f"{name}.csv", index=False)
    sys.exit(bool(wrong))
