"""A trainer of the three-jobs experiment: it reads real batches and sleeps for a fixed time per step instead of computing.

A step ends a fixed time after its batch has arrived, which simulates the accelerator's speed. Each sample has a fixed
loss, drawn from a seeded log-normal distribution. Prints one JSON line per second with its totals.
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

LINE = 64  # cache line in bytes; reading one byte of each line reads the whole sample


def emit(event, **fields):
    print(json.dumps({"event": event, "ms": int(time.time() * 1000), **fields}), flush=True)


def decode(view):
    """Reduces a sample to one number, so that batches are small and torch's copying does not dominate."""
    return int(numpy.frombuffer(view, numpy.uint8)[::LINE].sum(dtype=numpy.int64))


def loader_of(options, contract):
    """(loader, function to call before an epoch) for the TrainingJob's contract."""
    dataset = stoker.torch.Dataset("train", decode=decode)
    workers = {"num_workers": 1, "prefetch_factor": 4, "persistent_workers": True}
    if contract == "exact":
        sampler = stoker.torch.Sampler(dataset, num_replicas=1, rank=0, seed=7)
        return stoker.torch.DataLoader(dataset, options.batch_size, sampler=sampler, **workers), sampler.set_epoch
    loader = stoker.torch.DataLoader(dataset, options.batch_size, contract="job", seed=7, num_replicas=1, rank=0,
                                     **workers)
    return loader, lambda epoch: None


class Meter:
    """Counts samples and prints the totals about once per second."""

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
        time.sleep(max(0.0, ready + options.step_ms / 1000 - time.monotonic()))  # simulates the accelerator's work


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # PID 1 ignores SIGTERM by default
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
