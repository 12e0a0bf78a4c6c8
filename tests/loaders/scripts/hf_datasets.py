"""Streams Parquet files with Hugging Face datasets. usage: hf_datasets.py EPOCHS"""

import sys
import zlib

from datasets import load_dataset

dataset = load_dataset("parquet", data_files="s3://data/parquet/*.parquet", split="train", streaming=True)
dataset = dataset.shuffle(seed=7, buffer_size=64)

for epoch in range(int(sys.argv[1])):
    dataset.set_epoch(epoch)
    samples = checksum = 0
    for row in dataset:
        checksum += zlib.crc32(row["image"])
        samples += 1
    print(f"epoch {epoch}: {samples} samples, checksum {checksum}", flush=True)
