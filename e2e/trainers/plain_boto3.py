"""A test trainer that knows nothing of Stoker: boto3 with the environment's settings. It reads a whole bucket in each
epoch and writes a checkpoint to another bucket after the first one."""

from cues import emit, hold  # first, so that SIGTERM ends this program; pylint: disable=wrong-import-order

import argparse
import hashlib
import os
import random
import time

import boto3

BATCH = 50
CHECKPOINT_BYTES = 3 << 20


def list_keys(s3, bucket):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


def read_epoch(s3, options, keys, epoch):
    order = random.Random(epoch).sample(keys, len(keys))
    digests, retries = {}, 0
    for number, key in enumerate(order):
        if number % BATCH == 0:
            hold(f"{epoch}:{number // BATCH}", options.hold)
            time.sleep(options.step_ms / 1000)  # pretends to compute
        answer = s3.get_object(Bucket=options.bucket, Key=key)
        digests[key] = hashlib.sha256(answer["Body"].read()).hexdigest()
        retries += answer["ResponseMetadata"]["RetryAttempts"]
    emit("epoch", epoch=epoch, retries=retries, digests=digests)


def write_checkpoint(s3, bucket):
    body = os.urandom(CHECKPOINT_BYTES)
    s3.put_object(Bucket=bucket, Key="run/model.pt", Body=body)
    emit("checkpoint", sha256=hashlib.sha256(body).hexdigest())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--checkpoints", metavar="BUCKET", required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--step-ms", type=float, default=0.0, help="pretend to compute, each batch")
    parser.add_argument("--hold", metavar="EPOCH:BATCH", action="append", default=[], help="wait here for a file")
    options = parser.parse_args()
    s3 = boto3.client("s3")
    keys = list_keys(s3, options.bucket)
    emit("start", samples=len(keys))
    for epoch in range(options.epochs):
        read_epoch(s3, options, keys, epoch)
        if epoch == 0:
            write_checkpoint(s3, options.checkpoints)
    emit("end")


if __name__ == "__main__":
    main()
