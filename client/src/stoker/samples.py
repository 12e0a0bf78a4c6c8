"""The samples of a dataset, by id: from the node directory, else through the sidecar, and without a sidecar from the
origin."""

from __future__ import annotations

import os
import time
import weakref
from typing import Any, Callable, Dict, List, Optional, Set

from . import _core
from ._core import Misses, Sample
from .arrays import Array, Ids
from .exit_hooks import at_end, tell_the_rest
from .link import Place
from .meter import add_counts
from .pending_acks import PendingAcks
from .probe import Probe
from .settings import DatasetSettings, resolve, socket_path, world
from .shared_counts import SharedCounts
from .sources import Sources

__all__ = ["Samples", "open", "stats"]

_SHARE_EVERY_S = 0.01  # seconds between two updates of the shared counts
FETCH_AT_MOST = 512  # samples per request: the sidecar pins one request's samples before it makes room for more

_all: "weakref.WeakSet[Samples]" = weakref.WeakSet()
_closed_totals: Dict[str, int] = {}


def open(
    name_or_uri: str,
    *,
    endpoint: Optional[str] = None,
    region: Optional[str] = None,
    path_style: Optional[bool] = None,
    directory: Optional[str] = None,
    format: Optional[str] = None,
    record_bytes: Optional[int] = None,
    record_suffix: Optional[str] = None,
    socket: Optional[str] = None,
    verify: str = "first",
) -> "Samples":
    """Opens a dataset.

    Args:
        name_or_uri: a name under the job's `spec.datasets` (such as "train"), or `s3://bucket/prefix`,
            `https://host/folder` (with its index.txt) or `file:///folder` to read an origin without a sidecar.
        endpoint, region, path_style: of the S3 API; default: the operator's settings, then AWS_* variables.
        directory: the node directory as mounted here; default: as the sidecar reports it.
        format: how the origin stores samples: "objects", "chunks" for what `stoker pack` wrote, "tar" for tar shards
            (WebDataset), whose samples are dictionaries: `stoker.TarSample`, "records" for objects of rows of one size,
            "megatron" for pairs of .bin and .idx: `stoker.MegatronSamples`, or "tfrecord"; default: the operator's
            setting, else "objects".
        record_bytes, record_suffix: of format "records": bytes of a row, and how the keys of objects with rows end
            (default: all objects have rows).
        socket: path of the sidecar's socket; default: STOKER_SOCKET, then /stoker/run/stoker.sock.
        verify: when a cached sample's checksum is compared: "first" read in this process, "always", "never".

    Waits while the sidecar lists the origin for the first time (logged once a second by logger `stoker`).

    Raises:
        SettingsError: a setting is wrong, or the dataset's location is unknown.
        OriginError: there is no sidecar and the origin cannot be listed.
    """
    settings = resolve(
        name_or_uri,
        endpoint=endpoint,
        region=region,
        path_style=path_style,
        directory=directory,
        format=format,
        record_bytes=record_bytes,
        record_suffix=record_suffix,
    )
    path = None if settings.name is None else socket or socket_path()
    if settings.format == "tar":
        from .tar import TarSamples

        return TarSamples(settings, path, verify)
    if settings.format == "megatron":
        from .megatron import MegatronSamples

        return MegatronSamples(settings, path, verify)
    return Samples(settings, path, verify)


def stats() -> Dict[str, int]:
    """Counts of this process, summed over its datasets: keys as in Samples.stats()."""
    total = dict(_closed_totals)
    for samples in list(_all):
        add_counts(total, samples.stats())
    return total


def _no_sample(id: int) -> Optional[Sample]:  # pylint: disable=unused-argument
    return None


