"""The example docs/examples/mnist/train.py as it is, which also tells what it was fed and what it made of that.

Prints, besides the example's own lines, one JSON line an epoch: `stream`, the digest of the batches (images, labels)
in the order in which the model saw them, and `weights`, that of the model afterwards. One thread and deterministic
algorithms, so that equal streams make equal models, to the last bit.
"""

import hashlib
import json
import sys

import torch

sys.path.insert(0, "mnist")  # below the image's working directory

import train as example  # noqa: E402  pylint: disable=wrong-import-position


class Told:
    """A loader whose batches are added to a digest on their way."""

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
