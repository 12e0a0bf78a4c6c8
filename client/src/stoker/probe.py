"""Measures on request how much the cache speeds up one process: some batches through it, then as many without it.

Samples and their order stay the same; only the source of the bytes changes. Batches read without the cache are slower;
this happens once per request of the operator (spec.cache.profiling.mode: Measured).
"""

from __future__ import annotations

from typing import List, Optional, Tuple

from .link import Link

__all__ = ["Probe"]

CACHED, WARMING, PAST = "cached", "warming", "past"


class Probe:
    """The state of one measurement, updated with every batch. A batch lasts until the next one is requested.

    Attributes:
        id: of the measurement; 0 before the first.
        bypassing: the current batch is read without the cache.
    """

    def __init__(self, link: Optional[Link] = None) -> None:
        self.id = 0
        self.bypassing = False
        self._link = link  # None: there is no sidecar to ask or report to
        self._is_untold = False  # progress() is not sent yet, because the sidecar was busy
        self._batches = 0
        self._plan: List[str] = []  # kinds of the remaining batches, the next one last
        self._running: Optional[Tuple[str, int, int, int]] = None  # kind, request time in ns, bytes, epoch
        self._sums = {CACHED: [0, 0, 0], PAST: [0, 0, 0]}  # batches, ns, bytes

    @property
    def is_running(self) -> bool:
        """Whether batches are being measured."""
        return self._running is not None

    def ask(self) -> None:
        """Sends the results so far, then asks the sidecar for a measurement to make."""
        if self.is_running or self._is_untold:
            self._tell()
        if self._link is not None:
            self.begin(*self._link.ask_probe())

    def begin(self, id: int, batches: int) -> None:
        """Starts a measurement and drops the one before. Does nothing when `id` is 0 or unchanged."""
        if id in (0, self.id):
            return
        self.id, self._batches = id, batches
        self._running = None
        self._sums = {CACHED: [0, 0, 0], PAST: [0, 0, 0]}
        # First CACHED batches, read through the cache; last PAST batches, read past it. The WARMING batches between
        # them, also read past it, are not counted: some of their samples were read ahead through the cache.
        self._plan = [PAST] * batches + [WARMING] * max(1, batches // 8) + [CACHED] * batches

    def next_batch(self, now_ns: int, epoch: int, size: int) -> bool:
        """Records the request for a batch of `size` bytes. True: the measurement enters another phase; the sidecar is
        notified."""
        if self._running is None and not self._plan:
            return False
        was = self.bypassing
        self._end_batch(now_ns, epoch)
        if self._plan:
            self._running = (self._plan.pop(), now_ns, size, epoch)
        self.bypassing = self._running is not None and self._running[0] != CACHED
        has_turned = self._running is None or was != self.bypassing
        if has_turned:
            self._tell()
        return has_turned

    def give_up(self) -> None:
        """Ends the measurement, because this process cannot read the origin."""
        self._plan, self._running, self.bypassing = [], None, False
        self._tell()

    def progress(self) -> List[int]:
        """The fields of local::Probed that follow `bypassing`."""
        return [*self._sums[PAST], *self._sums[CACHED]]

    def _tell(self) -> None:
        if self._link is not None:
            sent = self._link.probed(self.id, self.bypassing, self.progress())
            self._is_untold = not sent and self._link.is_attached()

    def _end_batch(self, now_ns: int, epoch: int) -> None:
        if self._running is None:
            return
        kind, asked_ns, size, its_epoch = self._running
        self._running = None
        if epoch != its_epoch:
            self._plan.append(kind)  # the time includes the pause between two epochs, so measure again
        elif kind in self._sums:
            for at, value in enumerate((1, now_ns - asked_ns, size)):
                self._sums[kind][at] += value
