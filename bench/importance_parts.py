#!/usr/bin/env python3
"""Prints the requests to the origin for each part of iCACHE, by the simulator on the real engine, as a Markdown table.

Rows add one part after the other: the exact order, importance sampling (IIS), the eviction policy, substitutes, the
L-region. Figures are means over epochs and seeds, one epoch in three full, as a share of the dataset's samples. With
IIS, 512 more samples are a window for prefetching. docs/design/sampling-importance.md has the table. Fails if keeping
by importance sends more requests than never-evict, both with IIS and without substitutes. With substitutes never-evict
may send fewer requests: substitutes are resident samples, and never-evict keeps more unimportant ones.

Usage: importance_parts.py --build DIR [--samples N] [--cache SHARE] [--seeds N]
"""

import argparse
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
BETAS = (0.33, 1, 2)
WINDOW = 512  # samples

# order of the draws, eviction policy, arguments of `stoker simulate`
ROWS = (
    ("exact", "LRU", ("--policy", "lru")),
    ("exact", "never-evict", ("--policy", "never-evict")),
    ("IIS", "LRU", ("--substitute", "0", "--policy", "lru")),
    ("IIS", "never-evict", ("--substitute", "0", "--policy", "never-evict")),
    ("IIS", "LFU", ("--substitute", "0", "--policy", "lfu")),
    ("IIS", "by importance", ("--substitute", "0")),
    ("IIS, substitutes", "by importance, `lShare` 0", ("--l-share", "0")),
    ("IIS, substitutes", "by importance, `lShare` 0.1 (default)", ()),
    ("IIS, substitutes", "by importance, `lShare` 0.3", ("--l-share", "0.3")),
    ("IIS, substitutes", "never-evict", ("--policy", "never-evict")),
)


def requests(arguments, order, beta, more):
    """Samples fetched per epoch, as a share of the dataset."""
    window = 0 if order == "exact" else WINDOW / arguments.samples
    cache = arguments.cache + window
    job = "contract=exact" if order == "exact" else f"contract=importance,beta={beta}"
    seeds = ",".join(str(seed) for seed in range(1, arguments.seeds + 1))
    command = [arguments.build / "bin" / "stoker", "simulate", "--json", "--samples", arguments.samples, "--batch", 256,
               "--ahead", 0, "--epochs", 20, "--discard", 8, "--seeds", seeds, "--cache-share", cache,
               "--window-share", window / cache, "--job", job, *more]
    answer = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE).stdout
    runs = json.loads(answer)["runs"]
    return sum(run["jobs"][0]["means"]["originSamples"] for run in runs) / len(runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--cache", type=float, default=0.2)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print("| order | kept | " + " | ".join(f"beta = {beta}" for beta in BETAS) + " |")
    print("| --- | --- | " + " | ".join("---" for _ in BETAS) + " |")
    table = {}
    for order, kept, more in ROWS:
        if order == "exact":  # no sample is selected, whatever beta is
            figures = [requests(arguments, order, None, more)] * len(BETAS)
        else:
            figures = [requests(arguments, order, beta, more) for beta in BETAS]
        print(f"| {order} | {kept} | " + " | ".join(f"{figure:.3f}" for figure in figures) + " |", flush=True)
        table[order, kept] = figures
    pairs = zip(BETAS, table["IIS", "by importance"], table["IIS", "never-evict"])
    missed = [beta for beta, ours, never in pairs if ours > never]
    if missed:
        raise SystemExit("importance-parts: with IIS and without substitutes, eviction by importance sent more requests "
                         f"than never-evict for beta = {missed}")


if __name__ == "__main__":
    main()
