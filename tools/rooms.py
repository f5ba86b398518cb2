"""Draw nbs/rooms.svg: who imports whom. A row for each notebook that makes a module, in reading
order, and a dot in the column of each module that it imports. Every dot is left of the diagonal:
no notebook needs a later one."""

import json
import re
from html import escape
from pathlib import Path

root = Path(__file__).resolve().parent.parent
cell, left, top = 13, 170, 112


def source(path):
    """The exported code of a notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    return "\n".join(t for t in texts if re.search(r"^#\|\s*export", t, re.M))


def house():
    """For each notebook of a room, in order: the room, the notebook's name, its imports."""
    rows = []
    for path in sorted((root / "nbs").glob("[0-9]_*/*.ipynb")):
        imports = set(re.findall(r"(?:from|import) cocabo\.(\w+)", source(path)))
        rows.append((path.parent.name, path.stem, imports))
    return rows


def text(x, y, words, more=""):
    return f'<text x="{x:g}" y="{y:g}" {more}>{escape(words)}</text>'


def picture(rows):
    """The matrix as SVG text."""
    n = len(rows)
    at = {stem.partition("_")[2]: i for i, (_, stem, _) in enumerate(rows)}
    width, height = left + n * cell + 20, top + n * cell + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="10">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for room in dict.fromkeys(r for r, _, _ in rows):
        mine = [i for i, (r, _, _) in enumerate(rows) if r == room]
        a, size = mine[0] * cell, len(mine) * cell
        out.append(
            f'<rect x="{left + a}" y="{top + a}" width="{size}" height="{size}" '
            'fill="#e8f0f7" stroke="#7a99b5"/>'
        )
        out.append(text(6, top + a + 10, room, 'font-weight="bold" fill="#33557a"'))
    for i, (_, stem, imports) in enumerate(rows):
        y = top + i * cell
        out.append(text(left - 6, y + 10, stem, 'text-anchor="end"'))
        x = left + i * cell + 9
        name = stem.partition("_")[2]
        out.append(text(x, top - 6, name, f'transform="rotate(-60 {x:g} {top - 6:g})"'))
        out.append(
            f'<rect x="{left + i * cell + 3}" y="{y + 3}" width="7" height="7" fill="#bbb"/>'
        )
        for module in sorted(imports & at.keys()):
            j = at[module]
            colour = "#c04000" if j > i else "#1f4e79"
            out.append(
                f'<circle cx="{left + j * cell + 6.5:g}" cy="{y + 6.5:g}" r="3.5" fill="{colour}">'
                f"<title>{escape(stem)} imports {escape(module)}</title></circle>"
            )
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    (root / "nbs/rooms.svg").write_text(picture(house()), encoding="utf-8")
