"""Draws the results of `valora bench memory --json` or `memory-live --json` as in FastLibra's figures 11, 15 and
16: time to the first token and per output token, peak rate, and KV that no request can use."""

from figures.style import legend_below, plt

# variant: colour, in the order of the bars
VARIANTS = {
    "whole": "#d62728",
    "benefit": "#2ca02c",
    "no dependencies": "#ff7f0e",
    "lru": "#9467bd",
    "no reward": "#8c564b",
    "fixed share": "#1f77b4",
    "no history": "#7f7f7f",
}
# title, unit, value, logarithmic
MEASURES = [
    ("time to first token", "ms", lambda run: 1e3 * run["ttft_seconds"], True),
    ("time per output token", "ms", lambda run: 1e3 * run["tpot_seconds"], False),
    ("rate up to which the first token takes less than 0.5 s", "requests per second", lambda run: run["peak_rate"] or 0, False),
    ("KV without its adapter", "% of the KV in the pool", lambda run: 100 * run["invalid_kv"], False),
]


def scenarios_of(report):
    """The list of scenarios, or None for another kind of report."""
    scenarios = report.get("scenarios") if isinstance(report, dict) else report
    return scenarios if scenarios and all("runs" in scenario for scenario in scenarios) else None


def label_of(scenario, rates):
    text = f"{scenario['application']}\n{scenario['popularity']} {scenario['adapters']}"
    return f"{text}\n{scenario['rate']:g}/s" if rates else text


def draw(axes, scenarios, value):
    present = {run["variant"] for scenario in scenarios for run in scenario["runs"]}
    variants = [variant for variant in VARIANTS if variant in present]
    width = 0.8 / len(variants)
    for i, variant in enumerate(variants):
        heights = [next((value(run) for run in scenario["runs"] if run["variant"] == variant), 0) for scenario in scenarios]
        places = [at + (i - (len(variants) - 1) / 2) * width for at in range(len(scenarios))]
        axes.bar(places, heights, width, color=VARIANTS[variant], label=variant)
    axes.grid(True, axis="y", alpha=0.25)
    axes.set_axisbelow(True)


def figure(scenarios):
    measures = [measure for measure in MEASURES
                if any(measure[2](run) > 0 for scenario in scenarios for run in scenario["runs"])]
    rates = len({scenario["rate"] for scenario in scenarios}) > 1
    drawn, grid = plt.subplots(len(measures), 1, figsize=(2.5 + 1.1 * len(scenarios), 2.4 * len(measures)), squeeze=False,
                               sharex=True, layout="constrained")
    for axes, (title, unit, value, logarithmic) in zip(grid[:, 0], measures):
        draw(axes, scenarios, value)
        axes.set_title(title, fontsize=10)
        axes.set_ylabel(unit)
        if logarithmic:
            axes.set_yscale("log")
    grid[-1, 0].set_xticks(range(len(scenarios)), [label_of(scenario, rates) for scenario in scenarios], fontsize=8)
    legend_below(drawn, [grid[0, 0]])
    return drawn
