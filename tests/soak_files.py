"""Files that are killed and files that are bent: python tests/soak_files.py kill | mutate | both

kill    kill -9 a process at random moments inside `save` [--times 300]: each time the file is
        whole (the old one or the new one) and loads, and nothing else is there but known halves
mutate  files with changes and the right checksum [--count 20000 --start 0]: each is refused by a
        ValueError in one line, or loads and then can ask, act, tell, and be saved and loaded again;
        with a limit of memory and of seconds for each file
Both take --seed. A file is made from the seed and its number alone. Exit code 1 on any failure.
"""

import argparse
import copy
import hashlib
import json
import math
import os
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

seconds = 20  # for one file: about a hundred times what it should take
memory = 2**30  # bytes beyond what the process has when it starts
batch = 200  # files for each process


def optimisers():
    "Optimisers of several kinds, each with open trials"
    import cocabo as cb
    import cocabo.saving  # the methods `save` and `to_json`
    from cocabo.optimise import Optimiser

    fig1, free = cb.environments["fig1"], cb.environments["fig1"].problem
    free = cb.Problem(free.graph, "Y", free.actions, {"C": None})
    kinds = [
        ("fig1", 9, {}),
        ("fig1", 5, dict(rule="paper", schedule="theory")),
        ("fig1", 0, {}),
        ("fig1", 7, dict(scopes=["(nothing)", "X1", "X2"], rule="acquisition")),
        ("fig1", 6, dict(rule="uniform", backend="random")),
        ("mixed", 12, {}),
        ("toy_cbo", 8, {}),
        ("two_stage", 9, {}),
        ("two_stage", 5, dict(backend="random")),
    ]
    found = []
    for name, steps, parts in kinds:
        env = cb.environments[name]
        parts = dict(dict(scopes=env.problem.scopes()), **parts)
        opt = Optimiser(env.problem, **parts, seed=steps)
        opt.run(env, steps, progress=False)
        found.append(opt)
    opt = Optimiser(free, free.scopes())
    for t in range(6):
        trial = opt.ask()
        e = fig1.episode(0, t).choose(trial.scope)
        while not trial.ready:
            e.set(trial.act(e.observe(trial.needs) if trial.needs else {}))
        opt.tell(trial, e.target())
    found.append(opt)
    for opt in found:
        trials = [opt.ask() for _ in range(3)]
        for trial in trials[1:]:
            trial.act(looks(opt, trial))
    return found


def looks(opt, trial):
    "Values of what a trial needs"
    seen = {}
    for c in trial.needs:
        domain = opt.problem.contexts[c]
        seen[c] = 0.1 if domain is None else domain.from_unit(0.4)
    return seen


def use(opt):
    "Finish open trials, play three more, and give the best policy"
    trials = list(opt.open.values())[:3]
    for i in range(len(trials) + 3):
        trial = trials[i] if i < len(trials) else opt.ask()
        while not trial.ready:
            trial.act(looks(opt, trial))
        opt.tell(trial, 0.1 * i)
    opt.best()


def text(state):
    "A file with the right checksum"
    line = json.dumps(state)
    check = hashlib.sha256(line.encode()).hexdigest()
    head = json.dumps(dict(format="cocabo optimiser", version=3, sha256=check))
    return f"{head}\n{line}\n"


# --- kill


def kill(one, times, seed):
    "Kill a process inside `save`, again and again"
    from cocabo.saving import load

    rng = random.Random(seed)
    folder = Path(tempfile.mkdtemp())
    file = folder / "o.json"
    one.save(file)
    two = load(file)
    use(two)
    whole = {}
    for name, opt in dict(old=one, new=two).items():
        opt.save(file, overwrite=True)
        whole[file.read_bytes()] = name, opt.to_json()
    start = time.perf_counter()
    for _ in range(20):
        one.save(file, overwrite=True)
    usual = (time.perf_counter() - start) / 20
    seen, halves, bad = dict(old=0, new=0), 0, 0
    for i in range(times):
        kill_once(one, two, file, rng.uniform(0, 4 * usual))
        left = [p for p in folder.iterdir() if p != file]
        strange = [p.name for p in left if not p.match(".o.json.*.half")]
        halves += bool(left)
        for p in left:
            p.unlink()
        name, state = whole.get(file.read_bytes(), (None, None))
        if name is None or strange or load(file).to_json() != state:
            bad += 1
            print(f"kill {i}: {'not whole' if name is None else name}, {strange}", flush=True)
        else:
            seen[name] += 1
    print(f"{times - bad} of {times} whole after kill -9, seed {seed}: {seen}; "
          f"{halves} times a half was left behind")
    return bad


def kill_once(one, two, file, after):
    "Start a process that saves all the time, and kill it"
    ready, said = os.pipe()
    child = os.fork()
    if not child:
        os.write(said, b"x")
        while True:
            two.save(file, overwrite=True)
            one.save(file, overwrite=True)
    os.read(ready, 1)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(said)


# --- mutate

odd = [None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e-308, 1e308, -1e308, 1e100, 1e99, 10**30, 2**63,
       64_000_000, 10**400, math.nan, math.inf, "", "0", "Y", "X1", "random", "é" * 2000, "\x00",
       [], {}, [[]], [0], [1.5] * 3, {"": 0}, {"name": "paper"}]  # fmt: skip


