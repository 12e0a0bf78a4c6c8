"""The part of stoker.samples that gets what is not on the node, or is to be read past it."""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import _core
from ._core import Sample
from .errors import ForbiddenError, OriginError, StokerError
from .link import ORIGIN_ERROR, READY, Link, positions
from .meter import Meter
from .origin import Origin, Request
from .probe import Probe
from .settings import DatasetSettings

__all__ = ["Misses"]

log = logging.getLogger("stoker")

FETCH_ROUNDS = 3  # a damaged record is fetched, verified by the sidecar, and fetched again
WAIT_FOR_SIDECAR_S = 600.0
ASK_AGAIN_S = 0.1  # nobody says when a sidecar is back


class Misses:
    """Base of Samples, which owns the attributes below."""

    epoch: int
    _catalog: _core.Catalog
    _count: int
    _link: Optional[Link]
    _meter: Meter
    _origin: Optional[Origin]
    _probe: Probe
    _reader: Optional[_core.NodeReader]
    _settings: DatasetSettings
    _open_origin: Callable[[], Optional[Origin]]
    _refresh: Callable[[], None]
    _warn: Callable[..., None]

    # --- misses --------------------------------------------------------------------------------------------------

    def _fill(self, ids: Sequence[int], samples: List[Any], missing: List[int]) -> List[int]:
        """Gets the samples at these positions; returns those of them that the sidecar was told of as read."""
        refusal, told = "", []
        if self._reader is not None and self._link is not None:
            with self._link.lane() as lane:
                wanted = missing
                missing, refusal = self._fetch(lane, ids, samples, wanted)
                if lane is not self._link and len(missing) < len(wanted):
                    told = [at for at in wanted if samples[at] is not None]
                    if not lane.consumed(self.epoch, [int(ids[at]) for at in told]):
                        told = []
        if missing:
            self._read_at_origin(ids, samples, missing, refusal)
        return told

    def _fetch(
        self, lane: Link, ids: Sequence[int], samples: List[Any], missing: List[int]
    ) -> Tuple[List[int], str]:
        """What is missing still, and why the origin does not give it."""
        refusal = ""
        for _ in range(FETCH_ROUNDS):
            outcome = lane.fetch([int(ids[at]) for at in missing]) if missing else None
            if outcome is None:
                break
            ready = positions(outcome.statuses, READY)
            if ORIGIN_ERROR in outcome.statuses:
                refusal = outcome.message
            damaged = self._take(ids, samples, [missing[at] for at in ready])
            missing = [at for at in missing if samples[at] is None]
            if not damaged:
                break
        return missing, refusal

    def _take(self, ids: Sequence[int], samples: List[Any], ready: List[int]) -> bool:
        """Reads what the sidecar says is there; True when some of it is not, or not intact."""
        if not ready:
            return False
        for attempt in range(2):
            found, absent = self._reader.read([int(ids[at]) for at in ready])
            for at, sample in zip(ready, found):
                samples[at] = sample
            if not absent:
                return False
            ready = [ready[at] for at in absent]
            if attempt == 0:
                self._refresh()  # the leader may have made a new table
        return True

    def _read_at_origin(self, ids: Sequence[int], samples: List[Any], missing: List[int], refusal: str) -> None:
        if self._origin is None:
            self._origin = self._open_origin()
        if self._origin is None:
            self._await_sidecar(ids, samples, missing, refusal)
            return
        rows = [self._catalog.describe(int(ids[at])) for at in missing]
        try:
            payloads = self._origin.read_many([Request(key, size, etag) for key, size, etag, _ in rows])
        except OriginError as error:
            if isinstance(error, ForbiddenError) and self._is_keyless_guest():
                self._await_sidecar(ids, samples, missing, refusal)
                return
            if refusal:
                raise type(error)(f"{error} (the sidecar said: {refusal})", error.key) from error
            raise
        for at, row, payload in zip(missing, rows, payloads):
            samples[at] = Sample(payload, int(ids[at]), row[3], self._catalog)
            self._meter.origin_bytes += len(payload)
        self._meter.origin_samples += len(missing)

    def _await_sidecar(self, ids: Sequence[int], samples: List[Any], missing: List[int], refusal: str) -> None:
        """There is no origin to fall back to, so the sidecar has to come back."""
        if refusal:
            raise OriginError(refusal)
        patience = WAIT_FOR_SIDECAR_S
        if self._is_keyless_guest():
            patience = float("inf")
            self._warn_of_waiting()
        give_up = time.monotonic() + patience
        while missing:
            if time.monotonic() > give_up or self._link is None:
                raise StokerError(
                    f"dataset '{self._settings.describe()}': sample {int(ids[missing[0]])} is not on this node, "
                    "there is no sidecar, and STOKER_DATASETS does not say where the origin is"
                )
            with self._link.lane() as lane:
                outcome = lane.fetch([int(ids[at]) for at in missing])
                if outcome is not None and ORIGIN_ERROR in outcome.statuses:
                    raise OriginError(outcome.message)
                is_away = outcome is None or self._take(ids, samples, missing)
            if is_away:
                time.sleep(ASK_AGAIN_S)
            missing = [at for at in missing if samples[at] is None]

    def _warn_of_waiting(self) -> None:
        self._warn(
            f"dataset '{self._settings.describe()}' is another namespace's and this pod has no key of its own: "
            "waiting until a sidecar serves it"
        )

    def _is_keyless_guest(self) -> bool:
        """Whether only a sidecar can give us this dataset: another namespace's, without credentials of our own."""
        return self._settings.guest and self._link is not None and not (self._origin and self._origin.has_key())

    def _check_range(self, ids: Sequence[int]) -> None:
        for id in ids:
            if not 0 <= id < self._count:
                raise IndexError(f"sample id {int(id)} is outside 0..{self._count - 1}")

    # --- measuring what the cache is worth -----------------------------------------------------------------------

    def _ask_probe(self) -> None:
        if self._probe.is_running or self._probe.is_untold:
            self._tell_probe()
        self._probe.begin(*self._link.ask_probe())

    def _probe_batch(self, ids: Sequence[int]) -> None:
        size = self._catalog.bytes_of(ids)
        if self._probe.next_batch(time.monotonic_ns(), self.epoch, size):
            self._tell_probe()

    def _tell_probe(self) -> None:
        if self._link is not None:
            sent = self._link.probed(self._probe.id, self._probe.bypassing, self._probe.progress())
            self._probe.is_untold = not sent and self._link.is_attached()

    def _read_past(self, ids: Sequence[int], samples: List[Any], missing: List[int]) -> bool:
        """Reads a batch at the origin though it may be on the node; False: it cannot be had there."""
        try:
            if self._origin is None:
                self._origin = self._open_origin()
            if self._origin is not None:
                self._read_at_origin(ids, samples, missing, "")
                return True
        except StokerError as error:
            log.info("stoker: what the cache is worth cannot be measured: %s", error)
        self._probe.give_up()
        self._tell_probe()
        return False
