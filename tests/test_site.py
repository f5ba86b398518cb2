"""The built site, read by a real browser: every page of the navigation loads without complaint, nothing is fetched from elsewhere, every local link
leads somewhere, formulas are set, search finds words of the notebooks, and nothing is wider than a telephone."""
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
chromium, driver = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"), shutil.which("chromedriver")

if not (docs / "index.html").exists():
    pytest.skip("the site is not built: python tools/docs.py site", allow_module_level=True)

pages = sorted(str(p.relative_to(docs)) for p in docs.rglob("*.html") if "pagefind" not in p.parts)


class Links(HTMLParser):
    """The addresses a page points to, and the anchors it offers."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed((docs / path).read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.links += [attrs[k] for k in ("href", "src") if attrs.get(k)]
        self.anchors.update(v for k, v in attrs.items() if k in ("id", "name"))


@functools.cache
def links(path):
    return Links(path)


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
        elif target.endswith(".html") and url.fragment and unquote(url.fragment) not in links(target).anchors:
            bad.append(link)
    assert not bad, f"{path} has dead links: {sorted(set(bad))}"


def test_nothing_is_loaded_from_elsewhere():
    for path in pages:
        for url in re.findall(r'(?:src|<link[^>]*href)="(\w+://[^"]+)"', (docs / path).read_text(encoding="utf-8")):
            pytest.fail(f"{path} loads {url}")


def test_there_are_many_links():
    assert sum(len(links(p).links) for p in pages) > 20 * len(pages)  # the menu alone has more


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


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (chromium and driver):
        pytest.skip("no Chromium with its driver on this machine (Debian: apt-get install chromium chromium-driver)")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--disable-dev-shm-usage", "--window-size=1400,1000", f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver, env={**os.environ, "HOME": str(tmp_path_factory.mktemp("home"))}))
    yield browser
    browser.quit()


def requests(browser):
    """The addresses that were asked for since the last call."""
    messages = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def opened(browser, url):
    """Open a page; it must not complain or fetch anything from elsewhere."""
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(url)
    complaints = [e["message"] for e in browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
    away = [u for u in requests(browser) if not u.startswith((url[: url.index("/", 8)], "data:", "blob:", "chrome:"))]
    assert not complaints and not away, (complaints, away)


@pytest.mark.parametrize("path", pages)
def test_page_in_browser(browser, address, path):
    opened(browser, address + path)
    assert browser.execute_script("return document.querySelectorAll('main h1').length") == 1
    raw = browser.execute_script("return [...document.querySelectorAll('.math')].filter(e => !e.querySelector('.katex') || e.querySelector('.katex-error')).map(e => e.textContent)")
    assert not raw, f"formulas that were not set: {raw}"
    broken = browser.execute_script("return [...document.images].filter(i => !i.naturalWidth).map(i => i.src)")
    assert not broken, f"pictures that did not load: {broken}"


def test_a_formula_is_set(browser, address):
    counts = []
    for path in pages:
        browser.get(address + path)
        counts.append(browser.execute_script("return document.querySelectorAll('.katex-html').length"))
    assert max(counts) > 0, "no page shows a formula"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_fits_a_telephone(browser, address, theme):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
    try:
        for path in pages:
            browser.get(address + path)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 390, f"{path} is wider than the screen"
            assert browser.execute_script("return document.documentElement.dataset.theme") == theme
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("words, path", [("bidirected", "graph.html"), ("renderer", "reference.html")])
def test_search(browser, address, words, path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    opened(browser, address + "index.html")
    browser.find_element(By.ID, "find").send_keys(words)
    hits = WebDriverWait(browser, 20).until(lambda b: [a.get_attribute("href") for a in b.find_elements(By.CSS_SELECTOR, "#found a")])
    assert any(urldefrag(h)[0] == address + path for h in hits), hits
    assert all(u.startswith((address, "data:", "blob:")) for u in requests(browser))


def test_theme_switch(browser, address):
    from selenium.webdriver.common.by import By

    browser.get(address + "index.html")
    before = browser.execute_script("return document.documentElement.dataset.theme")
    browser.find_element(By.ID, "theme").click()
    browser.get(address + "graph.html")
    assert browser.execute_script("return document.documentElement.dataset.theme") != before  # and it is remembered
