"""Streams tar shards through a pipe from the AWS command line. usage: webdataset_tars.py EPOCHS"""

import sys
import zlib

import webdataset

url = "pipe:aws s3 cp s3://data/shards/train-{000000..000031}.tar -"
dataset = webdataset.WebDataset(url, shardshuffle=32).shuffle(64)

for epoch in range(int(sys.argv[1])):
    samples = checksum = 0
    for sample in dataset:
        checksum += zlib.crc32(sample["bin"])
        samples += 1
    print(f"epoch {epoch}: {samples} samples, checksum {checksum}", flush=True)
