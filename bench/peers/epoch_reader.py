"""Client of the row "capacity": reads an epoch for each line; answers `SECONDS CHECKSUM`.

usage: epoch_reader.py stoker|files SOCKET|FOLDER SAMPLES
"""

import os
import pathlib
import sys
import time
import zlib

import torch.utils.data
from torch.utils.data.distributed import DistributedSampler

BATCH = 16
WORKERS = 2


class Files(torch.utils.data.Dataset):
    """A dataset with one file per sample; drops each file from the page cache after its read."""

    def __init__(self, folder):
        self.paths = sorted(str(path) for path in pathlib.Path(folder).rglob("*.bin"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb", buffering=0) as file:
            data = file.readall()
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return zlib.crc32(data)


def options(sampler):
    return {"batch_size": BATCH, "sampler": sampler, "num_workers": WORKERS, "persistent_workers": True,
            "collate_fn": sum}


def files_loader(folder):
    dataset = Files(folder)
    return torch.utils.data.DataLoader(dataset, **options(DistributedSampler(dataset, 1, 0, seed=1)))


def checksum_of(pairs):
    return sum(checksum for checksum, _ in pairs)


def stoker_loader(socket):
    os.environ["STOKER_SOCKET"] = socket
    import stoker.torch

    dataset = stoker.torch.Dataset("bench", decode=zlib.crc32)
    sampler = stoker.torch.Sampler(dataset, 1, 0, seed=1)
    return stoker.torch.DataLoader(dataset, **options(sampler) | {"collate_fn": checksum_of})


def main():
    kind, where, count = sys.argv[1:]
    loader = {"stoker": stoker_loader, "files": files_loader}[kind](where)
    if len(loader.dataset) != int(count):
        raise SystemExit(f"{len(loader.dataset)} samples instead of {count}")
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.monotonic()
        loader.sampler.set_epoch(int(line))
        checksum = sum(loader)
        print(f"{time.monotonic() - began:.6f} {checksum}", flush=True)


if __name__ == "__main__":
    main()
