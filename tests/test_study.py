"""The promises of a study, each with a test of its own; long versions are in soak_study.py."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cocabo as cb
from cocabo.store import Store

from postgres import server

env = cb.environments["fig1"]


@pytest.fixture(scope="module")
def postgres():
    with server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path, postgres):
    "Where a study can be, of both kinds"
    if request.param == "sqlite":
        return str(tmp_path / "lab.db")
    if postgres is None:
        pytest.skip("PostgreSQL is not installed: initdb was not found")
    return postgres.url(f"t{os.urandom(4).hex()}")


def play(study, n=1, worker=""):
    "Play some trials with made up results"
    for _ in range(n):
        trial = study.ask(worker=worker)
        trial.act({"C": 0.01 * (trial.number % 100)})
        study.tell(trial, 0.1 * (trial.number % 7), worker=worker)


def log(study):
    return [tuple(e) for e in study.events().drop(columns="undone").itertuples(index=False)]


# --- what was told is there


def test_told_is_on_disk(tmp_path):
    "A process tells, says so, and is killed: its results are there"
    address = tmp_path / "lab.db"
    cb.Study.create(address, env.problem, method="random").close()
    script = """
import sys, cocabo as cb
study = cb.Study(sys.argv[1])
while True:
    trial = study.ask()
    trial.act({"C": .1})
    study.tell(trial, float(trial.number))
    print(trial.number, flush=True)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(address)], stdout=subprocess.PIPE, text=True
    )
    said = [int(child.stdout.readline()) for _ in range(20)]
    child.kill()
    child.wait()
    told = cb.Study(address).history
    assert set(said) <= set(told["trial"])
    assert (told["Y"] == told["trial"]).all() and told["trial"].is_unique


class Cut:
    "The connection of a study breaks between the commit and its answer, once"

    def __init__(self, study):
        dialect = study._store.engine.dialect
        self.cuts = 1
        self.real = dialect.do_commit
        dialect.do_commit = self.commit

    def commit(self, connection):
        self.real(connection)
        if self.cuts:
            self.cuts -= 1
            raise sqlite3.OperationalError("database is locked")  # what passes


@pytest.mark.parametrize("what", ["ask", "act", "tell", "correct", "frame"])
def test_answer_lost(what, tmp_path):
    "The commit happened and nobody heard of it: the call is repeated and counts once"
    study = cb.Study.create(tmp_path / "lab.db", env.problem, method="random")
    play(study, 2)
    trial = study.ask()
    if what == "tell":
        trial.act(C=0.1)
    before = len(study.events())
    cut = Cut(study)
    calls = dict(
        ask=study.ask,
        act=lambda: trial.act(C=0.1),
        tell=lambda: study.tell(trial, 0.5),
        correct=lambda: study.correct(0, y=7.0),
        frame=lambda: study.observe(env.scm.sample(3, seed=1)),
    )
    calls[what]()
    assert not cut.cuts
    assert len(study.events()) == before + 1
    assert log(cb.Study(tmp_path / "lab.db")) == log(study)


def test_telling_again_counts_once(address):
    study = cb.Study.create(address, env.problem, method="random")
    trial = study.ask()
    trial.act(C=0.1)
    for _ in range(3):
        study.tell(trial, 0.5)
    study.tell(trial, 0.5, key="k")
    two = study.ask(key="again")
    assert study.ask(key="again").number == two.number
    study.tell(two, 0.1, contexts={"C": 0.2}, actions=dict.fromkeys(two.scope, 0.3), key="mine")
    study.tell(two, 0.1, key="mine")
    with pytest.raises(ValueError, match="told already"):
        study.tell(two, 0.2, key="mine")
    with pytest.raises(ValueError, match="belongs to event"):
        study.ask(key="mine")
    assert len(study.history) == 2


# --- several at once


def test_eight_asks_are_eight_points(address):
    "Open trials are seen by the others: all eight go somewhere else"
    cb.Study.create(address, env.problem).close()
    workers = [cb.Study(address) for _ in range(8)]
    trials = [w.ask(worker=f"w{i}") for i, w in enumerate(workers)]
    assert [t.number for t in trials] == list(range(8))
    points = [tuple(sorted(t.act({"C": 0.2}).items())) for t in trials]
    assert len(set(points)) == 8


