"""One test per notebook, each in a process of its own so that notebooks cannot help or harm each
other: every cell runs, and what it prints is what is saved."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

root = Path(__file__).parent.parent
notebooks = sorted(
    p for p in (root / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts
)

# nbdev's own runner, which reads the directives of cells, with the outputs kept for the comparison.
runner = """
import json, os, sys
from pathlib import Path
from execnb.shell import CaptureShell
from nbdev.config import get_config
from nbdev.frontmatter import FrontmatterProc
from nbdev.process import NBProcessor
path, forced = Path(sys.argv[1]).resolve(), set(sys.argv[2:])
skipped = set(get_config().tst_flags.split()) - forced
sys.path.insert(0, str(get_config().config_path))
os.environ["IN_TEST"] = "1"
nb = NBProcessor(path, procs=FrontmatterProc, process=True).nb
saved = json.loads(path.read_text(encoding="utf-8"))["cells"]
ran = []

def leave_out(cell):
    if cell.cell_type != "code": return True
    marks = getattr(cell, "directives_", None) or {}
    off = marks.get("eval:", [""])[0].lower() == "false" or bool(skipped & marks.keys())
    if not off: ran.append(cell)
    return off

shell = CaptureShell(path)
os.chdir(path.parent)
try:
    shell.run_all(nb, exc_stop=True, preproc=leave_out)
except BaseException:
    sys.stderr.write(shell.prettytb(fname=path) + "\\n")
    sys.exit(1)
before = {cell["id"]: cell["outputs"] for cell in saved if cell["cell_type"] == "code"}
pairs = [(cell.id, before[cell.id], list(cell.outputs or [])) for cell in ran]
print("OUTPUTS" + json.dumps(pairs, default=str))
"""


def text(outputs):
    """What a reader sees, without pictures and progress bars; tables as the page shows them,
    because their plain text depends on the width of the terminal."""
    seen = []
    for output in outputs:
        data = output.get("data", {})
        if output.get("name") == "stderr" or any(k.startswith("image/") for k in data):
            continue
        part = output.get("text") or data.get("text/html") or data.get("text/plain") or ""
        part = part if isinstance(part, str) else "".join(part)
        if "text/html" in data:
            part = re.sub(r"<style.*?</style>|<[^>]+>", " ", part, flags=re.S)
        seen.append(part)
    return "\n".join(seen).strip()


def words(shown):
    """The text without its numbers, which another processor may compute a little differently."""
    shown = re.sub(r" at 0x[0-9a-f]+", "", shown)  # nbdev_clean removes addresses
    shown = re.sub(r"\b[0-9a-f]{64}\b", "#", shown)  # a checksum of computed numbers is one too
    shown = re.sub(r"[-+−]?\d[\d.,]*(e[-+]?\d+)?", "#", shown)
    return re.sub(r"[\s─-]+", " ", shown)


def test_there_are_notebooks():
    assert notebooks, "no notebooks below nbs/"


@pytest.mark.parametrize(
    "path", notebooks, ids=[str(p.relative_to(root / "nbs")) for p in notebooks]
)
def test_notebook(path, request):
    flags = ["slow"] if request.config.getoption("--slow") else []
    command = [sys.executable, "-c", runner, str(path), *flags]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # as the saved outputs were made
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, env=one_thread)
    if run.returncode:  # nbdev prints the notebook, the cell and the traceback
        shown = f"{path.relative_to(root)}\n{run.stdout[-4000:]}{run.stderr[-8000:]}"
        pytest.fail(shown, pytrace=False)
    same = str.strip if request.config.getoption("--exact") else words
    for cell, saved, now in json.loads(run.stdout.rpartition("OUTPUTS")[2]):
        old, new = text(saved), text(now)
        if same(old) != same(new):
            pytest.fail(
                f"{path.relative_to(root)}, cell {cell}: the saved output is not what the cell "
                f"prints now; execute the notebook and save it\n--- saved\n{old[:1500]}\n"
                f"--- now\n{new[:1500]}",
                pytrace=False,
            )