def places(state):
    "All places in a state: the container, the key, and the value"
    found, todo = [], [state]
    while todo:
        at = todo.pop()
        for k, v in list(at.items() if isinstance(at, dict) else enumerate(at)):
            found.append((at, k, v))
            if isinstance(v, (dict, list)):
                todo.append(v)
    return found


def bent_number(v, rng):
    "A number that is a little or very different"
    ways = [v + 1, v - 1, -v, v * 2, v * (1 + rng.uniform(-1e-3, 1e-3)), v * rng.uniform(-3, 3)]
    ways += [float(v), int(v), str(v), [v], v * 10 ** rng.randrange(1, 12), 0, rng.randrange(100)]
    return rng.choice(ways)


def bent(v, rng, others):
    "Another value for a place"
    way = rng.random()
    number = isinstance(v, (int, float)) and not isinstance(v, bool)
    if number and way < 0.6 and abs(v) < 1e200:
        return bent_number(v, rng)
    if isinstance(v, list) and v and way < 0.7:
        i = rng.randrange(len(v))
        ways = [v[:i], v[i:], v[:i] + v[i + 1 :], [*v, v[i]], v[::-1], v * 2, [*v, None]]
        return rng.choice(ways)
    if isinstance(v, dict) and v and way < 0.7:
        v = dict(v)
        key = rng.choice(list(v))
        other = rng.choice(list(v))
        how = rng.randrange(4)
        if how == 0:
            del v[key]
        elif how == 1:
            v[rng.choice(["x", "Y", "X1", "C", "9", "name", ""])] = copy.deepcopy(v[key])
        elif how == 2:
            v[f"{key}x"] = v.pop(key)
        else:
            v[key], v[other] = v[other], v[key]
        return v
    if way < 0.85:
        return copy.deepcopy(rng.choice(odd))
    return copy.deepcopy(rng.choice(others))


def mutated(state, rng):
    "A state with one to three changes"
    state = copy.deepcopy(state)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        found = places(state)
        # the parts are chosen first, so that many rows do not hide the rest
        part = rng.choice(list(state))
        inside = places({part: state[part]})
        at, k, v = rng.choice(found if rng.random() < 0.3 else inside)
        new = bent(v, rng, [f[2] for f in found])
        if at == {part: state[part]} and k == part:
            state[part] = new
        else:
            at[k] = new
        if not state:
            return state
    return state


def number(seed, i, states):
    "The text of mutated file number i"
    rng = random.Random(f"{seed}/{i}")
    return text(mutated(states[rng.randrange(len(states))], rng))


def check(data, file):
    "What happened to a file: refused, or used; and what is wrong about it"
    from cocabo.saving import load

    file.write_text(data)
    try:
        opt = load(file)
    except ValueError as e:
        sentence = str(e)
        fine = "\n" not in sentence and len(sentence) < 600
        return "refused", "" if fine else f"a long message: {sentence[:300]}"
    use(opt)
    opt.save(file)
    load(file)
    return "used", ""


def too_long(*_):
    raise TimeoutError(f"more than {seconds} seconds")


def limited():
    "Limit the memory of this process, beyond what it has already"
    with open("/proc/self/statm") as f:
        now = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))
    signal.signal(signal.SIGALRM, too_long)


def work(seed, numbers, states, file, out):
    "Check some files, and write a line about each"
    limited()
    warnings.simplefilter("ignore")
    with open(out, "a") as f:
        for i in numbers:
            began = time.perf_counter()
            signal.alarm(seconds)
            try:
                what, why = check(number(seed, i, states), file)
            except BaseException as e:
                import traceback

                last = traceback.extract_tb(e.__traceback__)[-1]
                why = f"{type(e).__name__}: {e} ({Path(last.filename).name}:{last.lineno})"
                what = "failed"
            signal.alarm(0)
            took = time.perf_counter() - began
            print(json.dumps([i, what, why, took]), file=f, flush=True)


def mutate(found, count, seed, start, minutes):
    "Bend files, and see what `load` does with them"
    states = [json.loads(json.dumps(o.to_json())) for o in found]
    folder = Path(tempfile.mkdtemp())
    file, out = folder / "o.json", folder / "said"
    end, at = time.monotonic() + 60 * minutes, start
    done = []
    while at < start + count and time.monotonic() < end:
        out.write_text("")
        child = os.fork()
        if not child:
            work(seed, range(at, min(at + batch, start + count)), states, file, out)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        said = [json.loads(line) for line in out.read_text().splitlines()]
        done += said
        at += len(said)
        if status:
            done.append([at, "failed", f"the process ended with status {status}", 0.0])
            at += 1
    return report(done, count, seed, start)


def report(done, count, seed, start):
    "Print what happened to all files; how many failed"
    bad = [d for d in done if d[1] == "failed" or d[2]]
    for i, what, why, _ in bad[:40]:
        print(f"file {i}: {what}: {why}")
    kinds = {w: sum(d[1] == w for d in done) for w in ("refused", "used", "failed")}
    longest = max(d[3] for d in done)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10
    print(f"{len(done) - len(bad)} of {count} files fine, seed {seed} from {start}: {kinds}; "
          f"longest {longest:.2f} s, largest process {peak:.0f} MB")
    return len(bad) + (len(done) < count)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["kill", "mutate", "both"])
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0)
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    found, bad = optimisers(), 0
    if args.what != "mutate":
        bad += kill(found[0], args.times, args.seed)
    if args.what != "kill":
        bad += mutate(found, args.count, args.seed, args.start, args.minutes)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
