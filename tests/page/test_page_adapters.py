"""The table of adapters, and loading and unloading adapters in it."""

import json
import pathlib
import re

import pytest

from conftest import (
    DEMO,
    HOSTILE,
    answer_events,
    answered,
    ask,
    choose,
    demo_server,
    question,
    until,
)
from serving import ServedProcess

MANY = 2000
ADAPTER = DEMO / "adapters" / "adapter-1"


def rows(page):
    return page.locator("tbody tr")


def row_of(page, name):
    return rows(page).filter(has=page.get_by_role("rowheader", name=name, exact=True))


def test_table_can_be_sorted_and_searched(server, open_page):
    server.chat("digits", "Which digit?", head="", max_tokens=3)
    page = open_page(server, "/#adapters")
    rows(page).first.wait_for()
    names = page.locator("tbody th").all_text_contents()
    assert names == sorted(names) and "digits" in names
    titles = page.locator("thead th").all_text_contents()
    cells = dict(zip(titles[1:], row_of(page, "digits").locator("td").all_text_contents()))
    assert cells["Weights"] == "in the pool" and cells["Changes"].startswith("decoder") and cells["Merging"] == "possible"
    assert int(cells["Requests"]) >= 1 and int(cells["Tokens"]) >= 3 and int(cells["Rank"]) > 0 and cells["Size"].endswith("KiB")
    assert cells["Last used"] != "never" and "head digits" in cells["Changes"]
    page.get_by_role("button", name="Size").click()
    assert page.locator("th[aria-sort=descending]").text_content() == "Size"
    page.get_by_role("button", name="Name").click()
    page.get_by_label("Search adapters").fill("head digits")
    assert "digits" in page.locator("tbody th").all_text_contents()
    assert rows(page).count() < len(names)
    page.get_by_label("Search adapters").fill("nothing has this name")
    assert rows(page).count() == 0


def test_details_and_totals_are_shown(server, open_page):
    server.chat("digits", "Which digit?", head="", max_tokens=3)
    page = open_page(server, "/#adapters")
    rows(page).first.wait_for()
    row_of(page, "digits").get_by_role("button", name="digits", exact=True).click()
    dialog = page.get_by_role("dialog", name="Details of an adapter")
    shown = dict(zip(dialog.locator("dt").all_text_contents(), dialog.locator("dd").all_text_contents()))
    assert shown["Folder"].endswith("adapters/adapter-1") and shown["Weights"] == "in the pool" and shown["Merging"] == "possible"
    assert " s, " in shown["Last load"].replace("ms,", "s,") and "generated" in shown["Tokens"] and "generation" in shown["Registered"]
    page.keyboard.press("Escape")
    listed = json.loads(server.request("GET", "/v1/stats")[1])["adapters"]

    def totals():
        return dict(zip(page.locator(".totals dt").all_text_contents(), page.locator(".totals dd").all_text_contents()))

    assert totals()["Adapters"] == str(len(listed)) and totals()["Folders"].startswith(f"{len({each['path'] for each in listed})} ")
    page.get_by_label("Search adapters").fill("head digits")
    found = [each for each in listed if "digits" in each["heads"]]
    assert totals()["Adapters"] == str(len(found)) and totals()["Folders"].startswith("1 ")
    assert int(totals()["Requests"]) == sum(each["requests"] for each in found) > 0


def test_adapter_can_be_loaded_replaced_and_unloaded(server, open_page):
    page = open_page(server, "/#adapters")
    rows(page).first.wait_for()
    page.get_by_text("Load an adapter").click()
    page.get_by_label("Name", exact=True).fill("fresh")
    page.get_by_label("Folder").fill(str(ADAPTER))
    page.get_by_label("keep it in the pool").check()
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_text("Loaded fresh in").wait_for()
    row = row_of(page, "fresh")
    row.get_by_text("pinned").wait_for()
    page.get_by_label("Folder").fill("/nowhere")
    page.get_by_role("button", name="Load", exact=True).click()
    page.locator(".load-form .fault").wait_for()
    row.get_by_role("button", name="Replace fresh").click()
    assert page.get_by_label("Folder").input_value() == str(ADAPTER)
    row.get_by_role("button", name="Unload fresh").click()
    page.get_by_role("dialog").get_by_role("button", name="Unload").click()
    page.get_by_text("Unloaded fresh.").wait_for()
    assert row.count() == 0


