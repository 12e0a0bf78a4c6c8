"""make time-to-accuracy: seconds until a model is as accurate as under `exact`, if the origin is slow.

usage: to_accuracy.py --build DIR [--out DIR] [--sets SET ...] [--only ROW ...] [--seeds 5] [--fresh]

Trains as run.py does, but through an S3 server behind a paced link (LINKS), so that a job without a cache waits most of
its time. All rows of a seed run one after the other, so that a slow hour of the machine affects all rows alike. Runs
are kept in OUT/paced.jsonl; a restart reuses them. The seconds leave out testing.
"""

import math
import statistics
import sys

import run as accuracy  # first: it limits numpy's threads
import page

FIRST_BYTE_MS = 20
# Bytes a second: about a third of what the job reads if all samples are on the node.
LINKS = {"mnist5k": 4_000_000, "fashion": 1_000_000, "glyphs": 350_000}
ROWS = ["no cache", "LRU", "exact", "windowed", "importance (IIS)", "importance (IIS + L)", "importance, IOWA",
        "replicate, r = 1", "replicate, r = 3"]
GOALS = (95, 98, 99)  # percent of the final accuracy of "exact" with the same seed


def reached(run, values, accuracy_wanted):
    """The value (of `values`, one per epoch, rising) at which the accuracy reached the wanted one, interpolated between
    the ends of epochs; NaN: never."""
    before_accuracy, before_value = 0.0, 0.0
    for now, value in zip(run["curve"], values):
        if now >= accuracy_wanted:
            share = (accuracy_wanted - before_accuracy) / (now - before_accuracy)
            return before_value + share * (value - before_value)
        before_accuracy, before_value = now, value
    return math.nan


def speed_ups(runs, exact, goal):
    """How much earlier than `exact` with the same seed each run reached the goal; without runs that never did."""
    ratios = []
    for run in runs:
        base = exact[run["seed"]]
        wanted = base["curve"][-1] * goal / 100
        ratios.append(reached(base, base["seconds"], wanted) / reached(run, run["seconds"], wanted))
    return [ratio for ratio in ratios if not math.isnan(ratio)]


def entry_of(row, runs, exact):
    """A line of the table; `exact`: run by seed."""
    entry = {"row": row, "seeds": len(runs), "origin": page.origin_share(runs),
             "accuracy": statistics.mean(run["curve"][-1] for run in runs),
             "epoch": statistics.mean(run["seconds"][-1] / len(run["curve"]) for run in runs),
             "waited": statistics.mean(run["waited"] / run["seconds"][-1] for run in runs)}
    for goal in GOALS:
        known = speed_ups(runs, exact, goal)
        entry[goal] = (statistics.mean(known) if known else math.nan, page.half_width(known), len(known))
    return entry


def table_of(name, runs, rows):
    """One entry for each row of a data set, of the seeds that `exact` was run with."""
    exact = {seed: run for (of, row, seed), run in runs.items() if (of, row) == (name, page.EXACT)}
    found = {row: [run for key, run in runs.items() if key[:2] == (name, row) and key[2] in exact] for row in rows}
    return [entry_of(row, mine, exact) for row, mine in found.items() if mine]


def faster_text(entry, goal):
    mean, half, count = entry[goal]
    if count == 0:
        return "never"
    return f"{mean:.2f}" + page.plus_minus(half) + ("" if count == entry["seeds"] else f" ({count} of {entry['seeds']})")


HEAD = ("contract", "accuracy, %", *(f"speed to {goal} %" for goal in GOALS), "s an epoch", "waited", "origin bytes")


def cells(entry):
    return (entry["row"], f"{entry['accuracy']:.2f}", *(faster_text(entry, goal) for goal in GOALS),
            f"{entry['epoch']:.1f}", f"{100 * entry['waited']:.0f} %", f"{entry['origin']:.3f}")


def main():
    arguments = accuracy.parser_of(__doc__, list(LINKS), list(LINKS), ROWS).parse_args()
    links = {name: (rate, FIRST_BYTE_MS) for name, rate in LINKS.items()}
    runs, refused = accuracy.swept(arguments, "paced.jsonl", links)
    for name in arguments.sets:
        table = page.as_markdown(HEAD, map(cells, table_of(name, runs, arguments.only)))
        print(f"\n{name}: {FIRST_BYTE_MS} ms to the first byte, {LINKS[name] / 1e6:g} MB/s\n\n{table}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
