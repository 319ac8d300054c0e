"""Draws the results of `valora bench ops --json`: VaLoRA's figures 17 and 18, and the roofline of dense linears."""

import collections
import math
import statistics

from figures.style import legend_below, plt

# name in the JSON: (name in the legend, colour, marker)
CONTENDERS = {
    "valora": ("valora", "#d62728", "o"),
    "single_tile": ("valora, best single tile", "#ff9896", "v"),
    "aten": ("ATen", "#1f77b4", "s"),
    "onednn_prepacked": ("oneDNN, prepacked", "#17becf", "D"),
    "slora": ("S-LoRA's way", "#2ca02c", "^"),
    "punica": ("Punica's static tile", "#9467bd", "P"),
    "dlora": ("dLoRA's einsum", "#8c564b", "X"),
}


def measured(report, operation):
    return [m for m in report["measurements"] if m["operation"] == operation]


def contenders_of(measurements):
    present = {name for m in measurements for name in m["seconds"]}
    return [name for name in CONTENDERS if name in present]


def median(measurement, name):
    return measurement["seconds"][name]["p50"] if name in measurement["seconds"] else None


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def machine_text(report):
    m = report["machine"]
    threads = f"{m['threads']} thread{'s' if m['threads'] > 1 else ''}"
    bandwidth, arithmetic = m["bandwidth_bytes_per_second"] / 1e9, m["bf16_operations_per_second"] / 1e9
    return f"{threads}, {m['isa']}, {bandwidth:.0f} GB/s, {arithmetic:.0f} GFLOP/s bf16"


def latency(report):
    """Figure 17: an operator's latency over the step's tokens; one column per rank, one row per
    hidden size."""
    atmm = [m for m in measured(report, "atmm") if not m["shape"]["cold"] and m["shape"]["rank"] != "mixed"]
    if not atmm:
        return None
    ranks = sorted({m["shape"]["rank"] for m in atmm})
    sizes = sorted({m["shape"]["hidden"] for m in atmm})
    figure, grid = plt.subplots(len(sizes), len(ranks), figsize=(1.5 + 2.9 * len(ranks), 1.4 + 2.7 * len(sizes)),
                                sharex=True, sharey="row", squeeze=False, layout="constrained")
    for row, hidden in zip(grid, sizes):
        for axes, rank in zip(row, ranks):
            cell = [m for m in atmm if m["shape"]["hidden"] == hidden and m["shape"]["rank"] == rank]
            draw_latency(axes, cell)
            axes.set_title(f"rank {rank}, hidden {hidden}", fontsize=10)
        row[0].set_ylabel("median time, µs")
    for axes in grid[-1]:
        axes.set_xlabel("tokens")
    legend_below(figure, [grid[0][0]])
    figure.suptitle("What mixed adapters add to one linear: geometric means over popularities\n"
                    f"({machine_text(report)})", fontsize=11)
    return figure


def draw_latency(axes, measurements):
    for name in contenders_of(measurements):
        label, colour, marker = CONTENDERS[name]
        for phase, style in (("decode", "-"), ("prefill", "--")):
            times = collections.defaultdict(list)
            for m in measurements:
                if m["shape"]["phase"] == phase:
                    times[m["shape"]["tokens"]].append(median(m, name))
            tokens = sorted(times)
            ours = name == "valora"
            axes.plot(tokens, [1e6 * geometric_mean(times[t]) for t in tokens], style, color=colour, marker=marker,
                      markersize=4, linewidth=1.8 if ours else 1.1, zorder=3 if ours else 2,
                      label=label if phase == "decode" else None)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(True, which="major", alpha=0.25)
    prefills = [m["shape"]["tokens"] for m in measurements if m["shape"]["phase"] == "prefill"]
    decodes = [m["shape"]["tokens"] for m in measurements if m["shape"]["phase"] == "decode"]
    if prefills and decodes:
        border = math.sqrt(min(prefills) * max(decodes))
        axes.axvline(border, color="grey", linewidth=0.8, linestyle=":")
        for text, side in (("decode ", "right"), (" prefill", "left")):
            axes.text(border, 0.02, text, transform=axes.get_xaxis_transform(), ha=side, fontsize=8, color="grey")


def spread(report):
    """Figure 18: how an operator's latency varies over ranks and popularities at equal tokens and hidden size."""
    atmm = [m for m in measured(report, "atmm") if not m["shape"]["cold"]]
    if not atmm:
        return None
    phases = [p for p in ("decode", "prefill") if any(m["shape"]["phase"] == p for m in atmm)]
    figure, row = plt.subplots(1, len(phases), figsize=(1 + 5.5 * len(phases), 5.2), sharey=True,
                               squeeze=False, layout="constrained")
    for axes, phase in zip(row[0], phases):
        draw_spread(axes, [m for m in atmm if m["shape"]["phase"] == phase])
        axes.set_title(phase, fontsize=10)
    row[0][0].set_ylabel("time / valora's median\nat the same tokens and hidden size")
    figure.suptitle(f"Spread over ranks and popularities ({machine_text(report)})\n"
                    "boxes to the quartiles, whiskers from p5 to p95; below, p90 / p50 and p90 − p50", fontsize=11)
    return figure


