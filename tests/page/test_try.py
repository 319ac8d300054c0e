"""The chat view: models, pictures, answers, and what it stores."""

import json
import pathlib
import re
import subprocess
import sys

import playwright

from conftest import (
    ENDLESS,
    HOSTILE,
    SAMPLES,
    add_picture,
    answer_events,
    answered,
    ask,
    choose,
    lanes,
    question,
    until,
)
from serving import image_part, text_part


def test_task_fills_in_its_question_and_head_shows_bars(page, server):
    parts = [image_part((SAMPLES / "digits-1.png").read_bytes()), text_part("Which digit is written here?")]
    label = server.chat("digits", parts)["choices"][0]["message"]["content"]
    choose(page, "digits")
    assert question(page).input_value() == "Which digit is written here?"
    add_picture(page, "digits-1.png")
    ask(page)
    lane = answered(page).first
    assert lane.locator(".answer-text").text_content() == label
    bars = lane.locator(".bars li")
    assert bars.count() == 10
    assert bars.first.locator(".bar-name").text_content() == label
    shares = [float(text.removesuffix(" %")) for text in bars.locator(".bar-share").all_text_contents()]
    assert shares == sorted(shares, reverse=True)
    assert abs(sum(shares) - 100) < 1
    assert "first token" in lane.locator(".measures").text_content()


def test_two_adapters_answer_and_boxes_are_drawn(page):
    choose(page, "coins", "catalogue")
    add_picture(page, "coins-1.png")
    ask(page, "Find all coins and cards.")
    both = answered(page, 2)
    assert both.count() == 2
    rectangles = both.nth(0).locator(".boxed svg rect")
    rectangles.first.wait_for(state="attached")
    assert len(json.loads(both.nth(0).locator(".answer-text").text_content())) == rectangles.count()
    assert "in pixels" in both.nth(0).locator("figcaption").text_content()
    labels = both.nth(0).locator(".box-label")
    labels.first.wait_for(state="attached")
    assert all(re.fullmatch(r"\S.* \d{1,3} %", text) for text in labels.all_text_contents())
    assert both.nth(1).locator(".boxed").count() == 0


def test_clip_can_be_asked_about(page):
    choose(page, "race")
    add_picture(page, "race-1.mp4")
    ask(page)
    assert answered(page).first.locator(".answer-text").text_content().strip()


def test_stream_can_be_stopped_and_retried(page):
    choose(page, "valora-demo")
    page.evaluate(ENDLESS)
    ask(page, "Tell me much.")
    lane = lanes(page).first
    lane.locator(".answer-text", has_text="Once upon a time").wait_for()
    assert lane.get_attribute("aria-busy") == "true"
    lane.get_by_role("button", name="Stop").click()
    lane.locator(".measures", has_text="stopped").wait_for()
    assert lane.locator(".answer-text").text_content() == "Once upon a time"
    page.get_by_label("Form of the answer").select_option("text")
    page.get_by_label("Most tokens").fill("2")
    lane.get_by_role("button", name="Retry").click()
    lane.locator(".measures", has_text="+ 2 tokens").wait_for()
    assert "stopped" not in lane.locator(".measures").text_content()
    before = lane.locator(".answer-text").text_content()
    lane.get_by_role("button", name="Continue").click()
    until(page, "before => document.querySelector('.answer-text').textContent !== before", before)
    assert lane.locator(".answer-text").text_content().startswith(before)
    page.get_by_label("Form of the answer").select_option("schema")
    page.get_by_label("JSON schema", exact=True).fill('{"type": "string", "minLength": 1000}')
    page.get_by_label("Most tokens").fill("300")
    lane.get_by_role("button", name="Retry").click()
    lane.locator(".measures", has_text="+ 300 tokens").wait_for()


def test_question_can_be_edited_and_conversation_continued(page):
    choose(page, "street")
    add_picture(page, "street-1.png")
    ask(page, "How many cars are there?")
    answered(page)
    sent = []
    page.on("request", lambda request: sent.append(request.post_data_json) if request.method == "POST" else None)
    ask(page, "And houses?")
    answered(page)
    assert [message["role"] for message in sent[0]["messages"]] == ["user", "assistant", "user"]
    page.get_by_role("button", name="Edit this question").first.click()
    assert page.locator(".turn").count() == 0
    assert question(page).input_value() == "How many cars are there?"
    assert page.locator(".tray li").count() == 1


def test_shown_code_sends_the_same_request(page):
    sent = []
    page.on("request", lambda request: sent.append(request.post_data_json) if request.method == "POST" else None)
    choose(page, "digits")
    add_picture(page, "digits-2.png")
    ask(page, "It's \"which\" digit?\n$HOME `id` \\")
    answer = answered(page).first.locator(".answer-text").text_content()
    lanes(page).first.get_by_role("button", name="Copy the request").click()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    node = pathlib.Path(playwright.__file__).parent / "driver" / "node"
    for language, command in {"Python": [sys.executable, "-"], "curl": ["bash"], "JavaScript": [node, "--input-type=module", "-"]}.items():
        page.get_by_role("button", name=language, exact=True).click()
        page.get_by_role("button", name="Copy", exact=True).click()
        page.get_by_text("Copied").wait_for()
        code = page.evaluate("navigator.clipboard.readText()")
        if language == "curl":
            body = json.loads(code[code.index("\n{"):code.rindex("\nEND")])
            assert body == sent[0]
            code = code.replace("curl ", "curl -s ", 1)
        done = subprocess.run(command, input=code, capture_output=True, text=True, timeout=60)
        assert f'"content":"{answer}"' in done.stdout, done.stderr


