"""An optimiser rebuilt from its history, and one loaded from its file, suggest what it would.

    python tests/soak_rebuild.py --at 50 300 700
"""

import argparse
import copy
import tempfile
import time
from pathlib import Path

import torch

import cocabo as cb

torch.set_num_threads(1)


def suggestions(opt, env, count=3):
    "What the optimiser would do in the next trials"
    found = []
    for k in range(count):
        trial = opt.ask()
        e = env.episode(77, k).choose(trial.scope)
        while not trial.ready:
            e.set(trial.act(e.observe(trial.needs) if trial.needs else {}))
        found.append((str(trial.scope), trial.actions, trial.choice.ucb))
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--at", type=int, nargs="*", default=[50, 300])
    p.add_argument("--environments", default="fig1,psa_2,mixed,two_stage,toy_cbo")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in args.environments.split(","):
            env = cb.environments[name]
            opt = cb.CoCaBO(env.problem, seed=3)
            for n in args.at:
                opt.run(env, n - opt.told, seed=n, progress=False)
                opt.save(Path(folder) / f"{name}.json")
                loaded, rebuilt = cb.load(Path(folder) / f"{name}.json"), copy.deepcopy(opt)
                began = time.time()
                rebuilt.learner  # noqa: B018, learns everything anew
                took = time.time() - began
                expected = suggestions(copy.deepcopy(opt), env)
                live = suggestions(opt, env)
                same = live == expected == suggestions(rebuilt, env) == suggestions(loaded, env)
                assert same, f"{name} after {n}: another suggestion"
                for number in list(opt.open):
                    opt.drop(number)
                print(f"{name} after {n}: identical to the last bit; rebuilt in {took:.1f} s")


if __name__ == "__main__":
    main()
