"""Studies that are killed, cut, filled and bent: python tests/soak_study.py CHECK

kill     kill -9 a process at random moments of ask, act, tell, correct [--times 1000], then go on:
         nothing that was acknowledged is lost, nothing is there twice, and every decision is that
         of an undisturbed twin
cut      the connection breaks before or after a commit, again and again [--count 400]
full     a file system of 1.5 MB that fills, again and again [--times 30] (needs root, to mount it)
crowd    --workers processes, --count trials each: all different, each told once
opening  --workers processes that create, open and ask at once
upgrade  kill -9 at random moments of an upgrade [--times 200]: the old version or the new one
mutate   rows and files with changes [--count 20000 --start 0]: refused in a sentence or the same,
         and what is read can be used
cost     milliseconds for ask + act + tell through the store and without, at 100 and --count trials;
         --optuna PYTHON: and of Optuna with its SQLite storage, which that Python has

All take --seed; --store postgres takes a PostgreSQL server instead of a file. Exit code 1 on any
failure.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


def environment():
    import cocabo as cb

    return cb.environments["fig1"]


class Places:
    "Fresh addresses, in files or on a server"

    def __init__(self, server, folder):
        self.server, self.folder, self.n = server, Path(folder), 0

    def new(self):
        self.n += 1
        if self.server:
            return self.server.url(f"s{self.n}")
        return str(self.folder / f"s{self.n}.db")


# --- kill


def one_step(study, rng, say, todo):
    "A random operation, said before and after it was done; `todo` is one that may be half done"
    op = todo or next_step(study, rng)
    say(dict(start=op))
    if op["what"] == "ask":
        study.ask(worker="w", key=op["key"])
    elif op["what"] == "act":
        study.act(op["trial"], op["contexts"])
    elif op["what"] == "tell":
        study.tell(op["trial"], op["y"], key=op["key"], worker="w")
    else:
        study.correct(op["trial"], y=op["y"])
    say(dict(done=op))


def next_step(study, rng):
    "A random operation that makes sense now"
    waiting = sorted(study.open.items())
    key, y = f"{rng.getrandbits(60):x}", rng.uniform(-1, 1)
    told = study.optimiser.rows
    if told and rng.random() < 0.15:
        return dict(what="correct", trial=rng.choice(told.rows).trial, y=y, key=key)
    if not waiting or (len(waiting) < 3 and rng.random() < 0.3):
        return dict(what="ask", key=key)
    number, trial = rng.choice(waiting)
    if trial.ready:
        return dict(what="tell", trial=number, y=y, key=key)
    contexts = {c: rng.uniform(-1, 1) for c in trial.needs}
    return dict(what="act", trial=number, contexts=contexts, key=key)


def worker(address, seed, out, todo):
    "Work on a study until the end"
    import cocabo as cb

    def say(d):
        os.write(out, (json.dumps(d) + "\n").encode())

    try:
        study, rng = cb.Study(address), random.Random(seed)
        say(dict(ready=True))
        while True:
            one_step(study, rng, say, todo)
            todo = None
    except BaseException:
        say(dict(error=traceback.format_exc()[-1500:]))
        os._exit(1)


def read_all(pipe):
    "All lines of a pipe whose writers are gone"
    parts = []
    while part := os.read(pipe, 65536):
        parts.append(part)
    return [json.loads(line) for line in b"".join(parts).split(b"\n")[:-1]]


def killed_once(address, seed, todo, rng):
    "Let a process work, and kill it; what it said"
    pipe, out = os.pipe()
    child = os.fork()
    if not child:
        os.close(pipe)
        worker(address, seed, out, todo)
    os.close(out)
    first = os.read(pipe, 16)  # it is ready
    time.sleep(rng.uniform(0, 0.6))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    lines = read_all(pipe) if first.startswith(b'{"ready"') else [dict(error=str(first))]
    os.close(pipe)
    return lines


def count_problems(study, acknowledged, last):
    "What was lost and what is there twice"
    problems = []
    events = study._replay.events
    by_key = {e.key: e for e in events}
    for op in acknowledged:
        if op["what"] in ("ask", "tell"):
            e = by_key.get(op["key"])
            if e is None:
                problems.append(f"lost: {op}")
            elif op["what"] == "tell" and json.loads(e.body)["row"]["y"] != op["y"]:
                problems.append(f"another value: {op}")
            continue
        kind = dict(act="acted", correct="corrected")[op["what"]]
        mine = [json.loads(e.body) for e in events if (e.kind, e.trial) == (kind, op["trial"])]
        if op["what"] == "act":
            same = [b for b in mine if b["contexts"] == op["contexts"]]
        else:
            same = [b for b in mine if b["row"]["y"] == op["y"]]
        if len(same) != 1:
            problems.append(f"{'lost' if not same else 'twice'}: {op}")
    expected = 1 + len({op["key"] for op in acknowledged})
    if not expected <= len(events) <= expected + bool(last):
        problems.append(f"{len(events)} events, where {expected} were acknowledged")
    told = [e.trial for e in events if e.kind == "told"]
    if len(set(told)) < len(told):
        problems.append("a trial was told twice")
    return problems


def twin_problems(study, address):
    "An undisturbed twin gets the same events; every decision must be the same"
    import cocabo as cb

    twin = cb.Study.create(address, study.problem, seed=study.optimiser.seed, method=study.method)
    for e in study._replay.events[1:]:
        body = json.loads(e.body)
        if e.kind == "asked":
            mine = str(twin.ask().scope)
            if mine != body["scope"]:
                return [f"event {e.number}: {body['scope']}, the twin {mine}"]
        elif e.kind == "acted":
            mine = twin.act(e.trial, body["contexts"])
            if mine != body["actions"]:
                return [f"event {e.number}: {body['actions']}, the twin {mine}"]
        elif e.kind == "told":
            twin.tell(e.trial, body["row"]["y"])
        else:
            twin.correct(e.trial, y=body["row"]["y"])
    pair = [(str(t.scope), t.act({"C": 0.3})) for t in (study.ask(), twin.ask())]
    study.close()
    twin.close()
    return [] if pair[0] == pair[1] else [f"next: {pair[0]}, the twin {pair[1]}"]


def kill(places, times, seed, method, each=20):
    "Kill workers at random moments, in studies of `each` kills"
    import cocabo as cb

    rng, bad, done, kinds, half = random.Random(seed), [], 0, {}, 0
    acks = 0
    while done < times:
        address = places.new()
        cb.Study.create(address, environment().problem, method=method, seed=done).close()
        acknowledged, todo = [], None
        for _ in range(min(each, times - done)):
            lines = killed_once(address, f"{seed}/{done}", todo, rng)
            done += 1
            errors = [d["error"] for d in lines if "error" in d]
            bad += errors
            for d in lines:
                if "start" in d:
                    todo = d["start"]
                if "done" in d:
                    acknowledged.append(d["done"])
                    kinds[d["done"]["what"]] = kinds.get(d["done"]["what"], 0) + 1
                    todo = None
            half += todo is not None
        study = cb.Study(address)
        acks += len(acknowledged)
        bad += count_problems(study, acknowledged, todo)
        bad += twin_problems(study, places.new())
        print(f"{done} kills, {acks} acknowledged {kinds}, {half} in the middle of an operation, "
              f"{len(bad)} problems", flush=True)  # fmt: skip
    return bad


# --- cut


def cut(places, count, seed, method):
    "Connections that break before or after the commit"
    import psycopg

    import cocabo as cb

    rng, bad, cuts = random.Random(seed), [], dict(before=0, after=0)
    address = places.new()
    study = cb.Study.create(address, environment().problem, method=method)
    dialect = study._store.engine.dialect
    real = dialect.do_commit

    def breaks(connection):
        if places.server:
            connection.driver_connection.pgconn.finish()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        raise sqlite3.OperationalError("database is locked")

    def commit(connection):
        when = rng.random()
        if when < 0.15:
            cuts["before"] += 1
            breaks(connection)
        real(connection)
        if when > 0.7:
            cuts["after"] += 1
            breaks(connection)

    dialect.do_commit = commit
    acknowledged = []

    def say(d):
        if "done" in d:
            acknowledged.append(d["done"])

    try:
        for _ in range(count):
            one_step(study, rng, say, None)
    except Exception:
        bad.append(traceback.format_exc()[-1500:])
    dialect.do_commit = real
    study.close()
    again = cb.Study(address)
    bad += count_problems(again, acknowledged, None)
    bad += twin_problems(again, places.new())
    print(f"{len(acknowledged)} operations acknowledged, cuts {cuts}, {len(bad)} problems")
    return bad


# --- full


def full(times, seed):
    "A small file system that fills"
    import cocabo as cb

    rng, bad, seen, acks = random.Random(seed), [], {}, 0
    folder = Path(tempfile.mkdtemp())
    words = ["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", str(folder)]
    if subprocess.run(words, capture_output=True).returncode:
        print("no small file system could be mounted: nothing was checked")
        return ["not mounted"]
    try:
        for i in range(times):
            address, ballast = str(folder / f"s{i}.db"), folder / "ballast"
            study = cb.Study.create(address, environment().problem, method="random", seed=i)
            room = shutil.disk_usage(folder).free
            ballast.write_bytes(b"x" * max(0, room - rng.randrange(4096, 400_000)))
            acknowledged, todo = [], None

            def say(d, acknowledged=acknowledged):
                if "done" in d:
                    acknowledged.append(d["done"])

            for _ in range(2000):
                try:
                    todo = next_step(study, rng)
                    one_step(study, rng, say, todo)
                    todo = None
                except OSError as e:
                    text = str(e).replace(address, "…")
                    seen[text] = seen.get(text, 0) + 1
                    if "\n" in text:
                        bad.append(text)
                    break
                except Exception:
                    bad.append(traceback.format_exc()[-1500:])
                    break
            else:
                bad.append("the disk was never full")
            if rng.random() < 0.5:  # the program ends here
                study.close()
            ballast.unlink(missing_ok=True)
            study = study if rng.random() < 0.5 else cb.Study(address)
            if todo:
                one_step(study, rng, say, todo)  # there is room again: the same once more
            for _ in range(20):
                one_step(study, rng, say, None)
            study.close()
            again = cb.Study(address)
            acks += len(acknowledged)
            bad += count_problems(again, acknowledged, None)
            again.close()
            for p in folder.iterdir():
                p.unlink(missing_ok=True)
    finally:
        subprocess.run(["umount", "-l", str(folder)])
        folder.rmdir()
    print(f"{times} times full, {acks} operations acknowledged, said: {seen}, {len(bad)} problems")
    return bad


# --- crowd


def busy(address, count, name, out):
    "A worker that plays its share"
    import cocabo as cb

    env = environment()
    try:
        study = cb.Study(address, lease=60.0)
        for _ in range(count):
            trial = study.ask(worker=name)
            e = env.episode(0, trial.number).choose(trial.scope)
            while not trial.ready:
                e.set(trial.act(e.observe(trial.needs) if trial.needs else {}))
            study.tell(trial, e.target(), worker=name)
        out.put(None)
    except BaseException:
        out.put(traceback.format_exc()[-1500:])


def together(target, jobs):
    "Run a function in several processes; what they complain about"
    fork = multiprocessing.get_context("fork")
    out = fork.Queue()
    crew = [fork.Process(target=target, args=(*job, out)) for job in jobs]
    for p in crew:
        p.start()
    said = [out.get(timeout=3000) for _ in crew]
    for p in crew:
        p.join()
    return [s for s in said if s]


def crowd(places, workers, count, method):
    "Many workers at once"
    import cocabo as cb

    address = places.new()
    cb.Study.create(address, environment().problem, method=method).close()
    start = time.perf_counter()
    bad = together(busy, [(address, count, f"w{i}") for i in range(workers)])
    took = time.perf_counter() - start
    study = cb.Study(address)
    rows = study.optimiser.rows
    numbers = [r.trial for r in rows]
    if sorted(numbers) != list(range(workers * count)):
        bad.append(f"{len(numbers)} told, {len(set(numbers))} different")
    events = study._replay.events
    points = {str(sorted(r.point.items())) for r in rows}
    if len(points) < len(rows):
        bad.append(f"only {len(points)} different points of {len(rows)}")
    if len(events) != 1 + 3 * workers * count:
        bad.append(f"{len(events)} events")
    env = environment()
    lost = [env.optimum - env.expected(r.scope, r.looked, r.set) for r in rows]
    print(f"{workers} workers, {method}: {len(rows)} trials told in {took:.1f} s, {len(points)} "
          f"different points, mean noise-free regret {sum(lost)/len(lost):.4f}, "
          f"{len(bad)} problems")  # fmt: skip
    return bad


def opener(address, name, out):
    import cocabo as cb

    try:
        try:
            study = cb.Study.create(address, environment().problem, "one", method="random")
        except ValueError as e:
            if "already" not in str(e):
                raise
            study = cb.Study(address, "one")
        study.ask(worker=name)
        out.put(None)
    except BaseException:
        out.put(traceback.format_exc()[-1500:])


def opening(places, workers, times):
    "Many that create, open and ask at once"
    import cocabo as cb

    bad = []
    for _ in range(times):
        address = places.new()
        bad += together(opener, [(address, f"w{i}") for i in range(workers)])
        study = cb.Study(address)
        if sorted(study.open) != list(range(workers)):
            bad.append(f"{len(study.open)} trials of {workers}")
        study.close()
    print(f"{times} times {workers} processes that create or open at once, {len(bad)} problems")
    return bad


# --- upgrade


def upgrade(times, seed):
    "Kill -9 inside an upgrade"
    import cocabo as cb
    from cocabo import store

    rng, bad, seen = random.Random(seed), [], {"1": 0, "2": 0}
    folder = Path(tempfile.mkdtemp())
    old = folder / "old.db"
    study = cb.Study.create(old, environment().problem, method="random")
    for _ in range(60):
        one_step(study, rng, lambda d: None, None)
    known = [e.mark for e in study._replay.events]
    study.close()
    with sqlite3.connect(old) as c:
        c.execute("drop table cocabo_leases")
        c.execute("update cocabo_about set value='1' where name='version'")
    c.close()
    for i in range(times):
        path = folder / f"{i}.db"
        shutil.copy(old, path)
        slow = rng.random() < 0.5  # half of them dawdle, so that the kill finds them inside
        child = os.fork()
        if not child:
            first = store._upgrades[1]
            if slow:
                store._upgrades[1] = lambda c: (time.sleep(0.02), first(c), time.sleep(0.02))
            try:
                cb.Study(path)
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0, 0.15))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        c = sqlite3.connect(path)
        version = c.execute("select value from cocabo_about").fetchone()[0]
        there = c.execute("select 1 from sqlite_master where name='cocabo_leases'").fetchone()
        c.close()
        seen[version] = seen.get(version, 0) + 1
        if bool(there) != (version == "2"):
            bad.append(f"version {version}, leases {there}")
        again = cb.Study(path)
        if [e.mark for e in again._replay.events] != known:
            bad.append("other events")
        again.close()
        for p in folder.glob(f"{i}.db*"):
            p.unlink(missing_ok=True)
    shutil.rmtree(folder)
    print(f"{times} kills: versions afterwards {seen}, {len(bad)} problems")
    return bad


# --- mutate


def templates(folder):
    "Files of studies of several kinds, with their events"
    import cocabo as cb

    found = []
    for i, (name, method) in enumerate(
        [("fig1", "random"), ("two_stage", "random"), ("mixed", "random"), ("fig1", "cocabo")]
    ):
        env = cb.environments[name]
        path = folder / f"t{i}.db"
        study = cb.Study.create(path, env.problem, name="study", method=method)
        study.run(env, 6, progress=False)
        study.observe(env.scm.sample(3, seed=1)[list(env.problem.contexts)])
        study.correct(1, y=0.5)
        study.drop(2, why="pump failed")
        study.undo()
        study.change(env.problem)
        study.ask(worker="Ada")
        two = study.ask()
        two.act(looks(study, two))
        events = [dict(vars(e), body=json.loads(e.body)) for e in study._replay.events]
        study.close()
        found.append((path.read_bytes(), events))
    return found


def looks(study, trial):
    "Values of what a trial needs"
    domains = study.problem.contexts
    return {c: domains[c].from_unit(0.4) if domains[c] else 0.1 for c in trial.needs}


def use_study(study):
    "Everything that a person does"
    for t in list(study.open.values())[:3]:
        while not t.ready:
            t.act(looks(study, t))
        study.tell(t, 0.3)
    t = study.ask(worker="Ben")
    while not t.ready:
        t.act(looks(study, t))
    study.tell(t, 0.2)
    study.correct(t, y=0.1)
    study.undo()
    study.drop(t, why="test")
    study.trials()
    study.events()
    study.history
    study._repr_html_()
    if study.optimiser.told:
        study.best()


def mark_again(events):
    "The right marks for events that were changed"
    from cocabo.store import mark_of

    mark, out = "", []
    for e in events:
        e = dict(e)
        if not isinstance(e["body"], str):
            e["body"] = json.dumps(e["body"])
        names = ("number", "kind", "trial", "body", "who", "at", "key")
        mark = mark_of(mark, *[e.get(k) for k in names])
        out.append({**e, "mark": mark})
    return out


def bent_file(seed, i, found, file):
    "Write mutated file number i; True if its marks are right"
    from soak_files import mutated

    rng = random.Random(f"{seed}/{i}")
    data, events = found[rng.randrange(len(found))]
    way = rng.random()
    for p in file.parent.glob(file.name + "*"):
        p.unlink(missing_ok=True)
    if way < 0.25:  # bytes of the file
        data = bytearray(data)
        for _ in range(rng.choice([1, 1, 3, 10])):
            k = rng.randrange(len(data))
            data[k] = rng.randrange(256)
        if rng.random() < 0.1:
            data = data[: rng.randrange(len(data))]
        file.write_bytes(data)
        return False
    file.write_bytes(data)
    state = mutated(dict(events=[{k: v for k, v in e.items() if k != "mark"} for e in events]), rng)
    right = way < 0.85
    c = sqlite3.connect(file)
    c.execute("drop trigger cocabo_update")
    c.execute("drop trigger cocabo_delete")
    c.execute("delete from cocabo_events")
    rows = state.get("events")
    rows = rows if isinstance(rows, list) else []
    whole = [r for r in rows if isinstance(r, dict) and "body" in r]
    try:
        marked = mark_again(whole) if right else [
            {**r, "body": json.dumps(r["body"]), "mark": events[k % len(events)]["mark"]}
            for k, r in enumerate(whole)]  # fmt: skip
        for r in marked:
            values = [1] + [r.get(k) for k in
                            "number kind trial body who at key mark".split()]  # fmt: skip
            c.execute("insert into cocabo_events values (?,?,?,?,?,?,?,?,?)", values)
    except (sqlite3.Error, OverflowError, TypeError, ValueError):
        pass  # no database can hold it
    c.commit()
    c.close()
    return right


def check_file(file, right, known):
    "What happened to a file: refused, or used; and what is wrong about it"
    import cocabo as cb

    study = None
    try:
        study = cb.Study(file)
        if not right and [e.mark for e in study._replay.events] not in known:
            return "used", "it is read, and is not the same"
        use_study(study)
        study.close()
        cb.Study(file).close()
        return "used", ""
    except (ValueError, OSError) as e:
        sentence = str(e)
        fine = "\n" not in sentence and len(sentence) < 700
        if right and study is not None:
            where = traceback.extract_tb(e.__traceback__)
            at = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in where[-3:])
            return "used", f"{type(e).__name__} later: {sentence[:300]} ({at})"
        return "refused", "" if fine else f"a long message: {sentence[:300]}"
    finally:
        if study is not None:
            study.close()


def work(seed, numbers, found, file, out):
    "Check some files, and write a line about each"
    from soak_files import limited, seconds

    limited()
    warnings.simplefilter("ignore")
    known = [[e["mark"] for e in events[:k]] for _, events in found for k in range(99)]
    with open(out, "a") as f:
        for i in numbers:
            began = time.perf_counter()
            signal.alarm(seconds)
            try:
                what, why = check_file(file, bent_file(seed, i, found, file), known)
            except BaseException as e:
                last = traceback.extract_tb(e.__traceback__)[-1]
                why = f"{type(e).__name__}: {e} ({Path(last.filename).name}:{last.lineno})"
                what = "failed"
            signal.alarm(0)
            print(json.dumps([i, what, why, time.perf_counter() - began]), file=f, flush=True)


def mutate(count, seed, start, minutes):
    from soak_files import batch, report

    folder = Path(tempfile.mkdtemp())
    found = templates(folder)
    file, out = folder / "m.db", folder / "said"
    end, at, done = time.monotonic() + 60 * minutes, start, []
    while at < start + count and time.monotonic() < end:
        out.write_text("")
        child = os.fork()
        if not child:
            try:
                work(seed, range(at, min(at + batch, start + count)), found, file, out)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        said = [json.loads(line) for line in out.read_text().splitlines()]
        done += said
        at += len(said)
        if status:
            done.append([at, "failed", f"the process ended with status {status}", 0.0])
            at += 1
        for i, what, why, _ in said:
            if why:
                print(f"file {i}: {what}: {why}", flush=True)
        print(f"{len(done)} files, {sum(d[1] == 'failed' or bool(d[2]) for d in done)} problems",
              flush=True)  # fmt: skip
    shutil.rmtree(folder)
    return ["see above"] * report(done, count, seed, start)


# --- cost

optuna_script = """
import json, os, sys, tempfile, time, random
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = "sqlite:///" + os.path.join(tempfile.mkdtemp(), "o.db")
study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(seed=0))
took = []
n = int(sys.argv[1])
for t in range(n):
    start = time.perf_counter()
    trial = study.ask()
    trial.suggest_float("X1", -1, 1)
    study.tell(trial, random.random())
    took.append(time.perf_counter() - start)
