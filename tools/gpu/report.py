"""Formats the results of tools/gpu/run as Markdown tables."""

COLUMNS = {"decoder": "decoder", "setting": "setting", "clients": "clients", "adapters": "adapters", "tpot_ms": "ms per token", "floor_ms": "floor, ms",
           "over_floor": "of the floor", "ttft_ms": "first token, ms", "tokens_per_second": "tokens/s",
           "answers": "answers", "failed": "failed"}


def number(value):
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(rows):
    columns = [name for name in COLUMNS if any(name in row for row in rows)]
    lines = ["| " + " | ".join(COLUMNS[name] for name in columns) + " |", "|" + "--:|" * len(columns)]
    return lines + ["| " + " | ".join(number(row.get(name, "")) for name in columns) + " |" for row in rows]


def section(name, result):
    lines = [f"## {name}: {result['status']}" + (f" in {result['seconds']} s" if "seconds" in result else ""), ""]
    if "reason" in result:
        lines += [result["reason"], ""]
    figures = result.get("figures")
    if isinstance(figures, list):
        lines += table(figures)
    elif figures and "lines" in figures:
        lines += ["```", *figures["lines"], "```"]
    elif figures:
        lines += [f"- {key}: {number(value)}" for key, value in figures.items()]
    return lines + [""]


def write_report(path, results):
    path.write_text("\n".join(line for name, result in results.items() for line in section(name, result)))
