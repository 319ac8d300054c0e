"""Draws the results of `valora bench trace --json`: VaLoRA's figures 14, 16 and 19 to 24, table 3, and S-LoRA's
attainment. The drawing depends on which parameters differ between the points of a sweep; without a sweep it is
bars."""

from figures.style import legend_below, plt

# policy: (colour, marker), in the order of the legend
POLICIES = {
    "valora": ("#d62728", "o"),
    "valora without prefix cache": ("#ff9896", "v"),
    "unmerged": ("#1f77b4", "s"),
    "merged": ("#7f7f7f", "X"),
    "mixture": ("#ff7f0e", "D"),
    "dlora": ("#8c564b", "P"),
    "vllm": ("#bcbd22", "p"),
    "dLoRA system": ("#c49c94", "d"),
    "Punica system": ("#9467bd", "<"),
    "S-LoRA system": ("#2ca02c", "^"),
}
AXES = {"rate": "requests per second", "skewness": "share of the most popular adapter", "adapters": "adapters",
        "cameras": "cameras", "replicas": "servers"}
MOST_COLUMNS = 3
MODES = {"unmerged": "#1f77b4", "mixture": "#ff7f0e", "merged": "#d62728"}


def swept(rows):
    """The fields in which the points differ: the one for the axis, and the one with a panel per value; None for
    each that is missing. The axis is the field with more values."""
    counts = {field: len({row[field] for row in rows}) for field in AXES}
    # Fields other than "rate" may come with a rate that follows from them.
    fields = sorted((field for field in AXES if counts[field] > 1), key=lambda field: (field == "rate", -counts[field]))
    if "rate" in fields and len(fields) > 1 and follows(rows, "rate", fields[0]):
        fields.remove("rate")
    if len(fields) > 2:
        raise SystemExit(f"a figure has an axis and panels, but the points differ in {', '.join(fields)}; run them separately")
    fields.sort(key=lambda field: -counts[field])
    return (*fields, None, None)[:2]


def follows(rows, field, other):
    """True if the value of `other` determines the value of `field`."""
    values = {}
    for row in rows:
        values.setdefault(row[other], set()).add(row[field])
    return all(len(found) == 1 for found in values.values())


def policies_of(rows):
    present = {row["policy"] for row in rows}
    return [policy for policy in POLICIES if policy in present] + sorted(present - POLICIES.keys())


def parts_of(traces):
    """Yields the panels: (title, axis, rows)."""
    for name, rows in traces.items():
        axis, other = swept(rows)
        for value in sorted({row[other] for row in rows}) if other else [None]:
            title = name if other is None else f"{AXES[other]}: {value:g}"
            if other and len(traces) > 1:
                title = f"{name}, {title}"
            yield title, axis, [row for row in rows if other is None or row[other] == value]


def panels(titles):
    columns = min(MOST_COLUMNS, len(titles))
    lines = -(-len(titles) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(1.2 + 4.2 * columns, 0.6 + 4 * lines), squeeze=False, layout="constrained")
    flat = list(grid.flat)
    for axes in flat[len(titles):]:
        axes.remove()
    for axes, title in zip(flat, titles):
        axes.set_title(title, fontsize=10)
        axes.grid(True, alpha=0.25)
    return figure, flat[:len(titles)]


def draw_lines(axes, rows, field, value, high_is_good):
    """Draws lines with the best one on top."""
    lines = {policy: sorted((row[field], value(row)) for row in rows if row["policy"] == policy) for policy in policies_of(rows)}
    means = {policy: sum(height for _, height in points) / len(points) for policy, points in lines.items()}
    worst_first = sorted(lines, key=means.get, reverse=not high_is_good)
    for policy, points in lines.items():
        colour, marker = POLICIES.get(policy, ("black", "."))
        axes.plot(*zip(*points), color=colour, marker=marker, markersize=5, linewidth=1.3, label=policy,
                  zorder=3 + worst_first.index(policy) / len(lines))
    axes.set_xlabel(AXES[field])


