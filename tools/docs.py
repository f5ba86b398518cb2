"""Build README.md and the documentation site from the notebooks, without Quarto.

    python tools/docs.py readme     nbs/index.ipynb -> README.md (and readme_files/)
    python tools/docs.py site       nbs/ and _quarto.yml -> _docs/
    python tools/docs.py serve      the same, then serve it on this machine

Where Quarto is installed, `nbdev_docs` builds the site from the same files. Here nbdev processes
the notebooks, pandoc turns each page into HTML, KaTeX sets the formulas in the browser and pagefind
makes the search index. Nothing on a page is fetched from elsewhere.

A notebook nbs/1_graphs/12_graph.ipynb becomes the page 1_graphs/graph.html: nbdev takes the number
away. Its figures are figures/1_graphs/graph-1.png and so on, so that two folders may hold pages of
one name. A module is a page too, source/graph.html, which the search leaves out.
"""
import argparse
import base64
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from functools import partial
from pathlib import Path
from string import Template

import yaml

root = Path(__file__).resolve().parent.parent
assets = Path(__file__).resolve().parent / "site"
parser = ConfigParser(delimiters=["="])
parser.read(root / "settings.ini", encoding="utf-8")
cfg = parser["DEFAULT"]

# ---- a notebook as Markdown

directive = re.compile(r"^#\s*\|\s*([\w-]+):?\s*(.*)$")
hidden = {"hide", "default_exp", "export", "exports", "exporti"}
ansi = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def text(source):
    return source if isinstance(source, str) else "".join(source)


def split_cell(source):
    """The directives of a code cell, and its code without them."""
    lines = source.splitlines()
    marks = {m[1]: m[2].strip() for m in map(directive.match, lines) if m}
    return marks, "\n".join(line for line in lines if not directive.match(line)).strip("\n")


def fenced(code, language=""):
    """Code between more backticks than it holds itself."""
    ticks = "`" * max(3, 1 + max(map(len, re.findall(r"`+", code)), default=0))
    return f"{ticks}{language}\n{code}\n{ticks}"


def stream(out):
    """What a terminal would show: the last state of each overwritten line, no colours."""
    shown = ansi.sub("", text(out.get("text") or out.get("traceback") or ""))
    lines = [line.rstrip("\r").rsplit("\r", 1)[-1] for line in shown.split("\n")]
    return "\n".join(lines).rstrip()


def merged(outputs):
    """The outputs, with neighbouring pieces of one stream joined, as a reader saw them."""
    out = []
    for o in outputs:
        if out and o.get("output_type") == "stream" and out[-1].get("name") == o.get("name"):
            out[-1] = {**o, "text": text(out[-1]["text"]) + text(o["text"])}
        else:
            out.append(o)
    return out


def unlinked(source):
    """Markdown without links in its code: nbdev also puts them into the comments of a listing."""
    lines, fence = [], ""
    for line in source.split("\n"):
        ticks = re.match("(`{3,})?", line)[0]
        if fence and ticks == fence:
            fence = ""
        elif fence:
            line = re.sub(r"\[(`[^`]+`)\]\(\w+://[^)]*\)", r"\1", line)
        else:
            fence = ticks
        lines.append(line)
    return "\n".join(lines)


def output(out, save, plain, asis):
    """One output of a cell as Markdown; `save(bytes, ending)` keeps a picture."""
    if "data" not in out:
        return fenced(stream(out)) if stream(out) else ""
    data = {k: text(v) for k, v in out["data"].items() if k != "application/json"}
    for kind, ending in (("image/svg+xml", "svg"), ("image/png", "png")):
        if kind in data:
            raw = data[kind].encode() if ending == "svg" else base64.b64decode(data[kind])
            return f"![]({save(raw, ending)})"
    if "text/markdown" in data and (asis or not plain):
        return unlinked(data["text/markdown"])
    if "text/html" in data and not plain:
        return f"```{{=html}}\n{data['text/html']}\n```"
    return fenced(ansi.sub("", data.get("text/plain", "")).rstrip())


