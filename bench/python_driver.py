"""One side of a row, in Python; protocol: turns.py. `python_driver.py stoker|memoryview FOLDER`.

Both sides copy every sample into one reused buffer, the cheapest way to touch every byte from Python. They compute no
sum; `check` compares all bytes once instead.
"""

import mmap
import os
import random
import sys
import time

BATCH = 64


def flat_samples(folder):
    """The samples as slices of one mapped file, by id; sizes are those of the files with one sample each."""
    with open(os.path.join(folder, "flat.bin"), "rb") as file:
        flat = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    offsets = [0]
    for name in sorted(os.listdir(os.path.join(folder, "files"))):
        for sample in sorted(os.listdir(os.path.join(folder, "files", name))):
            offsets.append(offsets[-1] + os.path.getsize(os.path.join(folder, "files", name, sample)))
    return flat, offsets


def memoryview_reader(folder):
    flat, offsets = flat_samples(folder)
    buffer = memoryview(bytearray(max(end - begin for begin, end in zip(offsets, offsets[1:]))))

    def read(ids):
        for id in ids:
            view = flat[offsets[id]:offsets[id + 1]]
            buffer[:len(view)] = view

    return read, len(offsets) - 1


def stoker_reader(folder):
    import stoker

    samples = stoker.open("bench")
    samples.fetch(range(len(samples)))  # fetches the samples that the sidecar does not have yet
    check(samples, folder)
    return copying_reader(samples, max(len(sample) for sample in samples.fetch(range(len(samples)))))


def copying_reader(samples, largest):
    """`largest`: bytes of the largest sample."""
    buffer = memoryview(bytearray(largest))

    def read(ids):
        for sample in samples.fetch(ids):
            view = sample.view
            buffer[:len(view)] = view

    return read, len(samples)


def check(samples, folder):
    flat, offsets = flat_samples(folder)
    for sample in samples.fetch(range(len(samples))):
        if sample.source != "node" or sample.view != flat[offsets[sample.id]:offsets[sample.id + 1]]:
            raise SystemExit(f"bench: sample {sample.id} differs from the flat file")


def main():
    kind, folder = sys.argv[1:]
    read, count = {"stoker": stoker_reader, "memoryview": memoryview_reader}[kind](folder)
    print("ready", flush=True)
    for line in sys.stdin:
        first, passes = map(int, line.split())
        orders = [random.Random(first + number).sample(range(count), count) for number in range(passes)]
        began = time.perf_counter()
        for order in orders:
            for at in range(0, count, BATCH):
                read(order[at:at + BATCH])
        print(f"{time.perf_counter() - began:.9f} -", flush=True)


if __name__ == "__main__":
    main()
