"""The samples of a dataset, by id: from the node directory when they are there, through the sidecar when they are not,
from the origin when there is no sidecar."""

from __future__ import annotations

import logging
import os
import time
import warnings
import weakref
from typing import Any, Dict, List, Optional, Sequence, Set

from . import _core
from ._core import Sample
from .catalogs import current_revision, list_origin
from .errors import ForbiddenError, StokerWarning
from .farewell import at_end, tell_the_rest
from .link import Link, Parts, Place, Welcome
from .meter import Meter, add_counts
from .misses import ASK_AGAIN_S, Misses
from .origin import Origin, open_origin
from .probe import Probe
from .settings import DatasetSettings, resolve, socket_path, world
from .unsaid import Unsaid

__all__ = ["Samples", "open", "stats"]

log = logging.getLogger("stoker")

FETCH_AT_MOST = 512  # samples a request: what was fetched is pinned before the sidecar makes room for more
PATIENCE_S = 5.0  # at the start, where the environment promises a sidecar

_all: "weakref.WeakSet[Samples]" = weakref.WeakSet()
_closed_totals: Dict[str, int] = {}


def open(
    name_or_uri: str,
    *,
    endpoint: Optional[str] = None,
    region: Optional[str] = None,
    path_style: Optional[bool] = None,
    directory: Optional[str] = None,
    socket: Optional[str] = None,
    verify: str = "first",
) -> "Samples":
    """Opens a dataset.

    Args:
        name_or_uri: a name under the job's `spec.datasets` (such as "train"), or `s3://bucket/prefix` or
            `file:///folder` to read an origin without a sidecar.
        endpoint, region, path_style: of the S3 API; default: what the operator injected, then AWS_* variables.
        directory: the node directory as mounted here; default: what the sidecar says.
        socket: path of the sidecar's socket; default: STOKER_SOCKET, then /stoker/run/stoker.sock.
        verify: when the checksum of a cached sample is compared: "first" touch in this process, "always", "never".

    Waits while the sidecar lists the origin for the first time (logged once a second by logger `stoker`).

    Raises:
        SettingsError: a setting is wrong, or nothing says where the dataset is.
        OriginError: there is no sidecar and the origin cannot be listed.
    """
    settings = resolve(
        name_or_uri, endpoint=endpoint, region=region, path_style=path_style, directory=directory
    )
    path = None if settings.name is None else socket or socket_path()
    return Samples(settings, path, verify)


def stats() -> Dict[str, int]:
    """Counts of this process over all its datasets: keys as in Samples.stats()."""
    total = dict(_closed_totals)
    for samples in list(_all):
        add_counts(total, samples.stats())
    return total


