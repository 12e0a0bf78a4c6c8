"""Counts what one process reads of one dataset, and what it has reported to the sidecar."""

from __future__ import annotations

import threading
import time
from typing import Dict, Optional

from . import _core
from .link import Report

__all__ = ["Meter", "add_counts"]

REPORT_EVERY_S = 2.0
_BYTES = ("node_bytes", "origin_bytes")


class Meter:
    """Counters of one process. Counts that a forked child inherits in `reader` are subtracted. Any thread may call."""

    def __init__(self, reader: Optional[_core.NodeReader]) -> None:
        self.samples = 0
        self.origin_samples = 0
        self.origin_bytes = 0
        self.lost = 0
        self._base = reader.counts() if reader is not None else {}
        self._told: Dict[str, int] = {}
        self._steps = Report()  # steps that are not reported yet
        self._lock = threading.Lock()  # of _steps: one thread counts while another reports
        self._due = time.monotonic() + REPORT_EVERY_S

    def totals(self, reader: Optional[_core.NodeReader], attached: int) -> Dict[str, int]:
        """The dictionary of Samples.stats()."""
        counts = reader.counts() if reader is not None else {}
        hits, hit_bytes, corrupt = (counts.get(k, 0) - self._base.get(k, 0) for k in ("hits", "hit_bytes", "corrupt"))
        return {
            "samples": self.samples,
            "node_samples": hits,
            "node_bytes": hit_bytes,
            "origin_samples": self.origin_samples,
            "origin_bytes": self.origin_bytes,
            "corrupt": corrupt,
            "attached": attached,
            "lost": self.lost,
        }

    def note_step(self, wait_ns: int, compute_ns: int, steps: int) -> None:
        """Counts training steps until the next report."""
        with self._lock:
            self._steps.steps += steps
            self._steps.wait_ns += wait_ns
            self._steps.compute_ns += compute_ns

    def is_due(self) -> bool:
        """Whether a report is due: True at most once every REPORT_EVERY_S."""
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + REPORT_EVERY_S
        return True

    def has_news(self, totals: Dict[str, int]) -> bool:
        """Whether any count is not reported yet."""
        return self._steps.steps > 0 or totals["samples"] > self._told.get("samples", 0)

    def report(self, epoch: int, totals: Dict[str, int]) -> Report:
        """Counts that are not reported yet."""
        new = {key: value - self._told.get(key, 0) for key, value in totals.items()}
        with self._lock:
            return Report(
                epoch=epoch,
                steps=self._steps.steps,
                samples=new["samples"],
                bytes=sum(new[key] for key in _BYTES),
                hit_samples=new["node_samples"],
                origin_samples=new["origin_samples"],
                wait_ns=self._steps.wait_ns,
                compute_ns=self._steps.compute_ns,
            )

    def told(self, totals: Dict[str, int], sent: Report) -> None:
        """Records that the report `sent`, made from `totals`, was sent. Later steps stay for the next report."""
        self._told = totals
        self.note_step(-sent.wait_ns, -sent.compute_ns, -sent.steps)


def add_counts(total: Dict[str, int], counts: Dict[str, int]) -> None:
    """Adds `counts` to `total`, key by key."""
    for key, value in counts.items():
        total[key] = total.get(key, 0) + value
