"""The table and the verdict of `make accuracy`, and their section of the page."""

import math
import platform
import statistics
import subprocess

import data
import train

EXACT, NOISE = "exact", "exact, other shuffle"
# In points: the promised lower bound of a row's accuracy change against exact. The promise is held if the whole 95 %
# confidence interval is above the bound.
LIMITS = {"importance (IIS)": -0.5, "importance (IIS + L)": -1.0, "importance (IIS + L), β = 1": -1.0,
          "importance, IOWA": -0.5, "importance, IOWA + remove": -0.7, "importance, IOWA + repeat": -0.7,
          "replicate, r = 1": -0.8}
# Near-duplicates in glyphs are bold and light letters of one font family: leaving them out costs accuracy.
NOT_PROMISED = {("glyphs", "importance, IOWA + remove"), ("glyphs", "importance, IOWA + repeat")}
WITHIN_NOISE = ("windowed",)
INTERVAL = 0.25  # points: wanted half width of the interval; the page names the rows with a wider one
HELD, WIDE, BROKEN = "held", "interval too wide", "broken"
# Shares of time spent waiting: compute-bound below the first, I/O-bound from the second; between them the sidecar keeps
# its verdict (docs/design/sampling-importance.md).
COMPUTE_BELOW, IO_FROM = 0.05, 0.10
BEGIN, END = "<!-- begin measured -->", "<!-- end measured -->"
# 97.5 % quantile of Student's t by degrees of freedom; for others the next smaller entry is used.
T_975 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201,
         12: 2.179, 13: 2.160, 14: 2.145, 19: 2.093, 29: 2.045}


def half_width(values):
    """Half of the 95 % confidence interval of the mean; NaN for fewer than two values."""
    if len(values) < 2:
        return math.nan
    quantile = T_975[max(known for known in T_975 if known < len(values))]
    return quantile * statistics.stdev(values) / math.sqrt(len(values))


def origin_share(runs):
    """Bytes read from the origin per epoch, as a share of the data set."""
    return statistics.mean(run["origin_bytes"] / run["bytes"] / len(run["reports"]) for run in runs)


def entry_of(name, row, runs, exact):
    """A row of the table. Changes are against `exact` with the same seed: same initial weights, same test images."""
    final = [run["curve"][-1] for run in runs]
    changes = [run["curve"][-1] - exact[run["seed"]]["curve"][-1] for run in runs if run["seed"] in exact]
    saved = [1 - run["origin_bytes"] / exact[run["seed"]]["origin_bytes"] for run in runs if run["seed"] in exact]
    reports = [report for run in runs for report in run["reports"]]
    samples = runs[0]["samples"]
    epochs = len(reports) * samples
    return {
        "data": name,
        "row": row,
        "seeds": len(runs),
        "accuracy": statistics.mean(final),
        "spread": statistics.stdev(final) if len(final) > 1 else math.nan,
        "changes": changes,
        "change": statistics.mean(changes) if changes else math.nan,
        "interval": half_width(changes),
        "origin": origin_share(runs),
        "saved": 100 * statistics.mean(saved) if saved else math.nan,
        "requested": sum(report["requested"] for report in reports) / epochs,
        "distinct": sum(report["distinct"] for report in reports) / epochs,
        "distinct_min": min(report["distinct"] for report in reports) / samples,
        "substituted": sum(report["substituted"] for report in reports) / epochs,
        "bottleneck": bottleneck_of(runs),
    }


def summarize(runs):
    """One entry per data set and row, in the order of the rows."""
    table = []
    for name in data.SETS:
        mine = {row: [run for run in runs if (run["data"], run["row"]) == (name, row)] for row in train.ROWS}
        exact = {run["seed"]: run for run in mine[EXACT]}
        table += [entry_of(name, row, found, exact) for row, found in mine.items() if found]
    noise = noise_of(table)
    for entry in table:
        entry["bar"] = bar_of(entry, noise)
    return table


def noise_of(table):
    """Standard deviation, in points, of the change that reshuffling alone causes; None if it was not measured."""
    changes = [change for entry in table if entry["row"] == NOISE for change in entry["changes"]]
    return math.sqrt(statistics.mean(change**2 for change in changes)) if len(changes) > 1 else None


def bar_of(entry, noise):
    """The limits of the mean change that the row promises; None: the row promises none."""
    if (entry["data"], entry["row"]) in NOT_PROMISED:
        return None
    if entry["row"] in LIMITS:
        return LIMITS[entry["row"]], math.inf
    if entry["row"] in WITHIN_NOISE and noise is not None:
        width = 3 * noise / math.sqrt(entry["seeds"])
        return -width, width
    return None


def state(entry):
    """HELD, WIDE or BROKEN; None for a row without a bar (exact) or with fewer than two seeds. The noise row's bar is
    compared with the row's mean alone; a promised bound is compared with the interval."""
    if entry["bar"] is None or math.isnan(entry["interval"]):
        return None
    low, high = entry["bar"]
    if high != math.inf:
        return HELD if low <= entry["change"] <= high else BROKEN
    if entry["change"] - entry["interval"] >= low:
        return HELD
    return BROKEN if entry["change"] + entry["interval"] < low else WIDE