def markdown(notebook, save, plain=False):
    """A notebook as Markdown: `plain` for README (GitHub's kind), else pandoc's, output marked."""
    parts = []
    for cell in notebook["cells"]:
        source = text(cell.get("source") or "")
        if cell["cell_type"] == "markdown":
            parts.append(source)
        if cell["cell_type"] != "code" or not source.strip():
            continue
        marks, code = split_cell(source)
        if marks.keys() & hidden or marks.get("include") == "false":
            continue
        asis = marks.get("output") == "asis"
        if code and marks.get("echo") != "false":
            parts.append(fenced(code, "python"))
        if marks.get("output") == "false":
            continue
        shown = [output(o, save, plain, asis) for o in merged(cell.get("outputs", []))]
        shown = "\n\n".join(s for s in shown if s)
        if shown:
            parts.append(shown if plain or asis else f"::::: {{.output}}\n\n{shown}\n\n:::::")
    return "\n\n".join(p for p in parts if p.strip()) + "\n"


# ---- README

def readme():
    """README.md is the index notebook, with links and pictures seen from the top folder."""
    folder = root / "readme_files"
    shutil.rmtree(folder, ignore_errors=True)

    def save(raw, ending):
        folder.mkdir(exist_ok=True)
        name = f"figure-{1 + len(list(folder.iterdir()))}.{ending}"
        (folder / name).write_bytes(raw)
        return f"../readme_files/{name}"

    def from_top(m):  # a link of nbs/, seen from the top folder
        path, mark, anchor = m[1].partition("#")
        return f"]({(root / 'nbs' / path).resolve().relative_to(root).as_posix()}{mark}{anchor})"

    notebook = json.loads((root / "nbs/index.ipynb").read_text(encoding="utf-8"))
    body = markdown(notebook, save, plain=True)
    body = re.sub(r"\]\((?!\w+:|#|/)([^)]+)\)", from_top, body)
    note = "<!-- Made from nbs/index.ipynb by tools/docs.py; edit the notebook. -->\n\n"
    (root / "README.md").write_text(note + body, encoding="utf-8")


# ---- the site

def navigation(items, section=""):
    """The sidebar of _quarto.yml as a flat list of (section, path, text)."""
    for item in items:
        if isinstance(item, str):
            yield section, item, None
        elif "section" in item:
            yield from navigation(item["contents"], item["section"])
        else:
            yield section, item["href"], item.get("text")


class Page:
    """One page: where it comes from, where it goes, what it says."""

    kind = "page"

    def __init__(self, section, path, label, proc):
        self.section, self.path, self.media = section, path, {}
        source = proc / path
        content = source.read_text(encoding="utf-8")
        notebook = json.loads(content) if source.suffix == ".ipynb" else None
        meta, content = self.head(notebook, content)
        self.title = str(meta.get("title") or source.stem)
        self.label = label or self.title
        self.lead = marked(str(meta.get("description") or "").strip())
        self.address = str(Path(path).parent / meta.get("output-file", f"{source.stem}.html"))
        self.up = "../" * self.address.count("/")
        self.markdown = markdown(notebook, self.save) if notebook else self.from_top(content)
        self.current = self  # the entry of the menu that is marked

    def head(self, notebook, content):
        """Title and description, and the rest; nbdev writes them as YAML into a notebook."""
        if notebook:
            raw = (text(c["source"]) for c in notebook["cells"] if c["cell_type"] == "raw")
            front = next((r for r in raw if r.startswith("---")), "")
            return yaml.safe_load(front.strip().strip("-")) or {}, content
        head = re.match(r"# (.+)\n\s*(?:> (.+)\n)?", content)
        if not head:
            return {}, content
        return {"title": head[1], "description": head[2]}, content[head.end():]

    def from_top(self, content):
        """Markdown of the top folder: its links into nbs/ lead to pages, its pictures are kept."""
        def picture(m):
            file = root / "nbs" / m[2]
            return f"![{m[1]}]({self.save(file.read_bytes(), file.suffix[1:])})"

        content = content.replace("](nbs/", "](")
        return re.sub(r"!\[([^\]]*)\]\(([^):]+)\)", picture, content)

    def save(self, raw, ending):
        """Keep a picture under the address of the page, which no other page has."""
        name = f"figures/{self.address.removesuffix('.html')}-{1 + len(self.media)}.{ending}"
        self.media[name] = raw
        return f"{{root}}{name}"


