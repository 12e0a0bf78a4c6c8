#!/usr/bin/env python3
"""Writes the table and the plot of docs/benchmarks.md from docs/benchmarks.json.

Usage: tools/generate_benchmarks.py [--check | --take RESULTS DATE MACHINE]
    --check   write nothing; fail if table or plot differ from the results
    --take    first copy the medians and ranges of RESULTS (build/bench/results.json of `make bench`) into
              docs/benchmarks.json, with the DATE (YYYY-MM-DD) and the MACHINE of the run
"""

import json
import math
import pathlib
import re
import sys

from svg import Drawing

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
RESULTS, PAGE, PLOT = DOCS / "benchmarks.json", DOCS / "benchmarks.md", DOCS / "images" / "benchmarks.svg"
TABLE = re.compile(r"(<!-- begin table -->\n).*?(<!-- end table -->)", re.DOTALL)
LEFT, RIGHT, TOP, ROW = 250, 720, 50, 44
RATIO_MIN, RATIO_MAX = 0.5, 32
TICKS = (0.5, 1, 2, 4, 8, 16, 32)
GREEN, RED, GREY = "#1a7f37", "#b3261e", "#999999"


def number(value):
    return f"{value:.2f}" if value < 10 else f"{value:g}"


def is_met(row):
    return row["median"] >= row["bar"] if row["more_is_better"] else row["median"] <= row["bar"]


def table(data):
    lines = [f"Run of {data['date']} with `{data['command']}` on a {data['machine']}.", "",
             "| figure | median (range) | bar | compared with |", "| --- | --- | --- | --- |"]
    for row in data["results"]:
        spread = f" ({number(row['min'])} to {number(row['max'])})" if "min" in row else ""
        unit = "" if row["unit"] == "ratio" else f" {row['unit']}"
        relation = "≥" if row["more_is_better"] else "≤"
        lines.append(f"| `{row['name']}` | {row['median']:g}{unit}{spread} | {relation} {row['bar']:g}{unit} | "
                     f"{row['baseline']} |")
    return "\n".join(lines) + "\n"


def place(ratio):
    share = math.log(ratio / RATIO_MIN) / math.log(RATIO_MAX / RATIO_MIN)
    return round(LEFT + share * (RIGHT - LEFT), 1)


def plot(data):
    rows = [row for row in data["results"] if row["unit"] == "ratio"]
    bottom = TOP + ROW * len(rows)
    drawing = Drawing(760, bottom + 64, "Stoker against its baselines: median and range of each ratio, and its bar")
    drawing.text(20, 26, f"Stoker divided by its baseline, {data['date']} (make bench)", 15, anchor="start", bold=True)
    for tick in TICKS:
        drawing.line([(place(tick), TOP), (place(tick), bottom)], "#bbbbbb" if tick == 1 else "#eeeeee")
        drawing.text(place(tick), bottom + 18, f"{tick:g} x", 12)
    for index, row in enumerate(rows):
        y = TOP + ROW * index + ROW / 2
        colour = GREEN if is_met(row) else RED
        drawing.text(LEFT - 14, y - 1, row["name"], 13, anchor="end", bold=True)
        drawing.text(LEFT - 14, y + 14, "more is better" if row["more_is_better"] else "less is better", 11,
                     anchor="end", fill="#666666")
        drawing.line([(place(row["min"]), y), (place(row["max"]), y)], colour, 4)
        drawing.line([(place(row["bar"]), y - 13), (place(row["bar"]), y + 13)], "#222222", 2)
        drawing.dot(place(row["median"]), y, 6, colour)
        drawing.text(place(row["max"]) + 14, y + 4, number(row["median"]), 12, anchor="start")
    drawing.text(20, bottom + 46, "Dot: median of the rounds. Coloured line: smallest to largest round. Black line: bar.", 12,
                 anchor="start", fill="#666666")
    return drawing.render()


def take(path, date, machine):
    measured = {row["name"]: row for row in json.loads(pathlib.Path(path).read_text())}
    data = json.loads(RESULTS.read_text()) | {"date": date, "machine": machine}
    for row in data["results"]:
        row |= {key: measured[row["name"]][key] for key in ("median", "min", "max")}
    rows = ",\n".join("    " + json.dumps(row) for row in data["results"])
    head = json.dumps({key: data[key] for key in ("date", "machine", "command")}, indent=2)[:-2]
    RESULTS.write_text(f'{head},\n  "results": [\n{rows}\n  ]\n}}\n')


def main():
    if sys.argv[1:2] == ["--take"]:
        take(*sys.argv[2:])
    data = json.loads(RESULTS.read_text())
    page = TABLE.sub(lambda found: found.group(1) + table(data) + found.group(2), PAGE.read_text())
    if sys.argv[1:2] != ["--check"]:
        PAGE.write_text(page)
        PLOT.write_text(plot(data))
    elif page != PAGE.read_text() or PLOT.read_text() != plot(data):
        sys.exit("docs/benchmarks.md or its plot is out of date with docs/benchmarks.json: run make generate")


if __name__ == "__main__":
    main()
