"""The long checks, for pytest --slow; python tests/soak_scopes.py and tests/soak_grid.py run them one by one."""
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("check, count", [("brute", 3000), ("pomis", 10_000), ("rename", 3000), ("oracle", 200), ("witness", 200), ("explain", 300)])
def test_soak(check, count, request):
    if not request.config.getoption("--slow"):
        pytest.skip("minutes long: pytest --slow")
    run = subprocess.run([sys.executable, str(Path(__file__).parent / "soak_scopes.py"), check, "--count", str(count), "--seed", "7"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert f"{count} of {count}" in run.stdout, "the time ran out before the count was reached"


@pytest.mark.parametrize("words", [["kill", "--times", "3"], ["dask"]])
def test_grid(words, request):
    if not request.config.getoption("--slow"):
        pytest.skip("minutes long: pytest --slow")
    if words == ["dask"]:
        pytest.importorskip("distributed")
    run = subprocess.run([sys.executable, str(Path(__file__).parent / "soak_grid.py"), *words], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
