"""Common to all views: sizes, colours, screen readers, keyboard, and a server that goes away."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from conftest import add_picture, answered, ask, choose, demo_server, until

VIEWS = {"try": "/", "adapters": "/#adapters", "now": "/#now", "charts": "/#charts", "docs": "/docs"}
READY = {"try": ".empty button", "adapters": "tbody tr", "now": ".panels .figures", "charts": "main input[type=file]", "docs": ".endpoint"}


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_every_view_fits_and_is_accessible(server, open_page, width, colours):
    page = open_page(server, color_scheme=colours, viewport={"width": width, "height": 844}, reduced_motion="reduce")
    for view, path in VIEWS.items():
        page.goto(server.url + path)
        page.locator(READY[view]).first.wait_for()
        if view == "try":
            choose(page, "digits", "coins")
            add_picture(page, "digits-1.png")
            ask(page)
            answered(page, 2)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        found = [fault for fault in Axe().run(page).response["violations"] if fault["impact"] in ("serious", "critical")]
        assert not found, (view, [(fault["id"], [node["html"][:120] for node in fault["nodes"][:3]]) for fault in found])
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(int(part) for part in ground[4:-1].split(",")) > 600) == (colours == "light")


def test_key_is_requested_and_kept_in_the_tab(open_page):
    made = demo_server("--api-key", "sk-secret-1")
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
        page.reload()
        page.locator(".empty button").first.wait_for()
        assert not page.get_by_role("dialog").is_visible()
        page.goto(made.url + "/#now")
        page.locator(".panels .figures").first.wait_for()
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
        made = demo_server("--port", port)
        page.locator(".state.ready").wait_for()
        page.get_by_role("link", name="Now").click()
        page.locator(".panels .figures").first.wait_for()
        assert page.locator("main .notice").is_hidden()
    finally:
        made.stop()


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
    assert page.get_by_role("region", name="Latencies").locator("tbody tr").count() == 1


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