def undecided(table):
    """The rows with too wide an interval, in any data set."""
    return list(dict.fromkeys(entry["row"] for entry in table if state(entry) == WIDE))


def verdict(table):
    """Prints the rows whose bars are not held, and the counts. 1: a bar is broken; 2: none is, but an interval is too
    wide to tell; 0: all bars are held."""
    states = [state(entry) for entry in table]
    for entry, found in zip(table, states):
        if found in (WIDE, BROKEN):
            print(f"{found.upper()}: {entry['data']}, {entry['row']}: {entry['change']:+.2f} ± {entry['interval']:.2f} "
                  f"points, bar {bar_text(entry)}")
    held, wide, broken = (states.count(wanted) for wanted in (HELD, WIDE, BROKEN))
    print(f"{held} bars held, {broken} broken, {wide} with too wide an interval")
    return 1 if broken else 2 if wide else 0


def bar_text(entry):
    if entry["bar"] is None:
        return ""
    low, high = entry["bar"]
    return f"≥ {low:+.1f}" if high == math.inf else f"± {high:.2f}"


def verdict_text(entry):
    return {None: "", HELD: HELD, WIDE: WIDE, BROKEN: f"**{BROKEN}**"}[state(entry)]


def bottleneck_of(runs):
    """The bottleneck for which family iowa scored samples, and its share of the epochs; "" for other rows. Applies the
    sidecar's rule to the shares of waiting that the loader sent; before the first share it is I/O."""
    bound = []
    for run in runs:
        verdict = "I/O"
        for share in run.get("waiting", []):
            verdict = "compute" if share < COMPUTE_BELOW else "I/O" if share >= IO_FROM else verdict
            bound.append(verdict)
    if not bound:
        return ""
    most = max(sorted(set(bound)), key=bound.count)
    return most if bound.count(most) == len(bound) else f"{most} {100 * bound.count(most) / len(bound):.0f} %"


def plus_minus(width):
    return "" if math.isnan(width) else f" ± {width:.2f}"


def cells(entry):
    is_exact = entry["row"] == EXACT
    return (entry["row"], f"{entry['accuracy']:.2f}" + plus_minus(entry["spread"]),
            "" if is_exact else f"{entry['change']:+.2f}" + plus_minus(entry["interval"]), bar_text(entry), verdict_text(entry),
            f"{entry['origin']:.3f}", "" if is_exact else f"{entry['saved']:+.1f}",
            f"{entry['requested']:.3f}", f"{entry['distinct']:.3f}", f"{entry['distinct_min']:.3f}",
            f"{entry['substituted']:.3f}", entry["bottleneck"])


HEAD = ("contract", "accuracy, %", "change, points", "bar", "", "origin bytes", "saved, %", "drawn", "distinct", "least",
        "substituted", "bottleneck")


def widths_text(entries):
    """The rows whose interval is wider than wanted; a row's bar may still be held."""
    wide = [entry["row"] for entry in entries if entry["row"] != EXACT and not entry["interval"] <= INTERVAL]
    return f"Intervals wider than ± {INTERVAL:.2f} points: {'; '.join(wide) if wide else 'none'}."


def as_text(table):
    rows = [("data", *HEAD), *((entry["data"], *cells(entry)) for entry in table)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def as_markdown(head, rows):
    """A Markdown table; all columns but the first are aligned to the right."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine():
    """Hardware and software of the run: processor, cores, versions."""
    import numpy
    import torch

    with open("/proc/cpuinfo") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    described = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=10"], capture_output=True, text=True)
    return (f"{len(models)} cores of {models[0] if models else platform.machine()}, {platform.system()} "
            f"{platform.release()}, Python {platform.python_version()}, torch {torch.__version__}, numpy "
            f"{numpy.__version__}, one thread; revision {described.stdout.strip() or 'unknown'}.")


def write(path, table, runs, refused):
    """Replaces the text between the page's markers, and draws the plots beside the page."""
    import plots

    noise = noise_of(table)
    parts = []
    if noise is not None:
        parts.append(f"Noise of a shuffle: {noise:.2f} points for one seed (standard deviation of the change that another "
                     f"shuffle under `exact` makes, {sum(entry['row'] == NOISE and entry['seeds'] for entry in table)} "
                     "pairs).")
    for name in data.SETS:
        entries = [entry for entry in table if entry["data"] == name]
        if entries:
            seeds = sorted({entry["seeds"] for entry in entries})
            parts += [f"### {name}", as_markdown(HEAD, map(cells, entries)),
                      f"Seeds: {' or '.join(map(str, seeds))}; epochs: {train.EPOCHS[name]}. {widths_text(entries)}"]
    parts += [f"Not in the table: {row}. The sidecar refuses it: {why}" for row, why in refused.items()]
    put(path, parts, plots.draw(path, table, runs))


def put(path, parts, files):
    """Writes these paragraphs, the plots [(file, title)] and the machine's description between the page's markers."""
    parts = [*parts, *(f"![{title}]({file.name})" for file, title in files), f"Measured on {machine()}"]
    text = path.read_text()
    body = "\n\n".join(parts)
    path.write_text(f"{text.split(BEGIN)[0]}{BEGIN}\n{body}\n{END}{text.split(END)[1]}")
