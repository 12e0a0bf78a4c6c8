"""Writes the same JPEG images in each library's format, as its documents say.

usage: make_images.py FOLDER        FOLDER/images/{files,shards,mds,litdata}/...

COUNT images of WIDTH x HEIGHT, gradients and noise of two sizes, about 110 KiB each. The shards of each format hold
PER_SHARD images, 4 MiB, so that two workers share a small dataset evenly.
"""

import io
import pathlib
import random
import sys

import litdata.streaming.writer
import numpy
import streaming
import webdataset
from PIL import Image

COUNT = 608
CLASSES = 8
PER_SHARD = 38
WIDTH, HEIGHT, QUALITY = 500, 375, 90
SEED = 23


def image(number):
    """The bytes of a JPEG."""
    source = numpy.random.default_rng([SEED, number])
    down, right = (numpy.linspace(0, source.uniform(20, 90), length) for length in (HEIGHT, WIDTH))
    coarse = Image.fromarray(source.integers(0, 256, (12, 16, 3), dtype=numpy.uint8))
    smooth = numpy.asarray(coarse.resize((WIDTH, HEIGHT), Image.BICUBIC))
    pixels = 0.4 * smooth + numpy.add.outer(down, right)[..., None] + source.normal(0, 22, (HEIGHT, WIDTH, 1))
    out = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8)).save(out, "JPEG", quality=QUALITY)
    return out.getvalue()


def write_files(folder, images):
    for number, (data, label) in enumerate(images):
        path = folder / f"class-{label}" / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_tars(folder, images):
    folder.mkdir()
    for first in range(0, len(images), PER_SHARD):
        with webdataset.TarWriter(str(folder / f"train-{first // PER_SHARD:06}.tar"), mtime=0) as tar:
            for number, (data, label) in enumerate(images[first:first + PER_SHARD], first):
                tar.write({"__key__": f"{number:05}", "jpg": data, "cls": str(label)})


def write_mds(folder, images):
    limit = PER_SHARD * sum(len(data) for data, _ in images) // len(images)
    with streaming.MDSWriter(out=str(folder), columns={"image": "bytes", "label": "int"}, size_limit=limit) as writer:
        for data, label in images:
            writer.write({"image": data, "label": label})


def write_litdata(folder, images):
    folder.mkdir()
    writer = litdata.streaming.writer.BinaryWriter(str(folder), chunk_size=PER_SHARD)
    for number, (data, label) in enumerate(images):
        writer.add_item(number, {"image": data, "label": label})
    writer.done()
    writer.merge()


WRITERS = {"files": write_files, "shards": write_tars, "mds": write_mds, "litdata": write_litdata}


def main():
    folder = pathlib.Path(sys.argv[1]) / "images"
    folder.mkdir(parents=True)
    order = random.Random(SEED).sample(range(COUNT), COUNT)
    images = [(image(number), number % CLASSES) for number in order]
    for name, write in WRITERS.items():
        write(folder / name, images)
    print(sum(len(data) for data, _ in images))


if __name__ == "__main__":
    main()
