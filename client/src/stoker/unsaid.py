"""What one process has read and the sidecar has not been told."""

from __future__ import annotations

import time
from typing import List, Optional, Sequence, Tuple

from .link import Link

__all__ = ["Unsaid"]

GATHER_AT_MOST = 32
GATHER_S = 0.05
BACKLOG_AT_MOST = 1 << 16
END_PATIENCE_S = 1.0  # at the end of a process, for a sidecar that is behind


class Unsaid:
    """Reads that are in use, gathered or refused by a busy sidecar; each belongs to the epoch in which it was made."""

    def __init__(self, link: Optional[Link]) -> None:
        self._link = link
        self._in_use: Tuple[int, Sequence[int]] = (0, ())  # of the last fetch
        self._gathered: Tuple[int, List[int]] = (0, [])
        self._gathered_since = 0.0
        self._backlog: Tuple[int, List[int]] = (0, [])

    def fetched(self, epoch: int, ids: Sequence[int]) -> None:
        """The caller has these in use until it fetches others, which begins with a flush()."""
        if self._link is not None:
            self._in_use = (epoch, ids)

    def flush(self) -> None:
        """The samples of the last fetch were used."""
        (epoch, ids), self._in_use = self._in_use, (0, ())
        if len(ids) > 0:
            self.tell(epoch, ids)

    def gather(self, epoch: int, id: int) -> None:
        """One sample, which was fetched alone, was used: the sidecar hears of such some at a time."""
        self._in_use = (0, ())
        if self._gathered[0] != epoch:
            self._tell_gathered()
        if not self._gathered[1]:
            self._gathered, self._gathered_since = (epoch, []), time.monotonic()
        ids = self._gathered[1]
        ids.append(id)
        if len(ids) >= GATHER_AT_MOST or time.monotonic() - self._gathered_since > GATHER_S:
            self._tell_gathered()

    def tell(self, epoch: int, ids: Sequence[int]) -> None:
        """These were used; what a busy sidecar does not take is told the next time."""
        if self._link is None:
            return
        late, backlog = self._backlog
        if backlog and late != epoch and self._link.consumed(late, backlog) is not False:
            backlog = []
        if backlog and late != epoch:
            return  # it is behind for a whole epoch: the newest reads are left out
        told = [*backlog, *ids] if backlog else ids
        is_behind = self._link.consumed(epoch, told) is False
        self._backlog = (epoch, list(told)[-BACKLOG_AT_MOST:] if is_behind else [])

    def tell_all(self) -> None:
        """Tells what there is, and waits a little for a sidecar that is behind."""
        self.flush()
        self._tell_gathered()
        give_up = time.monotonic() + END_PATIENCE_S
        while self._backlog[1] and time.monotonic() < give_up:
            self.tell(self._backlog[0], [])
            if self._backlog[1]:
                time.sleep(0.01)  # the sidecar was busy: nobody says when it is not

    def _tell_gathered(self) -> None:
        (epoch, ids), self._gathered = self._gathered, (0, [])
        if ids:
            self.tell(epoch, ids)
