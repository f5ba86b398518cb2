"""Grids that are killed: python tests/soak_grid.py kill [--times 10] | dask

kill   kill -9 a grid (and its workers) at random moments, start it again each time, and compare with a grid that nobody disturbed:
       the same files, byte-equal summaries, no finished run played twice, nothing left behind
dask   a Dask cluster of three local workers, one of which is killed in the middle: the same summaries
Exit code 1 if anything differs.
"""
import argparse, os, random, shutil, signal, subprocess, sys, tempfile, time
from pathlib import Path

worlds, methods, seeds, steps = ["fig1", "psa_2"], ["cocabo", "cabo", "random"], 6, 60
play = "from cocabo.experiments import experiment; import sys; experiment({!r}, {!r}, {!r}, {!r}, sys.argv[1], jobs=2, dask=(sys.argv[2] if len(sys.argv) > 2 else None), progress=False)".format(worlds, methods, seeds, steps)
kept = ("runs.csv", "curves.csv", "frequency.csv", "growth.csv", "manifest.json")


def grid(folder, *more):
    return subprocess.Popen([sys.executable, "-c", play, str(folder), *more], start_new_session=True)


def finished(folder):
    return {p.relative_to(folder): (p.stat().st_mtime_ns, p.stat().st_ino) for p in folder.glob("*/*/*.parquet") if not p.name.startswith(".")}


def summary(folder):
    from cocabo.records import Records
    from cocabo.summaries import summarise

    summarise(Records(folder))
    return {n: (folder / n).read_bytes() for n in kept}


def kill(times, seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as d:
        calm, wild = Path(d) / "calm", Path(d) / "wild"
        grid(calm).wait()
        twice = killed = 0
        while killed < times:
            before = finished(wild) if wild.exists() else {}
            p, more, late = grid(wild), rng.randint(0, 6), rng.uniform(0, 1.5)
            while p.poll() is None and (not wild.exists() or len(finished(wild)) < len(before) + more):
                time.sleep(.01)
            time.sleep(late)  # somewhere in the middle of the next runs
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
                killed += 1
            after = finished(wild) if wild.exists() else {}
            twice += sum(after.get(f) != v for f, v in before.items())  # a finished file that is gone or was written again
            print(f"killed {killed} times, {len(after)} of {len(worlds) * len(methods) * seeds} runs there", flush=True)
            if p.returncode == 0 and killed < times:  # it got through: take some runs away, so that there is something left to interrupt
                for f in rng.sample(sorted(after), 12):
                    (wild / f).unlink()
        before = finished(wild)
        assert grid(wild).wait() == 0
        twice += sum(finished(wild).get(f) != v for f, v in before.items())
        same = set(finished(calm)) == set(finished(wild)) and summary(calm) == summary(wild)
        rest = [p.name for p in wild.rglob("*") if "half" in p.name or "damaged" in p.name or "error" in p.name]
        print(f"same files and byte-equal summaries: {same}; finished runs played again: {twice}; left behind: {rest}")
        return same and not twice and not rest


def dask():
    from distributed import LocalCluster

    with tempfile.TemporaryDirectory() as d:
        calm, wild = Path(d) / "calm", Path(d) / "wild"
        grid(calm).wait()
        with LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster:
            p = grid(wild, cluster.scheduler_address)
            while not wild.exists() or len(finished(wild)) < 8:
                time.sleep(.2)
                assert p.poll() is None, "the grid ended too early"
            victim = next(iter(cluster.workers.values()))
            os.kill(victim.pid, signal.SIGKILL)  # the worker itself, not the nanny that would start another
            print(f"killed a worker when {len(finished(wild))} runs were there")
            assert p.wait() == 0
        same = set(finished(calm)) == set(finished(wild)) and summary(calm) == summary(wild)
        print(f"same files and byte-equal summaries: {same}")
        return same


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("what", choices=["kill", "dask"])
    a.add_argument("--times", type=int, default=10)
    a.add_argument("--seed", type=int, default=0)
    args = a.parse_args()
    sys.exit(not (kill(args.times, args.seed) if args.what == "kill" else dask()))
