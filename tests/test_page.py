"""The page of a study, as a server of its own: what may not come in does not, several browsers
work at once, nobody waits for the optimiser, and a person with a real browser can do a whole trial
by clicking, with a restart of the server in between."""
import asyncio
import html
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import cocabo as cb

httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("jinja2")
pytest.importorskip("starlette")

LOOK, GOOD = "<script>alert(1)</script>", "Y & <b>more</b>"
DO = 'Dose "><img src=x onerror=alert(2)>'
names = [n.replace('"', '\\"') for n in (LOOK, DO, GOOD)]
graph = cb.Graph('"{0}" -> "{2}"; "{1}" -> "{2}"; "Group" -> "{2}"'.format(*names))
problem = cb.Problem(
    graph, GOOD, actions={DO: cb.Real(0, 10)}, units={DO: "<mg>"},
    contexts={LOOK: cb.Real(0, 1), "Group": cb.Category(["<i>a</i>", "b & c"])})

program = """
import sys
from cocabo.page import serve
serve(sys.argv[1], port=int(sys.argv[2]), announce=lambda link: print(link, flush=True))
"""


class Server:
    """A server in a process of its own, which can be ended and started again."""

    def __init__(self, address):
        self.address, self.port = address, 0
        self.start()

    def start(self):
        words = [sys.executable, "-c", program, str(self.address), str(self.port)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
        self.link = self.process.stdout.readline().strip()
        assert self.link, "the server did not start"
        self.port = int(re.search(r":(\d+)/", self.link)[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def end(self):
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)


def played(study, n, luck=0):
    for k in range(n):
        t = study.ask(worker="<b>Ann</b>")
        group = ["<i>a</i>", "b & c"][k % 2]
        dose = t.act({LOOK: k % 7 / 7, "Group": group}).get(DO, 0)
        study.tell(t, 5 - (dose - 5) ** 2 / 9 + k % 3 / 9)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    address = tmp_path_factory.mktemp("lab") / "lab.db"
    study = cb.Study.create(address, problem, name="<u>odd</u>", worker="<b>Ann</b>")
    played(study, 8)
    server = Server(address)
    yield server
    server.end()


@pytest.fixture
def study(server):
    study = cb.Study(server.address)
    yield study
    study.close()


def browser_without_screen(server, **headers):
    return httpx.Client(base_url=server.url, follow_redirects=True, timeout=60, headers=headers)


def token_of(client):
    return re.search('name="csrf" value="([^"]*)"', client.get("/who").text)[1]


def send(client, url, **fields):
    return client.post(url, data={"csrf": token_of(client), **fields})


def asked(client, **fields):
    """The number of a new trial that waits for its result."""
    page = send(client, "/ask")
    number = int(page.url.path.split("/")[-1])
    if "What came out?" not in page.text:
        seen = {f"see:{LOOK}": "0.4", "see:Group": "b & c"}
        wanted = {k: v for k, v in seen.items() if f'name="{html.escape(k)}' in page.text}
        page = send(client, f"/trials/{number}/act", **wanted)
    assert "What came out?" in page.text, page.text
    return number


def test_what_is_forged_changes_nothing(server, study):
    client, before = browser_without_screen(server), len(study.events())
    token, other = token_of(client), token_of(browser_without_screen(server))
    good = dict(data={"csrf": token}, headers={"origin": server.url})
    bad = [
        (403, dict(good, data={"y": "1"})),
        (403, dict(good, data={"csrf": ""})),
        (403, dict(good, data={"csrf": token[:-1] + "0" + "1"})),
        (403, dict(good, data={"csrf": other})),
        (403, dict(good, headers={"origin": "http://evil.example"})),
        (403, dict(good, headers={"origin": f"http://127.0.0.1:{server.port + 1}"})),
        (403, dict(good, headers={"origin": "null"})),
        (403, dict(good, headers={"sec-fetch-site": "cross-site"})),
        (403, dict(good, headers={"sec-fetch-site": "same-site"})),
        (421, dict(good, headers={"host": f"evil.example:{server.port}"})),
        (421, dict(good, headers={"host": ""})),
        (415, dict(json={"csrf": token})),
        (415, dict(files={"csrf": (None, token)})),
        (413, dict(good, data={"csrf": token, "y": "1" * 2**17})),
        (400, dict(good, data={f"field {i}": "" for i in range(600)})),
    ]
    for url in ("/ask", "/undo", "/trials/0/drop", "/trials/0/correct", "/trials/0/undo"):
        for status, request in bad:
            answer = client.post(url, **request)
            assert answer.status_code == status, (url, request, answer.text)
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert client.request(method, "/trials/0/drop").status_code == 405
    for url in ("/ask", "/undo", "/trials/0/drop"):
        assert client.get(url).status_code == 405
    assert len(study.events()) == before
    assert client.post("/undo", **good).status_code in (200, 409)  # and this one gets through


def test_pages_forbid_what_they_do_not_need(server):
    client = browser_without_screen(server)
    urls = ["/", "/trials", "/trials/0", "/who", "/nowhere", "/style.css", "/report"]
    for url in urls:
        headers = client.get(url).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src" not in policy, url
        assert "frame-ancestors 'none'" in policy and headers["x-frame-options"] == "DENY", url
        assert headers["x-content-type-options"] == "nosniff", url
        assert headers["referrer-policy"] == "no-referrer" and "server" not in headers, url
    assert "unsafe" not in client.get("/").headers["content-security-policy"]
    cookie = browser_without_screen(server).get("/").headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie


def test_large_and_endless_bodies_are_cut_off(server):
    client = browser_without_screen(server)
    token_of(client)
    cookies = "; ".join(f"{k}={v}" for k, v in client.cookies.items())
    start = f"POST /ask HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {cookies}\r\n"
    start += "Content-Type: application/x-www-form-urlencoded\r\n"
    chunk = b"10000\r\n" + b"a" * 2**16 + b"\r\n"
    for how, parts in [("Content-Length: 9999999999\r\n\r\n", []),
                       ("Transfer-Encoding: chunked\r\n\r\n", [chunk] * 40)]:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as s:
            s.sendall((start + how).encode())
            sent = 0
            try:
                for part in parts:
                    s.sendall(part)
                    sent += 1
                answer = s.recv(4096)
            except (BrokenPipeError, ConnectionResetError):
                answer = b""  # it hung up while we were still talking
            assert answer.startswith(b"HTTP/1.1 413") or sent < len(parts), answer[:80]
    assert client.get("/").status_code == 200


def test_names_with_markup_are_text(server):
    client = browser_without_screen(server)
    send(client, "/who", who="<img src=x onerror=alert(3)>")
    number = asked(client)
    send(client, f"/trials/{number}/drop", why="<svg onload=alert(4)>")
    pages = ["/", "/trials", f"/trials/{number}", "/trials/0", "/who", "/report", "/answer"]
    markup = re.compile("<(script|img src=x|svg onload|i>a|b>more|u>odd|mg>|b>Ann)")
    for url in pages:
        assert not markup.search(client.get(url).text), url
    assert html.escape("<svg onload=alert(4)>") in client.get("/trials").text
    assert "&lt;u&gt;odd&lt;/u&gt;" in client.get("/").text
    query = {"over": DO, f"at:{LOOK}": "<b>"}
    answer = client.get("/answer", params=query)
    assert answer.status_code == 200 and "<b>" not in answer.text.replace("<b>&lt;u", "")


def test_many_tell_at_once(server, study):
    clients = [browser_without_screen(server) for _ in range(6)]
    one = asked(clients[0])
    def tell(k): return send(clients[k], f"/trials/{one}/tell", y=f"{3 + k/10}").status_code
    with ThreadPoolExecutor(6) as pool:
        answers = sorted(pool.map(tell, range(6)))
    assert answers == [200, 409, 409, 409, 409, 409]

    def whole(k):
        number = asked(clients[k])
        assert send(clients[k], f"/trials/{number}/tell", y=f"{3 + k/10}").status_code == 200
        return number, 3 + k / 10
    with ThreadPoolExecutor(6) as pool:
        told = dict(pool.map(whole, range(6)))
    assert len(told) == 6
    rows = {r.trial: r.y for r in study.optimiser.rows}
    assert {k: rows[k] for k in told} == pytest.approx(told)


def test_nobody_waits_for_the_optimiser(server):
    waits, steps, over = [], [], threading.Event()

    def poll(k):
        client = browser_without_screen(server)
        while not over.is_set():
            start = time.perf_counter()
            assert client.get("/").status_code == 200
            waits.append(time.perf_counter() - start)
            over.wait(.5)

    pollers = [threading.Thread(target=poll, args=[k]) for k in range(20)]
    for p in pollers:
        p.start()
    client = browser_without_screen(server)
    for k in range(4):
        start = time.perf_counter()
        number = asked(client)
        send(client, f"/trials/{number}/tell", y=f"{4 + k/10}")
        steps.append(time.perf_counter() - start)
        client.get("/answer")  # advice is computed beside it
    over.set()
    for p in pollers:
        p.join()
    print(f"{len(waits)} looks, the longest {max(waits):.2f} s; steps {min(steps):.2f} to "
          f"{max(steps):.2f} s")
    assert len(waits) >= 20 and max(waits) < max(1., 3 * max(steps))


def test_a_token_is_needed_where_one_is_set(server):
    from cocabo.page import Desk, made_app

    desk, token = Desk(server.address), "a-token-of-many-letters"
    app = httpx.ASGITransport(app=made_app(desk, token=token))

    async def visit():
        client = httpx.AsyncClient(transport=app, base_url=server.url, follow_redirects=True)
        for url in ("/", "/trials", "/report", "/picture/arms.svg", "/style.css"):
            assert (await client.get(url)).status_code == 401, url
        assert (await client.post("/ask", data={"who": "me"})).status_code == 401
        page = await client.get(f"/?token={token}")
        assert page.status_code == 200 and "token" not in str(page.url)
        assert token not in page.text
        assert (await client.get("/trials")).status_code == 200

    asyncio.run(visit())
    desk.close()


# In a real browser

chromium = next(filter(None, map(shutil.which, ["chromium", "chromium-browser"])), None)
driver = shutil.which("chromedriver")
flags = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync
--disable-background-networking --disable-component-update --disable-dev-shm-usage
--window-size=1280,900""".split()


@pytest.fixture
def browsers(tmp_path):
    """A function that opens another browser, with a profile of its own."""
    if not (chromium and driver):
        pytest.skip("no Chromium with its driver (apt-get install chromium chromium-driver)")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    made = []

    def make():
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        home = tmp_path / str(len(made))
        home.mkdir()
        for flag in [*flags, f"--user-data-dir={home / 'profile'}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = Service(driver, env={**os.environ, "HOME": str(home)})
        made.append(webdriver.Chrome(options=options, service=service))
        return made[-1]

    yield make
    for browser in made:
        browser.quit()


def click(browser, text):
    from selenium.webdriver.common.by import By

    before = browser.find_element(By.TAG_NAME, "html")
    found = f"//button[contains(., '{text}')] | //a[contains(., '{text}')]"
    browser.find_element(By.XPATH, found).click()
    arrived(browser, before)


def arrived(browser, before):
    from selenium.webdriver.support.expected_conditions import staleness_of
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 20).until(staleness_of(before))


def fill(browser, values):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    for f in browser.find_elements(By.CSS_SELECTOR, "main form input, main form select"):
        value = values.get(f.get_attribute("name"))
        if value is None or not f.is_displayed():
            continue
        if f.tag_name == "select":
            Select(f).select_by_visible_text(value)
        else:
            f.clear()
            f.send_keys(value)


def text_of(browser):
    return browser.find_element("tag name", "main").text


def test_whole_trials_by_clicking(server, study, browsers):
    """Ann asks and looks, the server is started anew, she tells; Bob works beside her."""
    from selenium.webdriver.common.keys import Keys

    ann, bob = browsers(), browsers()
    seen = {f"see:{LOOK}": "0.3", "see:Group": "b & c"}
    for browser, name in ((ann, "Ann"), (bob, "Bob <i>")):
        browser.get(server.url)
        click(browser, "Who are you?")
        fill(browser, {"who": name})
        click(browser, "That is me")
        click(browser, "Ask for the next")
        fill(browser, seen)
        click(browser, "see what to set")
        assert "What came out?" in text_of(browser)
    numbers = [int(b.current_url.split("/")[-1]) for b in (ann, bob)]
    assert numbers[0] != numbers[1] and DO.split()[0] in text_of(ann)

    server.end()
    server.start()
    ann.get(f"{server.url}/trials/{numbers[0]}")
    fill(ann, {"y": "4.4"})
    click(ann, "Write it down")
    assert f"Trial {numbers[0]}: written down." in text_of(ann)

    fill(bob, {"y": "4.1"})  # his form is from before the restart: refused, and nothing is lost
    click(bob, "Write it down")
    assert "open the page again" in bob.find_element("tag name", "body").text
    bob.get(f"{server.url}/trials/{numbers[1]}")
    field = bob.find_element("name", "y")
    field.send_keys("4.1", Keys.ENTER)  # by keyboard
    arrived(bob, field)
    rows = {r.trial: r for r in study.optimiser.rows}
    assert [rows[k].y for k in numbers] == [4.4, 4.1]
    assert [rows[k].who for k in numbers] == ["Ann", "Bob <i>"]

    bob.get(f"{server.url}/trials/{numbers[0]}")  # Bob sees Ann's typo
    fill(bob, {"y": "4.0"})
    click(bob, "Correct")
    fill(bob, {"why": "wrong bottle"})
    click(bob, "Drop this trial")
    assert "wrong bottle" in text_of(bob)
    click(bob, "Undo what was done last")
    assert {r.trial: r.y for r in study.optimiser.rows}[numbers[0]] == 4.0

    ann.get(f"{server.url}/answer")
    for _ in range(60):
        if ann.find_elements("css selector", ".answer"):
            break
        time.sleep(.5)
        ann.get(f"{server.url}/answer")
    assert "on average" in text_of(ann)
    for browser in (ann, bob):
        complaints = [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"]
        assert not [c for c in complaints if "403" not in c], complaints


def test_a_telephone_and_a_keyboard_are_enough(server, browsers):
    from selenium.webdriver.common.keys import Keys

    browser = browsers()
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for url in ("/", "/trials", "/trials/0", "/who", "/answer", "/report"):
        browser.get(server.url + url)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 390, f"{url} is {wide} columns wide"
        assert browser.execute_script("return document.scripts.length") == 0
        bare = browser.execute_script(
            "return [...document.querySelectorAll('main input, main select')]"
            ".filter(e => e.type !== 'hidden' && !e.labels.length).length")
        assert not bare, f"{url} has fields without a label"
    browser.get(server.url)
    page, reached = browser.find_element("tag name", "body"), []
    page.send_keys(Keys.TAB)
    for _ in range(30):
        here = browser.switch_to.active_element
        reached.append(here.text)
        here.send_keys(Keys.TAB)
    assert "Ask for the next experiment" in reached and "Undo what I did last" in reached
