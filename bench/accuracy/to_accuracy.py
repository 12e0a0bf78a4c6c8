"""make time-to-accuracy: seconds until a model is as accurate as under `exact`, if the origin is slow.

usage: to_accuracy.py --build DIR [--out DIR] [--sets SET ...] [--only ROW ...] [--seeds 5] [--page FILE]
                      [--fresh]

Trains as run.py does, but through an S3 server behind a paced link (LINKS), so that a job without a cache waits most of
its time. All rows of a seed run one after the other, so that a slow hour of the machine affects all rows alike. Runs
are kept in OUT/paced.jsonl; a restart reuses them. The seconds do not include testing.
"""

import math
import statistics
import sys

import run as accuracy  # first: it limits numpy's threads
import page
import train

FIRST_BYTE_MS = 20
# Bytes a second: at most a half of what the job reads if all samples are on the node.
LINKS = {"mnist5k": 4_000_000, "fashion": 2_500_000, "glyphs": 600_000}
ROWS = ["no cache", "LRU", "exact", "exact, other shuffle", "windowed", "importance (IIS)", "importance (IIS + L)",
        "importance (IIS), β = 1, short warm-up", "importance, IOWA, io-bound", "importance, IOWA, compute-bound",
        "replicate, r = 1", "replicate, r = 3"]
GOALS = (95, 98, 99)  # percent of the final accuracy of "exact" with the same seed


def reached(run, values, accuracy_wanted):
    """The value at which the accuracy reached the wanted one, interpolated between the ends of epochs; NaN: never.
    `values`: one per epoch, rising."""
    before_accuracy, before_value = 0.0, 0.0
    for now, value in zip(run["curve"], values):
        if now >= accuracy_wanted:
            share = (accuracy_wanted - before_accuracy) / (now - before_accuracy)
            return before_value + share * (value - before_value)
        before_accuracy, before_value = now, value
    return math.nan


def ratios(runs, exact, goal, key):
    """The value of run[key] at which each run reached the goal, as a share of the value of `exact` with the same seed;
    runs that never reached it are left out."""
    found = []
    for run in runs:
        base = exact[run["seed"]]
        wanted = base["curve"][-1] * goal / 100
        found.append(reached(run, run[key], wanted) / reached(base, base[key], wanted))
    return [ratio for ratio in found if not math.isnan(ratio)]


def entry_of(row, runs, exact):
    """A line of the table; `exact`: run by seed."""
    entry = {"row": row, "seeds": len(runs), "origin": page.origin_share(runs),
             "accuracy": statistics.mean(run["curve"][-1] for run in runs),
             "changes": [run["curve"][-1] - exact[run["seed"]]["curve"][-1] for run in runs],
             "whole": statistics.mean(exact[run["seed"]]["seconds"][-1] / run["seconds"][-1] for run in runs),
             "epoch": statistics.mean(run["seconds"][-1] / len(run["curve"]) for run in runs),
             "waited": statistics.mean(run["waited"] / run["seconds"][-1] for run in runs)}
    for goal in GOALS:
        faster = [1 / ratio for ratio in ratios(runs, exact, goal, "seconds")]
        entry[goal] = (statistics.mean(faster) if faster else math.nan, page.half_width(faster), len(faster))
        entry["bytes", goal] = statistics.mean(ratios(runs, exact, goal, "bytes_read") or [math.nan])
    return entry


def table_of(name, runs, rows):
    """One entry for each row of a data set, for the seeds that `exact` was run with."""
    exact = {seed: run for (of, row, seed), run in runs.items() if (of, row) == (name, page.EXACT)}
    found = {row: [run for key, run in runs.items() if key[:2] == (name, row) and key[2] in exact] for row in rows}
    return [entry_of(row, mine, exact) for row, mine in found.items() if mine]


def faster_text(entry, goal):
    mean, half, count = entry[goal]
    if count == 0:
        return "never"
    return f"{mean:.2f}" + page.plus_minus(half) + ("" if count == entry["seeds"] else f" ({count} of {entry['seeds']})")


HEAD = ("contract", "accuracy, %", "change, points", "speed of all epochs", *(f"speed to {goal} %" for goal in GOALS),
        *(f"bytes to {goal} %" for goal in GOALS), "s an epoch", "waited", "origin bytes")


def cells(entry):
    change = f"{statistics.mean(entry['changes']):+.2f}" + page.plus_minus(page.half_width(entry["changes"]))
    return (entry["row"], f"{entry['accuracy']:.2f}", "" if entry["row"] == page.EXACT else change,
            f"{entry['whole']:.2f}", *(faster_text(entry, goal) for goal in GOALS),
            *(f"{entry['bytes', goal]:.2f}" if entry[goal][2] else "never" for goal in GOALS),
            f"{entry['epoch']:.1f}", f"{100 * entry['waited']:.0f} %", f"{entry['origin']:.3f}")


def main():
    arguments = accuracy.parser_of(__doc__, list(LINKS), list(LINKS), ROWS).parse_args()
    links = {name: (rate, FIRST_BYTE_MS) for name, rate in LINKS.items()}
    runs, refused = accuracy.swept(arguments, "paced.jsonl", links)
    parts = []
    for name in arguments.sets:
        table = page.as_markdown(HEAD, map(cells, table_of(name, runs, arguments.only)))
        seeds = {key[2] for key in runs if key[0] == name}
        parts += [f"### {name}", f"{LINKS[name] / 1e6:g} MB/s, {FIRST_BYTE_MS} ms to the first byte; {len(seeds)} seeds, "
                  f"{train.EPOCHS[name]} epochs.", table]
    print("\n\n".join(parts))
    if arguments.page:
        import plots

        page.put(arguments.page, parts, plots.draw_over_time(arguments.page, list(runs.values()), ROWS))
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
