"""Files of `valora bench trace --json`, drawn as charts."""

import json

import pytest

from conftest import trace_rows


@pytest.fixture
def charts(server, open_page, tmp_path):
    page = open_page(server, "/#now")
    page.get_by_role("link", name="Charts").click()

    def open_file(content):
        file = tmp_path / "trace.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        page.get_by_label("Results of valora bench trace").set_input_files(file)
        return page

    return open_file


def test_each_value_of_a_second_parameter_gets_a_chart(charts):
    measured = trace_rows([3, 9], [0.3, 0.7, 0.95])
    measured[0]["timeline"] = dict(interval_seconds=2, intervals=[dict(mode_seconds=dict(unmerged=1, merged=0.5))] * 3, writes=[dict(at=1, seconds=0.01)])
    page = charts(measured)
    latency = page.get_by_role("region", name="Average token latency", exact=True)
    latency.locator("svg").nth(1).wait_for()
    assert latency.locator("h3").all_text_contents() == ["requests per second: 3", "requests per second: 9"]
    assert [len(line.split()) for line in latency.locator("polyline").evaluate_all("lines => lines.map((line) => line.getAttribute('points'))")] == [3] * 4
    assert latency.locator("svg").first.locator("g").last.get_attribute("class") == "line series-0"  # the best one is on top
    assert page.get_by_role("region", name="Modes over time").locator("rect").count() == 7
    assert page.evaluate("window.hit") is None and page.locator("main img").count() == 0


THREE_PARAMETERS = trace_rows([1, 2], [0.3, 0.5]) + [trace_rows([1], [0.3])[0] | {"adapters": 9}]


@pytest.mark.parametrize("content, said", [("{", "is not JSON"), ("[]", "is not what valora bench"), ([{"policy": "x"}], "is not what valora bench"),
                                           (THREE_PARAMETERS, "differ in")])
def test_other_files_are_refused(charts, content, said):
    page = charts(content)
    page.locator(".fault", has_text=said).wait_for()
    assert page.locator("svg.chart").count() == 0