def test_long_load_shows_its_duration(server, open_page):
    page = open_page(server, "/#adapters")
    rows(page).first.wait_for()
    held = []
    page.route("**/v1/load_lora_adapter", lambda route: held.append(route))  # noqa: PLW0108  playwright does not accept built-ins
    page.clock.install()
    page.get_by_text("Load an adapter").click()
    page.get_by_label("Name", exact=True).fill("slow")
    page.get_by_label("Folder").fill("/nowhere")
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_text("the server is reading it").wait_for()
    page.clock.run_for(12_000)
    page.get_by_text("the server is reading it, 12 s").wait_for()
    assert page.get_by_role("progressbar", name="Loading").is_visible()
    page.get_by_label("Search adapters").fill("digits")
    page.get_by_role("button", name="Pin digits").click()
    page.get_by_text("digits stays in the pool.").wait_for()
    page.get_by_role("button", name="Unpin digits").click()
    page.get_by_role("button", name="Pin digits", exact=True).wait_for()
    assert page.get_by_role("progressbar", name="Loading").is_visible()
    held[0].continue_()
    page.locator(".load-form .fault").wait_for()
    assert page.get_by_text("the server is reading it").count() == 0


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A server with 2,000 adapters, one of which has a name and texts that are markup."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(MANY - 1):
        (folder / f"skill-{number:04}").symlink_to(ADAPTER)
    hostile = folder / "<img src=x onerror=window.hit=1>"
    hostile.mkdir()
    for path in ADAPTER.iterdir():
        if path.name != "valora.json":
            (hostile / path.name).symlink_to(path)
    sidecar = json.loads((ADAPTER / "valora.json").read_text())
    sidecar |= {"task": "<b>", "question": "<script>window.hit=1</script>"}
    (hostile / "valora.json").write_text(json.dumps(sidecar))
    made = ServedProcess("--model", DEMO / "model", "--served-model-name", "valora-demo", "--lora-dir", folder, "--threads", "1",
                         "--max-cpu-loras", str(MANY), "--pool-memory", "64M")
    yield made
    made.stop()


def options(page):
    return page.locator(".options [role=option]")


def longest(page, name):
    return page.evaluate("name => Math.max(...performance.getEntriesByName(name).map((entry) => entry.duration))", name)


def test_search_over_two_thousand_adapters_is_fast(many, open_page):
    page = open_page(many)
    field = page.get_by_role("combobox", name="Add a model")
    field.click()
    options(page).first.wait_for()
    assert options(page).count() == 50
    for words in ("skill", "skill-17", "1999", "skill-1998"):
        field.fill(words)
    until(page, "document.querySelectorAll('.options [role=option]').length === 1")
    assert options(page).text_content().startswith("skill-1998")
    assert page.evaluate("performance.getEntriesByName('search').length") > 3 and longest(page, "search") < 50
    page.goto(many.url + "/#adapters")
    until(page, "document.querySelectorAll('tbody tr').length === 100")
    assert page.locator(".totals dd").first.text_content() == str(MANY)
    heights = page.locator("tbody tr").evaluate_all("rows => rows.map((row) => row.offsetHeight)")
    assert max(heights) < 40  # one line
    assert page.get_by_text("1 to 100 of 2000").is_visible() and page.get_by_role("button", name="Previous").is_disabled()
    first = page.locator("tbody th").first.text_content()
    page.get_by_role("button", name="Next").click()
    assert page.get_by_text("101 to 200 of 2000").is_visible() and page.locator("tbody th").first.text_content() != first
    for _ in range(18):
        page.get_by_role("button", name="Next").click()
    assert page.get_by_text("1901 to 2000 of 2000").is_visible() and page.get_by_role("button", name="Next").is_disabled()
    assert page.evaluate("document.activeElement.textContent") == "Previous"
    page.get_by_label("Search adapters").fill("skill-1998")
    until(page, "document.querySelectorAll('tbody tr').length === 1")
    assert longest(page, "filter") < 500  # draws all rows of the table


def with_hostile_texts(route):
    """As listed by a server that neither limits nor checks texts."""
    listed = route.fetch().json()
    adapter = next(each for each in listed["data"] if each["name"] == "skill-0001")
    adapter["description"] = adapter["question"] = "<script>window.hit=1</script>\u202e" + "x" * 10000
    route.fulfill(json=listed)


def test_hostile_names_are_shown_as_text(many, open_page):
    page = open_page(many, "/#now")
    page.route("**/v1/lora_adapters", with_hostile_texts)
    page.get_by_role("link", name="Try").click()
    field = page.get_by_role("combobox", name="Add a model")
    field.fill("skill-0001")
    options(page).first.wait_for()
    described = options(page).first.text_content()
    assert "<script>" in described and "\u202e" not in described and len(described) < 300
    field.fill("onerror")
    option = options(page).first
    option.wait_for()
    assert option.text_content().startswith("<img src=x onerror=window.hit=1>")
    option.click()
    assert question(page).input_value().startswith("<script>")
    page.get_by_role("link", name="Adapters").click()
    page.get_by_label("Search adapters").fill("onerror")
    until(page, "document.querySelectorAll('tbody tr').length === 1")
    assert page.locator("tbody th").text_content() == "<img src=x onerror=window.hit=1>"
    assert page.evaluate("window.hit") is None and page.locator("main img").count() == 0
    assert "--allow-runtime-lora-updating" in page.locator(".notice").text_content()


