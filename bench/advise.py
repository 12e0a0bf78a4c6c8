#!/usr/bin/env python3
"""make advise: compares the predictions of `stoker advise` with real runs.

usage: advise.py --build DIR [--stoker PROGRAM] [--samples 2000] [--only RUN ...]

For each run: a torch program without Stoker reads samples of log-normal sizes from the tests' S3 server with boto3 and
records a trace with the snippet of docs/howto/advise.md; `stoker advise` predicts the bytes from the origin for a cache
of `share` of the dataset; the same program with stoker.torch then reads through a real stoker-sidecar with this grant.
Compares the prediction with the bytes of GETs that the server has sent. Exits with 1 if a prediction is off by more
than 5 %.
"""

import argparse
import dataclasses
import json
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import servers

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "howto" / "advise.md"
BUCKET = "advise"
MEAN_BYTES, SIGMA = 12_000, 0.6
WINDOW_BYTES = 2 << 20
BATCH, WORKERS, SEED = 32, 2, 7
TOLERANCE = 0.05


@dataclasses.dataclass
class Row:
    share: float  # share of the dataset that is cached
    epochs: int
    ranks: int = 1
    weighted: bool = False  # draws with replacement, samples at very unequal rates


ROWS = {
    "shuffled epochs, w = 0.3": Row(0.3, 4),
    "weighted draws with repetition, w = 0.25": Row(0.25, 4, weighted=True),
    "two ranks share a node, w = 0.5": Row(0.5, 3, ranks=2),
}


def make_bucket(root, samples):
    """Writes the objects; returns their keys in order and sizes by key."""
    luck = random.Random(samples)
    sizes = {}
    for number in range(samples):
        key = f"{number % 4}/{number:06d}.bin"
        sizes[key] = 1 + int(luck.lognormvariate(0, SIGMA) * MEAN_BYTES)
        path = root / BUCKET / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(luck.randbytes(sizes[key]))
    return sorted(sizes), sizes


def recorder():
    """The class Recorded, as docs/howto/advise.md shows it."""
    scope = {}
    block = re.search(r"```python\n(.*?class Recorded.*?)```", PAGE.read_text(), re.DOTALL)
    exec(block.group(1), scope)
    return scope["Recorded"]


def drawn(row, samples):
    """The weighted sampler of a run, with its own random numbers."""
    import torch

    weights = [1 / (1 + number) ** 0.8 for number in range(samples)]
    luck = torch.Generator().manual_seed(SEED)
    return torch.utils.data.WeightedRandomSampler(weights, samples, replacement=True, generator=luck)


def read_all(loader, sampler, epochs):
    for epoch in range(epochs):
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
        for _ in loader:
            pass


def read_bare(rank, endpoint, keys, sizes, row, trace):
    """A rank without Stoker: boto3 and torch's loader; writes the trace."""
    import boto3
    import botocore.config
    import torch

    class Objects(torch.utils.data.Dataset):
        client = None

        def __len__(self):
            return len(keys)

        def __getitem__(self, index):
            if self.client is None:  # each worker has its own
                self.client = boto3.client(
                    "s3", endpoint_url=endpoint, region_name="us-east-1",
                    config=botocore.config.Config(s3={"addressing_style": "path"}))
            return self.client.get_object(Bucket=BUCKET, Key=keys[index])["Body"].read()

    os.environ["RANK"] = str(rank)
    dataset = recorder()(Objects(), str(trace), lambda index: sizes[keys[index]])
    if row.weighted:
        sampler = drawn(row, len(keys))
    else:
        sampler = torch.utils.data.distributed.DistributedSampler(dataset, row.ranks, rank, seed=SEED)
    loader = torch.utils.data.DataLoader(dataset, BATCH, sampler=sampler, num_workers=WORKERS,
                                         collate_fn=list)
    read_all(loader, sampler, row.epochs)


def read_cached(rank, socket, row):
    """The same rank, reading with stoker.torch."""
    import stoker
    import stoker.torch

    with stoker.open("train", socket=str(socket)) as samples:
        dataset = stoker.torch.Dataset(samples, decode=bytes)
        if row.weighted:
            sampler = drawn(row, len(dataset))
        else:
            sampler = stoker.torch.Sampler(dataset, row.ranks, rank, seed=SEED)
        loader = stoker.torch.DataLoader(dataset, batch_size=BATCH, sampler=sampler, num_workers=WORKERS,
                                         collate_fn=list)
        read_all(loader, sampler, row.epochs)
        if loader.stats()["origin_bytes"]:
            raise SystemExit("advise: samples were read without the sidecar")


def in_processes(target, arguments, ranks):
    """Runs target(rank, *arguments) for each rank at the same time."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=target, args=(rank, *arguments)) for rank in range(ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit(f"advise: a rank ended with {process.exitcode}")


def sent(endpoint):
    """Bytes of objects that the server has sent."""
    with urllib.request.urlopen(f"{endpoint}/__stats") as answer:
        return json.load(answer)["get_bytes"]


def predicted(program, trace, grant):
    command = [program, "advise", "--trace", trace, "--json", "--cache", grant, "--window", WINDOW_BYTES,
               "--batch", BATCH]
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["asked"]["neverEvict"]["originBytes"]


def compare(build, program, row, samples, folder):
    """(bytes without a cache, predicted bytes, counted bytes)"""
    keys, sizes = make_bucket(folder / "s3", samples)
    grant = int(row.share * sum(servers.record_bytes(size) for size in sizes.values()))
    with servers.fake_s3(build, folder / "s3") as endpoint:
        in_processes(read_bare, (endpoint, keys, sizes, row, folder / "trace"), row.ranks)
        bare = sent(endpoint)
        trace = folder / "trace.txt"
        trace.write_bytes(b"".join(path.read_bytes() for path in sorted(folder.glob("trace.[0-9]*"))))
        expected = predicted(program, trace, grant)
        origin = {"uri": f"s3://{BUCKET}", "endpoint": endpoint}
        with servers.watched_sidecar(build / "bin" / "stoker-sidecar", folder / "run", origin, grant,
                                     WINDOW_BYTES) as (socket, _):
            in_processes(read_cached, (socket, row), row.ranks)
            counted = servers.settled(lambda: sent(endpoint)) - bare
    return bare, expected, counted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build" / "release")
    parser.add_argument("--stoker", type=pathlib.Path, help="the program stoker (default: the build's)")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--only", nargs="*", default=list(ROWS), choices=list(ROWS))
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.build / "python"))
    os.environ.update(servers.CREDENTIALS, STOKER_DATASETS="{}")
    program = arguments.stoker or arguments.build / "bin" / "stoker"
    print("| run | without a cache | predicted | counted | difference |\n| --- | ---: | ---: | ---: | ---: |")
    worst = 0.0
    for name in arguments.only:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="stoker-advise-"))
        bare, expected, counted = compare(arguments.build, program, ROWS[name], arguments.samples, folder)
        shutil.rmtree(folder)
        off = expected / counted - 1
        worst = max(worst, abs(off))
        print(f"| {name} | {bare / 1e6:.1f} MB | {expected / 1e6:.1f} MB | {counted / 1e6:.1f} MB | {off:+.1%} |", flush=True)
    if worst > TOLERANCE:
        print(f"advise: a prediction is off by {worst:.1%}, more than {TOLERANCE:.0%}", file=sys.stderr)
    return 1 if worst > TOLERANCE else 0


if __name__ == "__main__":
    sys.exit(main())
