"""Streams optimized chunks with LitData. usage: litdata_streaming.py EPOCHS"""

import sys
import zlib

from litdata import StreamingDataset


def main():
    dataset = StreamingDataset("s3://data/litdata", shuffle=True)

    for epoch in range(int(sys.argv[1])):
        samples = checksum = 0
        for sample in dataset:
            checksum += zlib.crc32(sample["image"])
            samples += 1
        print(f"epoch {epoch}: {samples} samples, checksum {checksum}", flush=True)


if __name__ == "__main__":
    main()
