"""The connection of one process to its sidecar: opened on demand, reopened after a loss."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import random
import threading
import time
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple, TypeVar

import numpy as np

from . import _core
from .arrays import Array, Ids

__all__ = ["Drawn", "Link", "Place", "Refused", "Report", "Welcome", "refresh"]

log = logging.getLogger("stoker")

T = TypeVar("T")

FEATURE_CONTRACTS, FEATURE_PROBE, FEATURE_AHEAD, FEATURE_P_OTHERS = 1, 2, 8, 16  # bits of Welcome.features

AHEAD_AT_MOST = 65536  # kAheadSamplesMax in proto/local/protocol.h; more than any sidecar's window holds

CONNECT_TIMEOUT_S = 5.0
SILENCE_S_MAX = 30.0  # a sidecar that lists the origin sends progress every second
FETCH_TIMEOUT_S = 60.0
FETCH_BYTES_PER_S_MIN = 16 << 20  # a sample of several GiB may take longer than FETCH_TIMEOUT_S
FETCH_ROUNDS = 3  # a damaged record is fetched again after the sidecar has verified it
PLAN_TIMEOUT_S = 30.0
DRAW_TIMEOUT_S = 30.0
FIRST_DELAY_S = 0.05
DELAY_S_MAX = 3.0
LANES_AT_MOST = 15  # extra connections for concurrent misses; a sidecar accepts 1024 in all


class Welcome(NamedTuple):
    """What the sidecar reports about a dataset."""

    revision: int
    sample_count: int
    directory: str
    features: int = 0


@dataclasses.dataclass(frozen=True)
class Place:
    """The identity that this process sends in its Hello.

    Attributes:
        stream: 64-bit number shared by the processes of one sample stream (sampler and workers).
    """

    dataset: str
    rank: int
    world_size: int
    stream: int


@dataclasses.dataclass
class Report:
    """Changes since the last report; times in nanoseconds. Field order is that of the protocol's frame."""

    epoch: int = 0
    steps: int = 0
    samples: int = 0
    bytes: int = 0
    hit_samples: int = 0
    origin_samples: int = 0
    wait_ns: int = 0
    compute_ns: int = 0


