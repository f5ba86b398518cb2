"""Times and memory of `pomps`, one process for each case, as rows of a table:

    python tools/scope_times.py FILE.csv [--cases fan,chain] [--before DIR] [--cap SECONDS]

--before DIR   also run each case with the package that lies in DIR, right before ours, so that a
               ratio compares two runs of the same minute
--cap SECONDS  a run that takes longer is stopped and has no seconds in the table (default 60)

Cases:

fan      each action acts through a context of its own: k! orders
tower    a chain of actions, each with a context and a hidden cause in common with the target
tied     a chain of actions, each with a hidden cause in common with the next
plain    a chain without hidden causes, every second variable an action
beside   100 variables, 33 actions, 4 of them causes of the target
paper    the 87 variables, with 2 and with 29 actions
sparse   1,000 variables, 20 actions near the target, some hidden causes; ten seeds
bnlearn  the networks that pgmpy ships as BIF, with 2 to 20 actions near a target deep in the
         network, a third of its other ancestors hidden
jobs     towers with one and with two processes

`seconds` are those of a clock, `cpu` those of the processors: of this process, and of its helpers
divided by their number. On a machine with other work only `cpu` can be compared, and with two
processes it is what the search would take if a processor were free for each.
"""

import argparse
import csv
import gzip
import importlib.util
import json
import os
import random
import re
import resource
import subprocess
import sys
import time
from pathlib import Path


def fan(k):
    names = range(k)
    edges = [(f"X{i}", f"C{i}") for i in names] + [(f"C{i}", "Y") for i in names]
    return edges, [], "Y", [f"X{i}" for i in names], None


def tower(k):
    acts = [f"X{i}" for i in range(k)]
    edges = list(zip(acts, [*acts[1:], "Y"])) + [(f"C{i}", x) for i, x in enumerate(acts)]
    return edges, [(x, "Y") for x in acts], "Y", acts, None


def tied(k):
    acts = [f"X{i}" for i in range(k)]
    after = [*acts[1:], "Y"]
    return list(zip(acts, after)), list(zip(acts, after)), "Y", acts, None


def plain(n):
    names = [f"V{i}" for i in range(n)]
    return list(zip(names, names[1:])), [], names[-1], names[:-1:2], None


def random_edges(rng, names, n):
    pairs = (sorted(rng.sample(range(len(names)), 2)) for _ in range(n))
    return sorted({(names[i], names[j]) for i, j in pairs})


def above(edges, y):
    "The ancestors of y, near ones first"
    parents = {}
    for a, b in edges:
        parents.setdefault(b, []).append(a)
    seen, wave = [y], [y]
    while wave:
        wave = sorted({p for v in wave for p in parents.get(v, ())} - set(seen))
        seen += wave
    return seen[1:]


def beside(seed):
    rng = random.Random(seed)
    names = [f"V{i}" for i in range(100)]
    up = []
    while len(up) < 4:
        edges = random_edges(rng, names, 150)
        up = above(edges, "V90")
    rest = sorted({*names} - {*up, "V90"})
    return edges, [], "V90", rng.sample(sorted(up), 4) + rng.sample(rest, 29), None


def paper(k):
    xt, ct = [f"Xt{j}" for j in range(27)], [f"Ct{i}" for i in range(50)]
    line = ["C0", "C1", "C2", "C3", "C4", "C5", "C6", "X2", "Y"]
    edges = list(zip(line, line[1:])) + [("C1", "X2"), ("C1", "Y"), ("X1", "X2")]
    edges += [(x, "C5") for x in xt] + [(c, x) for c in ct for x in xt]
    acts = ["X1", "X2", *xt][:k]
    return edges, [("X1", "C1"), ("X2", "Y")], "Y", acts, [f"C{i}" for i in range(7)] + ct


def sparse(seed):
    rng = random.Random(seed)
    names = [f"V{i}" for i in range(1000)]
    up = []
    while len(up) < 40:
        edges = random_edges(rng, names, 1800)
        up = above(edges, names[-1])
    return edges, random_edges(rng, names, 150), names[-1], up[:20], None


def networks():
    found = importlib.util.find_spec("pgmpy").submodule_search_locations[0]
    return sorted((Path(found) / "utils" / "example_models").glob("*.bif.gz"))


