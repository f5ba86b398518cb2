"""Build README.md and the documentation site from the notebooks, without Quarto.

    python tools/docs.py readme     nbs/index.ipynb -> README.md (and readme_files/)
    python tools/docs.py site       nbs/ and _quarto.yml -> _docs/
    python tools/docs.py serve      the same, then serve it on this machine

Where Quarto is installed, `nbdev_docs` builds the site from the same files. Here nbdev processes the notebooks, pandoc turns each page into HTML,
KaTeX sets the formulas in the browser and pagefind makes the search index. Nothing on a page is fetched from elsewhere.
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
    ticks = "`" * max(3, 1 + max(map(len, re.findall(r"`+", code)), default=0))
    return f"{ticks}{language}\n{code}\n{ticks}"


def stream(out):
    """What a terminal would show: the last state of each line that was overwritten, no colours."""
    shown = ansi.sub("", text(out.get("text") or out.get("traceback") or ""))
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in shown.split("\n")).rstrip()


def merged(outputs):
    """The outputs, with pieces of one stream that follow each other joined, as a reader saw them."""
    out = []
    for o in outputs:
        if out and o.get("output_type") == "stream" and out[-1].get("name") == o.get("name"):
            out[-1] = {**o, "text": text(out[-1]["text"]) + text(o["text"])}
        else:
            out.append(o)
    return out


def output(out, save, plain, asis):
    """One output of a cell as Markdown; `save(bytes, ending)` keeps an image and returns its address."""
    if "data" not in out:
        return fenced(stream(out)) if stream(out) else ""
    data = {k: text(v) for k, v in out["data"].items() if k != "application/json"}
    for kind, ending in (("image/svg+xml", "svg"), ("image/png", "png")):
        if kind in data:
            raw = data[kind].encode() if ending == "svg" else base64.b64decode(data[kind])
            return f"![]({save(raw, ending)})"
    if "text/markdown" in data and (asis or not plain):
        return data["text/markdown"]
    if "text/html" in data and not plain:
        return f"```{{=html}}\n{data['text/html']}\n```"
    return fenced(ansi.sub("", data.get("text/plain", "")).rstrip())


def markdown(notebook, save, plain=False):
    """A notebook as Markdown: `plain` for README (GitHub's kind), else pandoc's, with a class around what a cell printed."""
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
        shown = [] if marks.get("output") == "false" else [output(o, save, plain, asis) for o in merged(cell.get("outputs", []))]
        shown = "\n\n".join(s for s in shown if s)
        if shown:
            parts.append(shown if plain or asis else f"::::: {{.output}}\n\n{shown}\n\n:::::")
    return "\n\n".join(p for p in parts if p.strip()) + "\n"


# ---- README

def readme():
    """README.md is the index notebook, word for word, with links and pictures that work from the top folder."""
    folder = root / "readme_files"
    shutil.rmtree(folder, ignore_errors=True)

    def save(raw, ending):
        folder.mkdir(exist_ok=True)
        name = f"figure-{1 + len(list(folder.iterdir()))}.{ending}"
        (folder / name).write_bytes(raw)
        return f"../readme_files/{name}"

    body = markdown(json.loads((root / "nbs/index.ipynb").read_text(encoding="utf-8")), save, plain=True)
    def from_top(m):  # a link of nbs/, seen from the top folder
        path, mark, anchor = m[1].partition("#")
        return f"]({(root / 'nbs' / path).resolve().relative_to(root).as_posix()}{mark}{anchor})"

    body = re.sub(r"\]\((?!\w+:|#|/)([^)]+)\)", from_top, body)
    (root / "README.md").write_text("<!-- Made from nbs/index.ipynb by tools/docs.py; edit the notebook. -->\n\n" + body, encoding="utf-8")


# ---- the site

def navigation(items):
    """The sidebar of _quarto.yml as a flat list of (section, path, text)."""
    for item in items:
        if isinstance(item, str):
            yield "", item, None
        elif "section" in item:
            yield from ((item["section"], path, label) for _, path, label in navigation(item["contents"]))
        else:
            yield "", item["href"], item.get("text")


class Page:
    """One page: where it comes from, where it goes, what it says."""

    def __init__(self, section, path, label, proc):
        self.section, self.path = section, path
        source = proc / path
        self.media = {}
        if source.suffix == ".ipynb":
            notebook = json.loads(source.read_text(encoding="utf-8"))
            front = next((text(c["source"]) for c in notebook["cells"] if c["cell_type"] == "raw" and text(c["source"]).startswith("---")), "---\n---")
            meta = yaml.safe_load(front.strip().strip("-")) or {}
            self.markdown = markdown(notebook, self.save)
        else:
            meta, self.markdown = {}, source.read_text(encoding="utf-8")
            head = re.match(r"# (.+)\n", self.markdown)
            if head:
                meta, self.markdown = {"title": head[1]}, self.markdown[head.end():]
        self.title = str(meta.get("title") or Path(path).stem)
        self.label = label or self.title
        self.description = str(meta.get("description") or "").strip()
        self.address = str(Path(path).parent / meta.get("output-file", Path(path).stem + ".html"))

    def save(self, raw, ending):
        name = f"{Path(self.path).stem}-{1 + len(self.media)}.{ending}"
        self.media[name] = raw
        return f"{{root}}figures/{name}"

    @property
    def up(self):
        return "../" * self.address.count("/")


def pandoc(source, *options):
    import pypandoc

    run = subprocess.run([pypandoc.get_pandoc_path(), "--from=markdown-yaml_metadata_block+lists_without_preceding_blankline", "--to=html5", "--katex", "--wrap=none", *options],
                         input=source, capture_output=True, text=True, encoding="utf-8")
    if run.returncode:
        raise SystemExit(f"pandoc: {run.stderr}")
    if run.stderr:
        print(run.stderr.strip(), file=sys.stderr)
    return run.stdout


def addresses(body, page, pages):
    """Links that work from this page: notebooks become pages, the published site and repository become this site."""
    targets = {os.path.normpath(p.path): p.address for p in pages}
    docs, code = cfg["doc_host"] + cfg["doc_baseurl"].rstrip("/") + "/", f"{cfg['git_url']}/blob/{cfg['branch']}/{cfg['lib_path']}/"

    def fix(m):
        name, url = m[1], html.unescape(m[2]).replace("%7Broot%7D", "{root}")
        if url.startswith("{root}"):
            url = page.up + url[6:]
        elif url.startswith(docs):
            url = page.up + url[len(docs):]
        elif url.startswith(code):
            url = page.up + "source/" + re.sub(r"\.py(#L(\d+))?$", lambda n: f".html#line-{n[2]}" if n[1] else ".html", url[len(code):])
        elif not re.match(r"\w+:|#|/", url):
            path, _, anchor = url.partition("#")
            known = targets.get(os.path.normpath(Path(page.path).parent / path))
            if known:
                url = page.up + known + ("#" + anchor if anchor else "")
        return f'{name}="{html.escape(url)}"'

    return re.sub(r'\b(href|src)="([^"]*)"', fix, body)


def contents(body):
    """The headings of a page as a list of links."""
    rows = re.findall(r'<h([23]) id="([^"]+)"[^>]*>(.*?)</h\1>', body, flags=re.S)
    items = "".join(f'<li class="level{n}"><a href="#{i}">{re.sub("<[^>]+>", "", t)}</a></li>' for n, i, t in rows)
    return f'<nav class="toc" aria-label="On this page"><p>On this page</p><ul>{items}</ul></nav>' if rows else ""


def menu(page, pages):
    """The navigation, with this page marked."""
    rows, last = [], ""
    for p in pages:
        if p.section != last:
            rows.append(f'<li class="section">{html.escape(p.section)}</li>')
        last = p.section
        here = ' aria-current="page"' if p is page else ""
        rows.append(f'<li><a href="{page.up}{p.address}"{here}>{html.escape(p.label)}</a></li>')
    return f"<ul>{''.join(rows)}</ul>"


def turn(page, pages):
    """Links to the page before and the page after."""
    i = next((k for k, p in enumerate(pages) if p is page), None)
    if i is None:
        return ""
    before = f'<a class="before" href="{page.up}{pages[i - 1].address}">← {html.escape(pages[i - 1].label)}</a>' if i else "<span></span>"
    after = f'<a class="after" href="{page.up}{pages[i + 1].address}">{html.escape(pages[i + 1].label)} →</a>' if i + 1 < len(pages) else "<span></span>"
    return f'<nav class="turn" aria-label="Previous and next">{before}{after}</nav>'


def write(page, body, pages, anchors, docs, template):
    def check(m):  # nbdev links every exported name, also those that have no entry: then the page must do
        target = os.path.normpath(Path(page.address).parent / m[1])
        return m[0] if m[2] in anchors.get(target, ()) else f'href="{m[1]}"'

    body = re.sub(r'href="((?!\w+:)[^"#]+)#([^"]*)"', check, body)
    body = re.sub(r"<table", '<div class="wide"><table', body)
    body = re.sub(r"</table>", "</table></div>", body)
    lead = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(page.description))
    target = docs / page.address
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(template.substitute(
        title=html.escape(page.title), site=html.escape(cfg["title"]), version=html.escape(cfg["version"]), root=page.up, body=body, toc=contents(body), menu=menu(page, pages), turn=turn(page, pages),
        description=html.escape(page.description.replace("`", "")), lead=f'<p class="lead">{lead}</p>' if lead else ""), encoding="utf-8")
    for name, raw in page.media.items():
        (docs / "figures").mkdir(exist_ok=True)
        (docs / "figures" / name).write_bytes(raw)


class Source(Page):
    """A module's source as a page, with an anchor per line."""

    def __init__(self, path):
        self.section, self.path, self.media = "", f"source/{path.stem}", {}
        self.title = self.label = f"{cfg['lib_path']}/{path.name}"
        self.description, self.address = "The generated module; its notebook is the source of truth", f"source/{path.stem}.html"
        self.markdown = "``` {#line .python .numberLines .lineAnchors}\n" + path.read_text(encoding="utf-8") + "```\n"


def site():
    """Build the whole site into _docs/."""
    from nbdev.serve import proc_nbs

    start = time.time()
    os.chdir(root)
    shutil.rmtree(root / "_proc", ignore_errors=True)
    proc = Path(proc_nbs(n_workers=min(2, os.cpu_count() or 1)))
    docs = root / cfg["doc_path"]
    shutil.rmtree(docs, ignore_errors=True)
    docs.mkdir()
    quarto = yaml.safe_load((root / "_quarto.yml").read_text(encoding="utf-8"))
    entries = list(navigation(quarto["website"]["sidebar"]["contents"]))
    missing = {str(p.relative_to(proc)) for p in proc.rglob("*.ipynb")} - {path for _, path, _ in entries}
    if missing:
        raise SystemExit(f"these notebooks are not in the navigation of _quarto.yml: {', '.join(sorted(missing))}")
    pages = [Page(*entry, proc) for entry in entries]
    sources = [Source(p) for p in sorted((root / cfg["lib_path"]).glob("*.py")) if p.name != "_modidx.py"]
    template = Template((assets / "page.html").read_text(encoding="utf-8"))
    bodies = {page: addresses(pandoc(page.markdown), page, pages) for page in pages + sources}
    anchors = {page.address: set(re.findall(r' id="([^"]+)"', body)) for page, body in bodies.items()}
    for page, body in bodies.items():
        write(page, body, pages, anchors, docs, template)
    for name in ("style.css", "site.js", "icon.svg"):
        shutil.copy(assets / name, docs / name)
    shutil.copytree(assets / "katex", docs / "katex")
    subprocess.run([sys.executable, "-m", "pagefind", "--site", str(docs), "--quiet"], check=True)
    print(f"{len(pages)} pages and {len(sources)} sources in {docs.relative_to(root)}/, {time.time() - start:.1f} s")


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
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("job", choices=jobs)
    jobs[p.parse_args().job]()
