"""Runs something when this process ends by itself: as a script, or as a worker of multiprocessing.

A worker (a DataLoader's, for one) leaves by os._exit() and never sees what atexit knows; it does run what
multiprocessing.util keeps, but forgets after a fork what its parent had put there.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing
from multiprocessing import util
from typing import Any, Callable, Iterable

__all__ = ["at_end", "tell_the_rest"]

log = logging.getLogger("stoker")

_PRIORITY = 100  # early: queues and sockets still work


class _AfterFork:
    """Something to hang register_after_fork() on; it keeps only weak references."""


_anchor = _AfterFork()


def at_end(call: Callable[[], None]) -> None:
    """Has `call` run once at the end of this process, and of every process that comes from it."""
    atexit.register(call)
    util.register_after_fork(_anchor, lambda _: _in_worker(call))
    if multiprocessing.parent_process() is not None:
        _in_worker(call)  # a spawned worker imports us


def _in_worker(call: Callable[[], None]) -> None:
    util.Finalize(None, call, exitpriority=_PRIORITY)


def tell_the_rest(all_samples: Iterable[Any]) -> None:
    """The last words: a run may end before its first report is due, and with reads that nobody was told of."""
    for samples in list(all_samples):
        try:
            samples.tell_all()
        except Exception as error:  # the end of somebody's training is no place to raise
            log.warning("stoker: the last report was not sent: %s", error)
