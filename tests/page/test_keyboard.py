"""Everything that the views do, done by the keyboard alone: on a phone's width in dark, and on a desktop's in light."""

import json
import re

import pytest

from conftest import DEMO, ENDLESS, SAMPLES, answered, until

LOOKS = {"phone": dict(viewport={"width": 390, "height": 844}, color_scheme="dark"), "desktop": dict(color_scheme="light")}


class Hands:
    """Two hands on a keyboard: nothing here moves the focus but keys."""

    def __init__(self, page):
        self.page = page
        self.keys = page.keyboard

    def reach(self, locator, most=120):
        """Presses Tab until the element has the focus."""
        for _ in range(most):
            self.keys.press("Tab")
            if locator.count() and locator.first.evaluate("node => node === document.activeElement"):
                return
        raise AssertionError(f"Tab does not lead to {locator}")

    def press(self, name, role="button", within=None, exact=True):
        self.reach((within or self.page).get_by_role(role, name=name, exact=exact))
        self.keys.press("Enter")

    def type(self, label, text):
        self.reach(self.page.get_by_label(label, exact=True))
        self.keys.press("Control+A")
        self.keys.type(text) if text else self.keys.press("Delete")

    def choose_file(self, button, files):
        with self.page.expect_file_chooser() as chooser:
            button()
        chooser.value.set_files(files)


@pytest.fixture(params=LOOKS.values(), ids=LOOKS)
def hands(request, server, open_page):
    page = open_page(server, **request.param)
    page.get_by_role("combobox", name="Add a model").wait_for()
    return Hands(page)


def add_models(hands, *names):
    hands.reach(hands.page.get_by_role("combobox", name="Add a model"))
    for name in names:
        hands.keys.type(name)
        hands.page.locator(".options [role=option].active", has_text=name).wait_for()
        hands.keys.press("Enter")


def test_questions_are_asked_and_changed_by_keys(hands):
    page = hands.page
    hands.keys.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    hands.keys.press("Enter")
    add_models(hands, "coins", "mood")
    hands.keys.press("Backspace")
    assert page.locator(".chip").all_text_contents() == ["coins×"]
    hands.choose_file(lambda: hands.press("Picture or clip…"), [SAMPLES / "coins-1.png", SAMPLES / "digits-1.png"])
    page.get_by_text("2 files added").wait_for()
    hands.press("Remove digits-1.png")
    hands.press("Camera")
    until(page, "document.querySelector('video.camera')?.videoWidth > 0")
    hands.press("Take it")
    page.get_by_text("camera.jpg added").wait_for()
    hands.press("Remove camera.jpg")
    hands.reach(page.get_by_role("textbox", name="Question"))
    hands.keys.press("End")
    hands.keys.type(" Now.")
    hands.keys.press("Enter")
    lane = answered(page).first
    lane.locator(".boxed svg rect").first.wait_for(state="attached")
    assert page.locator(".question-text").text_content() == "Find all coins and cards. Now."
    hands.press("Edit this question", exact=False)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Question"
    assert page.locator(".tray li").count() == 1
    page.evaluate(ENDLESS)
    hands.keys.press("Enter")
    lane.locator(".answer-text", has_text="Once upon a time").wait_for()
    hands.press("Stop", within=lane)
    lane.locator(".measures", has_text="stopped").wait_for()
    hands.press("Continue", within=lane)
    until(page, "document.querySelector('.answer-text').textContent !== 'Once upon a time'")
    answered(page)
    hands.press("Retry", within=lane)
    answered(page).first.locator(".boxed svg rect").first.wait_for(state="attached")


