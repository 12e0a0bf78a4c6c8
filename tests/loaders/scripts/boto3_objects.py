"""Reads every object of a prefix once per epoch, in random order. usage: boto3_objects.py EPOCHS"""

import random
import sys
import zlib

import boto3

s3 = boto3.client("s3")
pages = s3.get_paginator("list_objects_v2").paginate(Bucket="data", Prefix="images/")
keys = [item["Key"] for page in pages for item in page["Contents"]]

for epoch in range(int(sys.argv[1])):
    random.shuffle(keys)
    checksum = 0
    for key in keys:
        image = s3.get_object(Bucket="data", Key=key)["Body"].read()
        checksum += zlib.crc32(image)
    print(f"epoch {epoch}: {len(keys)} samples, checksum {checksum}", flush=True)
