"""A test trainer that knows nothing of Stoker: it walks a folder and reads every file in each epoch, as ImageFolder
does, and maps one of them."""

from cues import emit, hold  # first, so that SIGTERM ends this program; pylint: disable=wrong-import-order

import argparse
import hashlib
import mmap
import os
import random
import time

BATCH = 50


def list_files(root):
    found = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names]
    return sorted(os.path.relpath(path, root) for path in found)


def read_epoch(options, files, epoch):
    digests = {}
    for number, name in enumerate(random.Random(epoch).sample(files, len(files))):
        if number % BATCH == 0:
            hold(f"{epoch}:{number // BATCH}", options.hold)
            time.sleep(options.step_ms / 1000)  # pretends to compute
        with open(os.path.join(options.root, name), "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # a file that the kernel no longer caches
            digests[name] = hashlib.sha256(file.read()).hexdigest()
    emit("epoch", epoch=epoch, digests=digests)


def map_file(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        emit("mapped", sha256=hashlib.sha256(view).hexdigest())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--step-ms", type=float, default=0.0, help="pretend to compute, each batch")
    parser.add_argument("--hold", metavar="EPOCH:BATCH", action="append", default=[], help="wait here for a file")
    options = parser.parse_args()
    files = list_files(options.root)
    emit("start", samples=len(files))
    for epoch in range(options.epochs):
        read_epoch(options, files, epoch)
    map_file(os.path.join(options.root, files[0]))
    emit("end")


if __name__ == "__main__":
    main()
