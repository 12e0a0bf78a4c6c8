"""Counters that a process shares with the processes that it forks or spawns, without a manager process."""

from __future__ import annotations

import mmap
import os
import struct
import threading
from typing import Any, Dict, Optional, Tuple

from . import _core

__all__ = ["KEYS", "SharedCounts"]

KEYS = ("samples", "node_samples", "node_bytes", "origin_samples", "origin_bytes", "corrupt", "attached", "lost")
_TOKEN_BYTES = 16
_COUNTERS_AT = 64  # after the token, in bytes
_BYTES = _COUNTERS_AT + 8 * len(KEYS)


class SharedCounts:
    """Sums of KEYS over all processes that have this memory: an unnamed file in memory, inherited by fork. A pickled
    copy opens it through /proc while the process that made it lives; if it cannot, it counts for itself.

    Any thread and process may call: additions are atomic.
    """

    def __init__(self) -> None:
        self._token = os.urandom(_TOKEN_BYTES)
        self._maker = os.getpid()
        self._file = os.memfd_create("stoker-counts", os.MFD_CLOEXEC)
        os.ftruncate(self._file, _BYTES)
        self._memory = mmap.mmap(self._file, _BYTES)
        self._memory[:_TOKEN_BYTES] = self._token
        self.after_fork()

    def after_fork(self) -> None:
        """Called in a forked child, whose own counts begin at 0."""
        self._added: Dict[str, int] = {}
        self._updating = threading.Lock()

    def update(self, counts: Dict[str, int]) -> None:
        """Adds what `counts`, this process's own, grew by since the last call."""
        with self._updating:
            added, self._added = self._added, counts
        _core.add_shared(memoryview(self._memory)[_COUNTERS_AT:], [counts[key] - added.get(key, 0) for key in KEYS])

    def totals(self) -> Dict[str, int]:
        """The sums, by key."""
        return dict(zip(KEYS, struct.unpack_from(f"={len(KEYS)}q", self._memory, _COUNTERS_AT)))

    def __del__(self) -> None:
        file: Optional[int] = getattr(self, "_file", None)
        if file is not None:
            os.close(file)

    def __reduce__(self) -> Tuple[Any, ...]:
        return _reopen, (self._maker, self._file, self._token)


def _reopen(maker: int, file: int, token: bytes) -> SharedCounts:
    counts = SharedCounts()
    try:
        opened = os.open(f"/proc/{maker}/fd/{file}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return counts  # the maker has ended, or runs elsewhere
    try:
        if os.fstat(opened).st_size == _BYTES:
            memory = mmap.mmap(opened, _BYTES)
            if memory[:_TOKEN_BYTES] == token:
                counts._memory, counts._token = memory, token
                counts._file, opened = opened, counts._file
                counts._maker = os.getpid()
    except (OSError, ValueError):
        pass  # another file has that number now
    finally:
        os.close(opened)
    return counts
