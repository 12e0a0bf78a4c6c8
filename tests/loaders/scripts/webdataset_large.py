"""Streams a tar shard of 128 MiB through a pipe from the AWS command line. usage: webdataset_large.py EPOCHS"""

import sys
import zlib

import webdataset

dataset = webdataset.WebDataset("pipe:aws s3 cp s3://data/large-shards/train-000000.tar -", shardshuffle=False).shuffle(64)

for epoch in range(int(sys.argv[1])):
    samples = checksum = 0
    for sample in dataset:
        checksum += zlib.crc32(sample["bin"])
        samples += 1
    print(f"epoch {epoch}: {samples} samples, checksum {checksum}", flush=True)
