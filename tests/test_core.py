"""The public contract, with nothing installed but the library itself and pytest: for any Python."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

import cocabo as cb

text = "X1 -> X2 -> Y; C -> X2; C -> Y; X1 <-> C; X2 <-> Y"


@pytest.fixture
def problem():
    both = {"X1": cb.Real(-1, 1), "X2": cb.Real(-1, 1)}
    return cb.Problem(cb.Graph(text), "Y", both, contexts={"C": cb.Real(-1, 1)})


def test_graph_and_scopes():
    g = cb.Graph(text)
    assert cb.Graph(str(g)) == g and cb.Graph(g.to_dot()) == g and cb.Graph(g.to_networkx()) == g
    assert g.nodes == {"X1", "X2", "C", "Y"} and len(g.bidirected) == 2
    scopes = cb.pomps(g, target="Y", actions=["X1", "X2"])
    assert [str(s) for s in scopes] == ["X1|C", "X2|C"]
    without = cb.pomps(g, target="Y", actions=["X1", "X2"], contexts=[])
    assert {frozenset(s) for s in without} == set(cb.pomis(g, target="Y", actions=["X1", "X2"]))
    verdict = cb.explain(g, cb.Scope("X1|C; X2|C"), target="Y", actions=["X1", "X2"])
    assert not verdict.kept and verdict.better == cb.Scope("X2|C") and "X1" in str(verdict)


def test_domains():
    rng = np.random.default_rng(0)
    for domain in (cb.Real(-1, 3), cb.Integer(2, 9), cb.Category(["a", "b", "c"])):
        for v in domain.sample(rng, 50):
            assert v in domain and domain.from_unit(domain.to_unit(v)) in domain
    with pytest.raises(ValueError, match="no room"):
        cb.Real(1, 0)


def test_ask_act_tell_save_load(problem, tmp_path):
    opt = cb.CoCaBO(problem, seed=3)
    rng = np.random.default_rng(3)
    for _ in range(25):
        trial = opt.ask()
        c = float(rng.uniform(-1, 1))
        acts = trial.act({"C": c} if trial.needs else None)
        assert trial.ready and all(type(v) is float for v in acts.values())
        opt.tell(trial, float(-(sum(acts.values()) ** 2) + c))
    opt.save(tmp_path / "opt.json")
    again = cb.load(tmp_path / "opt.json")
    assert len(again.history) == 25
    one, other = opt.ask(), again.ask()
    seen = {"C": 0.25} if one.needs else None
    assert one.scope == other.scope and one.act(seen) == other.act(seen)
    best = opt.best()
    low, high = best.interval
    assert low < best.value < high
    json.dumps(best({"C": 0.3}))


def test_bad_input_is_one_sentence(problem):
    opt = cb.CoCaBO(problem)
    trial = opt.ask()
    for wrong in (math.nan, "high", None):
        with pytest.raises(ValueError) as e:
            trial.act({"C": wrong})
        assert "\n" not in str(e.value)
    with pytest.raises(ValueError, match="did you mean"):
        cb.environments["fgi1"]


@pytest.mark.parametrize("method", ["cocabo", "cabo", "cobo", "gpucb", "random"])
def test_run(method):
    frame = cb.run("fig1", method, steps=12, seed=1, progress=False)
    assert len(frame) == 12 and frame.regret.notna().all() and (frame.seconds > 0).all()


def test_environments_of_every_kind():
    for name in ("mixed", "two_stage"):
        frame = cb.run(name, steps=8, progress=False)
        assert np.isfinite(frame.expected).all()


def test_grid(tmp_path):
    records = cb.grid(
        ["fig1"],
        ["cocabo", "random"],
        seeds=2,
        steps=6,
        folder=tmp_path / "runs",
        jobs=1,
        progress=False,
    )
    assert len(records.load()) == 2 * 2 * 6


def test_own_system():
    from pyro.distributions import Uniform

    scm = cb.SCM(
        latents={"U": Uniform(-1.0, 1.0)},
        mechanisms={"C": lambda U: U, "X": lambda C: C, "Y": lambda X, C: -((X - C) ** 2)},
    )
    assert scm.graph == cb.Graph("C -> X -> Y; C -> Y")
    draws = scm.sample(200, policy={"X": lambda C: C + 1}, seed=0)
    assert np.allclose(draws["Y"], -1)


def cocabo(*words):
    """The command, as the entry point calls it."""
    start = "import sys; from cocabo.cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", start, *words], capture_output=True, text=True)


def test_command():
    run = cocabo("scopes", text, "--target", "Y", "--actions", "X1,X2", "--json")
    assert run.returncode == 0 and "X1" in run.stdout, run.stderr
    run = cocabo("scopes", "X1 -> ", "--target", "Y", "--actions", "X1")
    assert run.returncode == 2 and run.stderr.count("\n") == 1 and "Traceback" not in run.stderr


def test_who_teaches_whom(problem):
    "With nothing but `import cocabo`, in a process of its own"
    code = (
        "import cocabo as cb, pandas as pd\n"
        f"p = cb.Problem({text!r}, 'Y', {{'X1': cb.Real(-1, 1), 'X2': cb.Real(-1, 1)}},"
        " contexts={'C': cb.Real(-1, 1)})\n"
        "opt = cb.CoCaBO(p)\n"
        "opt.observe(pd.DataFrame(dict(C=[.1, .2, .3], X1=[.1, .2, .3], X2=0., Y=[.3, .2, .1])))\n"
        "print(opt.sharing.set_index('taker').licensed.to_dict())\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.strip() == "{'X1|C': True, 'X2|C': False}", run.stdout + run.stderr
