"""The connection of one process to its sidecar: made when needed, lost without a fuss, made again."""

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

__all__ = ["Drawn", "Link", "Outcome", "Place", "Refused", "Report", "Welcome"]

log = logging.getLogger("stoker")

T = TypeVar("T")

FEATURE_CONTRACTS, FEATURE_PROBE, FEATURE_AHEAD = 1, 2, 8  # of the Welcome
READY, READ_AT_ORIGIN, ORIGIN_ERROR = 0, 1, 2  # FetchStatus of proto/local/protocol.h

AHEAD_AT_MOST = 65536  # kAheadSamplesMax of proto/local/protocol.h: more than a sidecar's window holds

CONNECT_TIMEOUT_S = 5.0
SILENCE_S_MAX = 30.0  # while it lists the origin, a sidecar says so every second
FETCH_TIMEOUT_S = 60.0
PLAN_TIMEOUT_S = 30.0
DRAW_TIMEOUT_S = 30.0
FIRST_DELAY_S = 0.05
DELAY_S_MAX = 3.0
LANES_AT_MOST = 15  # connections for misses of several threads, beside the first one; a sidecar takes 1024 in all


class Welcome(NamedTuple):
    """What the sidecar says about a dataset."""

    revision: int
    sample_count: int
    directory: str
    features: int = 0


@dataclasses.dataclass(frozen=True)
class Place:
    """This process, for the Hello.

    Attributes:
        stream: 64-bit number that the processes of one sample stream (sampler and workers) share.
    """

    dataset: str
    rank: int
    world_size: int
    stream: int


@dataclasses.dataclass
class Report:
    """Differences since the last report; times in nanoseconds. The order is that of the protocol's frame."""

    epoch: int = 0
    steps: int = 0
    samples: int = 0
    bytes: int = 0
    hit_samples: int = 0
    origin_samples: int = 0
    wait_ns: int = 0
    compute_ns: int = 0


