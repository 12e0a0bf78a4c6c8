"""Reads objects with Amazon's S3 connector for PyTorch. usage: s3torchconnector_map.py EPOCHS"""

import sys
import zlib

import torch.utils.data
from s3torchconnector import S3MapDataset

dataset = S3MapDataset.from_prefix("s3://data/images/", region="us-east-1", transform=lambda item: item.read())
loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True, collate_fn=list)

for epoch in range(int(sys.argv[1])):
    samples = checksum = 0
    for batch in loader:
        for image in batch:
            checksum += zlib.crc32(image)
            samples += 1
    print(f"epoch {epoch}: {samples} samples, checksum {checksum}", flush=True)
