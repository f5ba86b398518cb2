"""Play families of random systems, and keep what each run lost: the evidence for the default.

    python tools/unseen.py FILE.csv --members choose:0-9:0:12 --methods default before

Members are `choose:CELLS:BLOCK:COUNT` (even numbers, which parts may be chosen on),
`report:CELLS:BLOCK:COUNT` (odd numbers), or `classics:FIRST:COUNT`. Cells are numbers of cells of
`functions`, or `systems` (those with one stage) or `staged` (those with two). Methods are
`default`, with options such as `default,told,start=2d+2,margin=0`, `before` and `before,told` (what
the default was until these families were looked at), `careful`, `expert` (BoTorch with UCB, told
the best arm), `improver` (the same with qLogNEI, for members without contexts), `tpe` (Optuna's
TPE, which has to be installed; told the best arm, looks at nothing) and `random`. Runs whose rows
are in the file already are not played again. A row holds, for one run at one time: the mean regret
of a trial so far, the simple regret (what `best()` loses on 64 fresh units), whether its scope is
worth .05 of the range less than the best one, the share of coordinates that were played at an end
where the peak is inside, and (`idle`) what doing nothing loses. The unit is what random actions
lose.
"""

import argparse
import csv
import math
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

import cocabo as cb
from cocabo.backends import BoTorchBackend
from cocabo.bandit import Pooled, underway
from cocabo.evidence import Prior
from cocabo.random_graphs import members as systems_of
from cocabo.random_systems import members
from cocabo.scopes import Scope
from cocabo.space import Integer, Real
from cocabo.ucb import Choice

UNITS = 64  # on which a recommendation is judged
JUDGED = 10**6  # seed of these units
END = 0.01  # of the range: nearer than this is an end
TIMES = (50, 100, 200, 300, 700)  # when a run is looked at, and at its end


def listed(text):
    "The names of members"
    kind, *rest = text.split(":")
    if kind == "classics":
        first, count = map(int, rest)
        return [f"classics:{k}" for k in range(first, first + count)]
    chosen, block, count = rest[0], int(rest[1]), int(rest[2])
    if chosen in ("systems", "staged"):
        return systems_of(chosen == "staged", block, kind == "report")[:count]
    low, _, high = chosen.partition("-")
    found = []
    for cell in range(int(low), int(high or low) + 1):
        found += members(cell, block, report=kind == "report")[:count]
    return found


@dataclass(frozen=True)
class Before(Pooled):
    "The arm rule until these families were looked at: the optimism of actions, a larger bonus"

    actions: int = 32
    bonus: float = 2.0

    def index(self, learner, rng=None):
        t = sum(a.plays for a in learner.arms)
        found = []
        for i, (a, judge) in enumerate(zip(learner.arms, self.judges(learner))):
            mean, sd = judge.posterior(underway(learner, i))
            value = judge.average((mean + math.sqrt(a.schedule.beta(a.n)) * sd).max(1))
            bonus = self.bonus * math.log(1 + t) * (learner.scale.top or 1.0)
            found.append(value + bonus / a.plays**2)
        return found


class Expert(BoTorchBackend):
    "BoTorch as an expert would set it up: a Sobol start of 2d + 2 over the whole box, then UCB"

    def maximise(self, context, beta=2.0, pending=(), rng=None):
        choice = super().maximise(context, beta, pending, rng)
        f = self.features
        k, d = len(self.ys) + len(pending), len(f.actions)
        if rng is None or k >= 2 * d + 2:
            return choice
        engine = torch.quasirandom.SobolEngine(d, scramble=True, seed=7).fast_forward(k)
        row = f.at(context)
        row[: f.split] = f.lift(engine.draw(1).numpy().astype(float))[0]
        return replace(choice, action=f.decode(row))


class Improver(Expert):
    "The expert with qLogNEI in place of UCB"

    def _search(self, model, looked, root, rng):
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.optim import optimize_acqf

        seen = torch.from_numpy(self._columns(self.points))
        acq = qLogNoisyExpectedImprovement(model, seen, prune_baseline=True)
        box = torch.from_numpy(np.stack([np.zeros_like(looked), np.ones_like(looked)]))
        return optimize_acqf(acq, box, q=1, num_restarts=8, raw_samples=128)[0].numpy()


