"""Gets the bytes of a dataset for one process: from the node directory, the sidecar, or else the origin."""

from __future__ import annotations

import logging
import os
import time
import warnings
from typing import Any, Dict, List, Optional

from . import _core
from ._core import Sample
from .catalogs import current_revision, list_origin
from .errors import ForbiddenError, OriginError, StokerError, StokerWarning
from .link import Link, Place, Welcome, refresh
from .meter import Meter
from .origin import Origin, Request, open_origin
from .settings import DatasetSettings
from .shared_file import SharedFile

__all__ = ["Sources"]

log = logging.getLogger("stoker")

WAIT_FOR_SIDECAR_S = 600.0
ASK_AGAIN_S = 0.1  # polling interval while no sidecar answers
_CHECK_BYTES = 4  # bytes of a sample's check word
PATIENCE_S = 5.0  # seconds to wait at the start, if STOKER_SOCKET is set


class Sources:
    """The sources of one dataset revision, in the order in which Samples tries them: node directory, sidecar, origin.

    Any thread may call. A forked child calls after_fork(); an unpickled copy opens its own connections.

    Attributes:
        settings: location of the dataset. place: identity of this process for the sidecar.
        link: the connection to the sidecar; None: no sidecar serves this dataset.
        catalog: ids, keys, sizes and labels. Constant.
        reader: of the node directory; None: not mapped yet.
        meter: counts of this process.

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
        self._checks: Optional[SharedFile] = None  # which samples were verified, by this process or its relatives
        self._has_warned = False

    def _finish(self) -> None:
        if self.link is not None:
            self.link.accepts = self._is_our_revision

    def after_fork(self) -> None:
        """Call in a forked child: drops the parent's connections, threads and counts."""
        if self.link is not None:
            self.link.forget()
        self._origin = None
        self.meter = Meter(self.reader)

    def close(self) -> None:
        """Disconnects and frees maps and threads."""
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
            "checks": self._checks if mapped else None,
            "revision": self.catalog.revision,
            "catalog": None if mapped else self.catalog.to_bytes(),
        }

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self._start(*state["start"])
        self._checks = state["checks"]
        if state["catalog"] is not None:
            self.catalog = _core.Catalog.from_bytes(state["catalog"])
        else:
            self.catalog = self._map(state["directory"], state["revision"]).catalog
        self._finish()

    def warn(self, text: str, again: bool = False) -> None:
        """Warns once per process and dataset (`again`: each time); always logs."""
        log.warning("stoker: %s", text)
        if again or not self._has_warned:
            self._has_warned = True
            warnings.warn(f"stoker: {text}", StokerWarning, stacklevel=3)

    # --- samples -------------------------------------------------------------------------------------------------

    def read_past(self, samples: List[Any], misses: _core.Misses) -> bool:
        """Does what read_at_origin() does, for samples that may be on the node. False: the origin cannot be read."""
        try:
            if self._find_origin() is None:
                return False
            self.read_at_origin(samples, misses)
            return True
        except StokerError as error:
            log.info("stoker: cannot measure what the cache is worth: %s", error)
            return False

    def _find_origin(self) -> Optional[Origin]:
        if self._origin is None and self.settings.uri is not None:
            self._origin = open_origin(self.settings)
        return self._origin

    def read_at_origin(self, samples: List[Any], misses: _core.Misses) -> None:
        """Reads the misses into `samples`; waits for the sidecar if this pod cannot read the origin.

        Raises:
            OriginError: the origin does not deliver a sample; the message names its key.
        """
        origin = self._find_origin()
        if origin is None:
            self._await_sidecar(samples, misses)
            return
        rows = [self.catalog.describe(id) for id in misses.ids]
        try:
            payloads = origin.read_many([Request(key, size, etag) for key, size, etag, _ in rows])
        except OriginError as error:
            if isinstance(error, ForbiddenError) and self._is_keyless_guest():
                self._await_sidecar(samples, misses)
                return
            if misses.refusal:
                raise type(error)(f"{error} (the sidecar said: {misses.refusal})", error.key) from error
            raise
        for at, id, row, payload in zip(misses.positions, misses.ids, rows, payloads):
            samples[at] = Sample(payload, id, row[3], self.catalog)
            self.meter.origin_bytes += len(payload)
        self.meter.origin_samples += len(misses)

    def _await_sidecar(self, samples: List[Any], misses: _core.Misses) -> None:
        """Waits for a sidecar, because there is no readable origin."""
        patience = WAIT_FOR_SIDECAR_S
        if self._is_keyless_guest() and not misses.refusal:
            patience = float("inf")
            self._warn_of_waiting()
        give_up = time.monotonic() + patience
        while misses:
            if misses.refusal:
                raise OriginError(misses.refusal)
            if time.monotonic() > give_up or self.link is None:
                raise StokerError(
                    f"dataset '{self.settings.describe()}': sample {misses.ids[0]} is not on this node, "
                    "there is no sidecar, and STOKER_DATASETS does not say where the origin is"
                )
            if self.link.is_attached() and self.reader is not None:  # attaching maps the node directory
                with self.link.lane() as lane:
                    lane.request(self.reader, samples, misses)
            if misses and not misses.refusal:
                time.sleep(ASK_AGAIN_S)

    def _warn_of_waiting(self) -> None:
        self.warn(
            f"dataset '{self.settings.describe()}' belongs to another namespace and this pod has no credentials for it: "
            "waiting until a sidecar serves it"
        )

    def _is_keyless_guest(self) -> bool:
        """Whether only a sidecar can serve the dataset: another namespace owns it and this pod has no credentials."""
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
            self.warn(f"no cache for '{self.settings.describe()}' ({error.args[-1]}); reading from the origin")
            return None

    def _open_catalog(self, welcome: Optional[Welcome]) -> _core.Catalog:
        directory = self.settings.directory or (welcome.directory if welcome else None)
        revision = welcome.revision if welcome else current_revision(directory)
        if directory is not None and revision is not None:
            try:
                return self._map(directory, revision).catalog
            except _core.CoreError as error:
                self.warn(f"the node directory cannot be read ({error.args[-1]}); reading without the cache")
        return self._list_origin(welcome)

    def _map(self, directory: str, revision: int) -> _core.NodeReader:
        self.reader = _core.NodeReader(directory, revision, self._verify, guest=self.settings.guest)
        if self._checks is None:
            self._checks = SharedFile(_CHECK_BYTES * len(self.reader.catalog))
        self.reader.share_checks(self._checks.file, SharedFile.DATA_AT)
        self._directory = directory
        return self.reader

    def _list_origin(self, welcome: Optional[Welcome]) -> _core.Catalog:
        origin = self._origin = self._origin or open_origin(self.settings)
        catalog = list_origin(origin)
        if welcome is not None and welcome.revision != catalog.revision:
            self.warn("the origin has changed since the sidecar listed it; reading without the cache")
        return catalog

    # --- sidecar lost and reconnected ----------------------------------------------------------------------------

    def _is_our_revision(self, welcome: Welcome) -> bool:
        """Called when a sidecar connects again: a running job keeps its revision."""
        if welcome.revision != self.catalog.revision:
            self.warn("the sidecar now serves another revision of the dataset; reading without it", again=True)
            return False
        if self.reader is None:
            try:
                self._map(self.settings.directory or welcome.directory, welcome.revision)
            except _core.CoreError as error:
                log.warning("stoker: the node directory cannot be read: %s", error.args[-1])
        if self.reader is not None:
            refresh(self.reader)
        log.info("stoker: attached to the sidecar for '%s'", self.settings.describe())
        return True

    def _on_lost(self, why: str) -> None:
        self.meter.lost += 1
        self.warn(f"the sidecar of '{self.settings.describe()}' is gone ({why}); reading without it until it returns")