class Samples:
    """The samples of one dataset revision; ids are 0..len-1 in bytewise order of the keys.

    `samples[id]` and `samples.fetch(ids)` give `Sample` objects: read-only buffers whose bytes stay valid for as long
    as they are held. Any thread may call: misses of several threads are fetched in parallel, and a thread whose samples
    are on the node does not wait. Survives fork, and pickling for spawned processes; each process has its own
    connections. Use `stoker.open` to make one.

    Attributes:
        classes: names of the parent folders, sorted; a sample's label is an index into them.
        sources: where the bytes come from, for stoker.draws.
    """

    def __init__(self, settings: DatasetSettings, socket: Optional[str], verify: str) -> None:
        here = world()
        stream = int.from_bytes(os.urandom(8), "little") | 1  # 0 means: without a plan
        place = Place(settings.name or "", here.rank, here.size, stream)
        self._start(Sources(settings, place, socket, verify), 0, SharedCounts())

    def _start(self, sources: Sources, epoch: int, shared: SharedCounts) -> None:
        """State that a forked child must not share with its parent."""
        self.sources, self._epoch, self._shared = sources, epoch, shared
        self._share_due = 0.0
        self.classes: List[str] = sources.catalog.classes()
        self._labels: Optional[List[int]] = None
        self._is_closed = False
        self._start_telling()
        _all.add(self)

    def _start_telling(self) -> None:
        self._acks = PendingAcks(self.sources.link)
        self._probe = Probe(self.sources.link)
        self._read_resident: Callable[[int], Optional[Sample]] = _no_sample

    # --- what users call -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.sources.catalog)

    def __getitem__(self, id: int) -> Sample:
        found = self._read_resident(id)
        return self._read_alone(id) if found is None else found

    def _read_alone(self, id: int) -> Sample:
        """One sample, where the fast path is closed or does not have it; opens the fast path for the next ones."""
        sources = self.sources
        found = sources.reader.read_one(id) if sources.reader is not None and self._probe.id == 0 else None
        if found is None:
            return self.fetch_raw([id])[0]
        sources.meter.samples += 1
        self._settle_reads()
        if sources.link is not None:
            self._acks.fetched_one(self._epoch, id, len(found))
            self.heartbeat()
        self._share_if_due()
        return found

    def _settle_reads(self) -> None:
        """Counts and acknowledges the samples of the fast path; opens it again, unless batches are being measured."""
        reader = self.sources.reader
        if reader is None:
            return
        ids = reader.take_reads()
        self.sources.meter.samples += len(ids)
        if ids:
            self._acks.read(self._epoch, ids)
        is_open = self._probe.id == 0 and not self._is_closed
        self._read_resident = reader.read_resident if is_open else _no_sample

    def sample(self, id: int) -> Sample:
        """One sample; see fetch()."""
        return self[id]

    def fetch(self, ids: Ids) -> List[Sample]:
        """The samples of a batch, in the order of `ids` (any sequence of integers; numpy int64 is fastest).

        Raises:
            IndexError: an id outside 0..len-1.
            OriginError: the origin does not deliver a sample; the message names its key.
        """
        return self.fetch_raw(ids)

    def fetch_raw(self, ids: Ids) -> List[Sample]:
        """Does what fetch() does, but returns each sample as a buffer of its bytes in every format."""
        self._acks.flush()
        sources, probe = self.sources, self._probe
        if probe.id != 0:
            probe.next_batch(time.monotonic_ns(), self.epoch, sources.catalog.bytes_of(ids))
        misses: Optional[Misses]
        all_resident = False
        if sources.reader is not None and not probe.bypassing:
            samples, misses, all_resident = sources.reader.read(ids)
        else:
            samples, misses = [None] * len(ids), Misses(ids, len(self))
        sources.meter.samples += len(samples)
        if misses and probe.bypassing:
            if sources.read_past(samples, misses):
                misses = None
            else:
                probe.give_up()
        told = self._fill(samples, misses) if misses else None
        if sources.link is not None:
            if all_resident and told is None:
                self._acks.read(self._epoch, ids)
            else:
                self._acks.fetched(self._epoch, [id for at, id in enumerate(ids) if at not in told] if told else ids)
            self.heartbeat()
        self._share_if_due()
        return samples

    def gather(self, ids: Ids, out: Any) -> Array:
        """Copies the bytes of a batch, one sample after another, into memory of the caller, such as a pinned tensor.
        Large batches are copied by several threads, without the interpreter's lock. The samples count as used then.

        Args:
            ids: as in fetch().
            out: a writable C-contiguous buffer (numpy array, bytearray, memoryview) or a torch tensor on the CPU.

        Returns:
            Offsets in bytes, int64 of shape (n + 1,): sample i is at offsets[i]..offsets[i + 1].

        Raises:
            ValueError: `out` is too small; the message says how many bytes are needed. Nothing was read.
            As fetch().
        """
        out = memoryview(out.numpy() if hasattr(out, "data_ptr") else out)
        offsets: Array
        needed = self.sources.catalog.bytes_of(ids)
        if out.nbytes < needed:
            raise ValueError(f"`out` has {out.nbytes} bytes, and these samples need {needed}")
        samples = self.fetch_raw(ids)
        offsets, lost = _core.gather(samples, out)
        while lost:  # a file was truncated after the sample was found
            again: List[Any] = [None] * len(lost)
            self.sources.read_at_origin(again, Misses([samples[at].id for at in lost], len(self)))
            for at, sample in zip(lost, again):
                samples[at] = sample
            offsets, lost = _core.gather(samples, out)
        self.flush()
        return offsets

    def _fill(self, samples: List[Any], misses: Misses) -> Set[int]:
        """Gets the misses from the sidecar, or else from the origin. Returns the positions already acknowledged."""
        told: Set[int] = set()
        self._settle_reads()
        self._acks.tell_gathered()
        reader, link = self.sources.reader, self.sources.link
        for part in misses.split(FETCH_AT_MOST):
            if reader is not None and link is not None:
                told.update(link.fetch(self.epoch, reader, samples, part))
            if part:
                self.sources.read_at_origin(samples, part)
        return told

    @property
    def labels(self) -> List[int]:
        """Label of every sample, by id; -1: no parent folder."""
        if self._labels is None:
            self._labels = self.sources.catalog.labels()
        return self._labels

    @property
    def total_bytes(self) -> int:
        """Size of all samples together, in bytes."""
        return self.sources.catalog.total_bytes

    @property
    def revision(self) -> str:
        """Id of the dataset's listing: 16 hex digits."""
        return f"{self.sources.catalog.revision:016x}"

    def stats(self) -> Dict[str, int]:
        """Counts of this process.

        Keys: samples (returned to callers), node_samples and node_bytes (mapped from the node directory),
        origin_samples and origin_bytes (read without the sidecar), corrupt (records with a wrong checksum, not served),
        attached and lost (connections to the sidecar).
        """
        self._settle_reads()
        link = self.sources.link
        return self.sources.meter.totals(self.sources.reader, link.attached_count if link is not None else 0)

    def total_stats(self) -> Dict[str, int]:
        """The counts of stats(), summed over this process, the processes that it forked or spawned with this dataset
        (such as a DataLoader's workers), also those that have ended, and the process that it was forked from.

        Reads of another process are counted within 10 ms (single ones within 100 ms), but its last ones only when it
        reads on or ends normally.
        """
        if not self._is_closed:
            self._share()
        return self._shared.totals()

    def _share_if_due(self) -> None:
        if time.monotonic() >= self._share_due:
            self._share()

    def _share(self) -> None:
        self._share_due = time.monotonic() + _SHARE_EVERY_S
        self._shared.update(self.stats())

    def close(self) -> None:
        """Disconnects from the sidecar and frees maps and threads. Samples that callers still hold stay valid."""
        if self._is_closed:
            return
        self._is_closed = True
        self.tell_all()
        self._read_resident = _no_sample
        add_counts(_closed_totals, self.stats())
        _all.discard(self)
        self.sources.close()

    def __del__(self) -> None:
        """A script's dataset is often a local variable, which is gone before the process ends."""
        if getattr(self, "_is_closed", True):
            return  # already closed, or never started
        self._is_closed = True
        tell_the_rest([self])
        add_counts(_closed_totals, self.stats())

    def __enter__(self) -> "Samples":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def epoch(self) -> int:
        """Number of the current epoch."""
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._settle_reads()  # these samples were read in the previous epoch
        self._epoch = epoch

    # --- what samplers and loaders call --------------------------------------------------------------------------

    def set_plan(self, epoch: int, ids: Ids, start: int = 0, ahead: Ids = ()) -> None:
        """Sends the order in which this stream will read, so that the sidecar can fetch ahead.

        Args:
            epoch: its number; flush() uses it too.
            ids: this rank's ids of the whole epoch, in order.
            start: position in `ids` to begin at.
            ahead: ids with which the next epoch surely begins; the sidecar fetches them when this epoch's samples are
                there. At most the first 65,536 are used. Leave it empty in the last epoch: they would be wasted.
        """
        self.epoch = epoch
        if self.sources.link is not None:
            self.sources.link.plan(epoch, ids, start, ahead)

    def sees_ahead(self) -> bool:
        """Whether the last connected sidecar accepts the beginning of the next epoch with a plan."""
        return self.sources.link is not None and self.sources.link.sees_ahead()

    def advance(self, position: int) -> None:
        """Sets the stream's position in its plan, to resume from when a sidecar reconnects."""
        if self.sources.link is not None:
            self.sources.link.advance(position)

    def keep_connection_free(self) -> None:
        """Fetches misses over further connections from now on: for a process that reads in one thread, and draws and
        reports losses in another, which would wait for the fetch or drop the losses."""
        if self.sources.link is not None:
            self.sources.link.is_kept_free = True

    def flush(self) -> None:
        """Acknowledges the samples of this thread's last fetch(): they may leave the sidecar's window."""
        self._acks.flush()

    def note_used(self, id: int) -> None:
        """Acknowledges one sample that was fetched alone; such acknowledgements are sent in batches."""
        self._acks.gather(self.epoch, id)

    def tell_all(self) -> None:
        """Sends all remaining acknowledgements and counts; call it at the end of a process."""
        self._settle_reads()
        self._acks.tell_all()
        self._share()
        self.heartbeat(now=True)

    def note_step(self, wait_ns: int, compute_ns: int, steps: int = 1) -> None:
        """Counts training steps: time waiting for a batch, and time until the next request."""
        self.sources.meter.note_step(wait_ns, compute_ns, steps)
        self.heartbeat()

    def heartbeat(self, now: bool = False) -> None:
        """Reports to the sidecar every other second; detects that it was lost or has reconnected."""
        link, meter = self.sources.link, self.sources.meter
        if link is None or not (now or meter.is_due()):
            return
        totals = self.stats()
        if now and not meter.has_news(totals):
            return
        report = meter.report(self.epoch, totals)
        if link.report(report):
            meter.told(totals, report)
        if not now and self.sources.reader is not None:
            self._probe.ask()

    # --- other processes -----------------------------------------------------------------------------------------

    def _after_fork_in_child(self) -> None:
        if self.sources.reader is not None:
            self.sources.reader.take_reads()  # the parent acknowledges them
        self.sources.after_fork()
        self._shared.after_fork()
        self._start_telling()

    def __getstate__(self) -> Dict[str, Any]:
        return {"sources": self.sources, "epoch": self._epoch, "shared": self._shared}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self._start(**state)


def _after_fork_in_child() -> None:
    for samples in list(_all):
        samples._after_fork_in_child()
    _closed_totals.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
at_end(lambda: tell_the_rest(_all))