class Parzen:
    "Optuna's TPE on the actions of one arm; it looks at nothing and has no model to be asked"

    def __init__(self, actions, contexts=(), scale=None):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=7)
        self.study = optuna.create_study(direction="maximize", sampler=sampler)
        self.space = {}
        for x, d in actions.items():
            if isinstance(d, Real):
                self.space[x] = optuna.distributions.FloatDistribution(d.low, d.high)
            elif isinstance(d, Integer):
                self.space[x] = optuna.distributions.IntDistribution(d.low, d.high)
            else:
                self.space[x] = optuna.distributions.CategoricalDistribution(d.values)

    def observe(self, point, y):
        self.study.tell(self.trial, y)

    def maximise(self, context, beta=1.0, pending=(), rng=None):
        self.trial = self.study.ask(self.space)
        return Choice(dict(self.trial.params), 0.0, 0.0, 1.0)

    def posterior(self, points):
        return np.zeros(len(points)), np.ones(len(points))


class Judged:
    "A member with what is needed to judge recommendations"

    def __init__(self, name):
        self.env = env = cb.environments[name]
        graph = name.startswith("systems")
        self.units = UNITS if graph or set().union(*env.best.values()) else 1
        played = self._played(env.policy(env.best))
        self.contexts = [seen for seen, _ in played]
        self.top = [env.expected(env.best, *p) for p in played]
        self.inside = self._inside([done for _, done in played])
        self.range = self._range()

    def _played(self, policy):
        "What a policy sees and sets, stage by stage, in each unit"
        found = []
        for t in range(self.units):
            found.append(self.env.episode(JUDGED, t).follow(policy)[:2])
        return found

    def _inside(self, acts):
        "The real actions of the best scope whose best values are inside, almost everywhere"
        found = []
        for x in self.env.best:
            d = self.env.problem.actions[x]
            if isinstance(d, Real):
                u = np.array([(a[x] - d.low) / (d.high - d.low) for a in acts])
                if np.mean((u < 0.05) | (u > 0.95)) < 0.1:
                    found.append(x)
        return found

    def _range(self):
        "Best minus worst target of the best scope, by random actions"
        env, rng = self.env, np.random.default_rng(0)
        low = math.inf
        for c in self.contexts[:16]:
            for _ in range(60):
                a = {x: env.problem.actions[x].from_unit(rng.random()) for x in env.best}
                low = min(low, env.expected(env.best, c, a))
        return max(self.top) - low

    def simple(self, opt):
        "What the recommendation loses, and whether its scope is a wrong one"
        policy, env = opt.best(), self.env
        if not policy.scope:
            return float(np.mean(self.top)) - env.truths[Scope({})].value, 1
        got = [env.expected(policy.scope, *p) for p in self._played(policy)]
        gap = env.optimum - env.value(policy.scope)
        return float(np.mean(self.top) - np.mean(got)), int(gap > 0.05 * self.range)


def before(env, seed, scopes):
    "What CoCaBO was made of until these families were looked at"
    opt = cb.CoCaBO(env.problem, seed=seed, scopes=scopes)
    recipe = opt.recipe.change(rule=Before(), schedule=2.0, start=0, margin=0.0, apart=1.0)
    return cb.CoCaBO(env.problem, seed=seed, recipe=recipe)


tellers = dict(expert=Expert, improver=Improver, tpe=Parzen)  # of methods that are told the arm
BLIND = "random", "tpe"  # they recommend nothing


def told(env, seed, backend):
    "A reference that is told the best arm"
    return cb.CoCaBO(env.problem, seed=seed, scopes=[env.best], backend=backend, schedule=2.0)


def number(text):
    "The value of an option"
    if text in sizes:
        return text
    value = float(text)
    return int(value) if value.is_integer() else value


sizes = {"d": lambda d: d, "d+1": lambda d: d + 1, "2d+2": lambda d: 2 * d + 2}


