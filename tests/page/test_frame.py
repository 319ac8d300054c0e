"""Common to all views: sizes, colours, screen readers, keyboard, and a server that goes away."""

import json
import re
import threading
import time

import pytest
from axe_playwright_python.sync_playwright import Axe

from conftest import (
    SAMPLES,
    Watch,
    add_picture,
    answer_events,
    answered,
    ask,
    choose,
    demo_server,
    lanes,
    trace_rows,
    until,
)
from wide import pairs

VIEWS = {"try": "/", "adapters": "/#adapters", "batches": "/#batches", "streams": "/#streams", "now": "/#now", "charts": "/#charts", "docs": "/docs"}
READY = {"try": ".empty button", "adapters": "tbody tr", "streams": "summary", "batches": ".totals dd", "now": ".panels .figures",
         "charts": "main input[type=file]", "docs": ".endpoint"}


def try_states(page):
    page.get_by_role("combobox", name="Add a model").click()
    page.locator(".options [role=option]").first.wait_for()
    yield "list of models"
    choose(page, "digits", "coins")
    add_picture(page, "coins-1.png")
    if not page.get_by_label("Top p").is_visible():
        page.locator("summary", has_text="Settings").click()
    ask(page)
    answered(page, 2).nth(1).locator(".boxed svg rect").first.wait_for(state="attached")
    yield "answers"
    page.mouse.wheel(0, -500)
    yield "answers above"
    lanes(page).first.get_by_role("button", name="Copy the request").click()
    yield "code"
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Camera").click()
    until(page, "document.querySelector('video.camera')?.videoWidth > 0")
    yield "camera"
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Samples", exact=True).click()
    page.locator("dialog .sample img").first.wait_for()
    yield "samples"
    page.get_by_role("button", name="Close").click()
    page.route("**/v1/chat/completions", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=answer_events(MARKDOWN)))
    choose(page, "valora-demo")
    ask(page, "In Markdown?")
    answered(page, 3).nth(2).locator("table").wait_for()
    yield "markdown"


MARKDOWN = f"""# A title

Some [words](https://example.org) and `code`

- of *many*
- kinds

> quoted

|a|b|
|-|-|
|1|2|

```py
{"code " * 100}
```
"""


def adapter_states(page):
    page.get_by_role("button", name="digits", exact=True).click()
    yield "details"
    page.get_by_role("button", name="Close").click()
    page.get_by_text("Load an adapter").click()
    page.get_by_label("Folder").fill("/nowhere")
    page.get_by_label("Name", exact=True).fill("x")
    page.get_by_role("button", name="Load", exact=True).click()
    page.locator(".load-form .fault").wait_for()
    yield "form"
    page.get_by_role("button", name="Unload digits").click()
    yield "dialog"
    page.get_by_role("button", name="Cancel").click()


def chart_states(page):
    rows = trace_rows([3, 9], [0.3, 0.7])
    page.get_by_label("Results of valora bench trace").set_input_files(dict(name="t.json", mimeType="application/json", buffer=json.dumps(rows).encode()))
    page.locator("svg.chart").first.wait_for()
    page.locator("summary", has_text="Figures").first.click()
    yield "drawn"


def docs_states(page):
    for name in ("post_v1_chat_completions", "post_v1_load_lora_adapter"):
        page.locator(f"#{name} summary").click()
    yield "endpoints"


def stream_states(page):
    page.get_by_text("Begin a stream").click()
    yield "form"
    origin = page.url.split("#")[0]
    skills = [{"model": "coins", "response_format": {"type": "boxes"}, "event": {"when": {"boxes": {}}}}, "digits"]
    stream = page.request.post(f"{origin}v1/streams", data={"name": "gate", "source": "push", "skills": skills, "max_tokens": 24}).json()["id"]
    page.request.post(f"{origin}v1/streams/{stream}/frames", data=(SAMPLES / "coins-1.png").read_bytes(), headers={"Content-Type": "image/png"})
    page.get_by_text("answered after").wait_for()
    page.locator(".track .bar").wait_for()
    yield "a stream"
    page.request.delete(f"{origin}v1/streams/{stream}")


STATES = {"streams": stream_states, "try": try_states, "adapters": adapter_states, "charts": chart_states, "docs": docs_states}


def check_frame(page, state):
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], state
    found = [fault for fault in Axe().run(page).response["violations"] if fault["impact"] in ("serious", "critical")]
    assert not found, (state, [(fault["id"], [node["html"][:120] for node in fault["nodes"][:3]]) for fault in found])


@pytest.mark.parametrize("width, colours", pairs([390, 1280], ["light", "dark"]))
def test_every_view_fits_and_is_accessible(server, open_page, width, colours):
    page = open_page(server, color_scheme=colours, viewport={"width": width, "height": 844}, reduced_motion="reduce")
    for view, path in VIEWS.items():
        page.goto(server.url + path)
        page.locator(READY[view]).first.wait_for()
        check_frame(page, view)
        for state in STATES.get(view, lambda _: [])(page) if (width == 390) == (colours == "dark") else []:
            check_frame(page, (view, state))
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(int(part) for part in ground[4:-1].split(",")) > 600) == (colours == "light")