def draw_spread(axes, measurements):
    groups = collections.defaultdict(list)
    for m in measurements:
        groups[m["shape"]["tokens"], m["shape"]["hidden"]].append(m)
    names = contenders_of(measurements)
    ratios = {name: [] for name in names}
    for group in groups.values():
        middle = statistics.median(median(m, "valora") for m in group)
        for name in names:
            ratios[name] += [median(m, name) / middle for m in group if median(m, name)]
    boxes = axes.boxplot([ratios[n] for n in names], whis=(5, 95), widths=0.6, patch_artist=True, showfliers=False,
                         medianprops={"color": "black"})
    for box, name in zip(boxes["boxes"], names):
        box.set_facecolor(CONTENDERS[name][1])
        box.set_alpha(0.7)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(True, axis="y", which="major", alpha=0.25)
    axes.axhline(1, color="grey", linewidth=0.8, linestyle=":")
    labels = [in_lines(CONTENDERS[n][0]) + "\n" + spread_over_groups(groups, n) for n in names]
    axes.set_xticks(range(1, len(names) + 1), labels, fontsize=8)


def in_lines(name):
    """Splits a name into two lines, so that the labels below line up."""
    first, _, rest = name.partition(" ")
    return f"{first}\n{rest}"


def p50_and_p90(group, name):
    times = [median(m, name) for m in group]
    return statistics.median(times), statistics.quantiles(times, n=10, method="inclusive")[8]


def spread_over_groups(groups, name):
    """Spread as in the summary's atmm_spread and atmm_fluctuation: over groups of at least three
    shapes."""
    spreads, fluctuations = [], []
    for group in groups.values():
        if len(group) < 3:
            continue
        p50, p90 = p50_and_p90(group, name)
        our_p50, our_p90 = p50_and_p90(group, "valora")
        spreads.append(p90 / p50)
        if p90 > p50 and our_p90 > our_p50:
            fluctuations.append((p90 - p50) / (our_p90 - our_p50))
    if not spreads or not fluctuations:
        return "-"
    return f"{geometric_mean(spreads):.2f}\n{geometric_mean(fluctuations):.1f} × ours"


def roofline(report):
    """Dense linears: achieved rate over operations per byte of memory traffic, below the machine's limits."""
    linear = measured(report, "linear")
    if not linear:
        return None
    dtypes = [d for d in ("bf16", "fp32") if any(m["shape"]["dtype"] == d for m in linear)]
    figure, row = plt.subplots(1, len(dtypes), figsize=(1 + 5.5 * len(dtypes), 4.8), sharey=True,
                               squeeze=False, layout="constrained")
    for axes, dtype in zip(row[0], dtypes):
        draw_roofline(axes, report["machine"], dtype, [m for m in linear if m["shape"]["dtype"] == dtype])
        axes.set_title(f"{dtype} linears, weights cold", fontsize=10)
        axes.set_xlabel("intensity, operations a byte")
    row[0][0].set_ylabel("rate, GFLOP/s")
    legend_below(figure, [row[0][0]])
    figure.suptitle(f"Roofline of dense linears ({machine_text(report)})", fontsize=11)
    return figure


def draw_roofline(axes, machine, dtype, measurements):
    intensities = [m["operations"] / m["bytes"] for m in measurements]
    low, high = 0.7 * min(intensities), 1.4 * max(intensities)
    peak = machine[f"{dtype}_operations_per_second"]
    steps = [low * (high / low) ** (i / 200) for i in range(201)]

    def roof(which):
        return [min(peak, machine[f"{which}bandwidth_bytes_per_second"] * i) / 1e9 for i in steps]

    axes.fill_between(steps, roof("lowest_"), roof("highest_"), color="black", alpha=0.12, linewidth=0,
                      label="limit, as the bandwidth drifted")
    axes.plot(steps, roof(""), color="black", linewidth=1, label="limit, at the last bandwidth")
    for name in reversed(contenders_of(measurements)):  # draws ours on top
        label, colour, marker = CONTENDERS[name]
        points = [(i, m["operations"] / median(m, name) / 1e9)
                  for i, m in zip(intensities, measurements) if median(m, name)]
        axes.scatter(*zip(*points), s=26, marker=marker, facecolors=colour if name == "valora" else "none",
                     edgecolors=colour, label=label, zorder=3)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(True, which="major", alpha=0.25)


def figures(report):
    """Yields the name and figure for each kind of measurement in the report."""
    for name, draw in (("latency", latency), ("spread", spread), ("roofline", roofline)):
        figure = draw(report)
        if figure is None:
            print(f"{name}: nothing of it was measured")
        else:
            yield name, figure
