"""Samples that one process has read and not yet acknowledged to the sidecar."""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from .arrays import Ids
from .link import Link

__all__ = ["PendingAcks"]

GATHER_AT_MOST = 32
GATHER_READS_AT_MOST = 4096
GATHER_S = 0.05
ALONE_AT_MOST = 32  # samples that a thread may read one by one before they are acknowledged
ALONE_BYTES_AT_MOST = 1 << 20
BACKLOG_AT_MOST = 1 << 16
END_PATIENCE_S = 1.0  # time for a busy sidecar when the process exits


class InUse:
    """A thread's last fetch. `size`: its bytes, if the thread reads samples one by one."""

    __slots__ = ("epoch", "ids", "size")

    def __init__(self, epoch: int, ids: Any, size: Optional[int]) -> None:
        self.epoch, self.ids, self.size = epoch, ids, size


class PendingAcks:
    """Reads in use, waiting in a batch, or not accepted by a busy sidecar; each with the epoch in which it was made.

    Any thread may call; each thread has its own last fetch. No call waits for another thread's request to the sidecar.
    """

    def __init__(self, link: Optional[Link]) -> None:
        self._link = link
        self._lock = threading.Lock()  # never held while sending
        self._in_use: Dict[int, InUse] = {}  # by thread
        self._gathered: Tuple[int, List[int]] = (0, [])
        self._gathered_since = 0.0
        self._backlog: Tuple[int, List[int]] = (0, [])

    def fetched(self, epoch: int, ids: Ids) -> None:
        """Records the ids as in use by the calling thread until its next fetch, which calls flush() first."""
        if self._link is not None:
            self._in_use[threading.get_ident()] = InUse(epoch, ids, None)

    def fetched_one(self, epoch: int, id: int, size: int) -> None:
        """Records one sample of `size` bytes as in use by the calling thread. The samples that it read one by one before
        are acknowledged together: at most ALONE_AT_MOST, or those of some ALONE_BYTES_AT_MOST. No flush() before."""
        thread = threading.get_ident()
        with self._lock:  # tell_all() may take what this thread has in use
            alone = self._in_use.get(thread)
            if alone is not None and alone.size is not None and alone.epoch == epoch:
                alone.size += size
                if len(alone.ids) < ALONE_AT_MOST and alone.size <= ALONE_BYTES_AT_MOST:
                    alone.ids.append(id)
                    return
        self._flush(thread)
        if self._link is not None:
            self._in_use[thread] = InUse(epoch, [id], size)

    def flush(self) -> None:
        """Acknowledges the samples of the calling thread's last fetch."""
        self._flush(threading.get_ident())

    def _flush(self, thread: int) -> None:
        with self._lock:
            last = self._in_use.pop(thread, None)
        if last is not None and len(last.ids) > 0:
            self.tell(last.epoch, last.ids)

    def gather(self, epoch: int, id: int) -> None:
        """Acknowledges one sample that was fetched alone; such acknowledgements are sent in batches."""
        last = self._in_use.pop(threading.get_ident(), None)
        if last is None or id not in last.ids:
            return  # already acknowledged
        if len(last.ids) > 1:
            self.tell(last.epoch, [other for other in last.ids if other != id])
        self._gather(epoch, [id], GATHER_AT_MOST)

    def read(self, epoch: int, ids: Ids) -> None:
        """Acknowledges residents, which take no room in the window, in batches: nothing waits for them."""
        if self._link is not None:
            self._gather(epoch, ids if isinstance(ids, list) else np.asarray(ids).tolist(), GATHER_READS_AT_MOST)

    def _gather(self, epoch: int, ids: List[int], at_most: int) -> None:
        with self._lock:
            due = self._gathered if self._gathered[0] != epoch else (0, [])
            if self._gathered[0] != epoch or not self._gathered[1]:
                self._gathered, self._gathered_since = (epoch, []), time.monotonic()
            self._gathered[1].extend(ids)
            is_due = len(self._gathered[1]) >= at_most or time.monotonic() - self._gathered_since > GATHER_S
        self._tell_some(*due)
        if is_due:
            self.tell_gathered()

    def tell(self, epoch: int, ids: Ids) -> None:
        """Acknowledges samples; a busy sidecar gets them with the next call."""
        if self._link is None:
            return
        with self._lock:
            (late, backlog), self._backlog = self._backlog, (0, [])
        if backlog and late != epoch:
            if self._link.consumed(late, backlog) is False:
                self._keep(late, backlog)
                return  # a whole epoch behind: drop the newest acknowledgements
            backlog = []
        told = [*backlog, *ids] if backlog else ids
        if len(told) > 0 and self._link.consumed(epoch, told) is False:
            self._keep(epoch, told)

    def tell_all(self) -> None:
        """Sends every thread's acknowledgements; waits up to END_PATIENCE_S for a busy sidecar."""
        for thread in list(self._in_use):
            self._flush(thread)
        self.tell_gathered()
        give_up = time.monotonic() + END_PATIENCE_S
        while self._backlog[1] and time.monotonic() < give_up:
            self.tell(self._backlog[0], [])
            if self._backlog[1]:
                time.sleep(0.01)  # poll: the sidecar does not signal that it is free

    def _keep(self, epoch: int, ids: Ids) -> None:
        with self._lock:
            other, kept = self._backlog
            if kept and other < epoch:
                return
            self._backlog = (epoch, [*(kept if other == epoch else []), *ids][-BACKLOG_AT_MOST:])

    def tell_gathered(self) -> None:
        """Sends the acknowledgements that wait for a batch: the sidecar should know all before it fetches for this process."""
        with self._lock:
            (epoch, ids), self._gathered = self._gathered, (0, [])
        self._tell_some(epoch, ids)

    def _tell_some(self, epoch: int, ids: List[int]) -> None:
        if ids:
            self.tell(epoch, ids)
