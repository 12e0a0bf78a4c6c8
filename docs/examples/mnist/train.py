"""Trains a classifier of handwritten digits. Each sample is one image file, in a folder named by its digit.

Runs alone (`python train.py --data file:///data/mnist`), in a TrainingJob, and under torchrun with several ranks.
Prints one JSON line per epoch. `train_plain.py` in the same folder is the same script without Stoker.
"""

import argparse
import json
import os
import time

import numpy as np
import torch
import torch.distributed
import torch.nn.functional as functional
from torch.utils.data import Subset

from stoker.torch import DataLoader, Dataset, Sampler

TEST_EVERY = 10  # every tenth image is held out


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="train", help="name under spec.datasets, file:///folder or s3://bucket/prefix")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def to_tensor(image):
    """Grey values as float32 of shape (1, 28, 28), mean about 0."""
    return torch.from_numpy(np.asarray(image.convert("L"), dtype=np.float32)[None] / 255 - 0.13)


def make_model():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 5 * 5, 10),
    )


def train(model, optimizer, loader):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


def accuracy(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for images, labels in loader:
            right += int((model(images).argmax(1) == labels).sum())
            total += len(labels)
    return right / total


def main():
    options = parse()
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    torch.manual_seed(options.seed)
    model = make_model()
    if world > 1:
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    dataset = Dataset(options.data, transform=to_tensor)
    held_out = range(0, len(dataset), TEST_EVERY)
    train_set = Subset(dataset, sorted(set(range(len(dataset))) - set(held_out)))
    sampler = Sampler(train_set, num_replicas=world, rank=rank, seed=options.seed)
    loader = DataLoader(train_set, batch_size=options.batch_size, sampler=sampler, num_workers=options.workers)
    test_loader = DataLoader(Subset(dataset, held_out), batch_size=250)

    for epoch in range(options.epochs):
        began = time.time()
        sampler.set_epoch(epoch)
        train(model, optimizer, loader)
        score = accuracy(model, test_loader)
        print(json.dumps({"event": "epoch", "epoch": epoch, "began_ms": int(began * 1000),
                          "seconds": round(time.time() - began, 3), "test_accuracy": score}), flush=True)


if __name__ == "__main__":
    main()
