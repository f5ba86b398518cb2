"""Play families of random systems, and keep what `best()` stated beside what is so.

    python tools/intervals.py FILE.csv --members report:0-7:2:40 report:systems:1:40 --minutes 60

Members are named as in tools/unseen.py: even numbers (`choose`) are for choosing, odd ones
(`report`) for reporting. A run is one of the default optimiser, with the member's number as its
seed. A row is one run at one time: the stated value and its standard error, what the recommended
policy is really worth, and the standard error of that. Members of `functions` are judged at 96
evenly spread contexts; those with a graph on 60 units, against the best policy on the same units.
With --states the rows of each run are kept, too, so that another answer can be judged on them.
Runs that are in the file already are not played again; after the given minutes nothing new begins.
"""

import argparse
import csv
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from unseen import listed

import cocabo as cb
from cocabo.random_systems import _from_uniform, scattered
from cocabo.scopes import Scope

TIMES = (20, 50, 100, 300)
CONTEXTS = 96
UNITS = 60
JUDGED = 10**6  # seed of the units


class Judge:
    "What a policy is really worth in an environment"

    def __init__(self, env):
        self.env, looks = env, env.problem.contexts
        self.units = None
        if env.name.startswith("functions"):
            self.units = [{}]
            if looks:
                U = scattered(CONTEXTS, len(looks), 0.37)
                columns = [_from_uniform(u, d).tolist() for u, d in zip(U.T, looks.values())]
                self.units = [dict(zip(looks, row)) for row in zip(*columns)]
        else:
            policy = env.policy(env.best)
            self.tops = np.array(self._followed(env.best, policy))

    def _followed(self, scope, policy):
        "The expected target of each unit"
        env, found = self.env, []
        for t in range(UNITS):
            played = env.episode(JUDGED, t).follow(policy)[:2]
            found.append(env.expected(scope, *played))
        return found

    def __call__(self, policy):
        "The worth, and its standard error"
        env, scope = self.env, policy.scope
        if not scope:
            return env.truths[Scope({})].value, 0.0
        if self.units is None:
            lost = self.tops - self._followed(scope, policy)
            return env.optimum - float(lost.mean()), float(lost.std() / UNITS**0.5)
        looks, got = set().union(*scope.values()), []
        for unit in self.units:
            seen = {c: unit[c] for c in looks}
            got.append(env.expected(scope, seen, policy(seen)))
        return float(np.mean(got)), 0.0


def play(name, states):
    "The rows of one run"
    env, seed, rows = cb.environments[name], int(name.split(":")[1]), []
    judge, opt = Judge(env), cb.CoCaBO(env.problem, seed=seed)
    while opt.told < TIMES[-1]:
        trial = opt.ask()
        opt._step(env.episode(seed, opt.told).choose(trial.scope), trial)
        if opt.told not in TIMES:
            continue
        began = time.perf_counter()
        policy = opt.best()
        took = time.perf_counter() - began
        worth, error = judge(policy)
        rows.append(
            dict(
                member=name,
                cell=env.about.split(":")[0],
                arms=len(opt.arms),
                seed=seed,
                n=opt.told,
                scope=str(policy.scope),
                best=str(env.best),
                value=round(policy.value, 5),
                error=round(policy.error, 5),
                true=round(worth, 5),
                se=round(error, 5),
                optimum=round(env.optimum, 5),
                seconds=round(took, 3),
            )
        )
    if states:
        states.mkdir(parents=True, exist_ok=True)
        kept = dict(member=name, rows=rows, state=opt.to_json())
        (states / f"{name.replace(':', '_')}.json").write_text(json.dumps(kept))
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("file", type=Path)
    p.add_argument("--members", nargs="+", required=True)
    p.add_argument("--states", type=Path)
    p.add_argument("--minutes", type=float, default=60.0)
    args = p.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done, new = set(), not args.file.exists()
    if not new:
        with open(args.file) as f:
            done = {r["member"] for r in csv.DictReader(f)}
    names = [n for m in args.members for n in listed(m) if n not in done]
    names = np.random.default_rng(0).permutation(names).tolist()  # if time runs out, some of all
    end, writer = time.time() + 60 * args.minutes, None
    with open(args.file, "a", newline="") as out:
        for k, name in enumerate(names):
            if time.time() > end:
                break
            try:
                rows = play(name, args.states)
            except Exception as e:  # one bad run should not end a night
                print(f"{name}: {type(e).__name__}: {e}", file=sys.stderr)
                continue
            if writer is None:
                writer = csv.DictWriter(out, fieldnames=list(rows[0]))
                if new:
                    writer.writeheader()
            writer.writerows(rows)
            out.flush()
            print(f"{k + 1} of {len(names)}: {name}", flush=True)


if __name__ == "__main__":
    main()