class Refused(Exception):
    """The sidecar understood the request and rejected it; the connection stays usable.

    Attributes:
        code: the reason ("invalid_argument", "conflict").
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Drawn(NamedTuple):
    """Answer to a draw; one array entry per draw: int64, int64, uint8 (see local::Drawn)."""

    requested: Array
    served: Array
    kinds: Array
    ended: bool


class Link:
    """A connection to a sidecar that may be absent. If absent, methods return quickly; they raise only Refused.

    Any thread may call; after a fork the child calls forget(). consumed(), report(), losses(), similarity() and
    probed() never wait for another thread: while one holds the connection they return that nothing was sent.
    """

    def __init__(self, socket_path: str, place: Place, on_lost: Callable[[str], None]) -> None:
        self._socket_path = socket_path
        self._place = place
        self._on_lost = on_lost
        self._lock = threading.RLock()
        self._client: Optional[_core.SidecarClient] = None
        self._pending: Optional[_core.SidecarClient] = None  # Hello sent, no answer yet
        self._delay = FIRST_DELAY_S
        self._not_before = 0.0
        self._is_away = False  # the loss of the sidecar was reported
        self._is_new = True  # not tried yet in this process, so the first try waits for the answer
        self._is_closed = False
        self._features = 0
        self._plan: Optional[Tuple[int, Ids, int, Ids]] = None
        self._revision = 0  # revision of the last Welcome
        self._start_lanes()
        self.accepts: Callable[[Welcome], bool] = lambda welcome: True
        self.is_kept_free = False  # lane() prefers other links, so that draws and losses do not wait for a fetch
        self.attached_count = 0

    def forget(self) -> None:
        """Call in a forked child: drops the parent's connections and plan."""
        self._lock = threading.RLock()
        self._start_lanes()
        self._client = self._pending = self._plan = None
        self._delay, self._not_before = FIRST_DELAY_S, 0.0
        self._is_away, self._is_new = False, True
        self.attached_count = 0

    def attach(self, patience: float) -> Welcome:
        """Connects for the first time; waits as long as the sidecar reports progress.

        Args:
            patience: seconds to wait for a sidecar that does not answer yet (it may be starting).

        Raises:
            _core.CoreError: no sidecar, or it rejects the Hello.
        """
        give_up = time.monotonic() + patience
        with self._lock:
            while True:
                try:
                    return self._attach_once()
                except _core.CoreError as error:
                    if error.args[0] != "unavailable" or time.monotonic() > give_up:
                        self._lost(error, tell=False)
                        raise
                    time.sleep(FIRST_DELAY_S)

    def _attach_once(self) -> Welcome:
        self._is_new = False
        self._pending = self._hello()
        while True:
            welcome = self._answer(SILENCE_S_MAX)
            if welcome is not None:
                self._settle(welcome)
                return welcome

    def is_attached(self) -> bool:
        """Whether there is a connection now. Reconnects when the backoff has passed, without waiting for the answer."""
        if not self._lock.acquire(blocking=False):
            return self._client is not None  # another thread holds it or is connecting
        try:
            if self._client is not None and self._client.is_usable and not self._is_closed:
                return True
            self._client = None
            if self._pending is None and time.monotonic() < self._not_before:
                return False
            return self._go_on_attaching()
        except _core.CoreError as error:
            self._lost(error)
            return False
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def lane(self) -> Iterator["Link"]:
        """A connection for one batch, from its first request() until its samples were read: this one, or another of the
        same stream while another thread holds this one. The sidecar pins fetched samples until the connection's next
        fetch or consumed(), so a caller that gets another Link than this one calls consumed() on that one.
        """
        if not self.is_kept_free and self._lock.acquire(blocking=False):
            try:
                yield self
            finally:
                self._lock.release()
            return
        with self._lane_slots:
            lane = self._take_lane()
            if lane is None:  # the sidecar accepts no more connections
                with self._lock:
                    yield self
                return
            try:
                yield lane
            finally:
                if not self._is_closed:
                    self._lanes.append(lane)

    def _start_lanes(self) -> None:
        self._lanes: List[Link] = []
        self._lane_slots = threading.BoundedSemaphore(LANES_AT_MOST)

    def _take_lane(self) -> Optional["Link"]:
        try:
            lane = self._lanes.pop()
        except IndexError:
            lane = Link(self._socket_path, self._place, lambda why: None)  # only the first connection reports a loss
            lane.accepts = lambda welcome: welcome.revision == self._revision
        return lane if lane.is_attached() else None

    def fetch(self, epoch: int, reader: _core.NodeReader, samples: List[Any], misses: _core.Misses) -> List[int]:
        """Calls request() on a free connection. Returns the positions whose samples were acknowledged with it."""
        wanted = misses.positions
        with self.lane() as lane:
            lane.request(reader, samples, misses)
            if lane is self:
                return []
            found = [at for at in wanted if samples[at] is not None]
            return found if found and lane.consumed(epoch, [samples[at].id for at in found]) else []

    def request(self, reader: _core.NodeReader, samples: List[Any], misses: _core.Misses) -> None:
        """Gets misses through the sidecar into `samples`; the others, or without a sidecar all, stay in `misses`."""
        timeout = FETCH_TIMEOUT_S + reader.catalog.bytes_of(misses.ids) / FETCH_BYTES_PER_S_MIN
        for _ in range(FETCH_ROUNDS):
            if self._call(lambda client: reader.fetch(client, samples, misses, timeout)) is not False:
                return
            refresh(reader)  # the leader may have written a new table
            if reader.read_ready(samples, misses):
                return

    def plan(self, epoch: int, ids: Ids, start: int, ahead: Ids = ()) -> None:
        """Sends an epoch's order, now and to every sidecar that connects later; also the beginning of the next epoch
        (`ahead`), where the sidecar supports it."""
        with self._lock:
            self._plan = (epoch, ids, start, ahead[:AHEAD_AT_MOST])
            self._call(self._send_plan)

    def forget_plan(self) -> None:
        """Forgets the order: from now on the sidecar draws it."""
        self._plan = None

    def advance(self, position: int) -> None:
        """Sets the plan's position to resume from when a sidecar reconnects."""
        if self._plan is not None:
            self._plan = (*self._plan[:2], position, self._plan[3])

    def consumed(self, epoch: int, ids: Ids) -> Optional[bool]:
        """Acknowledges samples as read. False: not sent, try again later; None: no sidecar."""
        return self._send(lambda client: client.send_consumed(epoch, ids), False)

    def begin(self, **fields: Any) -> Optional[int]:
        """Begins an epoch under a contract; the fields are those of SidecarClient.begin().

        Returns: how many losses the job's sampler has used; None without a sidecar.

        Raises:
            Refused: the sidecar rejects it.
        """
        answer = self._ask(lambda client: client.begin(timeout=PLAN_TIMEOUT_S, **fields))
        return None if answer is None else answer[1]

    def draw(self, epoch: int, count: int) -> Optional[Drawn]:
        """The next samples of the epoch that was begun on this connection; None without a sidecar.

        Raises:
            Refused: code "conflict" if no epoch was begun on this connection, which may be a new one.
        """
        answer = self._ask(lambda client: client.draw(epoch, count, DRAW_TIMEOUT_S))
        if answer is None:
            return None
        requested, served, kinds, ended = answer
        return Drawn(_as_ids(requested), _as_ids(served), np.frombuffer(kinds, dtype=np.uint8), ended)

    def losses(self, epoch: int, ids: Array, losses: Array, p_others: Optional[Array] = None) -> bool:
        """Sends losses (int64 and float32, equally long) without waiting. False: not sent.

        Args:
            p_others: float32, equally long; largest probability among the other classes, or NaN. Not sent if the
                sidecar does not support it.
        """
        known = p_others if self._features & FEATURE_P_OTHERS else None
        return bool(self._send(lambda client: client.send_losses(epoch, ids, losses, known), False))

    def similarity(self, ids: Array, hashes: Array) -> bool:
        """Sends fingerprints (int64 and uint64, equally long) without waiting. False: not sent."""
        return bool(self._send(lambda client: client.send_similarity(ids, hashes), False))

    def tally(self, epoch: int) -> Optional[Tuple[int, ...]]:
        """The sampler's counts of the epoch, in the form of SidecarClient.tally(); None: not available."""
        try:
            return self._ask(lambda client: client.tally(epoch, DRAW_TIMEOUT_S))
        except Refused:
            return None

    def snapshot(self) -> bytes:
        """The job's sampler state, for resuming elsewhere; empty: not available."""
        try:
            return self._ask(lambda client: client.snapshot(DRAW_TIMEOUT_S)) or b""
        except Refused:
            return b""

    def has_contracts(self) -> bool:
        """Whether the last connected sidecar supports sampling contracts."""
        return bool(self._features & FEATURE_CONTRACTS)

    def sees_ahead(self) -> bool:
        """Whether the last connected sidecar accepts the beginning of the next epoch with a plan."""
        return bool(self._features & FEATURE_AHEAD)

    def report(self, report: Report) -> bool:
        """Sends a report. False: not sent, so keep the counts."""
        return bool(self._send(lambda client: client.send_report(dataclasses.astuple(report)), False))

    def ask_probe(self) -> Tuple[int, int]:
        """The measurement that the sidecar requests: its id and its number of batches; (0, 0): none."""
        if not self._features & FEATURE_PROBE:
            return 0, 0
        return self._send(lambda client: client.ask_probe(DRAW_TIMEOUT_S), (0, 0)) or (0, 0)

    def probed(self, id: int, bypassing: bool, numbers: List[int]) -> bool:
        """Sends the measurements so far, see Probe.progress(). False: not sent, try again later."""
        return bool(self._send(lambda client: client.send_probed(id, bypassing, numbers), False))

    def close(self) -> None:
        """Closes the connection; does not wait for other threads, whose requests end by themselves."""
        self._is_closed, self._not_before = True, float("inf")
        self._lanes.clear()
        if self._lock.acquire(blocking=False):
            self._client = self._pending = None
            self._lock.release()

    def _send(self, ask: Callable[[_core.SidecarClient], T], not_sent: T) -> Optional[T]:
        """Does what _call() does, but returns `not_sent` while another thread holds the connection."""
        if not self._lock.acquire(blocking=False):
            return not_sent
        try:
            return self._call(ask)
        finally:
            self._lock.release()

    def _call(self, ask: Callable[[_core.SidecarClient], T]) -> Optional[T]:
        try:
            return self._ask(ask)
        except Refused as error:
            log.warning("stoker: the sidecar refuses a request: %s", error)
            return None

    def _ask(self, ask: Callable[[_core.SidecarClient], T]) -> Optional[T]:
        with self._lock:
            if not self.is_attached() or self._client is None:
                return None
            try:
                return ask(self._client)
            except _core.CoreError as error:
                if self._client is not None and self._client.is_usable:
                    raise Refused(*error.args) from None
                self._lost(error)
                return None

    def _hello(self) -> _core.SidecarClient:
        return _core.SidecarClient(
            socket_path=self._socket_path,
            dataset=self._place.dataset,
            rank=self._place.rank,
            world_size=self._place.world_size,
            stream=self._place.stream,
            client=f"stoker-python/{_core.__version__}",
            timeout=CONNECT_TIMEOUT_S,
        )

    def _go_on_attaching(self) -> bool:
        if self._pending is None or not self._pending.is_usable:
            self._pending = self._hello()
        is_new, self._is_new = self._is_new, False
        while is_new or self._pending.has_answer():
            welcome = self._answer(CONNECT_TIMEOUT_S)
            if welcome is not None:
                return self._settle(welcome)
        return False

    def _answer(self, timeout: float) -> Optional[Welcome]:
        assert self._pending is not None
        kind, *fields = self._pending.await_welcome(timeout)
        if kind == "listing":
            log.info("stoker: the sidecar is listing '%s': %d objects", self._place.dataset, fields[0])
            return None
        return Welcome(*fields)

    def _settle(self, welcome: Welcome) -> bool:
        client, self._pending = self._pending, None
        if client is None or not self.accepts(welcome):
            self._not_before = float("inf")
            return False
        self._client = client
        self._features, self._revision = welcome.features, welcome.revision
        self._is_away = False
        self._delay = FIRST_DELAY_S
        self.attached_count += 1
        if self._plan is not None:
            self._send_plan(client)
        return True

    def _send_plan(self, client: _core.SidecarClient) -> None:
        assert self._plan is not None
        epoch, ids, start, ahead = self._plan
        try:
            client.send_plan(epoch, ids, start, ahead if self.sees_ahead() else (), PLAN_TIMEOUT_S)
        except _core.CoreError:
            if not (client.is_usable and self.sees_ahead() and len(ahead)):
                raise
            client.send_plan(epoch, ids, start, (), PLAN_TIMEOUT_S)  # an older sidecar may be leader now

    def _lost(self, error: _core.CoreError, tell: bool = True) -> None:
        self._client = self._pending = None
        self._not_before = time.monotonic() + self._delay * random.uniform(0.5, 1.0)
        self._delay = min(self._delay * 2, DELAY_S_MAX)
        is_news, self._is_away = not self._is_away, True
        if tell and is_news:
            self._on_lost(str(error.args[-1]))


def _as_ids(raw: bytes) -> Array:
    return np.frombuffer(raw, dtype=np.int64)


def refresh(reader: _core.NodeReader) -> None:
    """Maps the residency table again if the leader has replaced it."""
    try:
        reader.refresh()
    except _core.CoreError as error:
        log.warning("stoker: the residency table cannot be read: %s", error.args[-1])
