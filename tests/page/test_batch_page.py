"""The view of batches: shown if the server takes them, with their progress, and their files to save."""

import json

from conftest import demo_server, until

URL = "/v1/completions"


def begin(server, rows):
    """A batch of these bodies; returns its id."""
    lines = "\n".join(json.dumps({"custom_id": f"row-{i}", "method": "POST", "url": URL, "body": body}) for i, body in enumerate(rows))
    parts = {"purpose": "batch", "file": lines}
    form = "".join(f'--b\r\nContent-Disposition: form-data; name="{name}"; filename="a"\r\n\r\n{text}\r\n' for name, text in parts.items())
    status, text = server.request("POST", "/v1/files", (form + "--b--").encode(), {"Content-Type": "multipart/form-data; boundary=b"})
    assert status == 200, text
    return server.post("/v1/batches", {"input_file_id": json.loads(text)["id"], "endpoint": URL})["id"]


def row_of(page, batch):
    return page.locator(f'tbody tr[data-name="{batch}"]')


def cells(page, batch):
    titles = page.locator("thead th").all_text_contents()
    return dict(zip(titles[1:], row_of(page, batch).locator("td").all_text_contents()))


def saved(page, label):
    with page.expect_download() as download:
        page.get_by_role("button", name=label).click()
    return [json.loads(line) for line in open(download.value.path())]


def test_progress_is_shown_and_a_batch_cancelled(server, open_page):
    long = begin(server, [{"prompt": "Hi", "max_tokens": 300, "ignore_eos": True}] * 400)
    page = open_page(server, "/")
    page.get_by_role("link", name="Batches").click()
    row_of(page, long).get_by_text("in progress").wait_for()
    row_of(page, long).get_by_text("/s").wait_for()
    until(page, f"document.querySelector('tr[data-name={long}] progress')?.value > 0")
    shown = cells(page, long)
    assert shown["Rows"].endswith("of 400") and shown["Endpoint"] == URL and page.locator(".totals dd").first.text_content() == "1"
    page.get_by_role("button", name=f"Cancel {long}").click()
    row_of(page, long).get_by_text("cancelled").wait_for()
    counts = json.loads(server.request("GET", f"/v1/batches/{long}")[1])["request_counts"]
    assert int(cells(page, long)["Errors"]) == counts["failed"] > 0
    rows = saved(page, f"Save the errors of {long}")
    assert len(rows) == counts["failed"] and rows[0]["error"]["code"] == "batch_cancelled"


def test_a_list_that_arrives_while_cancel_is_pressed_loses_no_click(server, open_page):
    long = begin(server, [{"prompt": "Hi", "max_tokens": 300, "ignore_eos": True}] * 400)
    page = open_page(server, "/#batches")
    cancel, lists, held = page.get_by_role("button", name=f"Cancel {long}"), "**/v1/batches?limit=*", []
    cancel.wait_for()
    page.route(lists, lambda route: route.continue_() if held else held.append(route))
    while not held:
        page.wait_for_timeout(20)
    cancel.hover()
    page.mouse.down()
    with page.expect_response(lists):
        held[0].continue_()
    page.wait_for_timeout(300)
    page.mouse.up()
    row_of(page, long).get_by_text("cancelled").wait_for()


def test_the_list_goes_on_while_a_row_has_the_keyboard_focus(server, open_page):
    long = begin(server, [{"prompt": "Hi", "max_tokens": 300, "ignore_eos": True}] * 400)
    page = open_page(server, "/#batches")
    cancel = page.get_by_role("button", name=f"Cancel {long}")
    cancel.focus()
    server.post(f"/v1/batches/{long}/cancel", {})
    row_of(page, long).get_by_text("cancelled").wait_for()


def test_ended_batches_keep_their_answers_and_faults(server, open_page):
    short, wrong = begin(server, [{"prompt": "Hi", "max_tokens": 2}] * 3), begin(server, [{"prompt": "Hi", "stream": True}])
    page = open_page(server, "/#batches")
    row_of(page, short).get_by_text("completed").wait_for()
    row_of(page, wrong).get_by_text("failed").wait_for()
    assert "stream" in row_of(page, wrong).locator(".badge").get_attribute("title")
    assert cells(page, short)["Rows"] == "3 of 3" and "/s" in cells(page, short)["Rate"] and cells(page, short)["Time"].startswith("ended")
    assert {row["custom_id"] for row in saved(page, f"Save the answers of {short}")} == {"row-0", "row-1", "row-2"}
    assert page.get_by_role("button", name=f"Cancel {short}").count() == 0


def test_views_are_for_servers_that_take_batches_and_streams(open_page):
    made = demo_server()
    try:
        page = open_page(made, "/#batches")
        page.get_by_text("start it with --batches-dir DIR").wait_for()
        page.goto(f"{made.url}/#streams")
        page.get_by_text("start it with --streams-dir DIR").wait_for()
        for view in ("Batches", "Streams"):
            assert not page.get_by_role("link", name=view).is_visible()
    finally:
        made.stop()