def test_violations_of_a_page_are_noticed(server, browser):
    page = browser.new_page()
    watch = Watch(page, server.url)
    page.goto(server.url)
    page.locator(READY["try"]).first.wait_for()
    assert not watch.faults
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.hit = 1'}))")
    page.evaluate("fetch('https://elsewhere.invalid/').catch(() => {})")
    page.evaluate("document.body.setAttribute('style', 'color: red')")
    page.evaluate("setTimeout(() => { throw new Error('lost'); })")
    signs = {"inline script", "connect to 'https://elsewhere.invalid/'|Refused to connect", "inline style", "exception: lost"}

    def seen(sign):
        return any(re.search(sign, fault) for fault in watch.faults)

    deadline = time.monotonic() + 10
    while not all(map(seen, signs)) and time.monotonic() < deadline:
        page.wait_for_timeout(30)
    page.close()
    assert all(map(seen, signs)), watch.faults


APPLICATION = "applications:\n  - {name: reading, models: [digits], ttft: 30, e2e: 60}\n"


def test_key_is_requested_and_kept_in_the_tab(open_page, tmp_path):
    (tmp_path / "applications.yaml").write_text(APPLICATION)
    made = demo_server("--api-key", "sk-secret-1", "--applications", tmp_path / "applications.yaml", "--allow-runtime-lora-updating")
    try:
        page = open_page(made)
        field = page.get_by_label("Key", exact=True)
        field.fill("sk-wrong")
        field.press("Enter")
        page.get_by_text("does not accept this key").wait_for()
        field.fill("sk-secret-1")
        page.get_by_role("button", name="Use this key").click()
        page.locator(".empty button").first.wait_for()
        choose(page, "digits")
        ask(page, "Which digit?")
        assert answered(page).count() == 1
        assert page.evaluate("[sessionStorage.getItem('valora.key'), JSON.stringify(localStorage).includes('secret')]") == ["sk-secret-1", False]
        lanes(page).first.get_by_role("button", name="Copy the request").click()
        code = page.locator(".code-dialog pre").text_content()
        assert "$VALORA_API_KEY" in code and "sk-secret" not in code
        page.reload()
        page.locator(".empty button").first.wait_for()
        assert not page.get_by_role("dialog").is_visible()
        page.get_by_role("link", name="Adapters").click()
        page.get_by_role("button", name="Pin digits").click()
        page.get_by_text("digits stays in the pool.").wait_for()
        page.get_by_role("link", name="Now").click()
        rows = page.get_by_role("region", name="Latencies", exact=True).locator("tbody tr")
        rows.nth(1).wait_for()
        assert rows.nth(1).locator("th").text_content() == "reading"
        assert " s / " in rows.nth(1).locator("td").nth(3).text_content().replace("ms", "s")
        assert rows.nth(1).get_by_text("target 30.0 s, met by 100 %").count() == 1
        page.get_by_role("link", name="API").click()
        page.locator("#get_v1_stats summary").click()
        page.locator("#get_v1_stats").get_by_text("Needs the API key").wait_for()
    finally:
        made.stop()


def test_page_survives_the_loss_of_its_server(open_page):
    made = demo_server()
    port = str(made.port)
    try:
        page = open_page(made, "/#now")
        page.locator(".panels .figures").first.wait_for()
        page.locator(".state.ready").wait_for()
        assert made.stop() == 0  # the event stream does not delay the drain
        page.get_by_text("Trying again").wait_for()
        page.locator(".state.gone").wait_for()
        page.get_by_role("link", name="Try").click()
        ask(page, "Hello")
        page.get_by_text("cannot be reached").first.wait_for()
        page.get_by_role("link", name="Adapters").click()
        page.get_by_text("cannot be reached").first.wait_for()
        made = demo_server("--port", port)
        page.locator(".state.ready").wait_for()
        page.locator("tbody tr").first.wait_for()
        assert page.get_by_text("cannot be reached").count() == 0
        page.get_by_role("link", name="Try").click()
        page.locator(".empty button").first.wait_for()
        choose(page, "valora-demo")
        page.get_by_label("Most tokens").fill("3900")
        page.get_by_label("Form of the answer").select_option("schema")
        page.get_by_label("JSON schema", exact=True).fill('{"type": "string", "minLength": 4000}')
        ask(page, "Tell me much.")
        until(page, "document.querySelector('.answer-text').textContent.length > 20")
        made.process.kill()
        lanes(page).first.locator(".fault").wait_for()
        assert lanes(page).first.locator(".answer-text").text_content()
        made.stop()
        made = demo_server("--port", port)
        page.get_by_label("Most tokens").fill("10")
        lanes(page).first.get_by_role("button", name="Retry").click()
        lanes(page).first.locator(".measures", has_text="+ 10 tokens").wait_for()
        page.get_by_role("link", name="Now").click()
        page.locator(".panels .figures").first.wait_for()
        assert page.locator("main .notice").is_hidden()
    finally:
        made.stop()


