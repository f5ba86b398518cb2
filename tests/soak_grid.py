"""Grids that are killed: python tests/soak_grid.py kill [--times 10] | dask | scheduler

kill   kill -9 a grid (and its workers) at random moments, start it again each time, and compare
       with a grid that nobody disturbed: the same files, byte-equal summaries, no finished run
       played twice, nothing left behind
dask   a Dask cluster of three local workers, one of which is killed: the same summaries
scheduler
       a Dask scheduler that is killed in the middle of 'cocabo run': one sentence, exit code 2,
       no run counts as failed; with a new scheduler the same command goes on
Exit code 1 if anything differs.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

environments = ["fig1", "psa_2"]
methods = ["cocabo", "cabo", "random"]
seeds = 6
steps = 60
play = f"""
import sys
from cocabo.experiments import grid
dask = sys.argv[2] if len(sys.argv) > 2 else None
grid({environments}, {methods}, {seeds}, {steps}, sys.argv[1], 2, dask, progress=False)
"""
kept = ("runs.csv", "curves.csv", "frequency.csv", "growth.csv", "manifest.json")


def grid(folder, *more):
    "Start a grid in a process of its own; with an address, on a Dask cluster"
    words = [sys.executable, "-c", play, str(folder), *more]
    return subprocess.Popen(words, start_new_session=True)


def finished(folder):
    "The files of finished runs, each with what changes when it is written again"
    found = {}
    for p in folder.glob("*/*/*.parquet"):
        if not p.name.startswith("."):
            found[p.relative_to(folder)] = p.stat().st_mtime_ns, p.stat().st_ino
    return found


def summary(folder):
    "The bytes of all summaries that do not depend on the clock"
    from cocabo.records import Records
    from cocabo.summaries import summarise

    summarise(Records(folder))
    return {n: (folder / n).read_bytes() for n in kept}


def changed(before, after):
    "How many files are gone or were written again"
    return sum(after.get(f) != v for f, v in before.items())


def kill(times, seed):
    "Kill a grid some times; True if nothing was lost or done twice"
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as d:
        calm, wild = Path(d) / "calm", Path(d) / "wild"
        grid(calm).wait()
        twice = killed = 0
        while killed < times:
            before = finished(wild) if wild.exists() else {}
            p = grid(wild)
            enough = len(before) + rng.randint(0, 6)
            late = rng.uniform(0, 1.5)
            while p.poll() is None and (not wild.exists() or len(finished(wild)) < enough):
                time.sleep(0.01)
            time.sleep(late)  # somewhere in the middle of the next runs
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
                killed += 1
            after = finished(wild) if wild.exists() else {}
            twice += changed(before, after)
            every = len(environments) * len(methods) * seeds
            print(f"killed {killed} times, {len(after)} of {every} runs there", flush=True)
            if p.returncode == 0 and killed < times:  # it got through: take some runs away
                for f in rng.sample(sorted(after), 12):
                    (wild / f).unlink()
        before = finished(wild)
        assert grid(wild).wait() == 0
        twice += changed(before, finished(wild))
        same = set(finished(calm)) == set(finished(wild)) and summary(calm) == summary(wild)
        odd = ("half", "damaged", "error")
        rest = [p.name for p in wild.rglob("*") if any(word in p.name for word in odd)]
        print(
            f"same files and byte-equal summaries: {same}; finished runs played again: {twice}; "
            f"left behind: {rest}"
        )
        return same and not twice and not rest


def dask():
    "Kill a worker of a cluster; True if the summaries are the same"
    from distributed import LocalCluster

    with tempfile.TemporaryDirectory() as d:
        calm, wild = Path(d) / "calm", Path(d) / "wild"
        grid(calm).wait()
        with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster:
            p = grid(wild, cluster.scheduler_address)
            while not wild.exists() or len(finished(wild)) < 8:
                time.sleep(0.2)
                assert p.poll() is None, "the grid ended too early"
            victim = next(iter(cluster.workers.values()))
            os.kill(victim.pid, signal.SIGKILL)  # not its nanny, which would start another
            print(f"killed a worker when {len(finished(wild))} runs were there")
            assert p.wait() == 0
        same = set(finished(calm)) == set(finished(wild)) and summary(calm) == summary(wild)
        print(f"same files and byte-equal summaries: {same}")
        return same


patience = 120  # seconds for anything to happen


def wait_until(ready, what):
    "Wait for something, but not for ever"
    end = time.monotonic() + patience
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {patience} s for {what}")
        time.sleep(0.05)


class Cluster:
    "A scheduler and a worker on this machine, each a process of its own"

    def __init__(self, folder):
        folder.mkdir()
        note = folder / "scheduler.json"
        self.parts = []
        self.start("scheduler", "--port", "0", "--host", "127.0.0.1", "--scheduler-file", str(note))
        wait_until(note.exists, "the scheduler")
        self.address = json.loads(note.read_text())["address"]
        more = ["--nthreads", "1", "--no-nanny", "--death-timeout", "5"]
        self.start("worker", self.address, *more, "--local-directory", str(folder))

    def start(self, part, *words):
        "Start a part of the cluster"
        words = [sys.executable, "-m", f"distributed.cli.dask_{part}", "--no-dashboard", *words]
        quiet = subprocess.DEVNULL
        self.parts.append(subprocess.Popen(words, stdout=quiet, stderr=quiet))

    def kill_scheduler(self):
        self.parts[0].kill()
        self.parts[0].wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in reversed(self.parts):
            p.kill()
            p.wait()


def scheduler():
    "Kill the scheduler of a cluster; True if the command says so, and goes on with another one"
    with tempfile.TemporaryDirectory() as d:
        folder, every = Path(d) / "runs", 12
        main = "import sys; from cocabo.cli import main; sys.exit(main())"
        words = [sys.executable, "-c", main, "run", "fig1", "--steps", str(steps)]
        words += ["--seeds", str(every), "--folder", str(folder), "--dask"]
        with Cluster(Path(d) / "first") as cluster:
            pipe = subprocess.PIPE
            p = subprocess.Popen([*words, cluster.address], stdout=pipe, stderr=pipe, text=True)
            try:
                wait_until(lambda: len(finished(folder)) >= 2 or p.poll() is not None, "two runs")
                cluster.kill_scheduler()
                out, err = p.communicate(timeout=patience)
            finally:
                p.kill()
        before = finished(folder)
        said = [line for line in err.splitlines() if line and not line.startswith("runs:")]
        print(f"exit code {p.returncode}, {len(before)} of {every} runs there; said:", *said)
        loud = p.returncode == 2 and not out and len(said) == 1 and "scheduler is gone" in said[0]
        none_failed = not list(folder.rglob("*.error.json"))
        with Cluster(Path(d) / "second") as cluster:
            words = [*words, cluster.address]
            again = subprocess.run(words, capture_output=True, text=True, timeout=3 * patience)
        after = finished(folder)
        twice = changed(before, after)
        print(f"then exit code {again.returncode}, {len(after)} runs; played again: {twice}")
        went_on = again.returncode == 0 and len(before) < len(after) == every and not twice
        return loud and none_failed and went_on


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("what", choices=["kill", "dask", "scheduler"])
    a.add_argument("--times", type=int, default=10)
    a.add_argument("--seed", type=int, default=0)
    args = a.parse_args()
    if args.what == "kill":
        good = kill(args.times, args.seed)
    elif args.what == "dask":
        good = dask()
    else:
        good = scheduler()
    sys.exit(not good)
