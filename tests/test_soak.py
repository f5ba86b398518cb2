"""The long checks, for pytest --slow; soak_scopes.py and soak_grid.py run them one by one."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "check, count",
    [
        ("brute", 3000),
        ("pomis", 10_000),
        ("families", 3000),
        ("orders", 3000),
        ("rename", 3000),
        ("oracle", 200),
        ("witness", 200),
        ("explain", 300),
    ],
)
def test_soak(check, count, request):
    if not request.config.getoption("--slow"):
        pytest.skip("minutes long: pytest --slow")
    run = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).parent / "soak_scopes.py"),
            check,
            "--count",
            str(count),
            "--seed",
            "7",
        ],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert f"{count} of {count}" in run.stdout, "the time ran out before the count was reached"


@pytest.mark.parametrize("words", [["kill", "--times", "3"], ["dask"], ["scheduler"]])
def test_grid(words, request):
    if not request.config.getoption("--slow"):
        pytest.skip("minutes long: pytest --slow")
    if words in (["dask"], ["scheduler"]):
        pytest.importorskip("distributed")
    run = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "soak_grid.py"), *words],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


@pytest.mark.parametrize("words", [["kill", "--times", "50"], ["mutate", "--count", "1000"]])
def test_files(words, request):
    if not request.config.getoption("--slow"):
        pytest.skip("minutes long: pytest --slow")
    script = str(Path(__file__).parent / "soak_files.py")
    run = subprocess.run([sys.executable, script, *words], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


def test_interrupts(request):
    if not request.config.getoption("--slow"):
        pytest.skip("minutes long: pytest --slow")
    script = str(Path(__file__).parent / "soak_interrupts.py")
    run = subprocess.run([sys.executable, script, "--count", "300"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


@pytest.mark.parametrize(
    "check, count", [("trips", 1000), ("fuzz", 20_000), ("packages", 400), ("shipped", 20)]
)
def test_graphs(check, count, request):
    """Tiny in the ordinary run, so that the script itself cannot rot."""
    slow = request.config.getoption("--slow")
    if not slow and check in ("packages", "shipped"):
        pytest.skip("minutes long: pytest --slow")
    script = str(Path(__file__).parent / "soak_graphs.py")
    words = [check, "--count", str(count if slow else count // 50), "--seed", "7"]
    run = subprocess.run([sys.executable, script, *words], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


def test_lab(request):
    count = 2000 if request.config.getoption("--slow") else 40
    script = str(Path(__file__).parent / "soak_lab.py")
    run = subprocess.run(
        [sys.executable, script, "--count", str(count)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert f"{count} of {count}" in run.stdout


def test_check(request):
    """The level of `Graph.check`; tiny in the ordinary run."""
    slow = request.config.getoption("--slow")
    script = str(Path(__file__).parent / "soak_check.py")
    words = ["--count", "60" if slow else "1", "--rows", "200", "--seed", "7"]
    run = subprocess.run([sys.executable, script, *words], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


@pytest.mark.parametrize("task", ["events", "regret", "default", "gaps"])
def test_theory(task, request, tmp_path):
    """Tiny in any case; two tasks also in the ordinary run, so that the script cannot rot."""
    if task not in ("default", "gaps") and not request.config.getoption("--slow"):
        pytest.skip("minutes long: pytest --slow")
    script = str(Path(__file__).parent / "soak_theory.py")
    size = ["--runs", "3", "--steps", "40", "--points", "100", "--folder", str(tmp_path)]
    command = [sys.executable, script, task, *size]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert list(tmp_path.glob("*.csv"))


@pytest.mark.parametrize(
    "words",
    [
        ["kill", "--times", "20", "--method", "random"],
        ["cut", "--count", "100"],
        ["full", "--times", "3"],
        ["crowd", "--workers", "4", "--count", "20"],
        ["opening", "--workers", "16"],
        ["upgrade", "--times", "20"],
        ["mutate", "--count", "400"],
    ],
)
def test_study(words, request):
    """The shortest also in the ordinary run, so that the script cannot rot."""
    if words[0] != "cut" and not request.config.getoption("--slow"):
        pytest.skip("minutes long: pytest --slow")
    script = str(Path(__file__).parent / "soak_study.py")
    run = subprocess.run([sys.executable, script, *words], capture_output=True, text=True)
    if "no small file system" in run.stdout:
        pytest.skip("a small file system could not be mounted")
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


def test_sharing(request):
    "Licensed rows do not mislead; exit code 1 if they do."
    if not request.config.getoption("--slow"):
        pytest.skip("minutes long: pytest --slow")
    words = [str(Path(__file__).parent / "soak_sharing.py"), "--count", "40", "--repeats", "12"]
    run = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert "licensed: 38 systems" in run.stdout
