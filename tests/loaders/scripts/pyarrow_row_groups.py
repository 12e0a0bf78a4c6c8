"""Reads the row groups of one large Parquet file in random order. usage: pyarrow_row_groups.py EPOCHS"""

import random
import sys
import zlib

import pyarrow.fs
import pyarrow.parquet

filesystem, path = pyarrow.fs.FileSystem.from_uri("s3://data/large-parquet/train.parquet")
source = random.Random(7)

for epoch in range(int(sys.argv[1])):
    samples = checksum = 0
    file = pyarrow.parquet.ParquetFile(path, filesystem=filesystem)
    groups = list(range(file.num_row_groups))
    source.shuffle(groups)
    for group in groups:
        for image in file.read_row_group(group, columns=["image"]).column("image"):
            checksum += zlib.crc32(image.as_buffer())
            samples += 1
    print(f"epoch {epoch}: {samples} samples, checksum {checksum}", flush=True)
