"""A conversation: the newest answer stays in view, tasks are asked their own questions alone, samples can be tried."""

import json

import pytest

from conftest import (
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

# An answer that grows by `say(words)` and ends with `end()`.
SPOKEN = """() => {
    const fetched = window.fetch;
    window.fetch = (url, options) => {
        if (!String(url).endsWith('/v1/chat/completions')) return fetched(url, options);
        const chunk = (delta, finish) => `data: ${JSON.stringify({choices: [{index: 0, delta, finish_reason: finish}]})}\\n\\n`;
        const bytes = (text) => new TextEncoder().encode(text);
        const body = new ReadableStream({start(stream) {
            window.think = (words) => stream.enqueue(bytes(chunk({reasoning: words, reasoning_content: words}, null)));
            window.say = (words) => stream.enqueue(bytes(chunk({content: words}, null)));
            window.end = () => { stream.enqueue(bytes(chunk({}, 'stop') + 'data: [DONE]\\n\\n')); stream.close(); };
        }});
        return Promise.resolve(new Response(body, {headers: {'Content-Type': 'text/event-stream'}}));
    };
}"""
# The pixels by which the last answer's end lies below the composer's upper edge.
HIDDEN = "document.querySelector('.turn:last-child').getBoundingClientRect().bottom - document.querySelector('.composer').getBoundingClientRect().top"
SIZES = {"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 900}}


@pytest.fixture(params=SIZES.values(), ids=SIZES)
def talk(request, server, open_page):
    page = open_page(server, viewport=request.param)
    choose(page, "valora-demo")
    page.evaluate(SPOKEN)
    return page


def begin(page, text):
    ask(page, text)
    until(page, "window.say !== undefined && document.querySelector('.lane.running') !== null")


def say(page, words, paragraphs):
    for number in range(paragraphs):
        page.evaluate("text => say(text)", f"{words} {number} " + "and so on " * 20 + "\n\n")
    until(page, "text => [...document.querySelectorAll('.answer-text')].at(-1).textContent.includes(text)", f"{words} {paragraphs - 1} ")
    page.wait_for_timeout(100)  # two frames: the page measures after it has drawn


def test_newest_answer_stays_above_the_composer(talk):
    begin(talk, "Tell me much.")
    say(talk, "part", 30)
    assert talk.evaluate("scrollY") > 500
    assert -20 <= talk.evaluate(HIDDEN) <= 0
    talk.evaluate("end()")
    answered(talk)
    talk.wait_for_timeout(100)
    assert talk.evaluate(HIDDEN) <= 0
    begin(talk, "And more.")
    say(talk, "again", 3)
    assert -20 <= talk.evaluate(HIDDEN) <= 0
    assert not talk.get_by_role("button", name="To the newest").is_visible()
    talk.evaluate("end()")


def test_reader_who_scrolls_up_is_left_there(talk):
    begin(talk, "Tell me much.")
    say(talk, "part", 30)
    talk.mouse.move(200, 300)
    talk.mouse.wheel(0, -400)
    newest = talk.get_by_role("button", name="To the newest")
    newest.wait_for()
    talk.wait_for_timeout(200)
    before = talk.evaluate("scrollY")
    say(talk, "more", 10)
    assert talk.evaluate("scrollY") == before
    newest.click()
    newest.wait_for(state="hidden")
    assert -20 <= talk.evaluate(HIDDEN) <= 0
    say(talk, "last", 5)  # followed again
    assert -20 <= talk.evaluate(HIDDEN) <= 0
    talk.mouse.wheel(0, -400)
    newest.wait_for()
    talk.mouse.wheel(0, 5000)  # back by hand
    newest.wait_for(state="hidden")
    if talk.viewport_size["width"] > 600:  # a phone's settings are below the conversation
        say(talk, "end", 5)
        assert -20 <= talk.evaluate(HIDDEN) <= 0
    talk.evaluate("end()")


def test_thoughts_are_folded(talk):
    begin(talk, "Tell me much.")
    thought = talk.locator(".lane .thought")
    assert thought.is_hidden()
    talk.evaluate("think('<b>hm</b> ')")
    talk.get_by_text("Thinks…").wait_for()
    assert not thought.locator(".thought-text").is_visible()
    talk.evaluate("think('so')")
    talk.get_by_text("Thinks…").click()
    talk.get_by_text("<b>hm</b> so").wait_for()
    talk.evaluate("say('yes')")
    talk.evaluate("end()")
    answered(talk)
    assert thought.locator("summary").text_content() == "Thought"
    assert thought.locator(".thought-text").is_visible(), "it stays as its reader left it"
    assert talk.locator(".lane .answer-text").text_content() == "yes"


def test_newest_answer_is_reached_by_keys(talk):
    begin(talk, "Tell me much.")
    say(talk, "part", 30)
    talk.evaluate("end()")
    answered(talk)
    question(talk).focus()
    talk.mouse.move(200, 300)
    talk.mouse.wheel(0, -400)
    newest = talk.get_by_role("button", name="To the newest")
    newest.wait_for()
    talk.keyboard.press("Shift+Tab")
    assert newest.evaluate("node => node === document.activeElement")
    talk.keyboard.press("Enter")
    newest.wait_for(state="hidden")
    assert talk.evaluate("document.activeElement.getAttribute('aria-label')") == "Question"
    assert talk.evaluate(HIDDEN) <= 0


@pytest.fixture
def sent(page):
    bodies = []
    page.on("request", lambda request: bodies.append(request.post_data_json) if request.method == "POST" else None)
    return bodies


def asked(body):
    """The text of a body's last question."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


def test_tasks_are_asked_without_earlier_turns(page, sent, server):
    choose(page, "coins", "digits", "valora-demo")
    add_picture(page, "coins-1.png")
    ask(page, "Find all coins and cards.")
    first = answered(page, 3).locator(".answer-text").all_text_contents()
    ask(page, "Find all coins and cards.")
    second = answered(page, 3)
    assert second.locator(".answer-text").all_text_contents()[:2] == first[:2]
    assert page.locator(".lane .fault:visible").count() == 0
    roles = {body["model"]: [message["role"] for message in body["messages"]] for body in sent[3:]}
    assert roles == {"coins": ["user"], "digits": ["user"], "valora-demo": ["user", "assistant", "user"]}
    alone = [("asked without the earlier questions" in text) for text in second.locator(".measures").all_text_contents()]
    assert alone == [True, True, False]


def test_each_task_is_asked_its_own_question(page, sent):
    choose(page, "coins", "digits", "valora-demo")
    add_picture(page, "coins-1.png")
    assert question(page).input_value() == ""
    own = page.get_by_role("list", name="Asked if nothing is written")
    questions = {"coins": "Find all coins and cards.", "digits": "Which digit is written here?", "valora-demo": "Find all coins and cards."}
    assert own.locator("li").all_text_contents() == [f"{name} {text}" for name, text in questions.items()]
    ask(page)
    answered(page, 3)
    assert {body["model"]: asked(body) for body in sent} == questions
    assert lanes(page).locator(".own-question").all_text_contents() == list(questions.values())
    lanes(page).nth(1).get_by_role("button", name="Retry").click()
    until(page, "document.querySelectorAll('.lane.running').length === 0")
    assert len(sent) == 4 and asked(sent[3]) == questions["digits"]
    question(page).fill("What is this?")
    assert own.is_hidden()
    ask(page)
    answered(page, 3)
    assert [asked(body) for body in sent[4:]] == ["What is this?"] * 3
    base = next(body for body in sent[4:] if body["model"] == "valora-demo")
    assert base["messages"][0]["content"][-1]["text"] == questions["valora-demo"]
    page.get_by_role("button", name="Edit this question").first.click()
    assert question(page).input_value() == "" and own.locator("li").count() == 3


def test_one_tasks_question_is_filled_in_and_asked_again(page, sent):
    choose(page, "digits", "valora-demo")
    assert question(page).input_value() == "Which digit is written here?"
    add_picture(page, "digits-1.png")
    ask(page)
    answered(page, 2)
    assert question(page).input_value() == "" and question(page).get_attribute("placeholder") == "Which digit is written here?"
    ask(page)
    answered(page, 2)
    assert [asked(body) for body in sent] == ["Which digit is written here?"] * 4
    assert page.locator(".question-text").all_text_contents() == ["Which digit is written here?"] * 2
    choose(page, "digits")  # is no longer chosen
    page.get_by_role("button", name="Remove digits-1.png").click()
    ask(page)
    page.get_by_text("Write a question or add a picture.").wait_for()


def test_samples_can_be_tried(page, sent):
    samples = page.locator(".empty .sample")
    samples.first.wait_for()
    until(page, "[...document.querySelectorAll('.empty .sample img')].every((image) => image.naturalWidth > 0)")
    assert samples.count() == 6
    page.get_by_role("button", name="Try coins with coins-1.png: Find all coins and cards.").click()
    assert page.locator(".tray li").count() == 1 and page.locator(".chip").all_text_contents() == ["coins×"]
    page.keyboard.press("Enter")  # "Ask" has the focus
    answered(page)
    assert sent[0]["model"] == "coins" and asked(sent[0]) == "Find all coins and cards."
    page.get_by_role("button", name="Samples", exact=True).click()
    dialog = page.get_by_role("dialog", name="Samples")
    listed = json.loads((SAMPLES.parent / "samples.json").read_text())
    assert dialog.locator(".sample").count() == len({(each["media"], each["task"], each["question"]) for each in listed})
    dialog.get_by_role("button", name="Try race with race-1.mp4").click()
    ask(page)
    answered(page)
    assert sent[1]["model"] == "race" and sent[1]["messages"][0]["content"][0]["type"] == "video_url"


LABELS = """() => {
    const box = (node) => { const {left, top, right, bottom} = node.getBoundingClientRect(); return {left, top, right, bottom}; };
    return {frame: box(document.querySelector('.boxed')), boxes: [...document.querySelectorAll('.boxed rect')].map(box),
            labels: [...document.querySelectorAll('.box-label')].map((node) => ({text: node.textContent, ...box(node)}))};
}"""


def overlap(a, b):
    width, height = min(a["right"], b["right"]) - max(a["left"], b["left"]), min(a["bottom"], b["bottom"]) - max(a["top"], b["top"])
    return max(0, width) * max(0, height)


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_stand_at_their_boxes(server, open_page, width):
    page = open_page(server, viewport={"width": width, "height": 844})
    found = [("coin", [2, 20, 20, 40]), ("coin", [18, 20, 36, 40]), ("card", [40, 2, 62, 30]), ("a card of a very long name that has no end", [30, 45, 60, 62]),
             ("coin", [0, 0, 64, 64])]
    body = answer_events(json.dumps([dict(label=label, box=box) for label, box in found]))
    page.route("**/v1/chat/completions", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=body))
    choose(page, "coins")
    add_picture(page, "coins-1.png")
    ask(page)
    page.locator(".box-label").nth(len(found) - 1).wait_for()
    until(page, "[...document.querySelectorAll('.box-label')].every((label) => label.style.left !== '')")
    seen = page.evaluate(LABELS)
    assert [label["text"] for label in seen["labels"]] == [label for label, _ in found]
    frame = seen["frame"]
    for label, box in zip(seen["labels"], seen["boxes"]):
        assert all(label[side] >= frame[side] - 1 for side in ("left", "top")) and all(label[side] <= frame[side] + 1 for side in ("right", "bottom"))
        gap = max(box["left"] - label["right"], label["left"] - box["right"], box["top"] - label["bottom"], label["top"] - box["bottom"])
        assert gap <= 3, label  # at the box, or in it
    pairs = [(a, b) for at, a in enumerate(seen["labels"]) for b in seen["labels"][:at]]
    assert not any(overlap(a, b) for a, b in pairs)
    assert page.locator("figcaption").text_content() == "5 boxes, in pixels"
