"""The page in a real browser: Debian's Chromium, driven by Playwright.

Pictures of what was seen are kept in OVERTAKE_ARTEFACTS, if that is set.
"""

import base64
import json
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

# None of what a browser does by itself: it is to talk to the broker only.
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

expect.set_options(timeout=20_000)


@pytest.fixture(scope="session")
def http():
    """Where the broker serves HTTP."""
    return os.environ["OVERTAKE_HTTP_URL"].rstrip("/")


class Api:
    """The HTTP interface, as a program uses it."""

    def __init__(self, http, user="guest", password="guest"):
        self.http = http
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}

    def __call__(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.http + path, data, self.headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                text = answer.read()
        except urllib.error.HTTPError as problem:
            raise AssertionError(f"{method} {path}: {problem.read().decode()}") from problem
        return json.loads(text) if text else None

    def queue(self, name, **settings):
        """Makes a queue."""
        self("PUT", f"/v1/queues/{name}", settings)
        return name

    def publish(self, queue, *messages):
        """Publishes messages; answers what is said of each."""
        answers = []
        for at in range(0, len(messages), 1_000):
            part = list(messages[at : at + 1_000])
            answers += self("POST", f"/v1/queues/{queue}/messages", {"messages": part})["messages"]
        return answers

    def lease(self, queue, most=1, **more):
        """Leases messages."""
        body = {"max": most, "wait_ms": 10_000, **more}
        return self("POST", f"/v1/queues/{queue}/leases", body)["messages"]

    def settle(self, queue, messages, how, **more):
        """Settles them."""
        receipts = [message["receipt"] for message in messages]
        return self("POST", f"/v1/queues/{queue}/settle", {"receipts": receipts, "how": how, **more})

    def ids(self, queue, **query):
        """The ids of what is there, in dispatch order."""
        words = "&".join(f"{name}={value}" for name, value in query.items())
        return [one["id"] for one in self("GET", f"/v1/queues/{queue}/messages?{words}")["messages"]]


@pytest.fixture(scope="session")
def api(http):
    """As the user guest."""
    return Api(http)


@pytest.fixture(scope="session")
def api_as(http):
    """As somebody else."""
    return lambda user, password: Api(http, user, password)


@pytest.fixture(scope="session")
def chromium():
    """The browser."""
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


class Seen:
    """What a page did that it should not: errors, what the content-security policy kept it from, and requests to elsewhere."""

    def __init__(self, page, http):
        self.wrong = []
        self.expected = []
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("console", self.hear)
        page.on("request", lambda request: self.look(request.url, http))

    def hear(self, message):
        # That a request was refused is said by the browser, too; tests that want it say so.
        if message.type == "error" and not any(word in message.text for word in self.expected):
            self.wrong.append(message.text)

    def look(self, url, http):
        if not url.startswith((http + "/", "data:", "about:", "blob:")):
            self.wrong.append(f"asked elsewhere: {url}")


@pytest.fixture
def open_page(chromium, http):
    """Opens the page in a browser of its own, logged in: `open_page(path, user=…, width=…, height=…, scheme=…)`."""
    opened = []

    def open_it(path="#/", user="guest", password="guest", width=1440, height=1000, scheme="light"):
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            # Bars move for a moment; a picture of that would be another one each time.
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.seen = Seen(page, http)
        # Who is not logged in yet is told so.
        page.seen.expected.append("401")
        opened.append(page)
        page.goto(f"{http}/")
        if user:
            page.get_by_label("User").fill(user)
            page.get_by_label("Password", exact=True).fill(password)
            page.get_by_role("button", name="Log in").click()
            expect(page.get_by_role("heading", name="Overview")).to_be_visible()
            if path != "#/":
                page.goto(f"{http}/{path}")
        return page

    yield open_it
    wrong = [one for page in opened for one in page.seen.wrong]
    for page in opened:
        page.context.close()
    assert wrong == []


@pytest.fixture
def picture():
    """Keeps a picture of a page."""
    kept = os.environ.get("OVERTAKE_ARTEFACTS")

    def keep(page, name):
        if kept:
            folder = Path(kept)
            folder.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=folder / f"{name}.png")

    return keep
