"""One test per notebook, by nbdev's own runner, each in a process of its own so that notebooks cannot help or harm each other."""
import subprocess
import sys
from pathlib import Path

import pytest

root = Path(__file__).parent.parent
notebooks = sorted(p for p in (root / "nbs").rglob("*.ipynb") if not any(part[0] in "._" for part in p.relative_to(root).parts))

runner = """
import sys
from pathlib import Path
from nbdev.config import get_config
from nbdev.test import test_nb
path, force = Path(sys.argv[1]), sys.argv[2:]
ok, _ = test_nb(path, skip_flags=get_config().tst_flags.split(), force_flags=force, basepath=get_config().config_path)
sys.exit(0 if ok else 1)
"""


def test_there_are_notebooks():
    assert notebooks, "no notebooks below nbs/"


@pytest.mark.parametrize("path", notebooks, ids=[str(p.relative_to(root / "nbs")) for p in notebooks])
def test_notebook(path, request):
    flags = ["slow"] if request.config.getoption("--slow") else []
    run = subprocess.run([sys.executable, "-c", runner, str(path), *flags], cwd=root, capture_output=True, text=True)
    if run.returncode:  # nbdev prints the notebook, the cell and the traceback
        pytest.fail(f"{path.relative_to(root)}\n{run.stdout[-4000:]}{run.stderr[-8000:]}", pytrace=False)
