"""The state that a loader saves: settings that must not change, and sample ids as bitmaps."""

from __future__ import annotations

import zlib
from typing import Any, Mapping

import numpy as np

from .arrays import Array

__all__ = ["check_state", "pack_ids", "served_in", "unpack_ids"]


def check_state(state: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Rejects a state saved under different settings.

    Raises:
        ValueError: `state` has another value for a key of `ours`.
    """
    for key, value in ours.items():
        if state.get(key) != value:
            raise ValueError(f"the state was saved with {key}={state.get(key)}, here it is {value}")


def pack_ids(ids: Array, count: int) -> bytes:
    """Bitmap of `ids`: bit i of byte b is id 8b + i. Empty without ids."""
    if ids.size == 0:
        return b""
    bits = np.zeros(count, dtype=np.uint8)
    bits[ids] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def unpack_ids(bitmap: bytes) -> Array:
    """The ids of a bitmap of pack_ids(), in rising order."""
    return np.flatnonzero(np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little")).astype(np.int64)


def served_in(state: Mapping[str, Any]) -> Array:
    """The ids that a state records as served, in rising order."""
    return unpack_ids(zlib.decompress(state["served"])) if "served" in state else np.zeros(0, dtype=np.int64)
