"""The samples that one rank has drawn of an epoch."""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy as np

from . import _core
from .arrays import Array

__all__ = ["KIND_ALONE", "KIND_ON_NODE", "DrawRecord"]

KIND_SUBSTITUTED, KIND_ON_NODE = 3, 0x80  # as in proto/local/sampling_frames.h
KIND_ALONE = 0x40  # client only: drawn without a sidecar


class DrawRecord:
    """The draws of an epoch in order, and the ids that were drawn before this object was created. Not thread-safe.

    Attributes:
        had: ids drawn before this object was created: int64.
        count: number of draws since then.
    """

    def __init__(self, had: Optional[Array] = None) -> None:
        self.had: Array = np.zeros(0, dtype=np.int64) if had is None else had
        self.count: int = 0  # filled length of both arrays
        self._served: Array = np.zeros(0, dtype=np.int64)
        self._kinds = np.zeros(0, dtype=np.uint8)

    def add(self, ids: Array, kinds: Array) -> None:
        """Adds draws: int64 and uint8 of shape (n,)."""
        end = self.count + len(ids)
        if end > len(self._served):
            size = max(end, 2 * len(self._served), 1024)
            self._served, self._kinds = np.resize(self._served, size), np.resize(self._kinds, size)
        self._served[self.count : end], self._kinds[self.count : end] = ids, kinds
        self.count = end

    def served(self, count: Optional[int] = None) -> Array:
        """The ids drawn before this object was made, then those of its first `count` draws (default: all)."""
        return np.concatenate([self.had, self._served[: self.count if count is None else count]])

    def drawn(self) -> Array:
        """The ids drawn since this object was created."""
        return self._served[: self.count]

    def has_alone(self) -> bool:
        """Whether a sample was drawn without a sidecar."""
        return bool((self._kinds[: self.count] & KIND_ALONE).any())

    def totals(self, catalog: _core.Catalog) -> Dict[str, Any]:
        """EpochReport's counts of the draws since this object was created; `catalog` knows the samples' sizes."""
        kinds, served = self._kinds[: self.count], self.drawn()
        on_node, alone = (kinds & KIND_ON_NODE) != 0, (kinds & KIND_ALONE) != 0
        return {
            "substituted": int(((kinds & ~np.uint8(KIND_ON_NODE)) == KIND_SUBSTITUTED).sum()),
            "node_bytes": catalog.bytes_of(served[on_node]),
            "origin_bytes": catalog.bytes_of(served[~on_node & ~alone]),
            "alone": int(alone.sum()),
            "alone_bytes": catalog.bytes_of(served[alone]),
        }
