"""The house: one order for readers and importers, nothing that uses a later notebook, lines that
can be read, outputs that do not change."""

import ast
import json
import re
from pathlib import Path

import pytest
import yaml

root = Path(__file__).parent.parent
nbs = root / "nbs"
books = sorted(p for p in nbs.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
rooms = [p for p in books if p.parent.name[:1].isdigit()]
names = [str(p.relative_to(nbs)) for p in books]


def cells(path, kind="code"):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == kind:
            yield cell, "".join(cell["source"])


def navigation(items):
    for item in items:
        if isinstance(item, dict):
            yield from navigation(item["contents"])
        else:
            yield item


def test_one_order():
    site = yaml.safe_load((root / "_quarto.yml").read_text(encoding="utf-8"))
    pages = list(navigation(site["website"]["sidebar"]["contents"]))
    assert pages[0] == "index.ipynb"
    parts = [p.split("/")[0] for p in pages if "/" in p]
    order = sorted(set(parts), key=lambda p: (p != "tutorials", p != "explanations", p))
    assert list(dict.fromkeys(parts)) == order, "tutorials, explanations, then the rooms"
    told = [p for p in pages if p[0].isdigit()]
    assert told == [str(p.relative_to(nbs)) for p in rooms], "in a room, the files as they sort"
    assert set(names) <= set(pages), "every notebook is in the navigation"


def test_numbers_are_unique_and_name_the_room():
    numbers = [p.name.split("_")[0] for p in rooms]  # 12, or 12b: told after 12 and before 13
    assert all(re.fullmatch(r"\d\d[a-z]?", n) for n in numbers), numbers
    assert len(set(numbers)) == len(numbers)
    for path in rooms:
        assert path.name[0] == path.parent.name[0], path


def module_of(path):
    for _, source in cells(path):
        if found := re.search(r"^#\|\s*default_exp\s+(\S+)", source, re.M):
            return found[1]


def used_modules(path):
    """The modules that a notebook imports or reaches through `cb`, also in its tests."""
    source = "\n".join(s for _, s in cells(path))
    used = set(re.findall(r"(?:from|import) cocabo\.(\w+)", source))
    import cocabo

    home = {name: module for module, names in cocabo._home.items() for name in names}
    public = set(re.findall(r"\bcb\.(\w+)", source)) if "import cocabo as cb" in source else set()
    return used | {home.get(name, name) for name in public}


def test_no_notebook_uses_a_later_one():
    at = {module_of(p): i for i, p in enumerate(rooms)}
    late = [
        f"{path.name} uses {module}"
        for i, path in enumerate(rooms)
        for module in used_modules(path)
        if at.get(module, -1) > i
    ]
    assert not late, late


def puzzles(source):
    """What a tired reader would stumble over: style rule 2, as far as a program can see it."""
    lines = source.split("\n")
    for i, line in enumerate(lines, 1):
        if len(line) > 100:
            yield i, f"{len(line)} columns"
    if sum(bool(line.strip()) for line in lines) > 62:
        yield 1, "a cell of more than 60 lines"
    code = "\n".join("" if line.startswith(("#|", "%", "!")) else line for line in lines)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.IfExp):
            inner = [x for part in ast.iter_child_nodes(node) for x in ast.walk(part)]
            if any(isinstance(x, ast.IfExp) for x in inner):
                yield node.lineno, "a conditional inside a conditional"
        if generators := getattr(node, "generators", None):
            if len(generators) > 1 or len(generators[0].ifs) > 1:
                yield node.lineno, "a comprehension with more than one for or if"
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            yield node.lineno, "a lambda with a name"
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Tuple):
            yield node.lineno, "several statements as a tuple"


@pytest.mark.parametrize("path", books, ids=names)
def test_code_can_be_read(path):
    found = [
        f"cell {cell['id']}, line {line}: {what}"
        for cell, source in cells(path)
        for line, what in puzzles(source)
    ]
    assert not found, "\n".join(found)


timing = re.compile(r"\b\d[\d.]* ?(s|ms|µs|us|seconds?|minutes?|it/s|s/it)\b")
temporary = re.compile(r"/tmp/|/var/folders|\\Temp\\|site-packages|/home/|/root/|0x[0-9a-f]{6,}")


def shown(output):
    """The text of an output that a reader sees."""
    data = output.get("data", {})
    if any(kind.startswith("image/") for kind in data):
        return ""
    text = output.get("text") or data.get("text/plain") or output.get("evalue") or ""
    return text if isinstance(text, str) else "".join(text)


@pytest.mark.parametrize("path", books, ids=names)
def test_outputs_do_not_change_with_every_run(path):
    for cell, _ in cells(path):
        for output in cell["outputs"]:
            text = shown(output)
            assert not timing.search(text), f"cell {cell['id']} shows a timing: {text[:300]}"
            assert not temporary.search(text), f"cell {cell['id']} shows a path: {text[:300]}"
