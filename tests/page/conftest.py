"""A headless Chromium on the page of a server with the demo's model and tasks.

In every test, the page must not send a request to another origin, violate its content security policy, or throw an
exception.
"""

import json
import pathlib
import re
import time

import pytest
from playwright.sync_api import sync_playwright

from serving import ServedProcess

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DEMO = REPOSITORY / "demo"
SAMPLES = DEMO / "samples"
CHROMIUM = "/usr/bin/chromium"
# Chromium has no sandbox when run as root. The camera is a fake one with a test picture, and its use is
# allowed without asking.
FLAGS = ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
# Console errors caused by refused requests, which the page reports in its own words.
EXPECTED = re.compile(r"Failed to load resource|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET")


def demo_server(*options):
    return ServedProcess("--model", DEMO / "model", "--served-model-name", "valora-demo", "--manifest", DEMO / "manifest.json",
                         "--ui-samples", DEMO / "samples.json", "--threads", "1", "--pool-memory", "64M", *options)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept")
    made = demo_server("--allow-runtime-lora-updating", "--swap-space", "16M", "--batches-dir", kept / "batches", "--streams-dir", kept / "streams")
    yield made
    made.stop()


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


class Watch:
    """Collects violations by a page."""

    def __init__(self, page, origin):
        self.faults = []
        page.on("request", lambda request: self.see(request.url, origin))
        page.on("console", self.hear)
        page.on("pageerror", lambda error: self.faults.append(f"exception: {error}"))

    def see(self, url, origin):
        if not url.startswith((origin + "/", "data:", "blob:")):
            self.faults.append(f"request to {url}")

    def hear(self, message):
        if message.type == "error" and not EXPECTED.search(message.text):
            self.faults.append(f"console: {message.text}")


@pytest.fixture
def open_page(browser):
    """open_page(server, path="/", **browser context settings): opens the page and watches it until the test
    ends."""
    contexts, watches = [], []

    def open_one(server, path="/", **settings):
        context = browser.new_context(**dict(viewport={"width": 1280, "height": 900}, accept_downloads=True) | settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15000)
        watches.append(Watch(page, server.url))
        page.goto(server.url + path)
        return page

    yield open_one
    for context in contexts:
        context.close()
    faults = [fault for watch in watches for fault in watch.faults]
    assert not faults, faults


@pytest.fixture
def page(server, open_page):
    return open_page(server)


def until(page, script, argument=None):
    """Waits until the script is true. Playwright's own wait is blocked by the page's policy, because it evaluates
    code in the page."""
    deadline = time.monotonic() + 20
    while not page.evaluate(script, argument):
        assert time.monotonic() < deadline, script
        page.wait_for_timeout(30)


def choose(page, *names):
    field = page.get_by_role("combobox", name="Add a model")
    for name in names:
        field.fill(name)
        page.get_by_role("option", name=re.compile(rf"^{re.escape(name)}\b")).first.click()


def add_picture(page, *names):
    page.get_by_label("Pictures and clips", exact=True).set_input_files([SAMPLES / name for name in names])
    page.locator(".tray li").nth(len(names) - 1).wait_for()


def question(page):
    return page.get_by_role("textbox", name="Question")


def ask(page, text=None):
    if text is not None:
        question(page).fill(text)
    page.get_by_role("button", name="Ask").click()


def lanes(page):
    return page.locator(".turn").last.locator(".lane")


def answered(page, number=1):
    """The last question's lanes, once all have answered."""
    found = lanes(page)
    for at in range(number):
        found.nth(at).locator(".measures", has_text="in all").wait_for()
    return found


HOSTILE = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>\u202e\u2066txt.exe'


# An answer that begins but never ends: a real one may end before a busy machine has drawn its first words.
ENDLESS = """() => {
    const fetched = window.fetch;
    window.fetch = (url, options) => {
        if (!String(url).endsWith('/v1/chat/completions')) return fetched(url, options);
        window.fetch = fetched;
        const words = 'data: {"choices": [{"index": 0, "delta": {"content": "Once upon a time"}}]}\\n\\n';
        const body = new ReadableStream({start(stream) {
            stream.enqueue(new TextEncoder().encode(words));
            options.signal.addEventListener('abort', () => stream.error(options.signal.reason));
        }});
        return Promise.resolve(new Response(body, {headers: {'Content-Type': 'text/event-stream'}}));
    };
}"""


def trace_rows(rates, skews):
    """Results of `valora bench trace` with two policies, the second of which has a hostile name."""
    return [dict(policy=policy, rate=rate, skewness=skew, adapters=8, cameras=0, replicas=1, token_latency_seconds=(1 + at) * skew / 100, merges=2,
                 ttft_seconds=dict(p99=rate), requests_per_second=rate - at, attainment=0.5)
            for at, policy in enumerate(("valora", "<img src=x onerror=window.hit=1>")) for rate in rates for skew in skews]


def event_stream(*events):
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def answer_events(text, **choice):
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return event_stream(head | {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None} | choice]},
                        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