def test_one_owner(address):
    study = cb.Study.create(address, env.problem, method="random")
    trial = study.ask(worker="Ada")
    with pytest.raises(ValueError, match="belongs to Ada"):
        study.act(trial.number, {"C": 0.1}, worker="Ben")
    mine = study.take(trial, worker="Ben")
    mine.act(C=0.1)
    with pytest.raises(ValueError, match="belongs to Ben"):
        trial.act(C=0.2)
    assert study.trials()["owner"].tolist() == ["Ben"]


def rush(address, n, name):
    study = cb.Study(address)
    play(study, n, name)


def test_processes_at_once(address):
    "Four processes: all trials are different and each is told once"
    cb.Study.create(address, env.problem, method="random").close()
    spawn = multiprocessing.get_context("fork")
    crew = [spawn.Process(target=rush, args=(address, 12, f"w{i}")) for i in range(4)]
    for p in crew:
        p.start()
    for p in crew:
        p.join(120)
    assert [p.exitcode for p in crew] == [0] * 4
    told = cb.Study(address).history
    assert sorted(told["trial"]) == list(range(48))
    assert told["who"].value_counts().tolist() == [12] * 4


def test_any_worker_suggests_the_same(address):
    "The next suggestion follows from the events: two workers, restarts, and a plain optimiser"
    study = cb.Study.create(address, env.problem, seed=3)
    plain = cb.CoCaBO(env.problem, seed=3)
    for t in range(6):
        if t % 2:
            study = cb.Study(address)  # a restart
        trial, twin = study.ask(), plain.ask()
        assert trial.act(C=0.1 * t) == twin.act(C=0.1 * t)
        study.tell(trial, 0.1 * t)
        plain.tell(twin, 0.1 * t)
    study.correct(2, y=0.9)
    plain.correct(2, y=0.9)
    study.drop(3, why="pump failed")
    plain.remove(3)
    one, two = cb.Study(address).ask(), plain.ask()
    assert str(one.scope) == str(two.scope) and one.act(C=0.3) == two.act(C=0.3)


# --- dead workers


def test_dead_worker(address):
    "Its trial comes back with its stage and contexts; a late result is taken once"
    cb.Study.create(address, env.problem, method="random").close()
    one, two = cb.Study(address, lease=1.0), cb.Study(address, lease=60.0)
    lost = one.ask(worker="one")
    acts = lost.act(C=0.3)
    one._held.clear()  # no sign of life any more
    time.sleep(1.5)
    found = two.ask(worker="two")
    assert (found.number, found.contexts, found.actions, found.owner) == (
        lost.number, lost.contexts, acts, "two")  # fmt: skip
    with pytest.raises(ValueError, match="belongs to two"):
        one.act(lost.number, {"C": 0.9}, worker="one")
    one.tell(lost, 0.3)
    two.tell(found, 0.3)
    assert len(two.history) == 1
    assert two.ask(worker="two").number == lost.number + 1


# --- trouble


def test_locks_wait(tmp_path):
    study = cb.Study.create(tmp_path / "lab.db", env.problem, method="random")
    other = sqlite3.connect(tmp_path / "lab.db")
    other.execute("begin immediate")
    script = "import sys, cocabo as cb; s = cb.Study(sys.argv[1]); print(flush=True); s.ask()"
    words = [sys.executable, "-c", script, str(tmp_path / "lab.db")]
    child = subprocess.Popen(words, stdout=subprocess.PIPE)
    child.stdout.readline()  # the study is open: reading waits for nobody
    time.sleep(1.5)
    assert child.poll() is None  # writing waits
    assert not study.open
    other.rollback()
    assert child.wait(60) == 0
    assert len(study.open) == 1


def test_lost_server(postgres):
    "The server goes away and comes back: the call waits for it"
    if postgres is None:
        pytest.skip("PostgreSQL is not installed: initdb was not found")
    study = cb.Study.create(postgres.url("lost"), env.problem, method="random")
    trial = study.ask()
    trial.act(C=0.1)
    postgres.stop()
    short = Store.__new__(Store)
    vars(short).update({**vars(study._store), "patience": 0.2, "_engine": None, "_process": None})
    with pytest.raises(OSError, match="nothing is lost"):
        short.names()
    postgres.start()
    study.tell(trial, 0.4)
    assert len(study.history) == 1


