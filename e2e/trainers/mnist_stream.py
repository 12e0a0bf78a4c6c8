"""Runs the example docs/examples/mnist/train.py unchanged and adds digests of its input and of the model.

Prints one more JSON line per epoch: `stream`, the digest of the batches (images, labels) in the model's order, and
`weights`, the digest of the model after the epoch. It uses one thread and deterministic algorithms, so that equal
streams give equal models, to the last bit.
"""

import hashlib
import json
import sys

import torch

sys.path.insert(0, "mnist")  # below the image's working directory

import train as example  # noqa: E402  pylint: disable=wrong-import-position


class Told:
    """A loader that adds its batches to a digest."""

    def __init__(self, loader, digest):
        self.loader = loader
        self.digest = digest

    def __iter__(self):
        for images, labels in self.loader:
            self.digest.update(images.numpy().tobytes() + labels.numpy().tobytes())
            yield images, labels


def weights(model):
    digest = hashlib.sha256()
    for parameter in model.state_dict().values():
        digest.update(parameter.numpy().tobytes())
    return digest.hexdigest()


def telling(train):
    def train_and_tell(model, optimizer, loader):
        digest = hashlib.sha256()
        train(model, optimizer, Told(loader, digest))
        print(json.dumps({"event": "fed", "stream": digest.hexdigest(), "weights": weights(model)}), flush=True)
    return train_and_tell


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    example.train = telling(example.train)
    example.main()
