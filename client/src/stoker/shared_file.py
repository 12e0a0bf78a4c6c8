"""Memory that a process shares with the processes that it forks or spawns, without a manager process."""

from __future__ import annotations

import mmap
import os
from typing import Any, Optional, Tuple

__all__ = ["SharedFile"]

_TOKEN_BYTES = 16


class SharedFile:
    """An unnamed file in memory, all zeros at first, inherited by fork. A pickled copy opens it through /proc while the
    process that made it lives; if it cannot, it makes a file of its own.

    Attributes:
        file: its descriptor, open while this object lives. memory: a writable view of all its bytes.
        is_shared: False: a pickled copy that made a file of its own.
    """

    DATA_AT = 64  # bytes of `memory` before this one tell whose file it is

    def __init__(self, size: int) -> None:
        self._size = self.DATA_AT + size
        self._token = os.urandom(_TOKEN_BYTES)
        self.file = os.memfd_create("stoker-shared", os.MFD_CLOEXEC)
        os.ftruncate(self.file, self._size)
        self.memory = mmap.mmap(self.file, self._size)
        self.memory[:_TOKEN_BYTES] = self._token
        self._maker, self.is_shared = os.getpid(), True

    def __del__(self) -> None:
        file: Optional[int] = getattr(self, "file", None)
        if file is not None:
            os.close(file)

    def __reduce__(self) -> Tuple[Any, ...]:
        return _reopen, (self._maker, self.file, self._token, self._size)


def _reopen(maker: int, file: int, token: bytes, size: int) -> SharedFile:
    copy = SharedFile(size - SharedFile.DATA_AT)
    copy.is_shared = False
    try:
        opened = os.open(f"/proc/{maker}/fd/{file}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return copy  # the maker has ended, or runs elsewhere
    try:
        if os.fstat(opened).st_size == size:
            memory = mmap.mmap(opened, size)
            if memory[:_TOKEN_BYTES] == token:
                copy.memory, copy._token, copy.is_shared = memory, token, True
                copy.file, opened = opened, copy.file
    except (OSError, ValueError):
        pass  # another file has that number now
    finally:
        os.close(opened)
    return copy
