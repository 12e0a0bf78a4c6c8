"""A test trainer without a model: reads under the contract of its TrainingJob and prints each epoch's report and counts.

A sample's loss is its label, so that high digits are important. `wrong` counts items whose label is not that of their
id, or whose bytes differ from those that the id had before. `--hold EPOCH:0` works as in read_epochs.py, before an
epoch or after the last one.
"""

from cues import emit, hold  # first, so that SIGTERM ends this program; pylint: disable=wrong-import-order

import argparse
import dataclasses
import time
import zlib

import stoker
import stoker.torch
import torch


def collate(items):
    return [data for data, _ in items], torch.tensor([label for _, label in items])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--contract", default="job")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--hold", metavar="EPOCH:0", action="append", default=[], help="wait here for a file")
    options = parser.parse_args()
    dataset = stoker.torch.Dataset("train", decode=bytes)
    try:
        loader = stoker.torch.DataLoader(dataset, batch_size=50, contract=options.contract, seed=7, collate_fn=collate)
    except stoker.SettingsError as error:
        emit("refused", why=str(error))
        raise SystemExit(3) from error
    targets, sums = dataset.targets, {}
    for epoch in range(options.epochs):
        hold(f"{epoch}:0", options.hold)
        began, counts, wrong = time.time(), {}, 0
        for payloads, labels, ids in loader:
            for payload, label, sample in zip(payloads, labels.tolist(), ids.tolist()):
                counts[sample] = counts.get(sample, 0) + 1
                wrong += label != targets[sample] or sums.setdefault(sample, zlib.crc32(payload)) != zlib.crc32(payload)
            loader.report(ids, labels.float())
        emit("epoch", **{**dataclasses.asdict(loader.epoch_report()), "once": sum(n == 1 for n in counts.values()),
                         "wrong": wrong, "high": sum(n for sample, n in counts.items() if targets[sample] >= 5),
                         "began_ms": int(began * 1000), "seconds": round(time.time() - began, 3)})
    hold(f"{options.epochs}:0", options.hold)
    emit("end", stats=stoker.stats())


if __name__ == "__main__":
    main()
