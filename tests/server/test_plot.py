"""`tools/plot` on a sweep over two parameters: a panel for each value of the second, and a legend inside the
picture."""

import json
import pathlib
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
from figures import trace  # noqa: E402
from figures.style import plt  # noqa: E402

POLICIES = ["valora", "unmerged", "merged", "dLoRA system", "a policy with a name that is longer than all others"]


def rows(rates, skews):
    return [dict(policy=policy, rate=rate, skewness=skew, adapters=8, cameras=0, replicas=1, token_latency_seconds=(1 + at) * skew / 100,
                 ttft_seconds=dict(p99=rate), requests_per_second=rate - at, attainment=0.5)
            for at, policy in enumerate(POLICIES) for rate in rates for skew in skews]


def test_second_parameter_gets_panels(tmp_path):
    drawn = dict(trace.figures({"one": rows([3, 9], [0.3, 0.7, 0.95])}))
    for figure in drawn.values():
        assert [axes.get_title() for axes in figure.axes] == ["requests per second: 3", "requests per second: 9"]
        for axes in figure.axes:
            assert axes.get_xlabel() == trace.AXES["skewness"]
            for line in axes.lines:
                assert list(line.get_xdata()) == [0.3, 0.7, 0.95]  # without duplicates
        (legend,) = figure.legends
        figure.canvas.draw()
        box, page = legend.get_window_extent(), figure.bbox
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0
        assert len(legend.get_texts()) == len(POLICIES)
    tops = {name: max(drawn[name].axes[0].lines, key=lambda line: line.get_zorder()).get_label() for name in ("token_latency", "throughput")}
    assert set(tops.values()) == {"valora"}  # the lowest latency, and the highest throughput
    for figure in drawn.values():
        plt.close(figure)


def test_third_parameter_is_refused_and_a_dependent_rate_is_not_counted():
    with pytest.raises(SystemExit, match="run them separately"):
        trace.swept([row | {"adapters": adapters} for row in rows([3, 9], [0.3, 0.7]) for adapters in (8, 9)])
    assert trace.swept([row | {"rate": 10 * row["skewness"]} for row in rows([3], [0.3, 0.7])]) == ("skewness", None)
    assert trace.swept(rows([3, 4, 9], [0.5])) == ("rate", None)
    assert trace.swept(rows([3], [0.5])) == (None, None)


def test_plot_tool_writes_files(tmp_path):
    report = tmp_path / "trace.json"
    report.write_text(json.dumps(rows([3, 9], [0.3, 0.7])))
    subprocess.run([sys.executable, TOOLS / "plot", report, "--out", tmp_path, "--format", "svg"], check=True, capture_output=True)
    assert {path.stem for path in tmp_path.glob("*.svg")} == {"token_latency", "first_token", "throughput", "attainment"}
