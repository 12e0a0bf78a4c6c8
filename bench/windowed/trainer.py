"""One training process of windowed/jobs.py: reads as many batches as requested, and checks them.

Stands in for a job with a fixed step time: the harness hands out the steps, so speeds are ratios of steps and do not
depend on the machine's load. Client, loader and sidecar are real.

stdin: a number of batches per line; stdout: one JSON line for each, after they have been read.
"""

import json
import sys

import numpy as np

import stoker
import stoker.torch


def identity(batch):
    """Collates to the samples' unchanged bytes and labels."""
    return [data for data, _ in batch], [label for _, label in batch]


def numbers_by_id(count):
    """The numbers of jobs.py's objects in the order of their keys, which is the order of ids."""
    return sorted(range(count), key=lambda number: (number % 10, number))


def check(numbers, payloads, labels, ids):
    """Checks that bytes, label and id belong to one sample: bytes begin with the number, the folder is its last
    digit."""
    for payload, label, index in zip(payloads, labels, ids):
        assert int.from_bytes(payload[:8], "little") == numbers[index] and label == numbers[index] % 10, index


def batches(loader, count, sampler, books):
    """Yields batches without end; closes the epoch's counts at the end of each."""
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
    if settings["ahead"]:
        options |= {"num_workers": 1, "prefetch_factor": settings["ahead"]}
    sampler = None
    if settings["contract"] == "exact":  # as in any torch program: a sampler and no contract
        sampler = stoker.torch.Sampler(dataset, 1, 0, seed=settings["seed"])
        loader = stoker.torch.DataLoader(dataset, sampler=sampler, **options)
    else:
        loader = stoker.torch.DataLoader(dataset, contract=settings["contract"], seed=settings["seed"], **options)
    books = []
    stream = batches(loader, len(samples), sampler, books)
    print(json.dumps({"samples": len(samples)}), flush=True)
    for line in sys.stdin:
        drawn = sum(next(stream) for _ in range(int(line)))
        # The client acknowledges reads in batches. Send the rest now: a real trainer computes so long between two steps
        # that nothing is left to send. With `ahead`, a worker process reads, acknowledges and counts, not this one.
        samples.flush()
        print(json.dumps({"drawn": drawn, "books": books, "alone": samples.stats()["origin_samples"]}), flush=True)


if __name__ == "__main__":
    main()
