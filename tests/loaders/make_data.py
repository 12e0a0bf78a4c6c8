"""Writes the same samples in each loader's format into a folder, the way that each library documents.

usage: make_data.py FOLDER        FOLDER/data/{images,parquet,shards,mds,litdata,large-parquet,large-shards}/...

Samples are SAMPLES blocks of SAMPLE_BYTES random bytes from SEED, so that no format can compress them. Every format but
`images` has SHARDS files with equally many samples. The large formats have one file of as many samples of LARGE_BYTES,
128 MiB. Prints for small and for large samples their number and the sum of their CRC-32.
"""

import pathlib
import random
import shutil
import sys
import tempfile
import zlib

SEED = 17
SAMPLES = 512
SAMPLE_BYTES = 48 * 1024
LARGE_BYTES = 256 * 1024
ROW_GROUP = 32  # samples in a row group of large-parquet, 8 MiB
SHARDS = 32
PER_SHARD = SAMPLES // SHARDS


def samples(size):
    source = random.Random(SEED)
    return [source.randbytes(size) for _ in range(SAMPLES)]


def shards(images):
    """(shard's number, number of its first sample, its samples)."""
    for number in range(SHARDS):
        first = number * PER_SHARD
        yield number, first, images[first:first + PER_SHARD]


def write_images(folder, images):
    for number, image in enumerate(images):
        path = folder / f"class-{number % 8}" / f"{number:05d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image)


def write_parquet(folder, images):
    import pyarrow
    import pyarrow.parquet

    folder.mkdir()
    for number, first, rows in shards(images):
        table = pyarrow.table({"id": range(first, first + len(rows)), "image": pyarrow.array(rows, pyarrow.binary())})
        pyarrow.parquet.write_table(table, folder / f"train-{number:05d}.parquet", compression="none")


def write_tars(folder, images):
    import webdataset

    folder.mkdir()
    for number, first, rows in shards(images):
        with webdataset.TarWriter(str(folder / f"train-{number:06d}.tar"), mtime=0) as tar:
            for index, row in enumerate(rows, first):
                tar.write({"__key__": f"{index:05d}", "bin": row})


def write_mds(folder, images):
    import streaming

    columns = {"id": "int", "image": "bytes"}
    # The limit leaves room for PER_SHARD samples and MDS's offsets, but not for one more sample.
    limit = PER_SHARD * SAMPLE_BYTES + SAMPLE_BYTES // 2
    with streaming.MDSWriter(out=str(folder), columns=columns, size_limit=limit) as writer:
        for index, image in enumerate(images):
            writer.write({"id": index, "image": image})


def write_litdata(folder, images):
    from litdata.streaming.writer import BinaryWriter

    folder.mkdir()
    writer = BinaryWriter(str(folder), chunk_size=PER_SHARD)
    for index, image in enumerate(images):
        writer.add_item(index, {"id": index, "image": image})
    writer.done()
    writer.merge()


def write_large_parquet(folder, images):
    import pyarrow
    import pyarrow.parquet

    folder.mkdir()
    table = pyarrow.table({"id": range(len(images)), "image": pyarrow.array(images, pyarrow.binary())})
    pyarrow.parquet.write_table(table, folder / "train.parquet", compression="none", row_group_size=ROW_GROUP,
                                use_dictionary=False)


def write_large_tar(folder, images):
    import webdataset

    folder.mkdir()
    with webdataset.TarWriter(str(folder / "train-000000.tar"), mtime=0) as tar:
        for index, image in enumerate(images):
            tar.write({"__key__": f"{index:05d}", "bin": image})


WRITERS = {"images": write_images, "parquet": write_parquet, "shards": write_tars, "mds": write_mds,
           "litdata": write_litdata}
LARGE_WRITERS = {"large-parquet": write_large_parquet, "large-shards": write_large_tar}


def main():
    target = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory(dir=target.parent) as part:
        for size, writers in ((SAMPLE_BYTES, WRITERS), (LARGE_BYTES, LARGE_WRITERS)):
            images = samples(size)
            for name, write in writers.items():
                write(pathlib.Path(part) / name, images)
            print(len(images), sum(map(zlib.crc32, images)))
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(part, target / "data")


if __name__ == "__main__":
    main()
