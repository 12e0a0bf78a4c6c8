"""Streams MDS shards with MosaicML Streaming. usage: mosaic_streaming.py EPOCHS"""

import sys
import zlib

from streaming import StreamingDataset

dataset = StreamingDataset(remote="s3://data/mds", local="mds-cache", shuffle=True, batch_size=16)

for epoch in range(int(sys.argv[1])):
    samples = checksum = 0
    for sample in dataset:
        checksum += zlib.crc32(sample["image"])
        samples += 1
    print(f"epoch {epoch}: {samples} samples, checksum {checksum}", flush=True)