def test_conversations_are_kept_in_the_browser_and_exported(page):
    choose(page, "traffic")
    add_picture(page, "traffic-1.png")
    ask(page, "What does the traffic light say?")
    answered(page)
    page.get_by_role("button", name="What does the traffic light say? ", exact=False).first.wait_for()
    page.reload()
    page.locator(".history .title", has_text="traffic light").click()
    assert page.locator(".turn .lane").count() == 1
    with page.expect_download() as download:
        page.get_by_role("button", name="Export this one").click()
    kept = json.loads(download.value.path().read_text())
    assert kept["turns"][0]["answers"][0]["model"] == "traffic"
    assert kept["turns"][0]["media"][0]["url"].startswith("data:image/png;base64,")
    page.get_by_role("button", name="Delete the conversation").click()
    page.get_by_text("None so far").wait_for()


DROP = """([kind, name, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name, {type: "image/png"}));
  if (kind === "drop") document.querySelector(".composer").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
  else document.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
}"""


def test_pictures_can_be_dropped_pasted_and_taken(page):
    data = list((SAMPLES / "digits-3.png").read_bytes())
    question(page).wait_for()
    page.evaluate(DROP, ["drop", "dropped.png", data])
    page.get_by_text("dropped.png added").wait_for()
    page.evaluate(DROP, ["paste", "pasted.png", data])
    page.get_by_text("pasted.png added").wait_for()
    page.get_by_role("button", name="Camera").click()
    until(page, "document.querySelector('video.camera')?.videoWidth > 0")
    page.get_by_role("button", name="Take it").click()
    page.get_by_text("camera.jpg added").wait_for()
    assert page.locator(".tray li").count() == 3
    page.get_by_role("button", name="Remove dropped.png").click()
    assert page.locator(".tray li").count() == 2


def test_refusal_shows_the_servers_message(page):
    page.get_by_label("Form of the answer").select_option("schema")
    page.get_by_label("JSON schema", exact=True).fill('{"not": {}}')
    ask(page, "Hello")
    lane = lanes(page).first
    lane.locator(".fault").wait_for()
    assert "not" in lane.locator(".fault").text_content()
    page.get_by_label("JSON schema", exact=True).fill("{")
    lane.get_by_role("button", name="Retry").click()
    lane.locator(".fault", has_text="The JSON schema is not JSON").wait_for()


def test_hostile_answers_are_shown_as_text(page):
    long = HOSTILE + "x" * 10000
    calls = [{"index": 0, "id": "c", "type": "function", "function": {"name": HOSTILE, "arguments": HOSTILE}}]
    top = [{"token": HOSTILE, "logprob": -0.1, "bytes": None}, {"token": "b", "logprob": -2, "bytes": None}]
    token = {"token": HOSTILE, "logprob": -0.1, "bytes": None, "top_logprobs": top}
    body = answer_events(long, delta={"content": long, "tool_calls": calls}, logprobs={"content": [token]})
    page.route("**/v1/chat/completions", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=body))
    choose(page, "digits")
    ask(page, HOSTILE)
    lane = answered(page).first
    assert lane.locator(".answer-text").text_content() == long
    assert HOSTILE[:40] in lane.locator(".bar-name").first.text_content()
    assert lane.locator(".call pre").text_content() == HOSTILE
    assert page.locator(".turns script, .turns img, .history img").count() == 0
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_tool_results_are_sent_back(page):
    bodies = []
    calls = [{"index": at, "id": f"c{at}", "type": "function", "function": {"name": name, "arguments": "{}"}} for at, name in enumerate(("weather", "time"))]

    def answer(route):
        bodies.append(json.loads(route.request.post_data))
        asked = len(bodies) == 1
        events = answer_events("", delta={"content": "Let me see.", "tool_calls": calls}) if asked else answer_events(f"Answer {len(bodies)}.")
        route.fulfill(status=200, content_type="text/event-stream", body=events)

    page.route("**/v1/chat/completions", answer)
    ask(page, "How is it outside?")
    lane = answered(page).first
    lane.get_by_label("Result of weather").fill("rain")
    lane.get_by_label("Result of time").fill("<b>noon")
    lane.get_by_role("button", name="Send the results").click()
    lane.get_by_text("Answer 2.").first.wait_for()
    assert [message["role"] for message in bodies[1]["messages"]] == ["user", "assistant", "tool", "tool"]
    assert [call["id"] for call in bodies[1]["messages"][1]["tool_calls"]] == ["c0", "c1"]
    results = [{"role": "tool", "tool_call_id": at, "content": content} for at, content in (("c0", "rain"), ("c1", "<b>noon"))]
    assert bodies[1]["messages"][2:] == results
    assert lane.locator(".round").text_content().startswith("Let me see.") and lane.locator(".results").count() == 0
    ask(page, "And tomorrow?")
    answered(page).first.get_by_text("Answer 3.").first.wait_for()
    assert [message["role"] for message in bodies[2]["messages"]] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert bodies[2]["messages"][4]["content"] == "Answer 2."
