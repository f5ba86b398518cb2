"""Play environments where looking is expensive, with and without costs in the choice of arm.

    python tools/priced.py FILE.csv --members report:0:2:12 --environments fig1 --minutes 20

Environments have the costs in `COSTS`. Members of `functions` (named as in tools/unseen.py; those
with one arm that looks at something) get a cost for each context: what looking at it is worth, for
those who look at all others too, times a half or times one and a half, by turns of a coin. Their
arms are all scopes that look at some of the contexts. The three ways to play have the same scopes
and the same luck. `choice`: arms compete net of their costs, and so does the answer. `answer`: only
the answer knows the costs. `nowhere`: nobody does. A row is one run at one time: the money spent so
far, and what the recommendation is really worth net of its cost, beside the best net value and what
doing nothing is worth, all on the same units.
"""

import argparse
import csv
import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from unseen import listed

import cocabo as cb
from cocabo.random_systems import scattered

COSTS = {
    "fig1": {"C": 0.2},
    "psa_1": {"Age": 0.1, "BMI": 0.1},
    "psa_2": {"Age": 0.02, "BMI": 0.02},
    "cobo_good": {"C": 0.1},
}
UNITS = 400  # on which a recommendation is judged
JUDGED = 10**6  # seed of these units
TIMES = (10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600)  # at which it is judged
SIDE = 12  # contexts of a member are judged at as many values each
TRIED = 1500  # actions among which the best is looked for, before it is polished


class Known:
    "An environment with given costs"

    def __init__(self, name):
        self.env, p = cb.environments[name], cb.environments[name].problem
        self.sign = 1 if p.maximise else -1
        given = (p.graph, p.target, p.actions, p.contexts, p.maximise)
        self.problem = cb.Problem(*given, costs=COSTS[name])
        self.scopes = self.problem.scopes()
        self.draws = self.env.scm.draw(UNITS, JUDGED)
        alone = cb.policies.read_policy(p.graph)
        self.nothing = self.sign * float(np.mean(self.env.simulate(alone, self.draws)))
        self.best = max(self.net(self.env.policy(s)) for s in self.env.truths)
        self.dear = ""

    def net(self, policy):
        "What a policy is really worth, net of its cost; larger is better"
        y = float(np.mean(self.env.simulate(policy, self.draws)))
        cost = self.problem.cost(policy.scope) if policy.scope else 0.0
        return self.sign * y - cost


class Member:
    "A member of `functions` with one arm, whose looks get costs"

    def __init__(self, name):
        self.env, p = cb.environments[name], cb.environments[name].problem
        self.full = next(s for s in self.env.truths if s)
        self.looks, self.acts = list(p.contexts), list(p.actions)
        side = (np.arange(SIDE) + 0.5) / SIDE
        grid = np.meshgrid(*[side] * len(self.looks), indexing="ij")
        self.seen = {c: g.ravel() for c, g in zip(self.looks, grid)}
        subsets = [s for k in range(len(self.looks) + 1) for s in combinations(self.looks, k)]
        worth = {s: self._top(s) for s in subsets}
        every, rng = tuple(self.looks), np.random.default_rng(int(name.split(":")[1]))
        costs, self.dear = {}, 0
        for c in self.looks:
            gain = worth[every] - worth[tuple(d for d in every if d != c)]
            dear = bool(rng.integers(2))
            costs[c] = max(gain, 0.01) * (1.5 if dear else 0.5)
            self.dear += dear
        self.scopes = [cb.Scope({x: s for x in self.acts}) for s in subsets]
        given = (p.graph, p.target, p.actions, p.contexts)
        self.problem = cb.Problem(*given, scopes=[str(s) for s in self.scopes], costs=costs)
        self.free = cb.Problem(*given, scopes=[str(s) for s in self.scopes])
        self.nothing = 0.0
        self.best = max(w - sum(costs[c] for c in s) for s, w in worth.items())

    def _at(self, U):
        "The expected target of actions (rows) at all contexts (columns)"
        f, n = self.env.truths[self.full].expected, len(next(iter(self.seen.values())))
        values = {x: np.repeat(U[:, j], n) for j, x in enumerate(self.acts)}
        values |= {c: np.tile(v, len(U)) for c, v in self.seen.items()}
        return np.asarray(f(*[values[k] for k in f.parents])).reshape(len(U), n)

    def _top(self, looks):
        "What the best policy with these looks is worth"
        axes = tuple(k for k, c in enumerate(self.looks) if c not in looks)
        shape = (-1, *[SIDE] * len(self.looks))

        def valued(U):
            F = self._at(U).reshape(shape)
            return F.mean(tuple(a + 1 for a in axes)).reshape(len(U), -1)

        U = scattered(TRIED, len(self.acts))
        F = valued(U)
        best, at = F.max(0), U[F.argmax(0)]
        for reach in (0.05, 0.015, 0.005):
            for k in range(len(best)):
                step = reach * (2 * scattered(60, len(self.acts)) - 1)
                near = np.clip(at[k] + step, 0, 1)
                G = valued(near)[:, k]
                if G.max() > best[k]:
                    best[k], at[k] = G.max(), near[G.argmax()]
        return float(best.mean())

    def net(self, policy):
        "What a policy is really worth, net of its cost"
        if not policy.scope:
            return self.nothing
        looks = set().union(*policy.scope.values())
        f, rows, known = self.env.truths[self.full].expected, [], {}
        for k in range(SIDE ** len(self.looks)):
            unit = {c: float(v[k]) for c, v in self.seen.items()}
            key = tuple(unit[c] for c in sorted(looks))
            if key not in known:
                known[key] = policy({c: unit[c] for c in looks})
            rows.append({**unit, **known[key]})
        columns = [np.array([r[n] for r in rows]) for n in f.parents]
        return float(np.mean(f(*columns))) - self.problem.cost(policy.scope)


