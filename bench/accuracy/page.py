"""The table, the plots and the verdict of `make accuracy`."""

import statistics

LIMITS = {"windowed": None, "importance": -1.0, "importance + substitution": -1.5}  # points; None: within the noise
BLUE, GREY, INK = "#2f6f9f", "#c8c8c8", "#222222"


def summarize(runs):
    """For each data set and row: mean accuracy, the change against `exact` by seed, and the share of origin bytes saved."""
    exact = {(run["data"], run["seed"]): run for run in runs if run["row"] == "exact"}
    table = []
    for name, row in dict.fromkeys((run["data"], run["row"]) for run in runs):
        mine = [run for run in runs if (run["data"], run["row"]) == (name, row)]
        base = [exact[name, run["seed"]] for run in mine if (name, run["seed"]) in exact]
        changes = [100 * (run["accuracy"] - other["accuracy"]) for run, other in zip(mine, base)]
        saved = [1 - run["origin_bytes"] / other["origin_bytes"] for run, other in zip(mine, base)]
        table.append({
            "data": name,
            "row": row,
            "seeds": len(mine),
            "accuracy": 100 * statistics.mean(run["accuracy"] for run in mine),
            "change": statistics.mean(changes) if changes else 0.0,
            "error": statistics.stdev(changes) / len(changes) ** 0.5 if len(changes) > 1 else 0.0,
            "saved": 100 * statistics.mean(saved) if saved else 0.0,
            "requested": statistics.mean(run["requested"] for run in mine),
            "distinct": statistics.mean(run["distinct"] for run in mine),
            "substituted": statistics.mean(run["substituted"] for run in mine),
        })
    return table


def bar_of(entry):
    """The lowest change in points that passes, or None where nothing is promised."""
    if entry["row"] not in LIMITS:
        return None
    limit = LIMITS[entry["row"]]
    return -max(0.5, 3 * entry["error"]) if limit is None else limit


def verdict(table):
    """0 when every promise holds, else 1; says which does not."""
    broken = [entry for entry in table if bar_of(entry) is not None and entry["change"] < bar_of(entry)]
    for entry in broken:
        print(f"MISSED: {entry['data']}, {entry['row']}: {entry['change']:+.2f} points, bar {bar_of(entry):+.2f}")
    return 1 if broken else 0


def cells(entry):
    return (entry["data"], entry["row"], f"{entry['accuracy']:.2f}", f"{entry['change']:+.2f} ± {entry['error']:.2f}",
            "stated" if bar_of(entry) is None else f"≥ {bar_of(entry):+.2f}", f"{entry['saved']:.1f}",
            f"{entry['distinct']:.0f}", f"{entry['substituted']:.0f}")


HEAD = ("data", "contract", "accuracy %", "change, points", "bar", "origin bytes saved %", "distinct an epoch", "substituted")


def as_text(table):
    rows = [HEAD, *map(cells, table)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def as_markdown(table):
    lines = ["| " + " | ".join(HEAD) + " |", "| " + " | ".join("---" for _ in HEAD) + " |"]
    return "\n".join(lines + ["| " + " | ".join(cells(entry)) + " |" for entry in table])


def plot(entries, key, error, title, unit):
    """Horizontal bars, zero marked, as SVG."""
    left, width, height = 230, 420, 26
    low = min([0.0] + [entry[key] - (entry[error] if error else 0) for entry in entries])
    high = max([0.0] + [entry[key] + (entry[error] if error else 0) for entry in entries])
    scale = width / ((high - low) or 1)
    zero = left - low * scale
    total = 60 + height * len(entries)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{total}" '
           f'font-family="sans-serif" font-size="13" fill="{INK}">',
           '<rect width="100%" height="100%" fill="white"/>', f'<text x="10" y="22" font-weight="bold">{title}</text>']
    for number, entry in enumerate(entries):
        y, value = 40 + height * number, entry[key]
        x = min(zero, zero + value * scale)
        out.append(f'<text x="{left - 10}" y="{y + 15}" text-anchor="end">{entry["row"]}</text>')
        out.append(f'<rect x="{x:.1f}" y="{y + 3}" width="{abs(value) * scale:.1f}" height="{height - 10}" fill="{BLUE}"/>')
        if error and entry[error]:
            a, b = zero + (value - entry[error]) * scale, zero + (value + entry[error]) * scale
            out.append(f'<path d="M{a:.1f} {y + 11}H{b:.1f}" stroke="{INK}" stroke-width="2"/>')
        out.append(f'<text x="{left + width + 8}" y="{y + 15}">{value:+.2f}{unit}</text>')
    out.append(f'<path d="M{zero:.1f} 34V{total - 14}" stroke="{GREY}"/></svg>')
    return "\n".join(out) + "\n"


def write(path, table, arguments):
    """Replaces what stands between the marks of the page, and writes a plot for each data set and measure beside it."""
    figures = []
    for name in dict.fromkeys(entry["data"] for entry in table):
        entries = [entry for entry in table if entry["data"] == name]
        for key, error, title, unit in (("change", "error", "change of accuracy against exact, points", ""),
                                        ("saved", None, "origin bytes saved against exact", " %")):
            file = path.with_name(f"accuracy-{name}-{key}.svg")
            file.write_text(plot(entries, key, error, f"{name}: {title}", unit))
            figures.append(f"![{name}: {title}]({file.name})")
    text = path.read_text()
    begin, end = "<!-- begin measured -->", "<!-- end measured -->"
    head, tail = text.split(begin)[0], text.split(end)[1]
    said = f"{arguments.seeds} seeds, {arguments.epochs} epochs; ± is the standard error of the mean of the changes."
    path.write_text(f"{head}{begin}\n{said}\n\n{as_markdown(table)}\n\n" + "\n\n".join(figures) + f"\n{end}{tail}")
