"""Answers as Markdown: what is shown, what is refused, and what can be copied."""

import pytest

from conftest import HOSTILE, answer_events, answered, ask, choose, until

SHOWN = """# A title #

Some *weak*, **strong _and weak_**, `code *x*`, ~~gone~~ words; 2 * 3 * 4, snake_case_name, \\*plain\\*.
A second line.

- one
- two
  - inner
1. first

   its paragraph
2. second

> quoted
> **words**

| name | count |
|------|------:|
| `a\\|b` | 1 |

```python
def f(x):
    return x < 1  # **not bold**
```

The end
***
---
"""


@pytest.fixture
def answer(page):
    """answer(text, **choice): asks the base model, which answers this text; returns the answer's node."""
    page.route("**/v1/chat/completions", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=texts[-1]))
    texts = []

    def given(text, **choice):
        texts.append(answer_events(text, **choice))
        choose(page, "valora-demo") if not page.locator(".chip").count() else None
        ask(page, "Say it.")
        return answered(page).first.locator(".answer-text")

    return given


def html(node):
    return node.evaluate("node => node.innerHTML")


def test_blocks_and_inline_marks_become_elements(answer):
    shown = answer(SHOWN)
    assert shown.locator("h3").text_content() == "A title"
    first = shown.locator("p").first
    assert html(first) == ("Some <em>weak</em>, <strong>strong <em>and weak</em></strong>, <code>code *x*</code>, <s>gone</s> words; 2 * 3 * 4, "
                           "snake_case_name, *plain*.\nA second line.")
    assert shown.locator(":scope > ul > li").count() == 2 and shown.locator("ul ul").text_content() == "inner"
    assert shown.locator("ol > li").first.locator("p").all_text_contents() == ["first", "its paragraph"]
    assert shown.locator("blockquote strong").text_content() == "words"
    assert shown.locator("th").all_text_contents() == ["name", "count"] and shown.locator("td").all_text_contents() == ["a|b", "1"]
    assert shown.locator("pre code").text_content() == "def f(x):\n    return x < 1  # **not bold**"
    assert shown.locator("hr").count() == 2


def test_only_web_addresses_become_links(answer, page):
    shown = answer("[good](https://example.org/a_(b) \"title\") [plain](http://example.org) <https://example.org/c> see https://example.org/d. "
                   "[bad](javascript:alert(1)) [data](data:text/html,x) [here](/v1/models) [file](file:///etc/passwd) "
                   "![picture](https://example.org/p.png) [**bold** and `code`](https://example.org/e) [[twice](https://a.org)](https://b.org)")
    links = shown.locator("a")
    assert links.evaluate_all("links => links.map((link) => [link.textContent, link.href])") == [
        ["good", "https://example.org/a_(b)"], ["plain", "http://example.org/"], ["https://example.org/c", "https://example.org/c"],
        ["https://example.org/d", "https://example.org/d"], ["picture", "https://example.org/p.png"], ["bold and code", "https://example.org/e"],
        ["[twice](https://a.org)", "https://b.org/"]]
    assert set(links.evaluate_all("links => links.map((link) => link.rel)")) == {"noopener noreferrer"}
    for text in ("[bad](javascript:alert(1))", "[data](data:text/html,x)", "[here](/v1/models)", "[file](file:///etc/passwd)"):
        assert text in shown.text_content()
    assert page.locator(".turns img").count() == 0  # pictures of others are not loaded


HOSTILE_TEXTS = [
    f"**{HOSTILE}** `{HOSTILE}`",
    f"[{HOSTILE}](https://example.org/{HOSTILE})",
    f"```{HOSTILE}\n{HOSTILE}\n```",
    f"# {HOSTILE}\n\n> {HOSTILE}\n\n- {HOSTILE}",
    f"|{HOSTILE}|\n|-|\n|{HOSTILE}|",
    '<a href="javascript:window.hit=1">x</a><svg onload=window.hit=1>',
    '[x](https://e.org/"onmouseover=window.hit=1)',
    "&lt;script&gt;",
    "[a](JaVaScRiPt:window.hit=1) [b](\tjavascript:window.hit=1) <javascript:window.hit=1>",
]


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_markup_in_an_answer_stays_text(answer, page, text):
    shown = answer(text)
    made = set(shown.evaluate("node => [...node.querySelectorAll('*')].map((each) => each.localName)"))
    assert made <= {"p", "strong", "code", "a", "div", "span", "button", "pre", "h3", "blockquote", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}
    assert all(link.startswith("https://") for link in shown.locator("a").evaluate_all("links => links.map((link) => link.href)"))
    handlers = shown.evaluate("node => [...node.querySelectorAll('*')].flatMap((each) => each.getAttributeNames()).filter((name) => name.startsWith('on'))")
    assert handlers == [] and page.evaluate("window.hit") is None


# Each would take minutes in a reader that tries every pair.
LONG = [
    "*a " * 40000,
    "*a **b " * 20000 + "** *" * 20000,
    "[" * 60000,
    "![a](" * 20000,
    "`" * 3 + "`a``b" * 30000,
    "_" * 100000,
    "> " * 2000 + "x",
    "- " * 30000,
    "[a](https://e.org" * 5000 + ")" * 5000,
    "|" * 50000 + "\n" + "|-" * 25000,
    "https://" * 10000,
    "#" + " #" * 40000,
    "~" * 80000 + "`",
    "*" * 30000 + "a" + "*" * 30000,
    "` " + "x" * 50000 + "`",
    "\n".join(" " * at + "- x" for at in range(300)),
]


def test_long_and_nested_answers_are_shown_at_once(answer, page):
    for text in LONG:
        answer(text)
        deepest = page.evaluate("""() => {
            const depth = (node) => 1 + Math.max(0, ...[...node.children].map(depth));
            return depth([...document.querySelectorAll('.answer-text')].at(-1));
        }""")
        assert deepest < 60, text[:20]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), text[:20]


def test_data_is_not_read_as_markdown(answer, page):
    data = '{"a": "*b*",\n "c": "_d_ [e](https://e.org)"}'
    page.get_by_label("Form of the answer").select_option("json")
    shown = answer(data)
    assert shown.text_content() == data and shown.locator("*").count() == 0


def test_answers_and_code_are_copied_as_they_were_written(answer, page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown = answer(SHOWN)
    lane = page.locator(".lane").last
    lane.get_by_role("button", name="Copy the answer").click()
    lane.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == SHOWN
    shown.get_by_role("button", name="Copy the code").click()
    shown.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "def f(x):\n    return x < 1  # **not bold**"


def test_copying_needs_no_clipboard_of_the_browser(answer, page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not here')); }")
    answer("Plain words.")
    page.locator(".lane").last.get_by_role("button", name="Copy the answer").click()
    page.locator(".lane").last.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "Plain words."


def test_blocks_that_are_complete_keep_their_nodes(page):
    until(page, "document.querySelector('.composer') !== null")
    kept = page.evaluate("""async () => {
        const {makeMarkdown} = await import('/ui/markdown.js');
        const node = document.createElement('div');
        const update = makeMarkdown(node);
        update('# One\\n\\nTwo wor', false);
        const [first, second] = node.children;
        update('# One\\n\\nTwo words\\n\\n- three', false);
        const same = [node.children[0] === first, node.children[1] === second, node.children.length];
        update('# One\\n\\nTwo words\\n\\n- three', true);
        const plain = [node.children.length, node.textContent];
        update('Else', false);
        return [...same, ...plain, node.innerHTML];
    }""")
    assert kept == [True, False, 3, 0, "# One\n\nTwo words\n\n- three", "<p>Else</p>"]
