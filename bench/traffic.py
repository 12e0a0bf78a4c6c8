#!/usr/bin/env python3
"""make traffic: what the real sidecar reads at the origin under each contract, compared with `stoker simulate`.

usage: traffic.py --build DIR [--samples 20000] [--epochs 12] [--only CONTRACT ...]

For each contract: a stoker-sidecar over a folder of samples with equal or log-normal sizes and a grant for a fifth of
them, and one client that draws, reads and reports losses like the simulator's; then the simulator with the same
parameters, from the sidecar's manifest. Compares the bytes that the sidecar reads at its origin over all epochs after
the warm-up, in data sets per epoch. Exits with 1 if the two differ by more than 3 % for any contract. The losses have
the simulator's distribution but other random numbers; the 3 % allow for that.
"""

import argparse
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import servers

HERE = pathlib.Path(__file__).resolve().parent
SHARE = 0.2
SAMPLE_BYTES = 4000
HEADER_BYTES, ALIGNMENT = 64, 64  # of a segment record
WINDOW_BYTES = 4 << 20
BATCH, AHEAD = 64, 2
SIGMA = 0.6  # of the logarithm of unequal sizes
WARMUP, DISCARD = 2, 3  # full epochs; epochs that the comparison leaves out
DECAY = 0.1  # of the losses, from epoch to epoch; without it IOWA detects stagnation and samples nothing out
COMPUTE_RATE = 10_000_000  # samples per second of the simulated trainer; the real one does no computing
TOLERANCE = 0.03

UNEQUAL = ", unequal sizes"  # suffix of rows with unequal sizes

# name: the loader's contract and parameters, the simulator's options
ROWS = {
    "exact": ("exact", {}, {"contract": "exact"}),
    "windowed": ("windowed", {}, {"contract": "windowed"}),
    "windowed, chunks": ("windowed", {"chunk_group": 4}, {"contract": "windowed", "chunk-group": 4}),
    "importance": ("importance", {"warmup_epochs": WARMUP}, {"contract": "importance", "warmup-epochs": WARMUP}),
    "importance, beta 1": ("importance", {"warmup_epochs": WARMUP, "beta": 1.0},
                           {"contract": "importance", "warmup-epochs": WARMUP, "beta": 1}),
    "importance, IOWA": ("importance", {"family": "iowa"},
                         {"contract": "importance", "family": 1, "loss-decay": DECAY}),
    "replicate, r 1": ("replicate", {"replication": 1}, {"contract": "replicate", "replication": 1}),
    "replicate, r 3": ("replicate", {"replication": 3}, {"contract": "replicate", "replication": 3}),
}
ROWS.update({name + UNEQUAL: ROWS[name] for name in ("exact", "windowed", "importance", "importance, IOWA")})


def sizes_of(row, samples):
    """Bytes of each sample, in the order of names."""
    if not row.endswith(UNEQUAL):
        return [SAMPLE_BYTES] * samples
    luck = random.Random(samples)
    mean = math.log(SAMPLE_BYTES) - SIGMA**2 / 2
    return [4 + int(luck.lognormvariate(mean, SIGMA)) for _ in range(samples)]


def grant_of(sizes):
    """Bytes that a fifth of the samples take in segments."""
    return int(SHARE * sum(-(-(HEADER_BYTES + size) // ALIGNMENT) * ALIGNMENT for size in sizes))


def make_files(out, row, samples):
    """Makes a folder with a row's samples, unless it exists."""
    folder = out / f"files-{samples}{'-unequal' if row.endswith(UNEQUAL) else ''}"
    marker = folder.with_suffix(".made")
    if marker.exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    for number, size in enumerate(sizes_of(row, samples)):
        path = folder / f"{number * 10 // samples}" / f"{number:07d}.bin"  # names sort in the order of sizes_of()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((number.to_bytes(4, "little") * (size // 4 + 1))[:size])
    marker.write_bytes(b"")
    return folder


def losses_of(samples, seed):
    """Losses as in `stoker simulate`: log-normal(0,1) per sample, times log-normal noise (0,.3) per visit."""
    import numpy

    luck = numpy.random.default_rng(seed)
    own = luck.normal(0, 1, samples)
    return lambda ids, scale: (scale * numpy.exp(own[ids] + luck.normal(0, 0.3, len(ids)))).astype(numpy.float32)


def read_epochs(socket, contract, parameters, seed, epochs, losses):
    """Reads epoch after epoch; yields after each epoch."""
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


def measured(build, row, samples, epochs, out, seed, window=WINDOW_BYTES):
    """(data sets per epoch read from the origin after the first DISCARD epochs; the manifest, for simulated())."""
    contract, parameters, _ = ROWS[row]
    files, sizes = make_files(out, row, samples), sizes_of(row, samples)
    with tempfile.TemporaryDirectory(prefix="stoker-traffic-", dir=out) as folder:
        node = pathlib.Path(folder) / "run" / "node"
        with servers.counted_sidecar(build / "bin" / "stoker-sidecar", node.parent, {"uri": f"file://{files}"},
                                     grant_of(sizes), window) as (socket, origin_bytes):
            before = total = 0
            for epoch, alone in read_epochs(socket, contract, parameters, seed, epochs, losses_of(samples, seed)):
                if alone:
                    raise SystemExit(f"traffic: {row}: {alone} bytes were read without the sidecar")
                if epoch + 1 in (DISCARD, epochs):
                    before, total = total, servers.settled(origin_bytes)
        manifest = shutil.copy(next((node / "data").glob("manifest.*")), out / f"manifest-{samples}-{sum(sizes)}")
    return (total - before) / (sum(sizes) * (epochs - DISCARD)), manifest


def simulated(build, row, samples, epochs, manifest, seed, window=WINDOW_BYTES):
    whole = grant_of(sizes_of(row, samples)) + window
    job = ",".join(f"{key}={value}" for key, value in ROWS[row][2].items())
    command = [build / "bin" / "stoker", "simulate", "--json", "--manifest", manifest, "--compute-rate", COMPUTE_RATE,
               "--cache-bytes", whole, "--window-share", repr(window / whole), "--job", job, "--epochs", epochs,
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
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    print(f"{'contract':32} {'simulated':>10} {'measured':>10} {'difference':>10}", flush=True)
    apart = 0
    for row in arguments.only:
        real, manifest = measured(build, row, arguments.samples, arguments.epochs, out, arguments.seed)
        model = simulated(build, row, arguments.samples, arguments.epochs, manifest, arguments.seed)
        difference = (real - model) / model
        apart += abs(difference) > TOLERANCE
        print(f"{row:32} {model:10.4f} {real:10.4f} {100 * difference:+9.1f} %  "
              f"{'within 3 %' if abs(difference) <= TOLERANCE else 'APART'}", flush=True)
    print(f"{len(arguments.only)} contracts, {apart} apart by more than {TOLERANCE:.0%}")
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
