"""One training process of windowed/jobs.py: reads as many batches as it is told to, and checks what it gets.

Stands in for a job whose step takes a given time: the harness gives out the steps, so that speeds are ratios of steps
and not of a busy machine's seconds. Everything else is a trainer's: the client, its loader, its sidecar.

stdin: a number of batches a line; stdout: one JSON line for each, when they have been read.
"""

import json
import sys

import numpy as np

import stoker
import stoker.torch


def identity(batch):
    """Collates to the samples' bytes and labels as they came."""
    return [data for data, _ in batch], [label for _, label in batch]


def numbers_by_id(count):
    """The numbers of jobs.py's objects in the order of their keys, which is that of their ids."""
    return sorted(range(count), key=lambda number: (number % 10, number))


def check(numbers, payloads, labels, ids):
    """Bytes, label and id are of one sample: its bytes begin with its number, its folder is the last digit."""
    for payload, label, index in zip(payloads, labels, ids):
        assert int.from_bytes(payload[:8], "little") == numbers[index] and label == numbers[index] % 10, index


def batches(loader, count, sampler, books):
    """Batches without end; at the end of each epoch its book is closed."""
    numbers = numbers_by_id(count)
    epoch = 0
    while True:
        if sampler is not None:
            sampler.set_epoch(epoch)
        seen = np.zeros(count, dtype=np.int64)
        order = None if sampler is None else sampler.order()
        position = 0
        for batch in loader:
            (payloads, labels), ids = batch[:2], batch[-1]
            if sampler is not None:
                ids = order[position:position + len(payloads)]
            position += len(payloads)
            check(numbers, payloads, labels, ids)
            seen[np.asarray(ids)] += 1
            yield len(payloads)
        books.append({"epoch": epoch, "once": int((seen == 1).sum()), "else": int((seen != 1).sum())})
        epoch += 1


def main():
    settings = json.loads(sys.argv[1])
    samples = stoker.open("train", socket=settings["socket"])
    dataset = stoker.torch.Dataset(samples, decode=bytes)
    options = {"batch_size": settings["batch"], "collate_fn": identity}
    sampler = None
    if settings["contract"] == "exact":  # as any torch program: a sampler, and no contract
        sampler = stoker.torch.Sampler(dataset, 1, 0, seed=settings["seed"])
        loader = stoker.torch.DataLoader(dataset, sampler=sampler, **options)
    else:
        loader = stoker.torch.DataLoader(dataset, contract=settings["contract"], seed=settings["seed"], **options)
    books = []
    stream = batches(loader, len(samples), sampler, books)
    print(json.dumps({"samples": len(samples)}), flush=True)
    for line in sys.stdin:
        drawn = sum(next(stream) for _ in range(int(line)))
        # What was read is told some at a time; a trainer that computes for long has told it all.
        samples.flush()
        print(json.dumps({"drawn": drawn, "books": books, "alone": samples.stats()["origin_samples"]}), flush=True)


if __name__ == "__main__":
    main()
