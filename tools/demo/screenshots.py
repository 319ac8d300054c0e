#!/usr/bin/env python3
"""Takes screenshots of the page (docs/page.md), with the demo model, using Debian's Chromium.

    .venv/bin/python tools/demo/screenshots.py --program build/valora --output shots

Writes VIEW-WIDTH-COLOURS.png for each view, at 1280 and 390 pixels, light and dark.
"""

import argparse
import pathlib
import subprocess
import tempfile
import threading
import urllib.request

from playwright.sync_api import sync_playwright

DEMO = pathlib.Path(__file__).resolve().parents[2] / "demo"
SHOTS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


def serve(program):
    """Starts a server of the demo; returns (process, address)."""
    command = [program, "--log-level", "warning", "serve", "--port", "0", "--model", DEMO / "model", "--served-model-name", "valora-demo",
               "--manifest", DEMO / "manifest.json", "--allow-runtime-lora-updating", "--pool-memory", "64M",
               "--adapter-upload-dir", tempfile.mkdtemp(prefix="valora-shots-"),
               "--scheduling-policy", "valora"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "serving" in line:
            return process, line.split()[1].removesuffix("/v1")
    raise SystemExit("screenshots: the server did not start")


def keep_busy(address, stop):
    """Sends requests, so that the view of current activity has something to show."""
    turn = 0
    while not stop.is_set():
        model = ["digits", "traffic", "mood", "valora-demo", "catalogue"][turn % 5]
        body = '{"model": "%s", "messages": [{"role": "user", "content": "Write the entry %d."}], "max_tokens": 60, "head": ""}' % (model, turn)
        request = urllib.request.Request(address + "/v1/chat/completions", body.encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request).read()
        turn += 1


def shoot_try(page, path):
    for name in ("coins", "valora-demo", "defects"):
        page.get_by_role("combobox", name="Add a model").fill(name)
        page.locator(".options [role=option]").first.click()
    page.get_by_label("Pictures and clips", exact=True).set_input_files(DEMO / "samples" / "coins-1.png")
    page.get_by_label("Question").fill("Find all coins and cards.")
    page.get_by_role("button", name="Ask").click()
    page.locator(".lane").nth(2).locator(".measures", has_text="in all").wait_for()
    page.locator(".lane").nth(1).locator(".measures", has_text="in all").wait_for()
    page.wait_for_timeout(500)
    page.screenshot(path=path)


def trace(program):
    """A file of `bench trace` with assumed costs, two parameters and the modes over time."""
    file = pathlib.Path(tempfile.mkdtemp(prefix="valora-shots-")) / "trace.json"
    file.write_text(subprocess.run(
        [program, "bench", "trace", "--json", "--simulate", "a100", "--rank", "64", "--adapters", "10", "--rate", "3,9", "--seconds", "30",
         "--answer-max", "200", "--skewness", "0.3,0.7,0.95", "--policies", "valora,unmerged,merged,dlora", "--timeline", "1"],
        check=True, capture_output=True, text=True).stdout)
    return file


def shoot(browser, address, output, width, colours, measured):
    context = browser.new_context(viewport={"width": width, "height": 844 if width < 600 else 860}, color_scheme=colours,
                                  device_scale_factor=1 if width > 600 else 2)
    page = context.new_page()
    views = {"empty": ("/", ".empty button"), "adapters": ("/#adapters", "tbody tr"), "now": ("/#now", ".panels .figures"),
             "docs": ("/docs", ".endpoint")}
    for view, (path, ready) in views.items():
        page.goto(address + path)
        page.locator(ready).first.wait_for()
        page.wait_for_timeout(4000 if view == "now" else 300)
        page.screenshot(path=output / f"{view}-{width}-{colours}.png")
    page.goto(address + "/#adapters")
    page.locator("tbody tr").first.wait_for()
    page.get_by_text("Load an adapter").click()
    page.get_by_label("this computer", exact=True).check()
    page.locator(".load-form").scroll_into_view_if_needed()
    page.screenshot(path=output / f"load-{width}-{colours}.png")
    page.goto(address + "/#charts")
    page.get_by_label("Results of valora bench trace").set_input_files(measured)
    page.locator(".chart").first.wait_for()
    page.screenshot(path=output / f"charts-{width}-{colours}.png", full_page=True)
    page.goto(address + "/#try")
    page.locator(".empty button").first.wait_for()
    shoot_try(page, output / f"try-{width}-{colours}.png")
    context.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("shots"))
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--only", help="one of them, as 1280-light")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    measured = trace(arguments.program)
    process, address = serve(arguments.program)
    stop = threading.Event()
    load = threading.Thread(target=keep_busy, args=(address, stop))
    load.start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
            for width, colours in SHOTS:
                if arguments.only in (None, f"{width}-{colours}"):
                    shoot(browser, address, arguments.output, width, colours, measured)
            browser.close()
    finally:
        stop.set()
        load.join()
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
