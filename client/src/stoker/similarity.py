"""Fingerprints of samples: 64 bits, almost equal for near-duplicates. Pure functions of numpy."""

from __future__ import annotations

import hashlib
from typing import Any, Optional, Tuple

import numpy as np

from .arrays import Array

__all__ = ["difference_hash"]

_COLUMNS, _ROWS = 9, 8
_CHANNELS = (1, 3, 4)
_SIDE = 72  # larger images are subsampled to about this many pixels a side


def difference_hash(sample: Any) -> Optional[int]:
    """dHash: which of 9 x 8 cells of an image are darker than their right neighbour. Brightness, contrast and size do
    not change it; noise changes it little.

    Args:
        sample: the decoded sample: a PIL image, or an array or tensor of shape (H, W), (H, W, C) or (C, H, W) with 1, 3
            or 4 channels. Arrays of other shapes and bytes get a hash of the content, which only equal ones share.

        Returns: 0..2**64-1; None for any other type: the sample then has no near-duplicates.
    """
    array = _array_of(sample)
    if array is None:
        return None
    gray = _gray_of(array)
    if gray is None:
        return int.from_bytes(hashlib.blake2b(array.tobytes(), digest_size=8).digest(), "big")
    cells = _cells_of(gray)
    return int.from_bytes(np.packbits(cells[:, :-1] < cells[:, 1:]).tobytes(), "big")


def _array_of(sample: Any) -> Optional[Array]:
    if isinstance(sample, (bytes, bytearray, memoryview)):
        return np.frombuffer(sample, dtype=np.uint8)
    if hasattr(sample, "convert"):  # a PIL image
        return np.asarray(sample.convert("L"))
    if isinstance(sample, np.ndarray) or hasattr(sample, "__array__"):
        array = np.asarray(sample)
        return array if array.dtype.kind in "buif" else None
    return None


def _gray_of(array: Array) -> Optional[Array]:
    """Brightness levels, 0..255; None: not an image."""
    if array.ndim == 3 and array.shape[-1] not in _CHANNELS and array.shape[0] in _CHANNELS:
        array = array.transpose(1, 2, 0)
    if array.size == 0 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[-1] not in _CHANNELS):
        return None
    array = array[:: max(1, array.shape[0] // _SIDE), :: max(1, array.shape[1] // _SIDE)]
    array = array.mean(axis=-1) if array.ndim == 3 else array
    gray = np.nan_to_num(array.astype(np.float64))
    low, high = gray.min(), gray.max()
    return np.rint((gray - low) * (255 / (high - low))) if high > low else np.zeros_like(gray)


def _cells_of(gray: Array) -> Array:
    """Mean of each cell: float64 of shape (_ROWS, _COLUMNS); in small images cells overlap."""
    sums = np.zeros((gray.shape[0] + 1, gray.shape[1] + 1))
    sums[1:, 1:] = gray.cumsum(axis=0).cumsum(axis=1)
    top, bottom = _bounds(gray.shape[0], _ROWS)
    left, right = _bounds(gray.shape[1], _COLUMNS)
    inside = sums[bottom][:, right] - sums[top][:, right] - sums[bottom][:, left] + sums[top][:, left]
    means: Array = inside / np.outer(bottom - top, right - left)
    return means


def _bounds(pixels: int, cells: int) -> Tuple[Array, Array]:
    first = np.arange(cells) * pixels // cells
    return first, np.maximum(first + 1, np.arange(1, cells + 1) * pixels // cells)