def test_long_hostile_name_is_shown_short_and_in_order(server, open_page):
    name = HOSTILE + "x" * 10000  # this server refuses to load it

    def renamed(route):
        events = "event-stream" in route.request.headers.get("accept", "")
        if events or route.request.method == "POST":
            return route.continue_() if events else route.fulfill(body="Success")
        told = route.fetch().json()
        next(iter(told.get("adapters") or told.get("data")))["name"] = name
        return route.fulfill(json=told)

    page = open_page(server, "/#now")
    page.route(re.compile("/v1/(stats|.*lora_adapters?)$"), renamed)
    page.route("**/v1/chat/completions", lambda route: route.fulfill(status=200, content_type="text/event-stream", body=answer_events("Well.")))
    page.get_by_role("link", name="Adapters").click()
    page.get_by_label("Search adapters").fill("onerror")
    until(page, "document.querySelectorAll('tbody tr').length === 1")
    rows(page).get_by_role("button", name="Pin").click()
    page.get_by_text("stays in the pool.").wait_for()
    rows(page).get_by_role("button", name="Unload").click()
    assert "Requests that run keep it" in page.get_by_role("dialog").text_content()
    for shown in (page.get_by_role("dialog").text_content(), page.locator("main").text_content()):
        assert "<img src=x" in shown and "\u202e" not in shown and "\u2066" not in shown and "x" * 100 not in shown
    page.get_by_role("dialog").get_by_role("button", name="Unload").click()
    page.get_by_text("Unloaded <img").wait_for()
    page.get_by_role("link", name="Try").click()
    page.get_by_role("combobox", name="Add a model").fill("onerror")
    options(page).first.click()
    ask(page, "Hello")
    assert answered(page).first.locator(".answer-text").text_content() == "Well."
    assert "\u202e" not in page.locator("main").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth && !window.hit")


def test_users_see_only_their_models(open_page, tmp_path):
    users = pathlib.Path(tmp_path / "users.yaml")
    users.write_text("users:\n  - {name: ann, key: sk-ann-0001, models: [digits, mood]}\n")
    made = demo_server("--users", users, "--allow-runtime-lora-updating")
    try:
        page = open_page(made, "/#adapters")
        page.get_by_role("textbox", name="Key").fill("sk-ann-0001")
        page.get_by_role("button", name="Use this key").click()
        rows(page).first.wait_for()
        assert page.locator("tbody th").all_text_contents() == ["digits", "mood"]
        assert "this user may not load" in page.locator(".notice").text_content()
    finally:
        made.stop()


@pytest.fixture(scope="module")
def taking(tmp_path_factory):
    made = demo_server("--allow-runtime-lora-updating", "--adapter-upload-dir", tmp_path_factory.mktemp("uploads") / "kept")
    yield made
    made.stop()


def test_local_folder_is_uploaded(taking, open_page, tmp_path):
    page = open_page(taking, "/#adapters")
    rows(page).first.wait_for()
    page.get_by_text("Load an adapter").click()
    page.get_by_label("Name", exact=True).fill("<i>sent")
    page.get_by_label("this computer", exact=True).check()
    folder = page.get_by_label("Folder of this computer")
    (tmp_path / "notes.txt").write_text("nothing of an adapter")
    folder.set_input_files(tmp_path)
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_text("This folder has no adapter_config.json.").wait_for()
    folder.set_input_files(ADAPTER)
    devtools = page.context.new_cdp_session(page)
    slow = dict(offline=False, latency=0, downloadThroughput=-1, uploadThroughput=30_000)
    devtools.send("Network.emulateNetworkConditions", slow)
    page.get_by_role("button", name="Load", exact=True).click()
    page.get_by_text(re.compile("KiB of .*KiB")).wait_for()
    other = open_page(taking)  # others are answered while the upload is under way
    choose(other, "digits")
    ask(other)
    assert answered(other).first.locator(".answer-text").text_content().strip()
    assert page.get_by_role("progressbar", name="Loading").is_visible()
    devtools.send("Network.emulateNetworkConditions", slow | {"uploadThroughput": -1})
    page.get_by_text("Loaded <i>sent in").wait_for()
    row = row_of(page, "<i>sent")
    row.get_by_role("button", name="Pin <i>sent", exact=True).click()
    page.get_by_text("<i>sent stays in the pool.").wait_for()
    row.get_by_text("pinned").wait_for()
    row.get_by_role("button", name="Unpin <i>sent").click()
    row.get_by_role("button", name="Pin <i>sent", exact=True).wait_for()
    assert page.locator("main i").count() == 0
