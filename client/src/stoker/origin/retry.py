"""Bounded retries with jitter, and a thread pool for parallel reads."""

from __future__ import annotations

import concurrent.futures
import os
import random
import time
from typing import Callable, List, Optional, Sequence, TypeVar

__all__ = ["Again", "Parallel", "with_retries"]

T = TypeVar("T")
R = TypeVar("R")

ATTEMPTS = 6
FIRST_DELAY_S = 0.1
DELAY_S_MAX = 10.0


class Again(Exception):
    """A temporary failure: try again.

    Attributes:
        after: seconds that the server asks to wait (Retry-After), or None.
    """

    def __init__(self, message: str, after: Optional[float] = None) -> None:
        super().__init__(message)
        self.after = after


def with_retries(
    attempt: Callable[[], T],
    give_up: Callable[[str], Exception],
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Calls `attempt` until it returns; raises `give_up(message)` after ATTEMPTS failures with Again."""
    delay = FIRST_DELAY_S
    for left in range(ATTEMPTS - 1, -1, -1):
        try:
            return attempt()
        except Again as again:
            if left == 0:
                raise give_up(str(again)) from again
            wait = delay * random.uniform(0.5, 1.0) if again.after is None else again.after
            sleep(min(wait, DELAY_S_MAX))
            delay *= 2
    raise AssertionError("unreachable: the last attempt returns or raises")


class Parallel:
    """Runs a function over many arguments with a few threads, started at the first use in each process."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._pid = 0

    def map(self, function: Callable[[T], R], arguments: Sequence[T]) -> List[R]:
        """The results in order; raises the first exception."""
        if len(arguments) < 2:
            return [function(argument) for argument in arguments]
        if self._pool is None or self._pid != os.getpid():
            self._pool = concurrent.futures.ThreadPoolExecutor(self._threads, "stoker-origin")
            self._pid = os.getpid()
        return list(self._pool.map(function, arguments))

    def close(self) -> None:
        """Ends the threads of this process."""
        if self._pool is not None and self._pid == os.getpid():
            self._pool.shutdown(wait=False)
        self._pool = None
