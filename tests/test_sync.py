"""What is generated from the notebooks is committed. Every check works on a copy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

root = Path(__file__).parent.parent
skip = shutil.ignore_patterns(
    ".git",
    ".venv",
    "_docs",
    "_proc",
    "build",
    "dist",
    "__pycache__",
    "*.egg-info",
    ".hypothesis",
    ".pytest_cache",
    ".ipynb_checkpoints",
)


def files(folder, pattern):
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob(pattern))
        if ".ipynb_checkpoints" not in p.parts
    }


@pytest.fixture
def copy(tmp_path):
    return Path(shutil.copytree(root, tmp_path / "copy", ignore=skip, symlinks=True))


def call(copy, *words):
    """Run a program of this environment in the copy, which shadows the installed package."""
    run = subprocess.run(
        words, cwd=copy, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(copy)}
    )
    assert run.returncode == 0, run.stdout + run.stderr


def program(name):
    return str(Path(sys.executable).parent / name)


def changed(before, after):
    return sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))


def test_modules_are_exported(copy):
    before = files(copy / "cocabo", "*.py")
    for name in before:
        if name != "__init__.py":
            (copy / "cocabo" / name).unlink()  # so that a module without a notebook is noticed too
    call(copy, program("nbdev_export"))
    assert not changed(before, files(copy / "cocabo", "*.py")), (
        "these modules differ from their notebooks: run nbdev_export, and edit notebooks only"
    )


def test_notebooks_are_clean(copy):
    before = files(copy / "nbs", "*.ipynb")
    call(copy, program("nbdev_clean"))
    assert not changed(before, files(copy / "nbs", "*.ipynb")), "run nbdev_clean"


def test_readme_is_the_index(copy):
    before = {
        k: v for pattern in ("README.md", "readme_files/*") for k, v in files(copy, pattern).items()
    }
    call(copy, sys.executable, "tools/docs.py", "readme")
    after = {
        k: v for pattern in ("README.md", "readme_files/*") for k, v in files(copy, pattern).items()
    }
    assert not changed(before, after), (
        "README is not what nbs/index.ipynb says: run python tools/docs.py readme"
    )


def test_picture_of_the_house_is_current(copy):
    before = (copy / "nbs/rooms.svg").read_bytes()
    call(copy, sys.executable, "tools/rooms.py")
    assert before == (copy / "nbs/rooms.svg").read_bytes(), "run python tools/rooms.py"
