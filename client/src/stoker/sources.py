"""Where one process gets the bytes of a dataset: the node directory, the sidecar, and the origin when both fail it."""

from __future__ import annotations

import logging
import os
import time
import warnings
from typing import Any, Dict, List, Optional, Set, Tuple

from . import _core
from ._core import Sample
from .arrays import Ids
from .catalogs import current_revision, list_origin
from .errors import ForbiddenError, OriginError, StokerError, StokerWarning
from .link import ORIGIN_ERROR, READY, Link, Place, Welcome, positions
from .meter import Meter
from .origin import Origin, Request, open_origin
from .settings import DatasetSettings

__all__ = ["Sources"]

log = logging.getLogger("stoker")

FETCH_AT_MOST = 512  # samples a request: what was fetched is pinned before the sidecar makes room for more
FETCH_ROUNDS = 3  # a damaged record is fetched, verified by the sidecar, and fetched again
WAIT_FOR_SIDECAR_S = 600.0
ASK_AGAIN_S = 0.1  # nobody says when a sidecar is back
PATIENCE_S = 5.0  # at the start, where the environment promises a sidecar


class Sources:
    """The sources of one dataset revision, tried in order: node directory, sidecar, origin.

    Any thread may call. A forked child calls after_fork(); pickled for another process, it opens what it needs there.

    Attributes:
        settings: where the dataset is. place: this process, for the sidecar.
        link: the connection to the sidecar; None for a dataset that no sidecar knows.
        catalog: ids, keys, sizes and labels. Constant.
        reader: of the node directory; None while there is none.
        meter: what this process has read.

    Raises:
        OriginError: there is no sidecar and the origin cannot be listed.
    """

    def __init__(self, settings: DatasetSettings, place: Place, socket: Optional[str], verify: str) -> None:
        self._start(settings, place, socket, verify)
        self.catalog = self._first_catalog()
        self._finish()

    def _start(self, settings: DatasetSettings, place: Place, socket: Optional[str], verify: str) -> None:
        self.settings, self.place, self._socket, self._verify = settings, place, socket, verify
        self.link = Link(socket, place, self._on_lost) if socket is not None else None
        self.reader: Optional[_core.NodeReader] = None
        self.meter = Meter(None)
        self._origin: Optional[Origin] = None
        self._directory: Optional[str] = None
        self._has_warned = False

    def _finish(self) -> None:
        if self.link is not None:
            self.link.accepts = self._is_our_revision

    def after_fork(self) -> None:
        """In a forked child: the parent's connections and threads are not ours, nor is what it counted."""
        if self.link is not None:
            self.link.forget()
        self._origin = None
        self.meter = Meter(self.reader)

    def close(self) -> None:
        """Hangs up and gives maps and threads back."""
        if self.link is not None:
            self.link.close()
        if self._origin is not None:
            self._origin.close()
        self.reader = None

    def __getstate__(self) -> Dict[str, Any]:
        mapped = self.reader is not None
        return {
            "start": (self.settings, self.place, self._socket, self._verify),
            "directory": self._directory if mapped else None,
            "revision": self.catalog.revision,
            "catalog": None if mapped else self.catalog.to_bytes(),
        }

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self._start(*state["start"])
        if state["catalog"] is not None:
            self.catalog = _core.Catalog.from_bytes(state["catalog"])
        else:
            self.catalog = self._map(state["directory"], state["revision"]).catalog
        self._finish()

    def warn(self, text: str, again: bool = False) -> None:
        """Once for each process and dataset; later ones only to the log."""
        log.warning("stoker: %s", text)
        if again or not self._has_warned:
            self._has_warned = True
            warnings.warn(f"stoker: {text}", StokerWarning, stacklevel=3)

    # --- samples -------------------------------------------------------------------------------------------------

    def fill(self, epoch: int, ids: Ids, samples: List[Any], missing: List[int]) -> Set[int]:
        """Gets the samples at these positions of `ids` into `samples`; returns those of the positions that the sidecar
        was told of as read.

        Raises:
            OriginError: the origin does not give a sample; the message names its key.
        """
        told: Set[int] = set()
        for at in range(0, len(missing), FETCH_AT_MOST):
            told.update(self._fill(epoch, ids, samples, missing[at : at + FETCH_AT_MOST]))
        return told

    def read_past(self, ids: Ids, samples: List[Any], missing: List[int]) -> bool:
        """As fill(), at the origin though they may be on the node; False: they cannot be had there."""
        try:
            if self._find_origin() is None:
                return False
            self._read_at_origin(ids, samples, missing, "")
            return True
        except StokerError as error:
            log.info("stoker: what the cache is worth cannot be measured: %s", error)
            return False

    def _fill(self, epoch: int, ids: Ids, samples: List[Any], missing: List[int]) -> List[int]:
        refusal, told = "", []
        if self.reader is not None and self.link is not None:
            with self.link.lane() as lane:
                wanted = missing
                missing, refusal = self._fetch(lane, ids, samples, wanted)
                if lane is not self.link and len(missing) < len(wanted):
                    told = [at for at in wanted if samples[at] is not None]
                    if not lane.consumed(epoch, [int(ids[at]) for at in told]):
                        told = []
        if missing:
            self._read_at_origin(ids, samples, missing, refusal)
        return told

    def _fetch(
        self, lane: Link, ids: Ids, samples: List[Any], missing: List[int]
    ) -> Tuple[List[int], str]:
        """The samples that are still missing, and why the origin does not give them."""
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

    def _take(self, ids: Ids, samples: List[Any], ready: List[int]) -> bool:
        """Reads what the sidecar says is there; True when some of it is not, or not intact."""
        for attempt in range(2):
            if not ready or self.reader is None:
                break
            if attempt > 0:
                self._refresh()  # the leader may have made a new table
            found, absent = self.reader.read([int(ids[at]) for at in ready])
            for at, sample in zip(ready, found):
                samples[at] = sample
            ready = [ready[at] for at in absent]
        return bool(ready)

    def _find_origin(self) -> Optional[Origin]:
        if self._origin is None and self.settings.uri is not None:
            self._origin = open_origin(self.settings)
        return self._origin

    def _read_at_origin(self, ids: Ids, samples: List[Any], missing: List[int], refusal: str) -> None:
        origin = self._find_origin()
        if origin is None:
            self._await_sidecar(ids, samples, missing, refusal)
            return
        rows = [self.catalog.describe(int(ids[at])) for at in missing]
        try:
            payloads = origin.read_many([Request(key, size, etag) for key, size, etag, _ in rows])
        except OriginError as error:
            if isinstance(error, ForbiddenError) and self._is_keyless_guest():
                self._await_sidecar(ids, samples, missing, refusal)
                return
            if refusal:
                raise type(error)(f"{error} (the sidecar said: {refusal})", error.key) from error
            raise
        for at, row, payload in zip(missing, rows, payloads):
            samples[at] = Sample(payload, int(ids[at]), row[3], self.catalog)
            self.meter.origin_bytes += len(payload)
        self.meter.origin_samples += len(missing)

    def _await_sidecar(self, ids: Ids, samples: List[Any], missing: List[int], refusal: str) -> None:
        """There is no origin to fall back to, so the sidecar has to come back."""
        if refusal:
            raise OriginError(refusal)
        patience = WAIT_FOR_SIDECAR_S
        if self._is_keyless_guest():
            patience = float("inf")
            self._warn_of_waiting()
        give_up = time.monotonic() + patience
        while missing:
            if time.monotonic() > give_up or self.link is None:
                raise StokerError(
                    f"dataset '{self.settings.describe()}': sample {int(ids[missing[0]])} is not on this node, "
                    "there is no sidecar, and STOKER_DATASETS does not say where the origin is"
                )
            with self.link.lane() as lane:
                outcome = lane.fetch([int(ids[at]) for at in missing])
                if outcome is not None and ORIGIN_ERROR in outcome.statuses:
                    raise OriginError(outcome.message)
                is_away = outcome is None or self._take(ids, samples, missing)
            if is_away:
                time.sleep(ASK_AGAIN_S)
            missing = [at for at in missing if samples[at] is None]

    def _warn_of_waiting(self) -> None:
        self.warn(
            f"dataset '{self.settings.describe()}' is another namespace's and this pod has no key of its own: "
            "waiting until a sidecar serves it"
        )

    def _is_keyless_guest(self) -> bool:
        """Whether only a sidecar can give us this dataset: another namespace's, without credentials of our own."""
        return self.settings.guest and self.link is not None and not (self._origin and self._origin.has_key())

    # --- opening -------------------------------------------------------------------------------------------------

    def _first_catalog(self) -> _core.Catalog:
        while True:
            try:
                return self._open_catalog(self._first_attach())
            except ForbiddenError:
                if not self._is_keyless_guest():
                    raise
                self._warn_of_waiting()
                time.sleep(ASK_AGAIN_S)

    def _first_attach(self) -> Optional[Welcome]:
        if self.link is None:
            return None
        try:
            return self.link.attach(PATIENCE_S if os.environ.get("STOKER_SOCKET") else 0.0)
        except _core.CoreError as error:
            self.warn(f"no cache for '{self.settings.describe()}' ({error.args[-1]}); reading past it")
            return None

    def _open_catalog(self, welcome: Optional[Welcome]) -> _core.Catalog:
        directory = self.settings.directory or (welcome.directory if welcome else None)
        revision = welcome.revision if welcome else current_revision(directory)
        if directory is not None and revision is not None:
            try:
                return self._map(directory, revision).catalog
            except _core.CoreError as error:
                self.warn(f"the node directory cannot be read ({error.args[-1]}); reading past the cache")
        return self._list_origin(welcome)

    def _map(self, directory: str, revision: int) -> _core.NodeReader:
        self.reader = _core.NodeReader(directory, revision, self._verify, guest=self.settings.guest)
        self._directory = directory
        return self.reader

    def _list_origin(self, welcome: Optional[Welcome]) -> _core.Catalog:
        origin = self._origin = self._origin or open_origin(self.settings)
        catalog = list_origin(origin)
        if welcome is not None and welcome.revision != catalog.revision:
            self.warn("the origin has changed since the sidecar listed it; reading past the cache")
        return catalog

    # --- the sidecar comes and goes ------------------------------------------------------------------------------

    def _is_our_revision(self, welcome: Welcome) -> bool:
        """Called when a sidecar answers again: a running job keeps its revision."""
        if welcome.revision != self.catalog.revision:
            self.warn("the sidecar now serves another revision of the dataset; reading past it", again=True)
            return False
        if self.reader is None:
            try:
                self._map(self.settings.directory or welcome.directory, welcome.revision)
            except _core.CoreError as error:
                log.warning("stoker: the node directory cannot be read: %s", error.args[-1])
        self._refresh()
        log.info("stoker: attached to the sidecar for '%s'", self.settings.describe())
        return True

    def _refresh(self) -> None:
        try:
            if self.reader is not None:
                self.reader.refresh()
        except _core.CoreError as error:
            log.warning("stoker: the residency table cannot be read: %s", error.args[-1])

    def _on_lost(self, why: str) -> None:
        self.meter.lost += 1
        self.warn(f"the sidecar of '{self.settings.describe()}' is away ({why}); reading past it until it is back")
