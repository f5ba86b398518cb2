"""The built site, read by a real browser: every page of the navigation loads without complaint,
nothing is fetched from elsewhere, every local link leads somewhere, formulas are set, search finds
words of the notebooks and no listings, code of 100 columns is not cut off on a laptop, it can be
copied, and no page is wider than a telephone."""
import collections
import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest

root = Path(__file__).parent.parent
docs = root / "_docs"
browsers = ["chromium", "chromium-browser", "google-chrome"]
chromium = next(filter(None, map(shutil.which, browsers)), None)
driver = shutil.which("chromedriver")

if not (docs / "index.html").exists():
    pytest.skip("the site is not built: python tools/docs.py site", allow_module_level=True)

found = docs.rglob("*.html")
pages = sorted(str(p.relative_to(docs)) for p in found if "pagefind" not in p.parts)
listings = [p for p in pages if p.startswith("source/")]
essays = [p for p in pages if p not in listings]
first = ["index.html", "explanations/method.html"]  # what a newcomer meets
first += [p for p in pages if p.startswith("tutorials/")]


class Links(HTMLParser):
    """The addresses a page points to, the anchors it offers, its title and its entries."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.title, self.entries = [], [], "", []
        self.inside = []
        self.feed((docs / path).read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [attrs[k] for k in ("href", "src") if attrs.get(k)]
        self.anchors += [attrs["id"]] if attrs.get("id") else []
        if tag in ("title", "nav", "a", "svg"):
            self.inside.append((tag, attrs))

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1][0] == tag:
            self.inside.pop()

    def handle_data(self, data):
        tags = [tag for tag, _ in self.inside]
        if tags == ["title"]:
            self.title += data
        if tags == ["nav", "a"] and self.inside[0][1].get("id") == "menu":
            self.entries.append(data)


@functools.cache
def links(path):
    return Links(path)


def page_with(anchor):
    """The page that has an anchor, wherever the notebook stands."""
    return next(path for path in essays if anchor in links(path).anchors)


@pytest.mark.parametrize("path", pages)
def test_links(path):
    bad = []
    for link in links(path).links:
        url = urlparse(urljoin(f"http://site/{path}", link))
        if url.netloc != "site" or url.scheme not in ("http", "https"):
            continue
        target = unquote(url.path).lstrip("/") or "index.html"
        if not (docs / target).is_file():
            bad.append(link)
        elif target.endswith(".html") and url.fragment:
            if unquote(url.fragment) not in links(target).anchors:
                bad.append(link)
    assert not bad, f"{path} has dead links: {sorted(set(bad))}"


def test_nothing_is_loaded_from_elsewhere():
    for path in pages:
        words = (docs / path).read_text(encoding="utf-8")
        for url in re.findall(r'(?:src|<link[^>]*href)="(\w+://[^"]+)"', words):
            pytest.fail(f"{path} loads {url}")


def test_code_is_shown_as_it_was_written():
    """nbdev puts links also into comments of a listing; a reader should not see their Markdown."""
    for path in essays:
        words = (docs / path).read_text(encoding="utf-8")
        assert "`](http" not in re.sub("<[^>]+>", "", words), path


def test_there_are_many_links():
    assert sum(len(links(p).links) for p in pages) > 20 * len(pages)  # the menu alone has more


def twice(words):
    return [word for word, n in collections.Counter(words).items() if n > 1]


def test_no_two_pages_have_one_title():
    assert not twice(links(path).title for path in pages)


def test_no_two_entries_of_the_navigation_have_one_name():
    assert len(links("index.html").entries) == len(essays)
    assert not twice(links("index.html").entries)


def test_names_are_linked_across_rooms():
    here, there = page_with("optimiser.ask"), page_with("problem.scopes")
    assert Path(here).parent != Path(there).parent
    wanted = {urldefrag(urljoin(f"/{here}", link))[0] for link in links(here).links}
    assert "/" + there in wanted


def test_each_picture_belongs_to_one_page():
    users = collections.defaultdict(set)
    for path in essays:
        for link in links(path).links:
            if "figures/" in link:
                users[urljoin(f"/{path}", link)].add(path)
    assert len(users) == sum(1 for p in (docs / "figures").rglob("*") if p.is_file())
    assert not [name for name, paths in users.items() if len(paths) > 1]


@pytest.fixture(scope="module")
def address():
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(docs))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


flags = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync
--disable-background-networking --disable-component-update --disable-dev-shm-usage
--window-size=1400,1000""".split()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (chromium and driver):
        pytest.skip("no Chromium with its driver (apt-get install chromium chromium-driver)")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in [*flags, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    home = str(tmp_path_factory.mktemp("home"))
    service = Service(driver, env={**os.environ, "HOME": home})
    browser = webdriver.Chrome(options=options, service=service)
    yield browser
    browser.quit()


@contextlib.contextmanager
def screen(browser, width, height=800, theme="light"):
    """A screen of another size, in a theme that the reader's machine prefers."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    prefers = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [prefers]})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def requests(browser):
    """The addresses that were asked for since the last call."""
    entries = browser.get_log("performance")
    messages = (json.loads(entry["message"])["message"] for entry in entries)
    sent = (m for m in messages if m["method"] == "Network.requestWillBeSent")
    return [m["params"]["request"]["url"] for m in sent]


def opened(browser, url):
    """Open a page; it must not complain or fetch anything from elsewhere."""
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(url)
    loud = ("SEVERE", "WARNING")
    complaints = [e["message"] for e in browser.get_log("browser") if e["level"] in loud]
    own = (url[: url.index("/", 8)], "data:", "blob:", "chrome:")
    away = [u for u in requests(browser) if not u.startswith(own)]
    assert not complaints and not away, (complaints, away)


def ask(browser, code, *values):
    return browser.execute_script(f"return {code}", *values)


@pytest.mark.parametrize("path", pages)
def test_page_in_browser(browser, address, path):
    opened(browser, address + path)
    assert ask(browser, "document.querySelectorAll('main h1').length") == 1
    raw = ask(browser, """[...document.querySelectorAll('.math')]
        .filter(e => !e.querySelector('.katex') || e.querySelector('.katex-error'))
        .map(e => e.textContent)""")
    assert not raw, f"formulas that were not set: {raw}"
    broken = ask(browser, "[...document.images].filter(i => !i.naturalWidth).map(i => i.src)")
    assert not broken, f"pictures that did not load: {broken}"
    inside = ask(browser, """(() => {
        const here = document.querySelectorAll('#menu [aria-current]');
        if (here.length !== 1) return false;
        const entry = here[0].getBoundingClientRect(), menu = at('menu').getBoundingClientRect();
        return entry.top >= menu.top && entry.bottom <= Math.min(menu.bottom, innerHeight);
    })()""")
    assert inside, "the current page is not to be seen in the menu"


def test_a_formula_is_set(browser, address):
    browser.get(address + "explanations/method.html")
    assert ask(browser, "document.querySelectorAll('.katex-html').length") > 5


cut_off = """[...document.querySelectorAll('main pre')].filter(
    e => e.checkVisibility() && e.scrollWidth > e.clientWidth).map(e => e.textContent)"""


@pytest.mark.parametrize("path", first)
def test_code_is_not_cut_off_on_a_laptop(browser, address, path):
    with screen(browser, 1280):
        browser.get(address + path)
        assert ask(browser, "document.querySelectorAll('main pre').length") > 0
        assert not ask(browser, cut_off)
        assert ask(browser, "document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize("path", first)
def test_code_wraps_on_a_telephone(browser, address, path):
    with screen(browser, 390):
        browser.get(address + path)
        assert not ask(browser, cut_off)


@pytest.mark.parametrize("width", [1280, 1440, 1920])
def test_a_hundred_columns_fit(browser, address, width):
    with screen(browser, width):
        browser.get(address + "explanations/method.html")
        for columns, fits in [(100, True), (140, False)]:
            code = "document.querySelector('main .block pre code').textContent = 'm'.repeat("
            browser.execute_script(f"{code}{columns})")
            assert (not ask(browser, cut_off)) == fits, f"{columns} columns at {width}"


@pytest.mark.parametrize("path", essays + listings[:3])
def test_fits_a_telephone(browser, address, path):
    with screen(browser, 390):
        browser.get(address + path)
        assert ask(browser, "document.documentElement.scrollWidth") <= 390
        ask(browser, "document.querySelectorAll('details').forEach(e => e.open = true)")
        assert ask(browser, "document.documentElement.scrollWidth") <= 390, "with folds open"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_theme_is_what_the_machine_prefers(browser, address, theme):
    with screen(browser, 390, theme=theme):
        browser.get(address + "index.html")
        assert ask(browser, "document.documentElement.dataset.theme") == theme


def test_code_can_be_copied_with_the_keyboard(browser, address):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    allowed = {"origin": address.rstrip("/"), "permissions": ["clipboardReadWrite"]}
    browser.execute_cdp_cmd("Browser.grantPermissions", allowed)
    browser.get(address + "tutorials/first_graph.html")
    buttons = browser.find_elements(By.CSS_SELECTOR, "main .copy")
    blocks = "document.querySelectorAll('main pre:not(.output pre)').length"
    assert len(buttons) == ask(browser, blocks)
    assert buttons[1].accessible_name == "Copy this code"
    code = ask(browser, "arguments[0].parentElement.querySelector('pre').textContent", buttons[1])
    buttons[1].send_keys(Keys.ENTER)
    said = browser.find_element(By.CSS_SELECTOR, "[role=status]")
    WebDriverWait(browser, 5).until(lambda _: said.get_attribute("textContent") == "Copied")
    kept = browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert kept == code.rstrip("\n") and "\n" in kept


def test_the_menu_of_a_telephone_shows_where_one_is(browser, address):
    from selenium.webdriver.common.by import By

    with screen(browser, 390):
        browser.get(address + page_with("optimiser.ask"))
        entry = browser.find_element(By.CSS_SELECTOR, "#menu [aria-current]")
        assert not entry.is_displayed()
        browser.find_element(By.ID, "open").click()
        assert entry.is_displayed()
        assert 0 < ask(browser, "arguments[0].getBoundingClientRect().top", entry) < 800


def searched(browser, address, words):
    """The addresses that a search gives, or [] if it says that there are none."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    opened(browser, address + "index.html")
    browser.find_element(By.ID, "find").send_keys(words)
    box = browser.find_element(By.ID, "found")
    WebDriverWait(browser, 20).until(lambda _: box.is_displayed() and box.text)
    assert all(u.startswith((address, "data:", "blob:")) for u in requests(browser))
    hits = [a.get_attribute("href") for a in box.find_elements(By.TAG_NAME, "a")]
    assert hits or box.text.startswith("Nothing found")
    return [urldefrag(hit)[0].removeprefix(address) for hit in hits]


@pytest.mark.parametrize("words, anchor", [("bidirected", "graph.do"), ("renderer", "entry")])
def test_search(browser, address, words, anchor):
    hits = searched(browser, address, words)
    assert page_with(anchor) in hits
    assert not set(hits) & set(listings)


def test_search_leaves_listings_out(browser, address):
    for words in ("AUTOGENERATED", "cocabo/graph.py"):  # in every listing; the title of one
        assert not set(searched(browser, address, words)) & set(listings)


def test_a_property_is_documented_as_one(browser, address):
    browser.get(address + page_with("environment.optimum"))
    line = ask(browser, """document.getElementById('environment.optimum')
        .nextElementSibling.textContent""").strip()
    assert line.startswith("Environment.optimum") and "(" not in line
    browser.get(address + page_with("trial.ready"))  # in the body of its class
    row = "document.getElementById('trial.ready').closest('tr')"
    assert ask(browser, f"[...{row}.cells].map(e => e.textContent)")[:2] == ["ready", "property"]


def test_theme_switch(browser, address):
    from selenium.webdriver.common.by import By

    browser.get(address + "index.html")
    before = ask(browser, "document.documentElement.dataset.theme")
    browser.find_element(By.ID, "theme").click()
    browser.get(address + page_with("graph.do"))
    assert ask(browser, "document.documentElement.dataset.theme") != before  # it is remembered
