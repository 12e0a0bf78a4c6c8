"""Reads files through fsspec's S3 file system. usage: s3fs_files.py EPOCHS"""

import random
import sys
import zlib

import s3fs

fs = s3fs.S3FileSystem()
paths = fs.find("data/images/")

for epoch in range(int(sys.argv[1])):
    random.shuffle(paths)
    checksum = 0
    for path in paths:
        with fs.open(path, "rb") as file:
            checksum += zlib.crc32(file.read())
    print(f"epoch {epoch}: {len(paths)} samples, checksum {checksum}", flush=True)