def draw_bars(axes, rows, value):
    policies = policies_of(rows)
    heights = [value(next(row for row in rows if row["policy"] == policy)) for policy in policies]
    bars = axes.barh(range(len(policies)), heights, color=[POLICIES.get(policy, ("black",))[0] for policy in policies])
    axes.bar_label(bars, fmt="%.4g", padding=3, fontsize=8)
    axes.set_yticks(range(len(policies)), policies)
    axes.invert_yaxis()
    axes.margins(x=0.15)


def comparison(traces, title, unit, value, largest=None, high_is_good=False):
    """One value of every row: lines over the sweep, or bars."""
    parts = list(parts_of(traces))
    figure, grid = panels([name for name, _, _ in parts])
    highest = max(value(row) for _, _, rows in parts for row in rows)
    for axes, (_, field, rows) in zip(grid, parts):
        if field is None:
            draw_bars(axes, rows, value)
            axes.set_xlabel(unit)
            continue
        draw_lines(axes, rows, field, value, high_is_good)
        axes.set_ylabel(unit)
        # One scale, so that the panels of a sweep can be compared.
        axes.set_ylim(bottom=0, top=largest or (1.05 * highest if len(traces) == 1 and highest > 0 else None))
    legend_below(figure, [axes for axes, (_, field, _) in zip(grid, parts) if field])
    figure.suptitle(title, fontsize=11)
    return figure


def timeline(name, rows):
    """Figure 20: the modes over time, one row per policy, and each merge with its cost."""
    rows = [row for row in rows if "timeline" in row]
    figure, grid = plt.subplots(len(rows), 1, figsize=(9, 1 + 2 * len(rows)), sharex=True, squeeze=False, layout="constrained")
    for axes, row in zip(grid[:, 0], rows):
        width = row["timeline"]["interval_seconds"]
        intervals = row["timeline"]["intervals"]
        times = [i * width for i in range(len(intervals))]
        below = [0.0] * len(intervals)
        for mode, colour in MODES.items():
            shares = [interval["mode_seconds"][mode] / width for interval in intervals]
            axes.bar(times, shares, width, bottom=below, align="edge", color=colour, label=mode, linewidth=0)
            below = [a + b for a, b in zip(below, shares)]
        axes.set_ylabel("share of the time")
        axes.set_title(f"{row['policy']}: {row['token_latency_seconds'] * 1e3:.1f} ms per token, {row['merges']} merges", fontsize=10)
        writes = axes.twinx()
        if marks := row["timeline"]["writes"]:
            writes.stem([w["at"] for w in marks], [w["seconds"] * 1e3 for w in marks], linefmt="k-", markerfmt="k.",
                        basefmt=" ", label="merge")
        writes.set_ylim(bottom=0)
        writes.set_ylabel("ms of a merge")
    grid[-1][0].set_xlabel("seconds")
    legend_below(figure, [grid[0][0]])
    figure.suptitle(f"{name}: modes over time", fontsize=11)
    return figure


def print_replicas(name, rows):
    """Table 3: throughput by number of servers."""
    counts = sorted({row["replicas"] for row in rows})
    print(f"\n{name}, requests per second\n")
    print("| policy | " + " | ".join("1 server" if count == 1 else f"{count:g} servers" for count in counts) + " |")
    print("|---|" + "---|" * len(counts))
    for policy in policies_of(rows):
        rates = {row["replicas"]: row["requests_per_second"] for row in rows if row["policy"] == policy}
        print(f"| {policy} | " + " | ".join(f"{rates[count]:.2f}" for count in counts) + " |")
    print()


def figures(traces):
    """Yields the name and figure of each comparison. traces: rows by file name."""
    for name, rows in traces.items():
        if swept(rows) == ("replicas", None):
            print_replicas(name, rows)
    yield "token_latency", comparison(traces, "Average token latency", "ms per token", lambda row: 1e3 * row["token_latency_seconds"])
    yield "first_token", comparison(traces, "99th percentile of the time to the first token", "seconds",
                                    lambda row: row["ttft_seconds"]["p99"])
    yield "throughput", comparison(traces, "Throughput", "requests per second", lambda row: row["requests_per_second"],
                                   high_is_good=True)
    yield "attainment", comparison(traces, "Requests whose first token came in time", "%", lambda row: 100 * row["attainment"], 102, True)
    for name, rows in traces.items():
        if any("timeline" in row for row in rows):
            yield f"timeline_{name}", timeline(name, rows)
