"""Counters that a process shares with the processes that it forks or spawns."""

from __future__ import annotations

import struct
import threading
from typing import Dict

from . import _core
from .shared_file import SharedFile

__all__ = ["KEYS", "SharedCounts"]

KEYS = ("samples", "node_samples", "node_bytes", "origin_samples", "origin_bytes", "corrupt", "attached", "lost")


class SharedCounts:
    """Sums of KEYS over all processes that have this memory; a pickled copy that does not get it counts for itself.

    Any thread and process may call: additions are atomic.
    """

    def __init__(self) -> None:
        self._start(SharedFile(8 * len(KEYS)))

    def _start(self, shared: SharedFile) -> None:
        self._shared = shared
        self.after_fork()

    def after_fork(self) -> None:
        """Call in a forked child, whose own counts begin at 0."""
        self._added: Dict[str, int] = {}
        self._updating = threading.Lock()

    def update(self, counts: Dict[str, int]) -> None:
        """Adds what `counts`, this process's own, grew by since the last call."""
        with self._updating:
            added, self._added = self._added, counts
        memory = memoryview(self._shared.memory)[SharedFile.DATA_AT :]
        _core.add_shared(memory, [counts[key] - added.get(key, 0) for key in KEYS])

    def totals(self) -> Dict[str, int]:
        """The sums, by key."""
        return dict(zip(KEYS, struct.unpack_from(f"={len(KEYS)}q", self._shared.memory, SharedFile.DATA_AT)))

    def __getstate__(self) -> SharedFile:
        return self._shared

    def __setstate__(self, shared: SharedFile) -> None:
        self._start(shared)
