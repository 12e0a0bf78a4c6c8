"""The two data sets of `make accuracy`: folders <class>/<number>.bin of raw pixels, 28 x 28 float32 from 0 to 1, row by
row.

mnist5k: 4,000 of 5,000 images for training, the other 1,000 for testing. duplicates: 2,000 of those 4,000 plus 2,000
near copies of them (shifted by at most a pixel, with noise); the same test images. The 5,000 are cut into five folds;
seed s is tested with fold s mod 5, so that five seeds test every image once.
"""

import pathlib
import random
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e" / "origin"))
import mnist  # noqa: E402  (found through the path above)

SETS = ("mnist5k", "duplicates")
FOLDS = 5
TRAIN, TEST = 4000, 1000


def images(cache):
    """(pixels uint8 of shape (5000, 784), labels int64): MNIST-5k in a fixed shuffled order; `cache` is an .npz file."""
    if not cache.exists():
        rows = list(mnist.read_rows())
        random.Random(1).shuffle(rows)
        pixels = np.stack([np.frombuffer(pixels, dtype=np.uint8) for _, pixels in rows])
        cache.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(cache, pixels=pixels, labels=np.array([label for label, _ in rows]))
    with np.load(cache) as file:
        return file["pixels"], file["labels"].astype(np.int64)


def near_copy(pixels, prng):
    """The image shifted by at most a pixel in each direction, with a little noise."""
    image = pixels.reshape(mnist.SIDE, mnist.SIDE)
    image = np.roll(image, (int(prng.integers(-1, 2)), int(prng.integers(-1, 2))), axis=(0, 1))
    noisy = image.astype(np.int16) + prng.integers(-8, 9, image.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8).reshape(-1)


def with_duplicates(pixels, labels):
    """The first half of the images, followed by a near copy of each."""
    prng = np.random.default_rng(2)
    half = len(pixels) // 2
    of = np.concatenate([np.arange(half), prng.integers(0, half, len(pixels) - half)])
    copies = np.stack([near_copy(pixels[index], prng) for index in of[half:]])
    return np.concatenate([pixels[:half], copies]), labels[of]


def write_folder(root, pixels, labels):
    """Writes the images as an origin, unless it exists."""
    if (root / "done").exists():
        return
    for number, (image, label) in enumerate(zip(pixels, labels)):
        path = root / "data" / str(label) / f"{number:05}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((image.astype("<f4") / 255).tobytes())
    (root / "done").touch()


def prepare(folder, name, seed):
    """Makes an origin below `folder`; returns (its root, (test pixels, test labels))."""
    pixels, labels = images(folder / "mnist5k.npz")
    fold = seed % FOLDS
    is_test = np.arange(len(pixels)) // TEST == fold
    train = pixels[~is_test], labels[~is_test]
    root = folder / f"{name}-{fold}"
    write_folder(root, *(with_duplicates(*train) if name == "duplicates" else train))
    return root / "data", (pixels[is_test], labels[is_test])
