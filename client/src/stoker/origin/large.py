"""Buffers for objects that are read in parts; a clear error if memory does not suffice."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from ..errors import TooLargeError

__all__ = ["PART_BYTES", "parts", "place_for"]

PART_BYTES = 64 << 20
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of the container: v2, v1


def place_for(size: int, what: str, key: str) -> memoryview:
    """A buffer of `size` bytes.

    Raises:
        TooLargeError: the memory limit is smaller, or allocation fails; the message begins with `what`.
    """
    limit = memory_limit()
    if limit is not None and size > limit:
        raise TooLargeError(f"{what} has {size} bytes, and the container may use {limit} bytes of memory", key)
    try:
        return memoryview(bytearray(size))
    except MemoryError:
        raise TooLargeError(f"{what} has {size} bytes, and this process gets no memory for them", key) from None


def memory_limit() -> Optional[int]:
    """The container's memory limit in bytes; None: no limit."""
    for path in _LIMITS:
        try:
            with open(path, encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):  # no such file, or "max"
            pass
    return None


def parts(size: int) -> Iterator[Tuple[int, int]]:
    """Start and end (exclusive) of each part, in order."""
    for start in range(0, size, PART_BYTES):
        yield start, min(start + PART_BYTES, size)
