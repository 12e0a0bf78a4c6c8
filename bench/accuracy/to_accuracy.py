"""make time-to-accuracy: seconds and origin bytes until a model is as good as with all samples, where the origin is slow.

usage: to_accuracy.py --build DIR [--out DIR] [--sets SET ...] [--only ROW ...] [--seeds 5] [--page FILE] [--fresh]

Trains as run.py does, through an S3 server behind a paced link (LINKS), so that a job without a cache waits most of
its time. The seeds of a data set are run in turn, and within a seed all rows, so that a slow hour of the machine
meets all rows alike. A run ends up in OUT/paced.jsonl; a later start goes on where this one stopped. Time of testing
the model is left out.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import sys
import warnings

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before numpy: a second thread only spins

import data  # noqa: E402
import page  # noqa: E402
import run as accuracy  # noqa: E402
import train  # noqa: E402

FIRST_BYTE_MS = 20
# Bytes a second. Each is about a third of what the job reads where all is on the node (stated on the page as "waited").
LINKS = {"mnist5k": 4_000_000, "fashion": 1_000_000, "glyphs": 350_000}
ROWS = ["no cache", "LRU", "exact", "windowed", "importance (IIS)", "importance (IIS + L)", "importance, IOWA",
        "replicate, r = 1", "replicate, r = 3"]
GOALS = (95, 98, 99)  # percent of the final accuracy of "exact" with the same seed
EXACT = "exact"


def reached(run, values, accuracy_wanted):
    """What `values` (one for each epoch, rising) were when the accuracy came up to what is wanted, between the ends of two
    epochs in proportion; NaN where it never did."""
    before_accuracy, before_value = 0.0, 0.0
    for now, value in zip(run["curve"], values):
        if now >= accuracy_wanted:
            share = (accuracy_wanted - before_accuracy) / (now - before_accuracy)
            return before_value + share * (value - before_value)
        before_accuracy, before_value = now, value
    return math.nan


def sweep(arguments):
    """Every run, old or new, by (data, row, seed)."""
    programs, file = accuracy.fingerprint(arguments.build), arguments.out / "paced.jsonl"
    if arguments.fresh:
        file.unlink(missing_ok=True)
    runs = accuracy.had(file, programs)
    for name in arguments.sets:
        for seed in range(arguments.seeds):
            origin = data.prepare(arguments.out, name, seed)
            for row in arguments.only:
                if (name, row, seed) in runs:
                    continue
                result = train.measure(arguments.build, arguments.out / "run", origin, row, seed, train.EPOCHS[name],
                                       (LINKS[name], FIRST_BYTE_MS))
                runs[name, row, seed] = one = {"data": name, "row": row, "seed": seed, "programs": programs, **result}
                with open(file, "a") as out:
                    out.write(json.dumps(one) + "\n")
                print(f"{name:8} {row:22} seed {seed}: {one['curve'][-1]:.2f} % after {one['seconds'][-1]:.0f} s, waited "
                      f"{one['waited']:.0f} s", flush=True)
    return runs


def entries(runs, arguments):
    """One line of the table for each data set and row: medians of ratios to "exact" with the same seed."""
    for name in arguments.sets:
        for row in arguments.only:
            mine = [runs[key] for key in sorted(runs) if key[:2] == (name, row) and (name, EXACT, key[2]) in runs]
            if not mine:
                continue
            exact = {run["seed"]: runs[name, EXACT, run["seed"]] for run in mine}
            entry = {"data": name, "row": row, "seeds": len(mine),
                     "accuracy": statistics.mean(run["curve"][-1] for run in mine),
                     "epoch": statistics.mean(run["seconds"][-1] / len(run["curve"]) for run in mine),
                     "waited": statistics.mean(run["waited"] / run["seconds"][-1] for run in mine),
                     "origin": statistics.mean(run["origin_bytes"] / run["bytes"] / len(run["curve"]) for run in mine)}
            for goal in GOALS:
                faster = []
                for run in mine:
                    base = exact[run["seed"]]
                    wanted = base["curve"][-1] * goal / 100
                    faster.append(reached(base, base["seconds"], wanted) / reached(run, run["seconds"], wanted))
                known = [ratio for ratio in faster if not math.isnan(ratio)]
                entry[goal] = (statistics.mean(known) if known else math.nan, page.half_width(known), len(known))
            yield entry


def faster_text(entry, goal):
    mean, half, count = entry[goal]
    if count == 0:
        return "never"
    return f"{mean:.2f}" + page.plus_minus(half) + ("" if count == entry["seeds"] else f" ({count} of {entry['seeds']})")


HEAD = ("contract", "accuracy, %", *(f"speed to {goal} %" for goal in GOALS), "s an epoch", "waited", "origin bytes")


def as_markdown(table):
    lines = ["| " + " | ".join(HEAD) + " |", "| " + " | ".join(["---"] + ["---:"] * (len(HEAD) - 1)) + " |"]
    for entry in table:
        cells = (entry["row"], f"{entry['accuracy']:.2f}", *(faster_text(entry, goal) for goal in GOALS),
                 f"{entry['epoch']:.1f}", f"{100 * entry['waited']:.0f} %", f"{entry['origin']:.3f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/accuracy"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=list(LINKS), choices=list(LINKS))
    parser.add_argument("--only", nargs="*", default=ROWS, choices=ROWS)
    parser.add_argument("--fresh", action="store_true", help="forget the runs of earlier starts")
    arguments = parser.parse_args()
    arguments.build, arguments.out = arguments.build.resolve(), arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(arguments.build / "python"))
    os.environ["STOKER_DATASETS"] = "{}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = sweep(arguments)
    for name in arguments.sets:
        table = [entry for entry in entries(runs, arguments) if entry["data"] == name]
        print(f"\n{name}: {FIRST_BYTE_MS} ms to the first byte, {LINKS[name] / 1e6:g} MB/s\n\n{as_markdown(table)}")


if __name__ == "__main__":
    main()
