#!/usr/bin/env python3
"""make origin-rtt: a cold epoch from an S3 server 0 to 200 ms away, through a sidecar and without one, in turns.

usage: origin_rtt.py --build DIR [--rounds 3] [--rtt MS ...]

The server is behind a pacer that adds the time to each first byte and lets 16 MB pass in a second, 488 samples of
32 KiB. A DataLoader with 8 workers reads one epoch; without a sidecar each worker has 16 connections. Prints samples a
second of the whole epoch, including the start of the workers, and from the fourth second on (`late`), when the sidecar
has settled on its number of requests. Exits with 1 if `late` is below 95 % of the link, or the whole epoch is slower
than without a sidecar by more than 5 %, the noise of a run.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import servers

FOLDER = pathlib.Path("/dev/shm/stoker-origin-rtt")
SAMPLE_BYTES = 32768
BYTES_PER_SECOND = 16_000_000
SAMPLES = 6000
WORKERS = 8
BATCH = 32
LATE_S = 3
RTTS_MS = (0, 2, 20, 80, 200)
LINK_SHARE = 0.95
BYPASS_SHARE = 0.95


def make_files(folder):
    for number in range(SAMPLES):
        path = folder / f"{number % 10}" / f"{number:06}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(8, "little") * (SAMPLE_BYTES // 8))


def read_epoch():
    """The trainer: prints samples a second of the whole epoch and late in it. Checks that it had each sample once."""
    import stoker.torch

    dataset = stoker.torch.Dataset("bench", decode=lambda view: int.from_bytes(view[:8], "little"))
    sampler = stoker.torch.Sampler(dataset, seed=1, num_replicas=1, rank=0)
    loader = stoker.torch.DataLoader(dataset, batch_size=BATCH, sampler=sampler, num_workers=WORKERS,
                                     collate_fn=lambda pairs: [number for number, _ in pairs])
    seen, began, late = [], time.monotonic(), None
    for batch in loader:
        now = time.monotonic()
        seen += batch
        if late is None and now - began >= LATE_S:
            late = now, len(seen)
    ended = time.monotonic()
    if sorted(seen) != list(range(SAMPLES)):
        raise SystemExit(f"bench: read {len(seen)} samples; expected each of the {SAMPLES} samples exactly once")
    print(len(seen) / (ended - began), (len(seen) - late[1]) / (ended - late[0]))


def trainer(build, **env):
    run = subprocess.run([sys.executable, __file__, "--epoch"], capture_output=True, text=True,
                         env=dict(os.environ, PYTHONPATH=str(build / "python"), **env))
    if run.returncode != 0:
        raise SystemExit(run.stdout + run.stderr)
    return tuple(map(float, run.stdout.split()))


def with_sidecar(build, origin):
    folder = FOLDER / "run"
    shutil.rmtree(folder, ignore_errors=True)
    with servers.watched_sidecar(build / "bin" / "stoker-sidecar", folder, origin, "4Gi", "256Mi",
                                 dataset="bench") as (socket, page):
        rates = trainer(build, STOKER_SOCKET=str(socket))
        requests = json.loads(page("status"))["datasets"][0]["leader"]["originConcurrency"]
    return *rates, requests


def without_sidecar(build, origin):
    return trainer(build, STOKER_SOCKET=str(FOLDER / "none.sock"), STOKER_DATASETS=json.dumps({"bench": origin}),
                   **servers.CREDENTIALS)


def measure(build, rtt_ms, rounds):
    runs = {"sidecar": [], "bypass": []}
    with servers.paced_folder(build, FOLDER / "files", BYTES_PER_SECOND, rtt_ms) as origin:
        for number in range(rounds):
            for side in sorted(runs, reverse=number % 2 == 0):
                runs[side].append((with_sidecar if side == "sidecar" else without_sidecar)(build, origin))
    return {"rtt_ms": rtt_ms, "link": BYTES_PER_SECOND / SAMPLE_BYTES,
            **{side: [statistics.median(column) for column in zip(*rows)] for side, rows in runs.items()}}


def is_met(row):
    whole, late, _ = row["sidecar"]
    return late >= LINK_SHARE * row["link"] and whole >= BYPASS_SHARE * row["bypass"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=servers.ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rtt", type=int, nargs="+", default=RTTS_MS)
    parser.add_argument("--epoch", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.epoch:
        return read_epoch()
    shutil.rmtree(FOLDER, ignore_errors=True)
    make_files(FOLDER / "files")
    rows = []
    for rtt_ms in arguments.rtt:
        rows.append(measure(arguments.build.resolve(), rtt_ms, arguments.rounds))
        whole, late, requests = rows[-1]["sidecar"]
        print(f"{rtt_ms:4} ms  link {rows[-1]['link']:5.0f}  sidecar {whole:5.0f}, late {late:5.0f}, {requests:.0f} requests"
              f"  bypass {rows[-1]['bypass'][0]:5.0f}, late {rows[-1]['bypass'][1]:5.0f} samples/s"
              f"  {'met' if is_met(rows[-1]) else 'MISSED'}", flush=True)
    shutil.rmtree(FOLDER)
    if not all(map(is_met, rows)):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