class Samples(Misses):
    """The samples of one dataset revision; ids are 0..len-1 in bytewise order of the keys.

    `samples[id]` and `samples.fetch(ids)` give `Sample` objects: read-only buffers whose bytes stay valid for as long
    as they are held. Any thread may call: misses of several threads are fetched together, and a thread whose samples
    are on the node waits for nobody. It survives fork, and pickling for spawned processes; each process has its own
    connections. Use `stoker.open` to make one.

    Attributes:
        classes: names of the parent folders, sorted; a sample's label is an index into them.
    """

    def __init__(self, settings: DatasetSettings, socket: Optional[str], verify: str) -> None:
        rank, world_size = world()
        stream = int.from_bytes(os.urandom(8), "little") | 1  # 0 would mean: without a plan
        self._settings = settings
        self._verify = verify
        self._place = Place(settings.name or "", rank, world_size, stream)
        self._socket = socket
        self._start_process()
        self._catalog = self._first_catalog()
        self._finish()

    # --- what users call -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, id: int) -> Sample:
        return self.fetch([id])[0]

    def sample(self, id: int) -> Sample:
        """One sample; see fetch()."""
        return self.fetch([id])[0]

    def fetch(self, ids: Sequence[int]) -> List[Sample]:
        """The samples of a batch, in the order of `ids` (any sequence of integers; numpy int64 is fastest).

        Raises:
            IndexError: an id outside 0..len-1.
            OriginError: the origin does not give a sample; the message names its key.
        """
        self._unsaid.flush()
        if self._probe.id != 0:
            self._probe_batch(ids)
        if self._reader is not None and not self._probe.bypassing:
            samples, missing = self._reader.read(ids)
        else:
            samples, missing = [None] * len(ids), list(range(len(ids)))
            self._check_range(ids)
        self._meter.samples += len(samples)
        if self._probe.bypassing and self._read_past(ids, samples, missing):
            missing = []
        told: Set[int] = set()
        for at in range(0, len(missing), FETCH_AT_MOST):
            told.update(self._fill(ids, samples, missing[at : at + FETCH_AT_MOST]))
        if self._link is not None:
            self._unsaid.fetched(self.epoch, [id for at, id in enumerate(ids) if at not in told] if told else ids)
            self.heartbeat()
        return samples

    @property
    def labels(self) -> List[int]:
        """Label of every sample, by id; -1 for one without a parent folder."""
        if self._labels is None:
            self._labels = self._catalog.labels()
        return self._labels

    @property
    def total_bytes(self) -> int:
        """Size of all samples together, in bytes."""
        return self._catalog.total_bytes

    @property
    def revision(self) -> str:
        """The listing that this is, as 16 hex digits."""
        return f"{self._catalog.revision:016x}"

    def stats(self) -> Dict[str, int]:
        """Counts of this process.

        Keys: samples (handed out), node_samples and node_bytes (mapped from the node directory), origin_samples and
        origin_bytes (read past the sidecar), corrupt (records that did not match their checksum and were not served),
        attached and lost (connections to the sidecar).
        """
        attached = self._link.attached_count if self._link is not None else 0
        return self._meter.totals(self._reader, attached)

    def close(self) -> None:
        """Says goodbye to the sidecar and gives maps and threads back. Samples that are out stay valid."""
        if self._is_closed:
            return
        self._is_closed = True
        self.tell_all()
        add_counts(_closed_totals, self.stats())
        _all.discard(self)
        if self._link is not None:
            self._link.close()
        if self._origin is not None:
            self._origin.close()
        self._reader = None

    def __enter__(self) -> "Samples":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # --- what samplers and loaders call --------------------------------------------------------------------------

    def set_plan(self, epoch: int, ids: Sequence[int], start: int = 0, ahead: Sequence[int] = ()) -> None:
        """Tells the sidecar in which order this stream will read, so that it can fetch ahead.

        Args:
            epoch: number of the epoch; flush() names it too.
            ids: the whole epoch's ids of this rank, in order.
            start: position in `ids` to begin at.
            ahead: with what the next epoch surely begins, so that the sidecar fetches on when this one's samples are
                there; only the first 65,536. Give none in the last epoch: it would be fetched in vain.
        """
        self.epoch = epoch
        if self._link is not None:
            self._link.plan(epoch, ids, start, ahead)

    def sees_ahead(self) -> bool:
        """Whether the sidecar that answered last takes the beginning of the next epoch with a plan."""
        return self._link is not None and self._link.sees_ahead()

    def advance(self, position: int) -> None:
        """How far the stream is in its plan, for a sidecar that comes back."""
        if self._link is not None:
            self._link.advance(position)

    def flush(self) -> None:
        """Tells the sidecar that the samples of this thread's last fetch() were used and may leave its window."""
        self._unsaid.flush()

    def note_used(self, id: int) -> None:
        """A sample that was fetched alone was used; the sidecar hears of such some at a time."""
        self._unsaid.gather(self.epoch, id)

    def tell_all(self) -> None:
        """Tells the sidecar everything that was read and counted until now; for the end of a process."""
        self._unsaid.tell_all()
        self.heartbeat(now=True)

    def note_step(self, wait_ns: int, compute_ns: int, steps: int = 1) -> None:
        """Counts training steps: time waiting for a batch, and time until the next one was asked for."""
        self._meter.note_step(wait_ns, compute_ns, steps)
        self.heartbeat()

    def heartbeat(self, now: bool = False) -> None:
        """Reports to the sidecar every other second; finds out here that it is gone, or back."""
        if self._link is None or not (now or self._meter.is_due()):
            return
        totals = self.stats()
        if now and not self._meter.has_news(totals):
            return
        if self._link.report(self._meter.report(self.epoch, totals)):
            self._meter.told(totals)
        if not now and self._reader is not None:
            self._ask_probe()

    @property
    def parts(self) -> Parts:
        """What stoker.draws works with."""
        return Parts(self._settings, self._place.stream, self._catalog, self._reader, self._link, self._warn)

    # --- opening -------------------------------------------------------------------------------------------------

    def _start_process(self) -> None:
        """State that belongs to one process."""
        self._link = Link(self._socket, self._place, self._on_lost) if self._socket is not None else None
        self._origin: Optional[Origin] = None
        self._reader: Optional[_core.NodeReader] = None
        self._labels: Optional[List[int]] = None
        self._is_closed = False
        self._has_warned = False
        self.epoch = 0
        self._unsaid = Unsaid(self._link)
        self._meter = Meter(None)
        self._probe = Probe()

    def _finish(self) -> None:
        self._count = len(self._catalog)
        self.classes: List[str] = self._catalog.classes()
        if self._link is not None:
            self._link.accepts = self._is_our_revision
        _all.add(self)

    def _first_catalog(self) -> "_core.Catalog":
        while True:
            try:
                return self._open_catalog(self._first_attach())
            except ForbiddenError:
                if not self._is_keyless_guest():
                    raise
                self._warn_of_waiting()
                time.sleep(ASK_AGAIN_S)

    def _first_attach(self) -> Optional[Welcome]:
        if self._link is None:
            return None
        try:
            return self._link.attach(PATIENCE_S if os.environ.get("STOKER_SOCKET") else 0.0)
        except _core.CoreError as error:
            self._warn(f"no cache for '{self._settings.describe()}' ({error.args[-1]}); reading past it")
            return None

    def _open_catalog(self, welcome: Optional[Welcome]) -> "_core.Catalog":
        directory = self._settings.directory or (welcome.directory if welcome else None)
        revision = welcome.revision if welcome else current_revision(directory)
        if directory is not None and revision is not None:
            try:
                self._reader = self._new_reader(directory, revision)
                self._directory = directory
                return self._reader.catalog
            except _core.CoreError as error:
                self._warn(f"the node directory cannot be read ({error.args[-1]}); reading past the cache")
        self._directory = directory
        return self._list_origin(welcome)

    def _new_reader(self, directory: str, revision: int) -> "_core.NodeReader":
        return _core.NodeReader(directory, revision, self._verify, guest=self._settings.guest)

    def _list_origin(self, welcome: Optional[Welcome]) -> "_core.Catalog":
        self._origin = self._origin or self._open_origin() or open_origin(self._settings)
        catalog = list_origin(self._origin)
        if welcome is not None and welcome.revision != catalog.revision:
            self._warn("the origin has changed since the sidecar listed it; reading past the cache")
        return catalog

    def _open_origin(self) -> Optional[Origin]:
        return open_origin(self._settings) if self._settings.uri is not None else None

    # --- the sidecar comes and goes ------------------------------------------------------------------------------

    def _is_our_revision(self, welcome: Welcome) -> bool:
        """Called when a sidecar answers again: a running job keeps its revision."""
        if welcome.revision != self._catalog.revision:
            self._warn("the sidecar now serves another revision of the dataset; reading past it", again=True)
            return False
        if self._reader is None:
            try:
                directory = self._settings.directory or welcome.directory
                self._reader = self._new_reader(directory, welcome.revision)
                self._directory = directory
            except _core.CoreError as error:
                log.warning("stoker: the node directory cannot be read: %s", error.args[-1])
        self._refresh()
        log.info("stoker: attached to the sidecar for '%s'", self._settings.describe())
        return True

    def _refresh(self) -> None:
        try:
            if self._reader is not None:
                self._reader.refresh()
        except _core.CoreError as error:
            log.warning("stoker: the residency table cannot be read: %s", error.args[-1])

    def _on_lost(self, why: str) -> None:
        self._meter.lost += 1
        self._warn(f"the sidecar of '{self._settings.describe()}' is away ({why}); reading past it until it is back")

    def _warn(self, text: str, again: bool = False) -> None:
        """Once for each process and dataset; later ones only to the log."""
        log.warning("stoker: %s", text)
        if again or not self._has_warned:
            self._has_warned = True
            warnings.warn(f"stoker: {text}", StokerWarning, stacklevel=3)

    # --- other processes -----------------------------------------------------------------------------------------

    def _after_fork_in_child(self) -> None:
        if self._link is not None:
            self._link.forget()
        self._origin = None  # its threads and connections are the parent's
        self._unsaid = Unsaid(self._link)
        self._meter = Meter(self._reader)
        self._probe = Probe()

    def __getstate__(self) -> Dict[str, Any]:
        mapped = self._reader is not None
        return {
            "settings": self._settings,
            "verify": self._verify,
            "place": self._place,
            "socket": self._socket,
            "directory": self._directory if mapped else None,
            "revision": self._catalog.revision,
            "catalog": None if mapped else self._catalog.to_bytes(),
            "epoch": self.epoch,
        }

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self._settings, self._verify = state["settings"], state["verify"]
        self._place, self._socket = state["place"], state["socket"]
        self._start_process()
        self._directory = state["directory"]
        if state["catalog"] is not None:
            self._catalog = _core.Catalog.from_bytes(state["catalog"])
        else:
            self._reader = self._new_reader(self._directory, state["revision"])
            self._catalog = self._reader.catalog
        self.epoch = state["epoch"]
        self._finish()


def _after_fork_in_child() -> None:
    for samples in list(_all):
        samples._after_fork_in_child()
    _closed_totals.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
at_end(lambda: tell_the_rest(_all))
