#!/usr/bin/env python3
"""make bench-peers: other programs that bring training data to a trainer, tuned, beside Stoker in the same rounds.

usage: run.py [--build DIR] [--rows ROW ...] [--rounds N] [--seconds S] [--publish]

Rows: hits (hits.py), capacity (capacity.py), images (images.py). Writes build/bench/peers.json and prints a table: each
ratio says how many times as fast Stoker is, the median and range over the rounds. --publish: also writes
docs/benchmarks-peers.json, and from it the table and the plot of docs/benchmarks.md.
Exits with 1 if a peer did not run, else with 2 if the median of a peer is better than Stoker's (the bar), else with 0.
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import capacity
import hits
import images
import versions
from common import ROOT, STOKER, exit_status, result, unmount_below

ROWS = {row.NAME: row for row in (hits, capacity, images)}
REASON_MAX = 200  # characters
STOPS = (signal.SIGINT, signal.SIGTERM)
PUBLISHED = ROOT / "docs" / "benchmarks-peers.json"


class Bench:
    """Paths and settings of this run."""

    def __init__(self, arguments):
        self.build = arguments.build.resolve()
        self.folder = ROOT / "build" / "bench" / "peers"
        self.rounds = arguments.rounds
        self.slow_rounds = max(1, arguments.rounds // 2)  # of rows with epochs from the slow link
        self.seconds = arguments.seconds


class Report:
    """Collects the results, and prints each."""

    def __init__(self):
        self.results = []
        self.missing = []
        self.foreign_cores = {}

    def add(self, result):
        self.results.append(result)
        ratio, slower = result["ratio"], " SLOWER" if result["ratio"]["median"] < 1 else ""
        print(f"{result['row']:9} {result['case']:20} {result['peer']:24} {result['value']['median']:12.5g}  Stoker "
              f"{result['stoker']['median']:10.5g} {result['unit']:10} {ratio['median']:8.2f} x  "
              f"({ratio['min']:.2f} - {ratio['max']:.2f}){slower}", flush=True)

    def add_rates(self, row, case, unit, rates):
        """`rates`: {peer: a rate for each round}, Stoker's among them."""
        for peer in rates:
            if peer != STOKER:
                self.add(result(row, case, peer, unit, rates[STOKER], rates[peer], True))

    def not_run(self, row, peer, reason):
        reason = reason.replace(f"{ROOT}/", "")[:REASON_MAX]
        if not any(seen["row"] == row and seen["peer"] == peer for seen in self.missing):
            self.missing.append({"row": row, "peer": peer, "reason": reason})
        print(f"{row:9} {peer}: not run: {reason}", flush=True)

    def foreign(self, case, cores):
        """Remembers how many cores were used by programs other than the bench."""
        self.foreign_cores[case] = round(cores, 2)


def stop(*_):
    """The first SIGINT or SIGTERM ends the run and stops every started program; later signals do not interrupt that."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def machine():
    model = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "unknown processor")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return f"{os.cpu_count()} cores ({model}), {memory} GiB of memory, Linux {os.uname().release}"


def data_of(report, arguments, load):
    return {"date": datetime.date.today().isoformat(), "machine": machine(), "load_before": load, "rounds": arguments.rounds,
            "seconds": arguments.seconds, "versions": versions.all_of_them(), "foreign_cores": report.foreign_cores,
            "results": report.results, "not_run": report.missing}


def text_of(data):
    """JSON with one result a line."""
    head = json.dumps({name: value for name, value in data.items() if name != "results"}, indent=1)[:-2]
    rows = ",\n".join(f"  {json.dumps(result)}" for result in data["results"])
    return f'{head},\n "results": [\n{rows}\n ]\n}}\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="length of a turn of the row `hits`")
    parser.add_argument("--publish", action="store_true")
    arguments = parser.parse_args()
    for number in STOPS:
        signal.signal(number, stop)
    bench, report, load = Bench(arguments), Report(), round(os.getloadavg()[0], 1)
    unmount_below(bench.folder)
    bench.folder.mkdir(parents=True, exist_ok=True)
    try:
        for name in arguments.rows:
            began = time.monotonic()
            ROWS[name].measure(bench, report)
            print(f"{name:9} took {time.monotonic() - began:.0f} s", flush=True)
    finally:
        shutil.rmtree(bench.folder)
    text = text_of(data_of(report, arguments, load))
    (bench.folder.parent / "peers.json").write_text(text)
    if arguments.publish:
        PUBLISHED.write_text(text)
        subprocess.run([sys.executable, ROOT / "tools" / "generate_peer_benchmarks.py"], check=True)
    return exit_status(report)


if __name__ == "__main__":
    sys.exit(main())
