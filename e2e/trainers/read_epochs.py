"""A test trainer without a model: it reads every byte of every sample and prints JSON lines about them.

The cluster tests compare `digest`, which depends on order, ids, labels and bytes. With `--hold EPOCH:BATCH` the trainer
waits there for the file /tmp/go-EPOCH:BATCH, so that the test decides when it continues. EPOCH may be the number of
epochs: the point after the last one.
"""

from cues import emit, hold  # first, so that SIGTERM ends this program; pylint: disable=wrong-import-order

import argparse
import hashlib
import os
import sys
import time
import zlib

import torch.utils.data

import stoker.torch


def raw(view):
    """Decoder: returns the sample's unchanged bytes and their checksum."""
    return bytes(view)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--step-ms", type=float, default=0.0, help="pretend to compute, each batch")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--crash-once", metavar="EPOCH", type=int, help="exit 1 in this epoch of the first attempt")
    parser.add_argument("--hold", metavar="EPOCH:BATCH", action="append", default=[], help="wait here for a file")
    return parser.parse_args()


def read_epoch(loader, epoch, options, rank):
    digest, seen = hashlib.sha256(), set()
    hold(f"{epoch}:0", options.hold)
    began = time.time()
    for number, batch in enumerate(loader):
        if number > 0:
            hold(f"{epoch}:{number}", options.hold)
        for data, label, sample in batch:
            seen.add(sample)
            digest.update(f"{sample}:{label}:{zlib.crc32(data)};".encode())
        if number % 10 == 0:
            emit("progress", epoch=epoch, batch=number)
        if options.crash_once == epoch and number == 5 and os.environ.get("STOKER_ATTEMPT", "1") == "1":
            emit("crash", epoch=epoch, rank=rank)
            sys.exit(1)
        time.sleep(options.step_ms / 1000)  # pretends to compute
    return {"epoch": epoch, "rank": rank, "distinct": len(seen), "digest": digest.hexdigest(),
            "began_ms": int(began * 1000), "seconds": round(time.time() - began, 3)}


class WithIds(stoker.torch.Dataset):
    """Items are (bytes, label, id), so that a test sees which sample was served."""

    def __getitem__(self, index):
        data, label = super().__getitem__(index)
        return data, label, index

    def __getitems__(self, indices):
        return [(data, label, index) for (data, label), index in zip(super().__getitems__(indices), indices)]


def main():
    options = parse()
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    dataset = WithIds("train", decode=raw)
    sampler = stoker.torch.Sampler(dataset, num_replicas=world, rank=rank, seed=options.seed)
    loader = torch.utils.data.DataLoader(dataset, batch_size=options.batch_size, sampler=sampler,
                                         num_workers=options.workers, collate_fn=list,
                                         persistent_workers=options.workers > 0)
    emit("start", rank=rank, world=world, attempt=os.environ.get("STOKER_ATTEMPT"), samples=len(dataset))
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        emit("epoch", **read_epoch(loader, epoch, options, rank))
    hold(f"{options.epochs}:0", options.hold)
    emit("end", stats=stoker.stats())


if __name__ == "__main__":
    main()