def test_read_only_and_full(tmp_path):
    study = cb.Study.create(tmp_path / "lab.db", env.problem, method="random")
    play(study, 3)
    known = log(study)
    with study._store.engine.connect() as c:
        c.exec_driver_sql("pragma query_only=1")
    with pytest.raises(OSError, match="read-only"):
        study.ask()
    with study._store.engine.connect() as c:
        c.exec_driver_sql("pragma query_only=0")
        pages = c.exec_driver_sql("pragma page_count").scalar()
        c.exec_driver_sql(f"pragma max_page_count={pages}")
    with pytest.raises(OSError, match="disk is full"):
        play(study, 200)
    with study._store.engine.connect() as c:
        c.exec_driver_sql("pragma max_page_count=1000000")
    assert log(study)[: len(known)] == known
    play(study, 1)
    assert log(cb.Study(tmp_path / "lab.db")) == log(study)


def test_upgrade_killed(tmp_path):
    "Killed in the middle of an upgrade: the old version is there, and the next one succeeds"
    path = tmp_path / "old.db"
    study = cb.Study.create(path, env.problem, method="random")
    play(study, 2)
    known = log(study)
    study.close()
    with sqlite3.connect(path) as c:
        c.execute("drop table cocabo_leases")
        c.execute("update cocabo_about set value='1' where name='version'")
    c.close()
    pid = os.fork()
    if not pid:
        from cocabo import store

        first = store._upgrades[1]
        store._upgrades[1] = lambda c: (first(c), os.kill(os.getpid(), signal.SIGKILL))
        cb.Study(path)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    with sqlite3.connect(path) as c:
        assert c.execute("select value from cocabo_about").fetchone() == ("1",)
        assert not c.execute("select 1 from sqlite_master where name='cocabo_leases'").fetchone()
    c.close()
    assert log(cb.Study(path)) == known


# --- nothing is erased, and nothing strange is believed


def test_nothing_is_erased(address):
    study = cb.Study.create(address, env.problem, method="random")
    play(study, 3)
    study.correct(1, y=5.0)
    study.drop(2, why="pump failed")
    study.undo()
    study.undo(trial=1)
    kinds = study.events()["kind"].tolist()
    assert kinds[-4:] == ["corrected", "dropped", "undone", "undone"]
    assert study.history["Y"].tolist() == [0.0, 0.1, 0.2]
    study.drop(2, why="pump failed")
    dropped = study.trials("dropped")
    assert (dropped["why"].tolist(), dropped["y"].tolist()) == (["pump failed"], [0.2])


def test_bent_rows_are_named(address):
    study = cb.Study.create(address, env.problem, method="random")
    play(study, 3)
    with study._store.engine.connect() as c:
        lite = study._store.lite
        c.exec_driver_sql("begin immediate") if lite else None
        drop = "drop trigger cocabo_update" if lite else "drop trigger cocabo_kept on cocabo_events"
        c.exec_driver_sql(drop)
        c.exec_driver_sql("update cocabo_events set who='Eve' where number=6")
        c.commit()
    with pytest.raises(ValueError, match="event 6 .* checksum"):
        cb.Study(address)
    if lite:
        with sqlite3.connect(address) as c:
            c.execute("drop trigger cocabo_delete")
            c.execute("delete from cocabo_events")
        c.close()
        with pytest.raises(ValueError, match="events are gone"):
            cb.Study(address)


def test_change_and_export(address, tmp_path):
    study = cb.Study.create(address, env.problem, method="random")
    play(study, 4)
    graph = cb.Graph("X1 -> X2 -> Y; C -> X2; C -> Y; X2 <-> Y")  # one hidden cause fewer
    study.change(cb.Problem(graph, "Y", env.problem.actions, env.problem.contexts))
    assert len(study.history) == 4 and study.problem.graph == graph
    study.export(tmp_path / "out")
    study.backup(tmp_path / "copy.db")
    assert log(cb.Study(tmp_path / "copy.db")) == log(study)
    assert len((tmp_path / "out" / "history.csv").read_text().splitlines()) == 5


def test_many_names_and_bad_addresses(tmp_path):
    path = Path(tmp_path) / "lab.db"
    for name in ("a", "b"):
        cb.Study.create(path, env.problem, name, method="random")
    with pytest.raises(ValueError, match="'a', 'b'"):
        cb.Study(path)
    assert cb.Study(path, "b").name == "b"
    (tmp_path / "x.txt").write_text("no database at all\n" * 50)
    for bad in (tmp_path / "x.txt", tmp_path, tmp_path / "none.db", "mysql://h/d", ""):
        with pytest.raises((ValueError, OSError)) as e:
            cb.Study(bad)
        assert "\n" not in str(e.value)
