#!/usr/bin/env python3
"""Writes the tables and the plot of docs/benchmarks.md's section on other programs from docs/benchmarks-peers.json.

Usage: tools/generate_peer_benchmarks.py [--check]
    --check   write nothing; fail if tables or plot differ from the results

`make bench-peers PUBLISH=1` writes the results.
"""

import json
import math
import pathlib
import re
import sys

from svg import Drawing

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
RESULTS, PAGE, PLOT = DOCS / "benchmarks-peers.json", DOCS / "benchmarks.md", DOCS / "images" / "benchmarks-peers.svg"
SECTION = re.compile(r"(<!-- begin peers -->\n).*?(<!-- end peers -->)", re.DOTALL)
TITLES = {"hits": "Samples a second, warm", "capacity": "Second epoch with room for a part of the data",
          "images": "Images a second, DataLoader with two workers"}
LEFT, RIGHT, TOP, LINE = 300, 780, 54, 22
TICKS = (0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
BLUE, GREEN, RED, GREY = "#1f5fa8", "#1a7f37", "#b3261e", "#666666"


def number(value):
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


def ratio_cell(ratio):
    return f"{number(ratio['median'])} ({number(ratio['min'])} to {number(ratio['max'])})"


def rows_of(data, row):
    return [result for result in data["results"] if result["row"] == row]


def unique(values):
    return list(dict.fromkeys(values))


def table(heads, lines):
    return [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |",
            *(f"| {' | '.join(line)} |" for line in lines), ""]


def hits_table(rows):
    """One line for each case, one column for each peer."""
    peers, cells = unique(row["peer"] for row in rows), {(row["case"], row["peer"]): row for row in rows}
    lines = []
    for case in unique(row["case"] for row in rows):
        found = [cells.get((case, peer)) for peer in peers]
        own = next(row["stoker"]["median"] for row in found if row)
        lines.append([case, number(own), *(ratio_cell(row["ratio"]) if row else "not run" for row in found)])
    return table(["samples, clients", "Stoker, samples/s", *peers], lines)


def capacity_table(rows):
    return table(["room", "peer", "seconds of the second epoch", "Stoker", "its origin bytes, share of the data", "Stoker",
                  "how many times as fast Stoker is"],
                 [[row["case"], row["peer"], f"{row['value']['median']:.2f}", f"{row['stoker']['median']:.2f}",
                   f"{row['origin_share']:.2f}", f"{row['stoker_origin_share']:.2f}", ratio_cell(row["ratio"])] for row in rows])


def images_table(rows):
    return table(["data", "peer", "its images/s", "Stoker", "how many times as fast Stoker is"],
                 [[row["case"], row["peer"], number(row["value"]["median"]), number(row["stoker"]["median"]),
                   ratio_cell(row["ratio"])] for row in rows])


TABLES = {"hits": hits_table, "capacity": capacity_table, "images": images_table}


def verdict(data):
    """Where Stoker is slower, and what did not run."""
    slower = [f"{row['peer']} ({row['row']}, {row['case']}: {number(row['ratio']['median'])})" for row in data["results"]
              if row["ratio"]["median"] < 1]
    lines = [f"**Slower than a peer**: {'; '.join(slower)}." if slower else "No peer was faster in the median of a case.", ""]
    lines += [f"**Not run**: {item['peer']} ({item['row']}): {item['reason']}." for item in data["not_run"]]
    return lines + [""] * bool(data["not_run"])


def section(data):
    """The text between the marks."""
    cores = max(data["foreign_cores"].values(), default=0)
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    lines = [f"Run of {data['date']} on {data['machine']}; {data['rounds']} rounds, turns of {data['seconds']:g} s. The load "
             f"average was {data['load_before']:g} before the run, and other programs used up to {cores:.1f} cores during it.",
             "", *verdict(data)]
    for row, title in TITLES.items():
        found = rows_of(data, row)
        if found:
            lines += [f"### {title}", "", *TABLES[row](found)]
    return "\n".join([*lines, f"Versions: {versions}.", ""])


def place(ratio):
    share = math.log(max(ratio, TICKS[0]) / TICKS[0]) / math.log(TICKS[-1] / TICKS[0])
    return round(LEFT + min(share, 1) * (RIGHT - LEFT), 1)


def plot_lines(data):
    """(label, results) of each line of the plot: one or two clients share a line."""
    lines = {}
    for result in data["results"]:
        case = result["case"].split(",")[0]
        lines.setdefault(f"{result['peer']}, {case}", []).append(result)
    return list(lines.items())


def draw_result(drawing, result, y):
    """The range as a line, the median as a dot."""
    ratio, two_clients = result["ratio"], result["case"].endswith("2 clients")
    colour = RED if ratio["median"] < 1 else BLUE if two_clients else GREEN
    y += 4 if two_clients else -4 if result["row"] == "hits" else 0
    drawing.line([(place(ratio["min"]), y), (place(ratio["max"]), y)], colour, 3)
    drawing.dot(place(ratio["median"]), y, 4, colour)


def plot(data):
    lines = plot_lines(data)
    bottom = TOP + LINE * len(lines)
    drawing = Drawing(820, bottom + 64, "Stoker beside other programs: median and range of each ratio")
    drawing.text(20, 26, f"How many times as fast Stoker is, {data['date']} (make bench-peers)", 15, anchor="start", bold=True)
    for tick in TICKS:
        drawing.line([(place(tick), TOP), (place(tick), bottom)], "#888888" if tick == 1 else "#eeeeee")
        drawing.text(place(tick), bottom + 18, f"{tick:g}", 12)
    for index, (label, results) in enumerate(lines):
        y = TOP + LINE * index + LINE / 2
        drawing.text(LEFT - 14, y + 4, label, 12, anchor="end")
        for result in results:
            draw_result(drawing, result, y)
    drawing.text(20, bottom + 46, "Dot: median. Line: smallest to largest round. Blue: two clients; red: Stoker is slower.",
                 12, anchor="start", fill=GREY)
    return drawing.render()


def main():
    data = json.loads(RESULTS.read_text())
    page = SECTION.sub(lambda found: found.group(1) + section(data) + found.group(2), PAGE.read_text())
    if sys.argv[1:2] != ["--check"]:
        PAGE.write_text(page)
        PLOT.write_text(plot(data))
    elif page != PAGE.read_text() or PLOT.read_text() != plot(data):
        sys.exit("docs/benchmarks.md or its plot is out of date with docs/benchmarks-peers.json: run make generate")


if __name__ == "__main__":
    main()
