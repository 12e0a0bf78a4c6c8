"""A trainer of the three-jobs experiment: real batches, and instead of computing a fixed pause for each of them.

A step ends so many milliseconds after its batch was there, whatever the processor did meanwhile: that is how fast the
accelerator is. Losses are made up: each sample has one of its own, log-normal and seeded. Prints one JSON line a second
with all that it has read so far.
"""

import argparse
import json
import os
import signal
import sys
import time

import numpy
import torch

import stoker.torch

LINE = 64  # bytes; one of each is looked at, so that all of a sample is really read


def emit(event, **fields):
    print(json.dumps({"event": event, "ms": int(time.time() * 1000), **fields}), flush=True)


def decode(view):
    """A sample as one number: small batches, so that what is measured is not torch's copying."""
    return int(numpy.frombuffer(view, numpy.uint8)[::LINE].sum(dtype=numpy.int64))


def loader_of(options, contract):
    """(loader, what to do before an epoch) for the contract that the TrainingJob names."""
    dataset = stoker.torch.Dataset("train", decode=decode)
    workers = {"num_workers": 1, "prefetch_factor": 4, "persistent_workers": True}
    if contract == "exact":
        sampler = stoker.torch.Sampler(dataset, num_replicas=1, rank=0, seed=7)
        return stoker.torch.DataLoader(dataset, options.batch_size, sampler=sampler, **workers), sampler.set_epoch
    loader = stoker.torch.DataLoader(dataset, options.batch_size, contract="job", seed=7, num_replicas=1, rank=0,
                                     **workers)
    return loader, lambda epoch: None


class Meter:
    """Counts, and tells about once a second."""

    def __init__(self):
        self.samples = 0
        self.told_at = 0.0

    def read(self, epoch, count):
        self.samples += count
        if time.monotonic() - self.told_at >= 1:
            self.told_at = time.monotonic()
            emit("read", epoch=epoch, samples=self.samples)


def train(loader, options, epoch, meter, losses):
    for batch in loader:
        ready = time.monotonic()
        meter.read(epoch, len(batch[0]))
        if losses is not None:
            ids = batch[-1]
            loader.report(ids, losses[ids])
        time.sleep(max(0.0, ready + options.step_ms / 1000 - time.monotonic()))  # stands for an accelerator's work


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as the first process it would ignore it otherwise
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--step-ms", type=float, required=True)
    options = parser.parse_args()
    told = json.loads(os.environ["STOKER_DATASETS"])["train"]
    contract = told.get("contract", "exact")
    loader, set_epoch = loader_of(options, contract)
    count = len(loader.dataset)
    losses = None if contract == "exact" else torch.exp(torch.randn(count, generator=torch.Generator().manual_seed(7)))
    emit("start", contract=contract, samples=count)
    meter, epoch = Meter(), 0
    while True:
        set_epoch(epoch)
        train(loader, options, epoch, meter, losses)
        emit("epoch", epoch=epoch)
        epoch += 1


if __name__ == "__main__":
    main()