def bnlearn(name, k):
    file = next(f for f in networks() if f.name == f"{name}.bif.gz")
    text = gzip.open(file, "rt").read()
    edges = []
    for child, parents in re.findall(r"^probability\s*\(\s*(\S+)\s*\|([^)]*)\)", text, re.M):
        edges += [(p.strip(), child) for p in parents.split(",")]
    names = sorted({v for e in edges for v in e})
    rng = random.Random(f"{name} {k} 0")
    deep = sorted(names, key=lambda v: (-len(above(edges, v)), v))
    y = rng.choice(deep[: max(1, len(deep) // 10)])
    up = above(edges, y)
    near = up[: 2 * k]
    acts = rng.sample(near, min(k, len(near)))
    rest = sorted({*up} - {*acts})
    hidden = set(rng.sample(rest, len(rest) // 3))
    return edges, [], y, acts, sorted({*names} - hidden - {y})


makers = dict(fan=fan, tower=tower, tied=tied, plain=plain, beside=beside, paper=paper)
makers |= dict(sparse=sparse, bnlearn=bnlearn, jobs=tower)
sizes = dict(fan=range(5, 13), tower=(8, 10, 11), tied=(12, 16, 20, 40), plain=(100, 300))
sizes |= dict(beside=range(4), paper=(2, 29), sparse=range(10), jobs=(11, 12, 13))


def helped(jobs):
    "The processor seconds of the helpers, after they are sent home"
    if jobs == 1:
        return 0
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)
    t = os.times()
    return (t.children_user + t.children_system) / jobs


def one(case, size, jobs):
    "Solve one case in this process, and print what it took"
    from cocabo.graph import Graph
    from cocabo.search import pomps

    edges, tied_, y, acts, contexts = makers[case](*size)
    names = {v for e in edges + tied_ for v in e} | {y, *acts}
    g = Graph(nodes=names, directed=edges, bidirected=tied_)
    nodes = len(g.nodes)
    start = time.perf_counter()
    begun = time.process_time()
    try:
        found = pomps(g, y, acts, contexts, families=True, progress=False, jobs=jobs)
        count, groups = sum(f.count for f in found), len(found)
    except TypeError:  # a version without families
        count, groups = len(pomps(g, y, acts, contexts, progress=False, jobs=jobs)), ""
    seconds = time.perf_counter() - start
    cpu = time.process_time() - begun
    cpu += helped(jobs)
    mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps([nodes, len(acts), count, groups, round(seconds, 3), round(cpu, 3), mb]))


def row(case, size, jobs, folder, cap):
    "One case in a process of its own"
    words = [sys.executable, __file__, "--one", json.dumps([case, size, jobs])]
    env = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    try:
        run = subprocess.run(words, capture_output=True, text=True, env=env, timeout=cap)
    except subprocess.TimeoutExpired:
        return [""] * 7
    if run.returncode:
        return ["", "", f"failed: {run.stderr.strip().splitlines()[-1][:60]}", "", "", "", ""]
    return json.loads(run.stdout.splitlines()[-1])


if __name__ == "__main__":
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("file", nargs="?")
    p.add_argument("--cases", default=",".join(makers))
    p.add_argument("--before", metavar="DIR")
    p.add_argument("--cap", type=float, default=60)
    p.add_argument("--one", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.one:
        one(*json.loads(a.one))
        sys.exit()
    here = Path(__file__).resolve().parent.parent
    versions = [("before", a.before)] * bool(a.before) + [("now", here)]
    with open(a.file, "w", newline="") as f:
        out = csv.writer(f)
        words = "case size jobs version variables actions scopes families seconds cpu mb"
        out.writerow(words.split())
        for case in a.cases.split(","):
            if case == "bnlearn":
                names = [n.name.removesuffix(".bif.gz") for n in networks()]
                todo = [[n, k] for n in names for k in (2, 5, 10, 20)]
            else:
                todo = [[n] for n in sizes[case]]
            for size in todo:
                for jobs in (1, 2) if case == "jobs" else (1,):
                    for name, folder in versions:
                        found = row(case, size, jobs, folder, a.cap)
                        out.writerow([case, " ".join(map(str, size)), jobs, name, *found])
                        f.flush()
