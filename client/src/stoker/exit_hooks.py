"""Runs a function when this process exits normally: as a script, or as a worker of multiprocessing.

A worker (such as a DataLoader's) leaves by os._exit(), so atexit does not run there. multiprocessing.util's finalizers
do run, but a fork clears those that the parent registered.
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
    """Anchor for register_after_fork(), which keeps only weak references."""


_anchor = _AfterFork()


def at_end(call: Callable[[], None]) -> None:
    """Registers `call` to run once at the end of this process and of each of its descendants."""
    atexit.register(call)
    util.register_after_fork(_anchor, lambda _: _in_worker(call))
    if multiprocessing.parent_process() is not None:
        _in_worker(call)  # a spawned worker imports this module


def _in_worker(call: Callable[[], None]) -> None:
    util.Finalize(None, call, exitpriority=_PRIORITY)


def tell_the_rest(all_samples: Iterable[Any]) -> None:
    """Sends the last reports: a run may end before its first report is due, or with unacknowledged reads."""
    for samples in list(all_samples):
        try:
            samples.tell_all()
        except Exception as error:  # training has ended: an error must not make it fail
            log.warning("stoker: the last report was not sent: %s", error)
