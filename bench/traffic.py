#!/usr/bin/env python3
"""make traffic: what the real sidecar reads at the origin under each contract, beside what `stoker simulate` says.

usage: traffic.py --build DIR [--samples 20000] [--epochs 12] [--only CONTRACT ...]

For each contract: a stoker-sidecar over a folder of equal samples, with a grant for a fifth of them, and one client
that draws, reads and reports losses of the kind that the simulator makes; then the same by the simulator. Compared
are the bytes that the sidecar counts at its origin over all epochs after the warm-up, in data sets an epoch. Exits with
1 when any differ by more than 3 %. The losses are not those of the simulator, only drawn alike, so the figures are two
samples of one quantity; that is part of the 3 %.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import servers

HERE = pathlib.Path(__file__).resolve().parent
SHARE = 0.2
SAMPLE_BYTES = 4000
RECORD_BYTES = 4096  # in a segment: header, payload, padding
WINDOW_BYTES = 4 << 20
BATCH, AHEAD = 64, 2
WARMUP, DISCARD = 2, 3  # full epochs; those that the comparison leaves out
DECAY = 0.1  # of the losses, from epoch to epoch: without it IOWA finds that nothing is learnt, and leaves nothing out
TOLERANCE = 0.03

# name: the loader's contract and parameters, the simulator's
ROWS = {
    "exact": ("exact", {}, {"contract": "exact"}),
    "windowed": ("windowed", {}, {"contract": "windowed"}),
    "importance": ("importance", {"warmup_epochs": WARMUP}, {"contract": "importance", "warmup": WARMUP}),
    "importance, beta 1": ("importance", {"warmup_epochs": WARMUP, "beta": 1.0},
                           {"contract": "importance", "warmup": WARMUP, "beta": 1}),
    "importance, IOWA": ("importance", {"family": "iowa"},
                         {"contract": "importance", "family": 1, "loss-decay": DECAY}),
    "replicate, r 1": ("replicate", {"replication": 1}, {"contract": "replicate", "replication": 1}),
    "replicate, r 3": ("replicate", {}, {"contract": "replicate"}),
}


def make_files(folder, samples):
    marker = folder / f"made-{samples}"
    if marker.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    for number in range(samples):
        path = folder / f"{number % 10}" / f"{number:07d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(4, "little") * (SAMPLE_BYTES // 4))
    marker.write_bytes(b"")
    marker.rename(folder.parent / marker.name)


def losses_of(samples, seed):
    """As in `stoker simulate`: every sample has its own, log-normal(0,1); each visit sees it through (0,.3)."""
    import numpy

    luck = numpy.random.default_rng(seed)
    own = luck.normal(0, 1, samples)
    return lambda ids, scale: (scale * numpy.exp(own[ids] + luck.normal(0, 0.3, len(ids)))).astype(numpy.float32)


def read_epochs(socket, contract, parameters, seed, epochs, losses):
    """Reads them one after the other; yields after each."""
    import stoker
    import stoker.torch
    import torch

    torch.set_num_threads(1)
    decay = DECAY if parameters.get("family") == "iowa" else 0
    with stoker.open("train", socket=str(socket)) as samples:
        dataset = stoker.torch.Dataset(samples, decode=len)
        loader = stoker.torch.DataLoader(dataset, batch_size=BATCH, contract=contract, seed=seed, **parameters)
        for epoch in range(epochs):
            for _, _, ids in loader:
                if contract in ("importance", "replicate"):
                    loader.report(ids, torch.from_numpy(losses(ids.numpy(), (1 - decay) ** epoch)))
            yield epoch, samples.stats()["origin_bytes"]


def measured(build, row, samples, epochs, files, seed):
    """Data sets an epoch that came from the origin, after the first DISCARD epochs."""
    contract, parameters, _ = ROWS[row]
    with tempfile.TemporaryDirectory(prefix="stoker-traffic-", dir=files.parent) as folder:
        with servers.counted_sidecar(build / "bin" / "stoker-sidecar", pathlib.Path(folder) / "run", files,
                                     int(SHARE * samples) * RECORD_BYTES, WINDOW_BYTES) as (socket, origin_bytes):
            before = total = 0
            for epoch, alone in read_epochs(socket, contract, parameters, seed, epochs, losses_of(samples, seed)):
                if alone:
                    raise SystemExit(f"traffic: {row}: {alone} bytes were read past the sidecar")
                if epoch + 1 in (DISCARD, epochs):
                    before, total = total, origin_bytes()
    return (total - before) / (samples * SAMPLE_BYTES * (epochs - DISCARD))


def simulated(build, row, samples, epochs, seed):
    grant = int(SHARE * samples) * RECORD_BYTES
    whole = grant + WINDOW_BYTES
    job = ",".join(f"{key}={value}" for key, value in ROWS[row][2].items())
    command = [build / "bin" / "stoker", "simulate", "--json", "--samples", samples, "--sample-bytes", SAMPLE_BYTES,
               "--cache-bytes", whole, "--window-share", repr(WINDOW_BYTES / whole), "--job", job, "--epochs", epochs,
               "--discard", DISCARD, "--batch", BATCH, "--ahead", AHEAD, "--seeds", f"{seed},{seed + 1},{seed + 2}"]
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    runs = [run["jobs"][0]["means"]["originBytes"] for run in answer["runs"]]
    return sum(runs) / len(runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parent / "build" / "traffic")
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(ROWS), choices=list(ROWS))
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    sys.path.insert(0, str(build / "python"))
    os.environ["STOKER_DATASETS"] = "{}"
    files = arguments.out.resolve() / "files"
    make_files(files, arguments.samples)
    print(f"{'contract':22} {'simulated':>10} {'measured':>10} {'difference':>10}", flush=True)
    apart = 0
    for row in arguments.only:
        model = simulated(build, row, arguments.samples, arguments.epochs, arguments.seed)
        real = measured(build, row, arguments.samples, arguments.epochs, files, arguments.seed)
        difference = (real - model) / model
        apart += abs(difference) > TOLERANCE
        print(f"{row:22} {model:10.4f} {real:10.4f} {100 * difference:+9.1f} %  "
              f"{'within 3 %' if abs(difference) <= TOLERANCE else 'APART'}", flush=True)
    print(f"{len(arguments.only)} contracts, {apart} apart by more than {TOLERANCE:.0%}")
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