def keep_asking(server, stop):
    while not stop.is_set():
        server.chat("catalogue", "Write the entry.", max_tokens=100)


def test_now_view_shows_steps_and_counts(server, open_page):
    page = open_page(server, "/#now")
    page.locator(".panels .figures").first.wait_for()
    server.chat("digits", "Which digit?", head="", max_tokens=30)
    until(page, "document.querySelector('.strip .hint').textContent.includes('Last step')")
    drawn = """() => {
      const canvas = document.querySelector(".strip canvas");
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height - 20).data;
      const colour = getComputedStyle(canvas).getPropertyValue("--mode-unmerged");
      const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.trim().slice(at, at + 2), 16));
      for (let at = 0; at < pixels.length; at += 4) if (pixels[at] === r && pixels[at + 1] === g && pixels[at + 2] === b) return true;
      return false;
    }"""
    until(page, drawn)
    assert page.get_by_role("region", name="Latencies", exact=True).locator("tbody tr").count() == 1
    page.locator(".panels dt", has_text="CPU").wait_for()  # it needs two events
    shown = page.locator(".panels dt").all_text_contents()
    assert {"Running", "Waiting", "Being prepared", "Preempted", "Adapters in the pool", "Loads of adapters", "Mode of the last step", "Switches", "Merges",
            "Time of both", "Prompt tokens", "Refused, too many", "Early aborts", "Memory", "CPU", "Swap space"} <= set(shown)
    pool = page.locator(".panels .legend li").all_text_contents()
    assert [text.split(" ")[0] for text in pool] == ["adapters", "KV", "history", "KV", "free"]
    figure = "name => [...document.querySelectorAll('.panels dt')].find((dt) => dt.textContent === name).nextElementSibling.textContent"
    stop = threading.Event()
    busy = threading.Thread(target=keep_asking, args=(server, stop))
    busy.start()
    try:
        until(page, f"({figure})('Running') === '1' && !({figure})('Generated').includes(' 0 per')")
        page.get_by_role("link", name="Try").click()
        choose(page, "digits", "mood")
        ask(page, "How is it?")
        assert answered(page, 2).count() == 2
    finally:
        stop.set()
        busy.join()


DRAWN = """async ([steps, now]) => {
    const {makeStrip} = await import('/ui/strip.js');
    const strip = makeStrip();
    document.querySelector('main').replaceChildren(strip.node);
    strip.add(steps.map((step) => ({tokens: 8 * step.steps, prefill_tokens: 0, sequences: 1, adapters: 0, mode: 'unmerged', switched: false, ...step})), now);
    strip.start();
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const canvas = strip.node.querySelector('canvas');
    const said = strip.node.querySelector('.hint').textContent;
    const pixels = canvas.getContext('2d').getImageData(0, canvas.height - 20, canvas.width, 1).data;
    strip.stop();
    const coloured = Array.from({length: canvas.width}, (_, x) => (pixels[4 * x + 2] > pixels[4 * x] + 60 ? pixels[4 * x + 3] / 255 : 0));
    return [coloured.reduce((sum, share) => sum + share, 0) / canvas.width, said];
}"""


@pytest.mark.parametrize("steps, least, most", [
    ([dict(steps=1, began=980, ended=995, seconds=15)], 0.45, 0.55),  # a step that takes half of the time shown
    ([dict(steps=10, began=970.5, ended=999.5, seconds=0.5)], 0.01, 0.12),  # ten short ones with long pauses
    ([dict(steps=4000, began=970, ended=1000, seconds=3)], 0.05, 0.15),  # pauses that are too short to be seen
    ([dict(steps=4000, began=970, ended=1000, seconds=30)], 0.95, 1),
    ([dict(steps=32, began=1, ended=990, seconds=0.3)], 0, 0.02)])
def test_pauses_between_steps_are_drawn_as_idle(server, open_page, steps, least, most):
    page = open_page(server, "/#charts")
    page.get_by_label("Results of valora bench trace").wait_for()
    busy, said = page.evaluate(DRAWN, [steps, 1000])
    assert least <= busy <= most
    assert said.startswith("Idle for ") == (steps[-1]["ended"] < 999)


def test_docs_view_lists_every_endpoint_and_field(server, open_page):
    page = open_page(server, "/docs")
    page.locator(".endpoint").first.wait_for()
    paths = page.locator(".endpoint .path").all_text_contents()
    assert "/v1/chat/completions" in paths and "/v1/stats" in paths
    page.locator("#post_v1_chat_completions summary").click()
    fields = page.locator("#post_v1_chat_completions tbody th code").all_text_contents()
    assert {"messages", "temperature", "lora", "head"} <= set(fields)
    page.get_by_label("Search endpoints and fields").fill("unload_lora")
    assert page.locator(".endpoint:visible").count() == 1


def test_page_can_be_disabled(open_page):
    made = demo_server("--no-ui")
    try:
        assert [made.request("GET", path)[0] for path in ("/", "/ui/app.js", "/docs", "/ready", "/openapi.json")] == [404, 404, 404, 200, 200]
    finally:
        made.stop()
