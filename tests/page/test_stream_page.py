"""The view of streams: their state, the last answered frame with its answers and events, and streams from the form."""

import json
import pathlib

import pytest

from conftest import HOSTILE, SAMPLES, choose, until

ASKED = {"max_tokens": 24, "temperature": 0}
COINS = {"model": "coins", "response_format": {"type": "boxes"}, "event": {"when": {"boxes": {"label": "coin"}}}}


def ask(server, method, path, body=None):
    headers = {"Content-Type": "image/png"} if isinstance(body, bytes) else {}
    status, text = server.request(method, path, body, headers)
    assert status == 200, text
    return json.loads(text)


@pytest.fixture
def streams(server):
    """Begins streams; all there are, those of the form, too, end with the test."""
    yield lambda *skills, **more: "/v1/streams/" + ask(server, "POST", "/v1/streams", {"source": "push", "skills": list(skills)} | ASKED | more)["id"]
    for stream in ask(server, "GET", "/v1/streams?limit=100")["data"]:
        ask(server, "DELETE", "/v1/streams/" + stream["id"])


def push(server, stream, name):
    return ask(server, "POST", f"{stream}/frames", pathlib.Path(SAMPLES / name).read_bytes())["frame"]


def last_answers(server, stream):
    return [event for event in ask(server, "GET", f"{stream}/events?limit=1000")["data"] if event["type"] == "answers"][-1]["answers"]


def row(page, name):
    return page.locator("tbody tr", has=page.get_by_role("button", name=f"Watch {name}"))


def shown_stream(page):
    return page.get_by_role("region", name="The stream", exact=True)


def loaded(page):
    """The picture of the last answered frame is there, in its own size."""
    until(page, "document.querySelector('.stream-picture img')?.naturalWidth > 0")


def test_last_frame_is_shown_with_its_answers_and_events(server, open_page, streams):
    stream = streams(COINS, "digits", name="gate")
    page = open_page(server, "/")
    page.get_by_role("link", name="Streams").click()
    row(page, "gate").get_by_text("waiting").or_(row(page, "gate").get_by_text("running")).wait_for()
    push(server, stream, "coins-2.png")
    watched = shown_stream(page)  # the only stream is opened
    watched.get_by_text("answered after").wait_for()
    loaded(page)
    answers = last_answers(server, stream)
    boxes = json.loads(answers["coins"]["content"])
    until(page, f"document.querySelectorAll('.stream-picture rect').length === {len(boxes)}")
    assert watched.locator(".figures dd").all_text_contents() == ["coin", answers["digits"]["content"]]
    watched.get_by_role("list", name="Events").get_by_text("coins begins").wait_for()
    until(page, "document.querySelectorAll('.track .segment').length === 2 && document.querySelectorAll('.track .bar').length === 1")
    push(server, stream, "coins-1.png")
    watched.get_by_role("list", name="Events").get_by_text("coins ends").wait_for()
    until(page, "document.querySelectorAll('.track .segment').length >= 3")
    assert watched.locator(".figures dd").all_text_contents() == ["card", last_answers(server, stream)["digits"]["content"]]


def test_streams_are_paused_resumed_and_ended(server, open_page, streams):
    stream = streams("digits", name=HOSTILE)
    other = streams("coins", name="other")
    page = open_page(server, "/#streams")
    row(page, "other").get_by_role("button", name="Pause other").click()
    row(page, "other").get_by_text("paused", exact=True).wait_for()
    assert ask(server, "GET", other)["state"] == "paused"
    page.get_by_role("button", name="Resume other").click()
    page.get_by_text("other goes on.").wait_for()
    assert ask(server, "GET", other)["state"] != "paused"
    page.get_by_role("button", name="Watch other").click()
    shown_stream(page).wait_for()
    page.get_by_role("button", name="End other").click()
    page.get_by_role("button", name="Watch other").wait_for(state="detached")
    until(page, "document.querySelector('.stream h2').textContent !== 'other'")
    assert server.request("GET", other)[0] == 404
    assert ask(server, "GET", stream)["name"] == HOSTILE and page.evaluate("window.hit") is None


def test_camera_of_the_browser_becomes_a_stream(server, open_page, streams):
    page = open_page(server, "/#streams")
    page.get_by_text("Begin a stream").click()
    page.get_by_label("this browser's camera").check()
    page.get_by_label("Name", exact=True).fill("desk")
    page.get_by_label("Event if").select_option("changes")
    page.get_by_label("Frames per second, at most").fill("5")
    choose(page, "digits")
    page.get_by_role("button", name="Begin", exact=True).click()
    row(page, "desk").get_by_text("this camera").wait_for()
    loaded(page)
    stream = "/v1/streams/" + ask(server, "GET", "/v1/streams")["data"][0]["id"]
    described = ask(server, "GET", stream)
    assert described["source"] == "push" and described["skills"][0]["event"] == {"when": {"changes": True}}
    page.get_by_role("link", name="Now").click()  # frames go on in other views
    before = ask(server, "GET", stream)["counts"]["frames"]
    while ask(server, "GET", stream)["counts"]["frames"] < before + 3:
        page.wait_for_timeout(50)
    page.get_by_role("link", name="Streams").click()
    page.get_by_role("button", name="End desk").click()
    page.get_by_text("desk has ended.").wait_for()
    assert server.request("GET", stream)[0] == 404


def test_form_says_what_is_wrong(server, open_page, streams):
    page = open_page(server, "/#streams")
    page.get_by_text("No streams yet.").wait_for()
    page.get_by_text("Begin a stream").click()
    page.get_by_label("Address of the camera or the video").fill("rtsp://127.0.0.1/gate")
    begin = page.get_by_role("button", name="Begin", exact=True)
    begin.click()
    page.get_by_text("Choose at least one model.").wait_for()
    choose(page, "valora-demo")
    begin.click()
    page.get_by_text("valora-demo needs a question.").wait_for()
    page.get_by_label("Question").fill("What is here?")
    begin.click()
    page.get_by_text("--allow-media-urls").wait_for()
    assert ask(server, "GET", "/v1/streams")["data"] == []