def test_settings_code_and_conversations_are_used_by_keys(hands):
    page, keys = hands.page, hands.keys
    sent = []
    page.on("request", lambda request: sent.append(request.post_data_json) if request.method == "POST" else None)
    hands.reach(page.locator("summary", has_text="Settings"))
    if not page.get_by_label("System message").is_visible():
        keys.press("Enter")
    for label, text in {"System message": "Be brief.", "Temperature": "0.5", "Top p": "0.9", "Top k": "7", "Most tokens": "4", "Seed": "3",
                        "Repetition penalty": "1.1", "Stop at (one per line)": "zzz"}.items():
        hands.type(label, text)
    hands.reach(page.get_by_label("Form of the answer"))
    keys.type("free")
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    hands.type("Tools (a JSON list)", json.dumps(tools))
    add_models(hands, "valora-demo")
    hands.type("Question", "How is it outside?")
    keys.press("Enter")
    lane = answered(page).first
    expected = dict(temperature=0.5, top_p=0.9, top_k=7, max_tokens=4, seed=3, repetition_penalty=1.1, stop=["zzz"], tools=tools)
    assert {name: sent[0].get(name) for name in expected} == expected
    assert [message["role"] for message in sent[0]["messages"]] == ["system", "user"] and "response_format" not in sent[0]
    hands.press("Copy the request as curl, Python or JavaScript", within=lane)
    hands.press("Python")
    assert "urllib.request" in page.locator(".code-dialog pre").text_content()
    keys.press("Escape")
    page.locator(".code-dialog").wait_for(state="detached")
    hands.reach(page.locator("summary", has_text="Conversations"))
    if not page.get_by_role("button", name="New", exact=True).is_visible():
        keys.press("Enter")
    hands.press("New")
    assert page.locator(".turn").count() == 0
    hands.reach(page.locator(".history .title"))
    keys.press("Enter")
    assert page.locator(".turn .lane").count() == 1
    with page.expect_download():
        hands.press("Export this one")
    hands.press("Delete the conversation How is it outside?")
    page.get_by_text("None so far").wait_for()
    page.reload()
    assert page.get_by_label("Temperature").input_value() == "0.5"


def test_adapters_are_searched_and_changed_by_keys(hands):
    page, keys = hands.page, hands.keys
    name = f"by-keys-{page.viewport_size['width']}"
    hands.press("Adapters", role="link")
    rows = page.locator("tbody tr")
    rows.first.wait_for()
    hands.press("Rank")
    assert page.locator("th[aria-sort=descending]").text_content() == "Rank"
    assert page.evaluate("document.activeElement.textContent") == "Rank"
    hands.press("Name")
    hands.type("Search adapters", name)
    until(page, "document.querySelectorAll('tbody tr').length === 0")
    hands.reach(page.locator("summary", has_text="Load an adapter"))
    keys.press("Enter")
    hands.type("Name", name)
    hands.type("Folder", str(DEMO / "adapters" / "adapter-2"))
    keys.press("Enter")
    page.get_by_text(f"Loaded {name} in").wait_for()
    rows.first.wait_for()
    hands.press(f"Pin {name}")
    rows.get_by_text("pinned").wait_for()
    hands.press(f"Replace {name}")
    assert page.get_by_label("replace the adapter").is_checked() and page.get_by_label("keep it in the pool").is_checked()
    with page.expect_response(re.compile("load_lora_adapter")) as replaced:
        keys.press("Enter")
    assert replaced.value.status == 200 and replaced.value.request.post_data_json["load_inplace"]
    hands.press(f"Unpin {name}")
    page.get_by_text(f"{name} may leave the pool again.").wait_for()
    hands.press(f"Unload {name}")
    hands.press("Cancel")
    assert rows.count() == 1
    hands.press(f"Unload {name}")
    hands.press("Unload")
    page.get_by_text(f"Unloaded {name}.").wait_for()


def test_figures_charts_and_reference_are_read_by_keys(hands):
    page, keys = hands.page, hands.keys
    hands.press("Now", role="link")
    page.locator(".panels .figures").first.wait_for()
    hands.reach(page.get_by_role("region", name="Latencies", exact=True))  # scrolls by arrow keys
    hands.press("Charts", role="link")
    hands.reach(page.get_by_label("Results of valora bench trace"))
    hands.press("API", role="link")
    page.locator(".endpoint").first.wait_for()
    hands.type("Search endpoints and fields", "unload_lora")
    hands.reach(page.locator(".endpoint:visible summary"))
    keys.press("Enter")
    page.get_by_role("region", name="Fields of /v1/unload_lora_adapter").wait_for()
