"""Client of the row "images": torch's DataLoader with two workers; each line reads an epoch and answers `IMAGES
SECONDS`.

usage: image_reader.py KIND WHERE        KIND: stoker, imagefolder, litdata, mosaic, webdataset
    WHERE: a folder; for stoker the sidecar's socket; or s3://BUCKET/KEY, which begins with an empty cache

The clock starts before the dataset is opened, so that the first epoch is a cold one with all its costs. Every kind
decodes with Pillow, cuts 224 x 224 pixels, and gives batches of uint8 tensors.
"""

import hashlib
import importlib
import io
import os
import sys
import tempfile
import time

import torch
import torch.utils.data
from PIL import Image
from torchvision import datasets, transforms

BATCH = 32
WORKERS = 2
SHARDS = 16
OF_NO_BODY = hashlib.sha256().hexdigest()  # digest of an empty body: S3 demands the header, but curl omits it
OPTIONS = {"batch_size": BATCH, "num_workers": WORKERS, "persistent_workers": True}
TRANSFORM = transforms.Compose([transforms.CenterCrop(224), transforms.PILToTensor()])


def decoded(data):
    with Image.open(io.BytesIO(data)) as image:
        return TRANSFORM(image.convert("RGB"))


def imagefolder(where):
    return torch.utils.data.DataLoader(datasets.ImageFolder(where, TRANSFORM), shuffle=True, **OPTIONS)


def stoker(where):
    import stoker.torch

    os.environ["STOKER_SOCKET"] = where

    dataset = stoker.torch.Dataset("bench", TRANSFORM)
    return stoker.torch.DataLoader(dataset, sampler=stoker.torch.Sampler(dataset, 1, 0, seed=1), **OPTIONS)


def litdata(where):
    import litdata

    class Images(litdata.StreamingDataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return decoded(sample["image"]), sample["label"]

    return litdata.StreamingDataLoader(Images(where, shuffle=True), **OPTIONS)


def mosaic(where):
    import streaming
    import streaming.base.util

    streaming.base.util.clean_stale_shared_memory()  # of a client that was killed

    class Images(streaming.StreamingDataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return decoded(sample["image"]), sample["label"]

    place = {"remote": where, "local": tempfile.mkdtemp()} if where.startswith("s3:") else {"local": where}
    return torch.utils.data.DataLoader(Images(**place, shuffle=True, batch_size=BATCH), **OPTIONS)


def webdataset(where):
    import webdataset

    name = f"train-{{000000..{SHARDS - 1:06}}}.tar"
    if where.startswith("s3://"):
        url = f"{os.environ['AWS_ENDPOINT_URL']}/{where.removeprefix('s3://')}/{name}"
        sign = f"--aws-sigv4 aws:amz:{os.environ['AWS_REGION']}:s3 --user $AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"
        url = f"pipe:curl --silent --fail {sign} -H x-amz-content-sha256:{OF_NO_BODY} {url}"
    else:
        url = f"{where}/{name}"
    samples = webdataset.WebDataset(url, shardshuffle=SHARDS).shuffle(64).to_tuple("jpg", "cls")
    images = samples.map_tuple(decoded, int)
    return torch.utils.data.DataLoader(images, **OPTIONS)


KINDS = {"stoker": stoker, "imagefolder": imagefolder, "litdata": litdata, "mosaic": mosaic, "webdataset": webdataset}
LIBRARIES = {"stoker": "stoker.torch", "imagefolder": "torchvision", "litdata": "litdata", "mosaic": "streaming",
             "webdataset": "webdataset"}


def main():
    kind, where = sys.argv[1:]
    torch.set_num_threads(1)
    importlib.import_module(LIBRARIES[kind])  # before the clock starts
    loader = None
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.monotonic()
        if loader is None:
            loader = KINDS[kind](where)
        if kind == "stoker":
            loader.sampler.set_epoch(int(line))
        images = sum(len(labels) for _, labels in loader)
        print(f"{images} {time.monotonic() - began:.6f}", flush=True)


if __name__ == "__main__":
    main()
