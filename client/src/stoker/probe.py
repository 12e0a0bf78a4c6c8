"""Measures on request what the cache is worth to one process: some batches through it, then as many past it.

Only where the bytes come from changes: samples and their order stay what they are. Only what is measured past the cache
is slower, once for each request of the operator (spec.cache.profiling.mode: Measured).
"""

from __future__ import annotations

from typing import List, Optional, Tuple

from .link import Link

__all__ = ["Probe"]

CACHED, WARMING, PAST = "cached", "warming", "past"


class Probe:
    """The state of one measurement, told of every batch. A batch lasts until the next one is asked for.

    Attributes:
        id: of the measurement, 0 before the first.
        bypassing: the batch that is being read now goes past the cache.
    """

    def __init__(self, link: Optional[Link] = None) -> None:
        self.id = 0
        self.bypassing = False
        self._link = link  # None: nobody asks, and nobody is told
        self._is_untold = False  # progress() has to be said to the sidecar, which was busy
        self._batches = 0
        self._plan: List[str] = []  # of the batches to come, the next one last
        self._running: Optional[Tuple[str, int, int, int]] = None  # kind, when asked, bytes, epoch
        self._sums = {CACHED: [0, 0, 0], PAST: [0, 0, 0]}  # batches, ns, bytes

    @property
    def is_running(self) -> bool:
        """Whether batches are being measured."""
        return self._running is not None

    def ask(self) -> None:
        """Says what is measured so far, and asks the sidecar what is to be measured."""
        if self.is_running or self._is_untold:
            self._tell()
        if self._link is not None:
            self.begin(*self._link.ask_probe())

    def begin(self, id: int, batches: int) -> None:
        """Another measurement; the one before is given up. `id` 0, or the same as before: nothing changes."""
        if id in (0, self.id):
            return
        self.id, self._batches = id, batches
        self._running = None
        self._sums = {CACHED: [0, 0, 0], PAST: [0, 0, 0]}
        # What was read ahead must be used up before a batch past the cache takes its own time.
        self._plan = [PAST] * batches + [WARMING] * max(1, batches // 8) + [CACHED] * batches

    def next_batch(self, now_ns: int, epoch: int, size: int) -> bool:
        """A batch of `size` bytes is asked for. True: the measurement has come to another part, which the sidecar is
        told."""
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
        """It cannot be measured here: the origin does not answer us."""
        self._plan, self._running, self.bypassing = [], None, False
        self._tell()

    def progress(self) -> List[int]:
        """The numbers of local::Probed, behind `bypassing`."""
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
            self._plan.append(kind)  # what happens between two epochs is no batch: once more
        elif kind in self._sums:
            for at, value in enumerate((1, now_ns - asked_ns, size)):
                self._sums[kind][at] += value