def made(text, env, seed):
    "The optimiser that a method's text describes: default,told,start=2d+2,bonus=2 and so on"
    kind, *options = text.split(",")
    scopes = [env.best] if "told" in options else None
    if kind == "random":
        return cb.RandomSearch(env.problem, seed=seed)
    if kind in tellers:
        return told(env, seed, tellers[kind])
    if kind == "before":
        return before(env, seed, scopes)
    o = {k: number(v) for k, v in (x.split("=") for x in options if "=" in x)}
    backend = "careful" if kind == "careful" else None
    recipe = cb.CoCaBO(env.problem, seed=seed, scopes=scopes, backend=backend).recipe
    pool = {k: o.pop(k) for k in ("bonus", "size", "actions", "sds") if k in o}
    recipe = recipe.change(rule=replace(recipe.rule, **pool), schedule=o.pop("beta", None))
    known = [k for k in ("length", "signal", "noise") if k in o]
    priors = {k: (o.pop(k), getattr(Prior(), k)[1]) for k in known}
    if "bowl" in o:
        priors["bowl"] = (o.pop("bowl"), 1.5)
    if priors:
        o["prior"] = Prior(**priors)
    for a in recipe.arms:
        mine = {k: sizes[v](len(a.scope)) if v in sizes else v for k, v in o.items()}
        recipe = recipe.change(arm=a.scope, **mine)
    return cb.CoCaBO(env.problem, seed=seed, recipe=recipe)


def play(judged, method, seed, steps):
    "The rows of one run"
    env = judged.env
    opt = made(method, env, seed)
    regret, ends, rows, took = [], [], [], 0.0
    for t in range(steps):
        began = time.perf_counter()
        trial = opt.ask()
        took += time.perf_counter() - began
        _, more = opt._step(env.episode(seed, t).choose(trial.scope), trial)
        took += more
        regret.append(env.optimum - env.expected(trial.scope, trial.contexts, trial.actions))
        if trial.scope == env.best:
            for x in judged.inside:
                d = env.problem.actions[x]
                u = (trial.actions[x] - d.low) / (d.high - d.low)
                ends.append(u < END or u > 1 - END)
        if t + 1 in TIMES or t + 1 == steps:
            idle = env.truths.get(Scope({}))
            simple, wrong = (math.nan, 0) if method in BLIND else judged.simple(opt)
            rows.append(
                dict(
                    member=env.name,
                    cell=env.about.split(":")[0],
                    method=method,
                    seed=seed,
                    at=t + 1,
                    regret=round(float(np.mean(regret)), 5),
                    simple=round(simple, 5),
                    wrong=wrong,
                    ends=round(float(np.mean(ends)), 4) if ends else "",
                    range=round(judged.range, 4),
                    seconds=round(took, 3),
                    idle="" if idle is None else round(env.optimum - idle.value, 5),
                )
            )
    return rows


def work(name, todo, steps):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    judged = Judged(name)
    rows = []
    for method, seed in todo:
        try:
            rows += play(judged, method, seed, steps)
        except Exception as e:  # one bad run should not end a night
            print(f"{name} {method} {seed}: {type(e).__name__}: {e}", file=sys.stderr)
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("file", type=Path)
    p.add_argument("--members", nargs="+", required=True)
    p.add_argument("--methods", nargs="+", required=True)
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--jobs", type=int, default=1)
    args = p.parse_args()
    from joblib import Parallel, delayed

    done = set()
    if args.file.exists():
        with open(args.file) as f:
            done = {
                (r["member"], r["method"], int(r["seed"]))
                for r in csv.DictReader(f)
                if int(r["at"]) >= args.steps
            }
    names = [n for m in args.members for n in listed(m)]
    todo = []
    for n in names:
        mine = [(m, s) for m in args.methods for s in range(args.seeds) if (n, m, s) not in done]
        if mine:
            todo.append((n, mine))
    began, new = time.time(), not args.file.exists()
    out = open(args.file, "a", newline="")
    writer = None
    jobs = Parallel(n_jobs=args.jobs, return_as="generator_unordered")
    for k, rows in enumerate(jobs(delayed(work)(n, mine, args.steps) for n, mine in todo)):
        if rows and writer is None:
            writer = csv.DictWriter(out, fieldnames=list(rows[0]))
            if new:
                writer.writeheader()
        for r in rows:
            writer.writerow(r)
        out.flush()
        print(f"{k + 1} of {len(todo)} members, {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
