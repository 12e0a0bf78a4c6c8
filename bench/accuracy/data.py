"""The data sets of `make accuracy`, as folders <class>/<file>.

mnist5k: MNIST-5k, raw float32 pixels; 4,000 images to train on, 1,000 to test with. duplicates: 2,000 of these 4,000,
filled up to 4,000 again with near copies of them (shifted by at most a pixel, with noise); mnist5k's test images.
fashion: Fashion-MNIST as Debian packages it, raw uint8 pixels; 60,000 to train on, 10,000 of its own to test with.
glyphs: characters in many fonts (glyphs.py), PNG of unequal sizes; a fifth to test with.

Where a data set has no test images of its own it is cut into five folds; seed s is tested with fold s mod 5, so five
seeds are tested with every image once.
"""

import dataclasses
import gzip
import os
import pathlib
import random
import shutil
import sys
from typing import Callable

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / folder) for folder in ("e2e/origin", "bench")]
import glyphs  # noqa: E402
import mnist  # noqa: E402  (found through the paths above)
import servers  # noqa: E402

FOLDS = 5
GLYPH_SIDE = 32  # pixels to which a glyph of any size is scaled
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
FASHION_HEADERS = {"images": 16, "labels": 8}  # bytes before the first entry (IDX files)


@dataclasses.dataclass(frozen=True)
class Origin:
    """The images of one run, to train and to test with.

    Attributes:
        root: folder of the training files. count: their number. bytes: sum of their sizes. records: bytes of their
            records in segments.
        decode: converts a file's bytes to float32 of shape (1, side, side), 0 to 1.
        images, labels: test images, float32 of shape (n, 1, side, side), and their labels, int64 of shape (n,).
        classes: their number. A label is the index of its folder in sorted order.
    """

    root: pathlib.Path
    count: int
    bytes: int
    records: int
    decode: Callable
    images: np.ndarray
    labels: np.ndarray
    classes: int

    @property
    def side(self):
        return self.images.shape[-1]


def from_floats(view):
    return np.frombuffer(view, dtype="<f4").reshape(1, mnist.SIDE, mnist.SIDE)


def from_bytes(view):
    return np.frombuffer(view, dtype=np.uint8).reshape(1, mnist.SIDE, mnist.SIDE).astype(np.float32) / 255


def from_png(view):
    """Inverts the pixels, so that ink is 1 and paper 0 as in the other data sets."""
    import io

    from PIL import Image

    with Image.open(io.BytesIO(view)) as image:
        return 1 - np.asarray(image.resize((GLYPH_SIDE, GLYPH_SIDE), Image.BOX), dtype=np.float32)[None] / 255


def mnist_images(cache):
    """(pixels uint8 of shape (5000, 784), labels int64): MNIST-5k in a fixed shuffled order; `cache` is an .npz
    file."""
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
    """The first half of the images, filled up to the original number with near copies of random images of that half."""
    prng = np.random.default_rng(2)
    half = len(pixels) // 2
    of = np.concatenate([np.arange(half), prng.integers(0, half, len(pixels) - half)])
    copies = np.stack([near_copy(pixels[index], prng) for index in of[half:]])
    return np.concatenate([pixels[:half], copies]), labels[of]


def write_once(root, write):
    """Calls write(folder) unless the folder is complete; returns it."""
    done = root.with_name(root.name + ".done")
    if not done.exists():
        shutil.rmtree(root, ignore_errors=True)
        (root / "data").mkdir(parents=True)
        write(root / "data")
        done.touch()
    return root / "data"


def write_pixels(folder, pixels, labels):
    """Writes one file <label>/<number>.bin for each image."""
    for number, (image, label) in enumerate(zip(pixels, labels)):
        path = folder / str(label) / f"{number:05}.bin"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(image.tobytes())


def origin_of(root, decode, images, labels):
    sizes = [path.stat().st_size for path in root.glob("*/*")]
    records = sum(map(servers.record_bytes, sizes))
    return Origin(root, len(sizes), sum(sizes), records, decode, images, labels, len(list(root.iterdir())))


def prepare_mnist(folder, name, seed):
    pixels, labels = mnist_images(folder / "mnist5k.npz")
    fold = seed % FOLDS
    is_test = np.arange(len(pixels)) * FOLDS // len(pixels) == fold
    train = pixels[~is_test], labels[~is_test]
    pixels_of_train, labels_of_train = with_duplicates(*train) if name == "duplicates" else train
    root = write_once(folder / f"{name}-{fold}",
                      lambda data: write_pixels(data, pixels_of_train.astype("<f4") / 255, labels_of_train))
    images = pixels[is_test].reshape(-1, 1, mnist.SIDE, mnist.SIDE).astype(np.float32) / 255
    return origin_of(root, from_floats, images, labels[is_test])


def fashion_part(part):
    """(pixels uint8 of shape (n, 784), labels int64) of "train" or "t10k"."""
    read = {kind: np.frombuffer(gzip.open(FASHION / f"{part}-{kind}-idx{3 if kind == 'images' else 1}-ubyte.gz").read(),
                                dtype=np.uint8, offset=header) for kind, header in FASHION_HEADERS.items()}
    return read["images"].reshape(-1, mnist.SIDE**2), read["labels"].astype(np.int64)


def prepare_fashion(folder, name, _seed):
    root = write_once(folder / name, lambda data: write_pixels(data, *fashion_part("train")))
    pixels, labels = fashion_part("t10k")
    images = pixels.reshape(-1, 1, mnist.SIDE, mnist.SIDE).astype(np.float32) / 255
    return origin_of(root, from_bytes, images, labels)


def prepare_glyphs(folder, name, seed):
    whole = write_once(folder / f"{name}-all", glyphs.write)
    files = sorted(whole.glob("*/*.png"))
    random.Random(1).shuffle(files)
    fold = seed % FOLDS
    test, train = files[fold::FOLDS], [file for place, file in enumerate(files) if place % FOLDS != fold]

    def link(data):
        for file in train:
            (data / file.parent.name).mkdir(exist_ok=True)
            os.link(file, data / file.parent.name / file.name)

    root = write_once(folder / f"{name}-{fold}", link)
    labels = {path.name: label for label, path in enumerate(sorted(root.iterdir()))}
    return origin_of(root, from_png, np.stack([from_png(file.read_bytes()) for file in test]),
                     np.array([labels[file.parent.name] for file in test]))


SETS = {"mnist5k": prepare_mnist, "duplicates": prepare_mnist, "fashion": prepare_fashion, "glyphs": prepare_glyphs}


def prepare(folder, name, seed):
    """Writes the data set `name` under `folder` unless it exists; returns its Origin."""
    return SETS[name](folder, name, seed)