def answer(priced, opt, way):
    "The recommendation"
    if way == "answer":
        knowing = cb.methods.Optimiser(priced.problem, priced.scopes, seed=opt.seed)
        knowing._state = opt._state
        opt = knowing
    policy = opt.best()
    known = isinstance(priced, Known) and policy.scope
    return cb.Policy.from_json(policy.to_json()) if known else policy


def play(priced, way, seed, steps):
    "The rows of one run"
    env = priced.env
    free = priced.free if isinstance(priced, Member) else env.problem
    opt = cb.methods.Optimiser(
        priced.problem if way == "choice" else free, priced.scopes, seed=seed
    )
    money, rows = 0.0, []
    for t in range(steps):
        trial = opt.ask()
        opt._step(env.episode(seed, t).choose(trial.scope), trial)
        money += priced.problem.cost(trial.scope)
        if t + 1 not in TIMES:
            continue
        ways = [way] if way == "choice" else ["answer", "nowhere"]
        for w in ways:
            policy = answer(priced, opt, w)
            rows.append(
                dict(
                    environment=env.name,
                    way=w,
                    seed=seed,
                    at=t + 1,
                    money=round(money, 4),
                    scope=str(policy.scope),
                    net=round(priced.net(policy), 5),
                    best=round(priced.best, 5),
                    nothing=round(priced.nothing, 5),
                    dear=priced.dear,
                    looks=";".join(f"{c}={v:.4f}" for c, v in priced.problem.costs.items()),
                )
            )
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("file", type=Path)
    p.add_argument("--environments", nargs="*", default=[])
    p.add_argument("--members", nargs="*", default=[])
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--minutes", type=float, default=20.0)
    args = p.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    end, new, writer = time.time() + 60 * args.minutes, not args.file.exists(), None
    names = [*args.environments, *(n for m in args.members for n in listed(m))]
    with open(args.file, "a", newline="") as out:
        for name in names:
            if name not in COSTS and not cb.environments[name].problem.contexts:
                continue
            if time.time() > end:
                return
            priced = Known(name) if name in COSTS else Member(name)
            for seed in range(args.first, args.first + args.seeds):
                rows = []
                for way in ("choice", "nowhere"):
                    rows += play(priced, way, seed, args.steps)
                if writer is None:
                    writer = csv.DictWriter(out, fieldnames=list(rows[0]))
                    if new:
                        writer.writeheader()
                writer.writerows(rows)
                out.flush()
                print(f"{name}, seed {seed}", flush=True)


if __name__ == "__main__":
    main()
