"""Ask for advice on runs that were kept, and write down what it said and what is so.

    python tools/intervals.py RUNS.csv --members report:0-7:2:40 --states FOLDER --minutes 60
    python tools/advised.py FILE.csv --states FOLDER --at 20 50 100 --minutes 20

The runs are those that tools/intervals.py kept: even members for choosing constants, odd ones for
reporting. A row is one run at one time: what the advice said (the chance that the leading scope is
the best, the gain that is left, its bound, half of the interval of the value), and the truth
(whether the scope is the best one, within .001, and what the policy really loses). Bound and chance
are kept for several widths, among which `_SAFE` is chosen. Whether a study is told to stop follows
from the bound for any tolerance, so it is not kept. Runs that are in the file already are left
alone; after the given minutes nothing new begins.
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
from intervals import Judge

import cocabo as cb
from cocabo import advice as module
from cocabo.saving import _build

WIDTHS = (1.0, 1.25, 1.5, 2.0)  # for which bound and chance are kept


def then(state, n):
    "The optimiser as it was after n experiments"
    return _build({**state, "rows": state["rows"][:n], "open": [], "asked": n})


def row(env, opt, kept):
    "What the advice would say, beside the truth"
    policy = opt.best()
    leading = module._leading(opt, policy)
    if leading is None:
        return None
    began = time.perf_counter()
    luck = np.random.default_rng([opt.seed, opt.told])
    worlds = module._possible(opt, leading, luck, WIDTHS)
    took = time.perf_counter() - began
    same = str(policy.scope) == kept["scope"]
    worth = kept["true"] if same else Judge(env)(policy)[0]
    top, out = max(env.value(a.scope) for a in opt.arms), []
    for name in module._beaten(opt, leading, worlds, None):
        out.append(name)
    found = dict(
        member=env.name,
        cell=env.about.split(":")[0],
        arms=len(opt.arms),
        at=opt.told,
        leading=str(policy.scope),
        right=int(top - env.value(policy.scope) < 1e-3),
        gain=round(float(worlds.gain(1.0).mean()), 5),
        loses=round(env.optimum - worth, 5),
        half=round(1.96 * policy.error, 5),
        out=len(out),
        best_out=int(str(env.best) in out),
        seconds=round(took, 3),
    )
    for w in WIDTHS:
        shares = np.bincount(worlds.best[w].argmax(0), minlength=len(opt.arms))
        found[f"chance_{w:g}"] = round(float(shares[leading] / shares.sum()), 4)
        found[f"bound_{w:g}"] = round(float(np.quantile(worlds.gain(w), 0.95)), 5)
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("file", type=Path)
    p.add_argument("--states", type=Path, required=True)
    p.add_argument("--at", nargs="+", type=int, default=[20, 50, 100])
    p.add_argument("--several", action="store_true", help="only runs with several scopes")
    p.add_argument("--minutes", type=float, default=20.0)
    args = p.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done, new = set(), not args.file.exists()
    if not new:
        with open(args.file) as f:
            done = {r["member"] for r in csv.DictReader(f)}
    files = sorted(args.states.glob("*.json"))
    files = [files[k] for k in np.random.default_rng(0).permutation(len(files))]
    end, writer = time.time() + 60 * args.minutes, None
    with open(args.file, "a", newline="") as out:
        for path in files:
            if time.time() > end:
                break
            run = json.loads(path.read_text())
            few = args.several and len(run["state"]["recipe"]["arms"]) < 2
            if run["member"] in done or few:
                continue
            env = cb.environments[run["member"]]
            for kept in run["rows"]:
                if kept["n"] not in args.at:
                    continue
                found = row(env, then(run["state"], kept["n"]), kept)
                if found is None:
                    continue
                if writer is None:
                    writer = csv.DictWriter(out, fieldnames=list(found))
                    if new:
                        writer.writeheader()
                writer.writerow(found)
            out.flush()
            print(run["member"], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
