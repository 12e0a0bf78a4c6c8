"""One side of `epoch_overhead`: a compute-bound training loop, with Stoker or with plain files; protocol: turns.py.

`overhead.py stoker|files FOLDER`: one pass is one epoch of torch's DataLoader over the 4,000 samples in the order of
DistributedSampler, batches of 64. A step computes for about 20 ms on one core, ten times what loading takes.
"""

import os
import sys
import time

import torch
import torch.utils.data
from torch.utils.data.distributed import DistributedSampler

BATCH = 64
STEP_S = 0.02


class Files(torch.utils.data.Dataset):
    """One file per sample, labels from the folders, as a script without Stoker reads local files."""

    def __init__(self, folder):
        self.paths = [(os.path.join(folder, name, file), label)
                      for label, name in enumerate(sorted(os.listdir(folder)))
                      for file in sorted(os.listdir(os.path.join(folder, name)))]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path, label = self.paths[index]
        with open(path, "rb") as file:
            return touch(file.read()), label


BUFFER = memoryview(bytearray(1 << 22))


def touch(data):
    BUFFER[:len(data)] = data
    return len(data)


def files_loader(folder):
    dataset = Files(os.path.join(folder, "files"))
    sampler = DistributedSampler(dataset, 1, 0, seed=1)
    return torch.utils.data.DataLoader(dataset, batch_size=BATCH, sampler=sampler)


def stoker_loader(_):
    import stoker.torch

    dataset = stoker.torch.Dataset("bench", decode=touch)
    sampler = stoker.torch.Sampler(dataset, 1, 0, seed=1)
    return stoker.torch.DataLoader(dataset, batch_size=BATCH, sampler=sampler)


def steps_for(matrix):
    """Number of multiplications that take STEP_S on this machine; both sides of a row use the same number."""
    wanted = os.environ.get("BENCH_STEP_WORK")
    if wanted:
        return int(wanted)
    compute(matrix, 50)
    began = time.perf_counter()
    compute(matrix, 200)
    return max(1, round(STEP_S / (time.perf_counter() - began) * 200))


def compute(matrix, count):
    result = matrix
    for _ in range(count):
        result = result @ matrix
    return float(result[0, 0])


def main():
    kind, folder = sys.argv[1:]
    torch.set_num_threads(1)
    loader = {"stoker": stoker_loader, "files": files_loader}[kind](folder)
    matrix = torch.eye(96)
    work = steps_for(matrix)
    print("ready", flush=True)
    for line in sys.stdin:
        first, passes = map(int, line.split())
        began, total = time.perf_counter(), 0
        for epoch in range(first, first + passes):
            loader.sampler.set_epoch(epoch)
            for sizes, _ in loader:
                total += int(sizes.sum())
                compute(matrix, work)
        print(f"{time.perf_counter() - began:.9f} {total // passes}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] == "calibrate":
        torch.set_num_threads(1)
        print(steps_for(torch.eye(96)))
    else:
        main()