class Refused(Exception):
    """The sidecar understands the request and does not do it; it is there and goes on.

    Attributes:
        code: why, as a word ("invalid_argument", "conflict").
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Drawn(NamedTuple):
    """Answer to a draw; the arrays have one entry a draw: int64, int64, uint8 (see local::Drawn)."""

    requested: Array
    served: Array
    kinds: Array
    ended: bool


class Outcome(NamedTuple):
    """Answer to a fetch: a status for each id, and the words of the first origin error."""

    statuses: bytes
    message: str


class Link:
    """A connection that may be there or not. Every method returns quickly without it; none raises because of it.

    Any thread may call; after a fork the child calls forget(). consumed(), report(), losses(), similarity() and
    probed() never wait for another thread: where one has the connection they say that nothing was sent.
    """

    def __init__(self, socket_path: str, place: Place, on_lost: Callable[[str], None]) -> None:
        self._socket_path = socket_path
        self._place = place
        self._on_lost = on_lost
        self._lock = threading.RLock()
        self._client: Optional[_core.SidecarClient] = None
        self._pending: Optional[_core.SidecarClient] = None  # said Hello, has no answer yet
        self._delay = FIRST_DELAY_S
        self._not_before = 0.0
        self._is_away = False  # and that was said
        self._is_new = True  # this process has not tried yet: worth waiting for the answer
        self._is_closed = False
        self._features = 0
        self._plan: Optional[Tuple[int, Ids, int, Ids]] = None
        self._revision = 0  # of the last Welcome
        self._start_lanes()
        self.accepts: Callable[[Welcome], bool] = lambda welcome: True
        self.attached_count = 0

    def forget(self) -> None:
        """In a forked child: the parent's connections are not ours, nor is its plan."""
        self._lock = threading.RLock()
        self._start_lanes()
        self._client = self._pending = self._plan = None
        self._delay, self._not_before = FIRST_DELAY_S, 0.0
        self._is_away, self._is_new = False, True

    def attach(self, patience: float) -> Welcome:
        """The first attachment of a dataset: waits, for as long as the sidecar shows that it is at work.

        Args:
            patience: seconds to wait for a sidecar that is not there (it may be starting).

        Raises:
            _core.CoreError: there is no sidecar, or it refuses.
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
        """Whether there is a connection now; makes one when its time has come, without waiting for an answer."""
        if not self._lock.acquire(blocking=False):
            return self._client is not None  # another thread has it, or makes it
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
        """A connection for one batch, from the first fetch() until its samples were read: this one, or another one of
        the same stream where another thread has it. The sidecar keeps what a fetch made ready until the next fetch of
        the same connection, or until consumed() on it: whoever gets another Link than this one says consumed() there.
        """
        if self._lock.acquire(blocking=False):
            try:
                yield self
            finally:
                self._lock.release()
            return
        with self._lane_slots:
            lane = self._take_lane()
            if lane is None:  # the sidecar takes no more connections
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
            lane = Link(self._socket_path, self._place, lambda why: None)  # the first connection tells
            lane.accepts = lambda welcome: welcome.revision == self._revision
        return lane if lane.is_attached() else None

    def fetch(self, ids: Ids) -> Optional[Outcome]:
        """Asks for samples; None without a sidecar."""
        return self._call(lambda client: Outcome(*client.fetch(ids, FETCH_TIMEOUT_S)))

    def plan(self, epoch: int, ids: Ids, start: int, ahead: Ids = ()) -> None:
        """Hands over the order of an epoch, now and to every sidecar that comes after this one; where the sidecar
        takes it, also with what the next epoch begins."""
        with self._lock:
            self._plan = (epoch, ids, start, ahead[:AHEAD_AT_MOST])
            self._call(self._send_plan)

    def forget_plan(self) -> None:
        """The order of what comes is not known any more: the sidecar makes it."""
        self._plan = None

    def advance(self, position: int) -> None:
        """The plan's position to go on from, should a sidecar come back."""
        if self._plan is not None:
            self._plan = (*self._plan[:2], position, self._plan[3])

    def consumed(self, epoch: int, ids: Ids) -> Optional[bool]:
        """Says that samples were read. False: not sent now, say it again; None: there is no sidecar."""
        return self._send(lambda client: client.send_consumed(epoch, ids), False)

    def begin(self, **fields: Any) -> Optional[int]:
        """Begins an epoch under a contract; the fields are those of SidecarClient.begin().

        Returns: how many losses the job's sampler has learnt from; None without a sidecar.

        Raises:
            Refused: the sidecar does not do it.
        """
        answer = self._ask(lambda client: client.begin(timeout=PLAN_TIMEOUT_S, **fields))
        return None if answer is None else answer[1]

    def draw(self, epoch: int, count: int) -> Optional[Drawn]:
        """The next samples of the epoch that was begun on this connection; None without a sidecar.

        Raises:
            Refused: ("conflict") nothing was begun on this connection, which may be a new one.
        """
        answer = self._ask(lambda client: client.draw(epoch, count, DRAW_TIMEOUT_S))
        if answer is None:
            return None
        requested, served, kinds, ended = answer
        return Drawn(_as_ids(requested), _as_ids(served), np.frombuffer(kinds, dtype=np.uint8), ended)

    def losses(self, epoch: int, ids: Array, losses: Array) -> bool:
        """Sends losses (int64 and float32, equally long) without waiting; False: they were not sent."""
        return bool(self._send(lambda client: client.send_losses(epoch, ids, losses), False))

    def similarity(self, ids: Array, hashes: Array) -> bool:
        """Sends fingerprints (int64 and uint64, equally long) without waiting; False: they were not sent."""
        return bool(self._send(lambda client: client.send_similarity(ids, hashes), False))

    def tally(self, epoch: int) -> Optional[Tuple[int, ...]]:
        """The sampler's books of the epoch, as SidecarClient.tally(); None: nobody knows."""
        try:
            return self._ask(lambda client: client.tally(epoch, DRAW_TIMEOUT_S))
        except Refused:
            return None

    def snapshot(self) -> bytes:
        """What the job's sampler would have to know to go on elsewhere; empty when nobody knows."""
        try:
            return self._ask(lambda client: client.snapshot(DRAW_TIMEOUT_S)) or b""
        except Refused:
            return b""

    def has_contracts(self) -> bool:
        """Whether the sidecar that answered last knows sampling contracts."""
        return bool(self._features & FEATURE_CONTRACTS)

    def sees_ahead(self) -> bool:
        """Whether the sidecar that answered last takes the beginning of the next epoch with a plan."""
        return bool(self._features & FEATURE_AHEAD)

    def report(self, report: Report) -> bool:
        """Sends a report; False: not sent, keep the numbers."""
        return bool(self._send(lambda client: client.send_report(dataclasses.astuple(report)), False))

    def ask_probe(self) -> Tuple[int, int]:
        """What is to be measured: its id and how many batches; (0, 0) for nothing."""
        if not self._features & FEATURE_PROBE:
            return 0, 0
        return self._send(lambda client: client.ask_probe(DRAW_TIMEOUT_S), (0, 0)) or (0, 0)

    def probed(self, id: int, bypassing: bool, numbers: List[int]) -> bool:
        """Sends what was measured so far, see Probe.progress(); False: not sent, say it again."""
        return bool(self._send(lambda client: client.send_probed(id, bypassing, numbers), False))

    def close(self) -> None:
        """Hangs up; waits for no other thread, whose requests end by themselves."""
        self._is_closed, self._not_before = True, float("inf")
        self._lanes.clear()
        if self._lock.acquire(blocking=False):
            self._client = self._pending = None
            self._lock.release()

    def _send(self, ask: Callable[[_core.SidecarClient], T], not_sent: T) -> Optional[T]:
        """As _call(), for what is not waited for; `not_sent` where another thread has the connection."""
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
            client.send_plan(epoch, ids, start, (), PLAN_TIMEOUT_S)  # an older sidecar may lead by now

    def _lost(self, error: _core.CoreError, tell: bool = True) -> None:
        self._client = self._pending = None
        self._not_before = time.monotonic() + self._delay * random.uniform(0.5, 1.0)
        self._delay = min(self._delay * 2, DELAY_S_MAX)
        is_news, self._is_away = not self._is_away, True
        if tell and is_news:
            self._on_lost(str(error.args[-1]))


def _as_ids(raw: bytes) -> Array:
    return np.frombuffer(raw, dtype=np.int64)


def positions(statuses: bytes, wanted: int) -> List[int]:
    """Where in an answer a status stands."""
    return [position for position, status in enumerate(statuses) if status == wanted]