start = time.perf_counter()
optuna.load_study(study_name=study.study_name, storage=storage).trials
print(json.dumps([sorted(took[60:100])[20], sorted(took[-100:])[50], time.perf_counter() - start]))
"""


def cost(places, method, optuna, upto=2000):
    "Milliseconds for a trial, at 100 and at 2,000 of them"
    import cocabo as cb
    from cocabo.methods import method_kinds

    env, found = environment(), {}
    rng = random.Random(0)
    study = cb.Study.create(places.new(), env.problem, method=method)
    bare = method_kinds[method](env.problem, seed=0)
    kinds = {"the bare optimiser": bare, "through the store": study}
    for name, s in kinds.items():
        took = []
        for _ in range(upto):
            c, y = {"C": rng.uniform(-1, 1)}, rng.uniform(-1, 1)
            start = time.perf_counter()
            trial = s.ask()
            trial.act(c)
            s.tell(trial, y)
            took.append(time.perf_counter() - start)
        found[name] = sorted(took[60:100])[20], sorted(took[-100:])[50]
    address = study._store.given
    start = time.perf_counter()
    again = cb.Study(address)
    opened = time.perf_counter() - start
    start = time.perf_counter()
    again.ask().act(C=0.1)
    first = time.perf_counter() - start
    for name, (early, late) in found.items():
        print(f"{method}, {name}: {1e3 * early:.2f} ms at 100 trials, "
              f"{1e3 * late:.2f} ms at {upto}")  # fmt: skip
    print(f"opened with {upto} trials in {1e3 * opened:.0f} ms; the first ask and act after it "
          f"{1e3 * first:.0f} ms")  # fmt: skip
    if optuna:
        words = [optuna, "-c", optuna_script, str(upto)]
        said = subprocess.run(words, capture_output=True, text=True)
        early, late, opened = json.loads(said.stdout.splitlines()[-1])
        print(f"Optuna, random, SQLite: {1e3 * early:.2f} ms at 100 trials, {1e3 * late:.2f} ms "
              f"at {upto}, opened in {1e3 * opened:.0f} ms")  # fmt: skip
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    checks = "kill cut full crowd opening upgrade mutate cost".split()
    parser.add_argument("check", choices=checks)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--method", default=None)
    parser.add_argument("--times", type=int, default=None)
    parser.add_argument("--count", type=int, default=None)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--optuna")
    a = parser.parse_args()
    import torch

    from postgres import server

    torch.set_num_threads(1)
    folder = tempfile.mkdtemp()
    try:
        if a.store == "postgres":
            with server() as running:
                if running is None:
                    print("PostgreSQL is not installed: initdb was not found")
                    sys.exit(1)
                bad = check(a, Places(running, folder))
        else:
            bad = check(a, Places(None, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for b in bad[:20]:
        print("PROBLEM", b)
    sys.exit(bool(bad))


def check(a, places):
    if a.check == "kill":
        return kill(places, a.times or 1000, a.seed, a.method or "cocabo")
    if a.check == "cut":
        return cut(places, a.count or 400, a.seed, a.method or "random")
    if a.check == "full":
        return full(a.times or 30, a.seed)
    if a.check == "crowd":
        return crowd(places, a.workers or 8, a.count or 250, a.method or "random")
    if a.check == "opening":
        return opening(places, a.workers or 32, a.times or 1)
    if a.check == "upgrade":
        return upgrade(a.times or 200, a.seed)
    if a.check == "mutate":
        return mutate(a.count or 20_000, a.seed, a.start, a.minutes)
    return cost(places, a.method or "random", a.optuna, a.count or 2000)


if __name__ == "__main__":
    main()
