"""Play environments where looking is expensive, with and without costs in the choice of arm.

    python tools/priced.py FILE.csv --seeds 10 --steps 100 --minutes 20

The three ways to play have the same scopes and the same luck. `choice`: arms compete net of their
costs, and so does the answer. `answer`: only the answer knows the costs. `nowhere`: nobody does.
A row is one run at one time: the money spent so far, and what the recommendation is really worth
net of its cost, beside the best net value and what doing nothing is worth, all on the same units.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
import torch

import cocabo as cb

COSTS = {
    "fig1": {"C": 0.2},
    "psa_1": {"Age": 0.1, "BMI": 0.1},
    "psa_2": {"Age": 0.02, "BMI": 0.02},
    "cobo_good": {"C": 0.1},
}
UNITS = 400  # on which a recommendation is judged
JUDGED = 10**6  # seed of these units
EVERY = 5  # trials between two judgements


class Priced:
    "An environment with costs"

    def __init__(self, name, costs):
        env, p = cb.environments[name], cb.environments[name].problem
        self.env, self.sign = env, 1 if p.maximise else -1
        given = (p.graph, p.target, p.actions, p.contexts, p.maximise)
        self.problem = cb.Problem(*given, costs=costs)
        self.scopes = self.problem.scopes()
        self.draws = env.scm.draw(UNITS, JUDGED)
        alone = cb.policies.read_policy(p.graph)
        self.nothing = self.sign * float(np.mean(env.simulate(alone, self.draws)))
        self.best = max(self.net(env.policy(s)) for s in env.truths)

    def net(self, policy):
        "What a policy is really worth, net of its cost; larger is better"
        y = float(np.mean(self.env.simulate(policy, self.draws)))
        cost = self.problem.cost(policy.scope) if policy.scope else 0.0
        return self.sign * y - cost


def answer(priced, opt, way):
    "The recommendation"
    if way == "answer":
        knowing = cb.methods.Optimiser(priced.problem, priced.scopes, seed=opt.seed)
        knowing._state = opt._state
        opt = knowing
    policy = opt.best()
    return cb.Policy.from_json(policy.to_json()) if policy.scope else policy


def play(priced, way, seed, steps):
    "The rows of one run"
    env = priced.env
    problem = priced.problem if way == "choice" else env.problem
    opt = cb.methods.Optimiser(problem, priced.scopes, seed=seed)
    money, rows = 0.0, []
    for t in range(steps):
        trial = opt.ask()
        opt._step(env.episode(seed, t).choose(trial.scope), trial)
        money += priced.problem.cost(trial.scope)
        if (t + 1) % EVERY:
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
                )
            )
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("file", type=Path)
    p.add_argument("--environments", nargs="+", default=list(COSTS))
    p.add_argument("--seeds", type=int, default=10)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--minutes", type=float, default=20.0)
    args = p.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    end, new, writer = time.time() + 60 * args.minutes, not args.file.exists(), None
    made = {n: Priced(n, COSTS[n]) for n in args.environments}
    with open(args.file, "a", newline="") as out:
        for seed in range(args.first, args.first + args.seeds):
            for name, priced in made.items():
                if time.time() > end:
                    return
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