class Source(Page):
    """A module's source as a page, with an anchor per line."""

    kind = "listing"

    def __init__(self, path, pages):
        code = path.read_text(encoding="utf-8")
        self.section, self.path, self.media = "", f"source/{path.stem}", {}
        self.title = self.label = f"{cfg['lib_path']}/{path.name}"
        self.address, self.up = f"source/{path.stem}.html", "../"
        self.markdown = fenced(code, "{#line .python .numberLines .lineAnchors}")
        made = re.search(r"File to edit: \.\./nbs/(\S+\.ipynb)", code)
        self.current = next((p for p in pages if made and p.path == made[1]), None)
        self.lead = "The generated module"
        if self.current:
            title = html.escape(self.current.title)
            link = f'<a href="{self.up}{self.current.address}">{title}</a>'
            self.lead = f"The module that is generated from the notebook “{link}”"


def marked(words):
    """A line of plain text as HTML, with what is in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(words))


def pandoc(source):
    """Markdown as HTML."""
    import pypandoc

    extensions = "-yaml_metadata_block+lists_without_preceding_blankline"
    command = [pypandoc.get_pandoc_path(), f"--from=markdown{extensions}"]
    command += ["--to=html5", "--katex", "--wrap=none"]
    run = subprocess.run(command, input=source, capture_output=True, text=True, encoding="utf-8")
    if run.returncode:
        raise SystemExit(f"pandoc: {run.stderr}")
    if run.stderr:
        print(run.stderr.strip(), file=sys.stderr)
    return run.stdout


published = cfg["doc_host"] + cfg["doc_baseurl"].rstrip("/") + "/"
repository = f"{cfg['git_url']}/blob/{cfg['branch']}/{cfg['lib_path']}/"


def linked(body, page, pages, anchors):
    """Links that work from this page: notebooks become pages, and so do the addresses of nbdev."""
    targets = {os.path.normpath(p.path): p.address for p in pages}

    def local(url):
        """The address from the top of the site, for what is a page of it."""
        if url.startswith("{root}"):
            return url.removeprefix("{root}")
        if url.startswith(published):
            # nbdev links every exported name, also those without an entry: then the page must do
            address, _, anchor = url.removeprefix(published).partition("#")
            return f"{address}#{anchor}" if anchor in anchors.get(address, ()) else address
        if url.startswith(repository):
            module, _, line = url.removeprefix(repository).partition(".py#L")
            module = module.removesuffix(".py")
            return f"source/{module}.html" + (f"#line-{line}" if line else "")
        if re.match(r"\w+:|#|/", url):
            return None
        path, mark, anchor = url.partition("#")
        known = targets.get(os.path.normpath(Path(page.path).parent / path))
        return f"{known}{mark}{anchor}" if known else None

    def fix(m):
        url = html.unescape(m[2]).replace("%7Broot%7D", "{root}")
        known = local(url)
        return f'{m[1]}="{html.escape(url if known is None else page.up + known)}"'

    return re.sub(r'\b(href|src)="([^"]*)"', fix, body)


def contents(body):
    """The headings of a page as a list of links, in a fold that a wide window opens."""
    rows = re.findall(r'<h([23]) id="([^"]+)"[^>]*>(.*?)</h\1>', body, flags=re.S)
    if len(rows) < 2:
        return ""
    items = ""
    for level, anchor, words in rows:
        words = re.sub("<[^>]+>", "", words)
        items += f'<li class="level{level}"><a href="#{anchor}">{words}</a></li>'
    return (
        '<nav class="toc" aria-label="On this page" data-pagefind-ignore><details>'
        f"<summary>On this page</summary><ul>{items}</ul></details></nav>"
    )


def menu(page, pages):
    """The navigation, with this page marked."""
    rows, last = [], ""
    for p in pages:
        if p.section != last:
            rows.append(f'<li class="section">{html.escape(p.section)}</li>')
        last = p.section
        here = ' aria-current="page"' if p is page.current else ""
        rows.append(f'<li><a href="{page.up}{p.address}"{here}>{html.escape(p.label)}</a></li>')
    return f"<ul>{''.join(rows)}</ul>"


def turn(page, pages):
    """Links to the page before and the page after."""
    if page not in pages:
        return ""
    i = pages.index(page)
    before = after = "<span></span>"
    if i:
        p = pages[i - 1]
        before = f'<a class="before" href="{page.up}{p.address}">← {html.escape(p.label)}</a>'
    if i + 1 < len(pages):
        p = pages[i + 1]
        after = f'<a class="after" href="{page.up}{p.address}">{html.escape(p.label)} →</a>'
    label = 'aria-label="Previous and next" data-pagefind-ignore'
    return f'<nav class="turn" {label}>{before}{after}</nav>'


def write(page, body, pages, docs, template):
    """One file of the site, and its pictures."""
    body = body.replace("<table", '<div class="wide"><table')
    body = body.replace("</table>", "</table></div>")
    body = body.replace('<details class="source">', '<details class="source" data-pagefind-ignore>')
    site = html.escape(cfg["title"])
    title = html.escape(page.title)
    words = template.substitute(
        title=title,
        tab=site if title == site else f"{title} – {site}",
        description=re.sub("<[^>]+>", "", page.lead),
        lead=f'<p class="lead">{page.lead}</p>' if page.lead else "",
        site=site,
        version=html.escape(cfg["version"]),
        root=page.up,
        kind=page.kind,
        search="data-pagefind-ignore" if page.kind == "listing" else "data-pagefind-body",
        body=body,
        toc=contents(body),
        menu=menu(page, pages),
        turn=turn(page, pages),
    )
    files = {page.address: words.encode(), **page.media}
    for name, raw in files.items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_bytes(raw)


def listed(proc):
    """The pages of the navigation; a notebook that is not there is an error."""
    quarto = yaml.safe_load((root / "_quarto.yml").read_text(encoding="utf-8"))
    entries = list(navigation(quarto["website"]["sidebar"]["contents"]))
    known = {path for _, path, _ in entries}
    missing = {str(p.relative_to(proc)) for p in proc.rglob("*.ipynb")} - known
    if missing:
        names = ", ".join(sorted(missing))
        raise SystemExit(f"these notebooks are not in the navigation of _quarto.yml: {names}")
    return [Page(*entry, proc) for entry in entries]


def site():
    """Build the whole site into _docs/."""
    from nbdev.serve import proc_nbs

    start = time.time()
    os.chdir(root)
    workers = min(2, os.cpu_count() or 1)
    shutil.rmtree(root / "_proc", ignore_errors=True)
    pages = listed(Path(proc_nbs(n_workers=workers)))
    modules = sorted((root / cfg["lib_path"]).glob("*.py"))
    sources = [Source(p, pages) for p in modules if p.name != "_modidx.py"]
    everything = pages + sources
    with ThreadPoolExecutor(workers) as pool:
        bodies = list(pool.map(pandoc, [page.markdown for page in everything]))
    anchors = {}
    for page, body in zip(everything, bodies):
        anchors[page.address] = set(re.findall(r' id="([^"]+)"', body))
    docs = root / cfg["doc_path"]
    shutil.rmtree(docs, ignore_errors=True)
    docs.mkdir()
    template = Template((assets / "page.html").read_text(encoding="utf-8"))
    for page, body in zip(everything, bodies):
        write(page, linked(body, page, pages, anchors), pages, docs, template)
    for name in ("style.css", "site.js", "icon.svg"):
        shutil.copy(assets / name, docs / name)
    shutil.copytree(assets / "katex", docs / "katex")
    index = [sys.executable, "-m", "pagefind", "--site", str(docs), "--quiet"]
    subprocess.run(index, check=True)
    took = f"{time.time() - start:.1f} s"
    print(f"{len(pages)} pages and {len(sources)} sources in {docs.relative_to(root)}/, {took}")


def serve(port=8000):
    site()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(root / cfg["doc_path"]))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://127.0.0.1:{port}/ (Ctrl-C ends it)")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    jobs = {"readme": readme, "site": site, "serve": serve}
    plain = argparse.RawDescriptionHelpFormatter
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    arguments.add_argument("job", choices=jobs)
    jobs[arguments.parse_args().job]()
