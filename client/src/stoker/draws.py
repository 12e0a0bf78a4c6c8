"""The sample stream of one rank under a sampling contract: drawn from the sidecar, or locally without one."""

from __future__ import annotations

import logging
import zlib
from typing import Any, Callable, Dict, Mapping, Optional, Set

import numpy as np

from . import _core
from .arrays import Array
from .contracts import EpochReport, Terms
from .draw_record import KIND_ALONE, KIND_ON_NODE, DrawRecord
from .elastic import Rest, States, consumed_by, draws_of_job, first_turn, is_mid_epoch, job_state
from .errors import SettingsError
from .link import Link, Refused
from .order import epoch_order, rank_length, walk_order
from .samples import Samples
from .saved_state import check_state, pack_ids, served_in
from .settings import sampler_name

__all__ = ["Draws"]

log = logging.getLogger("stoker")


class Draws:
    """The sample stream of one rank, epoch by epoch. Belongs to the process that trains; not thread-safe.

    Every draw is remembered until the epoch ends. The rest of the epoch, with this loader's next sidecar or in another
    process that loads its state, therefore repeats no sample that the contract serves once.

    Args:
        samples: an open dataset.
        terms: the contract.
        seed: the same on all ranks.
        rank, world_size: of the job; every rank draws its own share.
        batch_size: samples per draw.
        exact: maps an epoch, a position in its permutation and a seed to this rank's int64 ids in order from there on,
            for contract "exact". Default: stoker.order.

    Raises:
        SettingsError: a parameter of the contract is outside its bounds.
    """

    def __init__(
        self,
        samples: Samples,
        terms: Terms,
        *,
        seed: int,
        rank: int,
        world_size: int,
        batch_size: int,
        exact: Optional[Callable[[int, int, int], Array]] = None,
    ) -> None:
        try:
            _core.check_values(terms.contract, terms.parameters)
        except _core.CoreError as error:
            raise SettingsError(f"contract '{terms.contract}': {error.args[1]}") from None
        self.terms = terms
        self.seed, self.rank, self.world_size, self.batch_size = seed, rank, world_size, batch_size
        self._samples = samples
        self._link = samples.sources.link
        self._exact = exact
        self._job = sampler_name(samples.sources.settings.describe(), samples.sources.place.stream)
        self._warned: Set[str] = set()
        self.on_new_sidecar: Callable[[], Any] = lambda: None  # a new sidecar has no fingerprints yet
        self._last_attached = 0
        self._snapshot = b""
        self._epochs = 0  # epochs begun, including those before a loaded state
        self._losses_ever = 0
        self._next_accuracy: Optional[float] = None
        self._wait_ns = self._step_ns = 0
        self._start(0, "exact")

    # --- epochs --------------------------------------------------------------------------------------------------

    @property
    def share(self) -> int:
        """Number of samples in this rank's share of an epoch: the most that it reads."""
        return rank_length(len(self._samples), self.world_size)

    @property
    def _draws_of_epoch(self) -> int:
        """The most draws of this epoch. Several ranks make exactly so many, with a sidecar and without: a rank that made
        more than the others would wait for ever in a collective call."""
        return _core.draws_of_epoch(self.terms.contract, self.terms.parameters, self.world_size, self.epoch, self.share)

    @property
    def _left(self) -> int:
        """Draws of this epoch that are still to be made."""
        return max(0, self._draws_at_most - self._base_draws - self._record.count)

    def begin(self, epoch: int) -> None:
        """Begins an epoch from its start.

        Raises:
            SettingsError: the sidecar does not know the contract, or refuses a parameter of it.
        """
        if self._is_sampled and self.terms.needs_losses:
            self._snapshot = self._newest_snapshot()
        self._start(epoch, self._contract_of_epoch())
        self._go_on()

    def next(self, count: int) -> Array:
        """Draws the next `count` ids, int64. Fewer than `count`: the epoch has ended.

        Raises:
            SettingsError: as begin(), when a sidecar has reconnected.
        """
        if self._ended:
            return np.zeros(0, dtype=np.int64)
        if self._contract == "importance" and self.world_size > 1:
            return self._next_of_several(count)
        ids = self._draw(count) if self._is_sampled else None
        return self._draw_alone(count) if ids is None else ids

    def _next_of_several(self, count: int) -> Array:
        """next(), limited to the other ranks' number of draws in the epoch, if the sidecar deals more or fewer: one of
        another version, or one that has taken over in mid-epoch."""
        wanted = min(count, self._left)
        ids = self._draw(wanted) if self._is_sampled and wanted > 0 else None
        got = np.zeros(0, dtype=np.int64) if ids is None else ids
        if len(got) < wanted:
            got = np.concatenate([got, self._draw_alone(wanted - len(got))])
        self._ended = len(got) < count
        return got

    def report_accuracy(self, accuracy: float) -> None:
        """Accuracy on held-out samples, 0..1, sent when the next epoch begins. Other values are ignored."""
        if 0 <= accuracy <= 1:
            self._next_accuracy = float(accuracy)

    def note_step(self, wait_ns: int, compute_ns: int) -> None:
        """Adds one step's waiting and computing time; the next epoch's begin sends the waiting share."""
        self._wait_ns += wait_ns
        self._step_ns += wait_ns + compute_ns

    @property
    def sent_waiting(self) -> Optional[float]:
        """The waiting share that the epoch's begin sends; None: the loop has not measured any yet."""
        return self._waiting

    def leave_out(self, count: int) -> None:
        """Excludes the last `count` draws from training (an incomplete batch)."""
        self._left_out += count

    def _start(self, epoch: int, contract: str) -> None:
        self.epoch = epoch
        self._contract = contract
        self._draws_at_most = self._draws_of_epoch
        self._ended = False
        self._record = DrawRecord()
        self._base_draws: int = 0  # draws of the epoch before this object was created
        self._shift = 0  # exact: position in the permutation from which the order was dealt out
        self._rest: Optional[Rest] = None  # after a change of the world: ids to read instead of the sidecar's draws
        self._left_out: int = 0
        self._alone: Optional[Array] = None  # ids still to be read without the sidecar's draws
        self._was_on_node = np.zeros(0, dtype=bool)  # for each of _alone, when an exact epoch began
        self._begun_on = 0  # attached_count at which the epoch was begun; 0: not begun
        self._sent = self._ignored = self._dropped = 0
        self._accuracy, self._next_accuracy = self._next_accuracy, None  # share of the previous epoch spent waiting
        # waiting share of the previous epoch
        self._waiting: Optional[float] = self._wait_ns / self._step_ns if self._step_ns else None
        self._wait_ns = self._step_ns = 0

    @property
    def _is_sampled(self) -> bool:
        return self._contract != "exact" and self._link is not None

    def _contract_of_epoch(self) -> str:
        self._epochs += 1
        if self.terms.needs_losses and self._epochs > 1 and self._losses_ever == 0:
            self.warn_once(
                "no losses",
                f"contract '{self.terms.contract}' received no losses in a whole epoch, so samples are read under "
                "contract 'exact' from now on; call loader.report(ids, losses) in every step",
            )
            return "exact"
        return self.terms.contract

    def _go_on(self) -> None:
        """Begins the epoch at the sidecar; for contract exact, sends the epoch's order instead."""
        self._samples.epoch = self.epoch
        if self._contract == "exact":
            order = self._order()[: self._draws_at_most]
            self._alone = order[self._base_draws :]
            self._was_on_node = _on_node(self._samples, self._alone)
            self._samples.set_plan(self.epoch, order, self._base_draws)
            return
        if self._link is not None:
            self._link.forget_plan()
        if self._begin_on_sidecar() is None:
            self.warn_once(
                "no sidecar",
                f"contract '{self.terms.contract}' needs a sidecar that supports it; until there is one, this rank reads "
                "samples of its share in random order, each at most once per epoch",
            )

    def warn_once(self, about: str, text: str) -> None:
        """Warns once for each value of `about`."""
        if about not in self._warned:
            self._warned.add(about)
            self._samples.sources.warn(text, again=True)

    # --- with a sidecar ------------------------------------------------------------------------------------------

    def _draw(self, count: int) -> Optional[Array]:
        for _ in range(2):
            link = self._begin_on_sidecar()
            if link is None:
                return None
            try:
                drawn = link.draw(self.epoch, count)
            except Refused as error:
                if error.code != "conflict":
                    log.warning("stoker: the sidecar refused to draw: %s", error)
                    self._begun_on = 0  # the sidecar does not know the draws made without it
                    return None
                self._begun_on = 0  # a new sidecar or a new leader
                continue
            if drawn is None:
                return None
            self._ended = drawn.ended
            self._alone = None
            self._record.add(drawn.served, drawn.kinds)
            return drawn.served
        return None

    def _begin_on_sidecar(self) -> Optional[Link]:
        """The link, after beginning the epoch on it if needed; None: no sidecar that supports contracts."""
        link = self._link
        if link is None or not link.is_attached():
            self._begun_on = 0
            return None
        if self._begun_on == link.attached_count:
            return link
        if not link.has_contracts():
            return None
        try:
            known = link.begin(
                epoch=self.epoch,
                skip=self._base_draws + self._record.count,
                seed=self.seed & 0xFFFFFFFFFFFFFFFF,
                rank=self.rank,
                world_size=self.world_size,
                batch=self.batch_size,
                contract=self.terms.contract,
                job=self._job,
                parameters=self._parameters(),
                served=pack_ids(self._record.served(), len(self._samples)),
                snapshot=self._snapshot,
            )
        except Refused as error:
            if error.code == "invalid_argument":
                raise SettingsError(f"contract '{self.terms.contract}': {error}") from None
            log.warning("stoker: the sidecar refused to begin the epoch: %s", error)
            return None
        self._begun_on = link.attached_count if known is not None else 0
        self._alone = None
        if self._begun_on not in (0, self._last_attached):
            self._last_attached = self._begun_on
            self.on_new_sidecar()
        return None if known is None else link

    def _parameters(self) -> Mapping[str, float]:
        """The contract's parameters plus this epoch's accuracy and waiting share."""
        if not self.terms.needs_losses:
            return self.terms.parameters
        mine = {"accuracy": self._accuracy, "waiting": self._waiting}
        return {**self.terms.parameters, **{name: value for name, value in mine.items() if value is not None}}

    def _begun_link(self) -> Optional[Link]:
        """The link if the epoch was begun on it, else None. Does not begin the epoch."""
        link = self._link
        return link if link is not None and self._begun_on == link.attached_count and link.is_attached() else None

    def _newest_snapshot(self) -> bytes:
        link = self._begun_link()
        return (b"" if link is None else link.snapshot()) or self._snapshot

    # --- without a sidecar ---------------------------------------------------------------------------------------

    def _draw_alone(self, count: int) -> Array:
        """The next ids of this rank's share that were not served yet. Repeated draws count."""
        if self._alone is None:
            order = self._order()
            self._alone = order[~np.isin(order, self._record.served())][: self._left]
        ids, self._alone = self._alone[:count], self._alone[count:]
        self._ended = len(ids) < count
        if self._contract == "exact":
            kinds = np.where(self._was_on_node[:count], KIND_ON_NODE, 0).astype(np.uint8)
            self._was_on_node = self._was_on_node[count:]
        else:
            kinds = np.full(len(ids), KIND_ALONE, dtype=np.uint8)
        self._record.add(ids, kinds)
        return ids

    def _order(self) -> Array:
        """This rank's whole share of the epoch: contract exact's stream, or what the sidecar would deal out."""
        if self._rest is not None:
            return self._rest.order
        if self._contract == "exact" and self._exact is not None:
            return self._exact(self.epoch, self._shift, self.seed)
        place: Dict[str, Any] = {"seed": self.seed, "epoch": self.epoch, "rank": self.rank, "world_size": self.world_size}
        if self._contract == "importance":
            return walk_order(len(self._samples), **place)
        return epoch_order(len(self._samples), **place, consumed=self._shift)

    # --- losses --------------------------------------------------------------------------------------------------

    def report(self, ids: Array, losses: Array, p_other: Optional[Array] = None) -> None:
        """Per-sample losses of served ids (int64 and float32 of shape (n,)); see DataLoader.report()."""
        if p_other is not None and p_other.shape != ids.shape:
            self.warn_once("shape of p_other", f"p_other of shape {p_other.shape} for ids of shape {ids.shape} is ignored")
            p_other = None
        if ids.ndim != 1 or losses.shape != ids.shape:
            self._ignored += max(ids.size, losses.size)
            if "shapes" not in self._warned:
                self._warned.add("shapes")  # the job's other batches would fail the same way
                log.warning("stoker: losses of shape %s for ids of shape %s are ignored", losses.shape, ids.shape)
            return
        good = np.isfinite(losses) & (ids >= 0) & (ids < len(self._samples))
        self._ignored += int(ids.size - good.sum())
        ids, losses, p_other = ids[good], losses[good], None if p_other is None else p_other[good]
        if ids.size == 0 or not self.terms.needs_losses:
            return
        self._losses_ever += ids.size
        link = self._begun_link()
        if link is not None and link.losses(self.epoch, ids, losses, p_other):
            self._sent += ids.size
        else:
            self._dropped += ids.size

    @property
    def groups_alike(self) -> bool:
        """Whether the contract uses near-duplicates, and so needs fingerprints."""
        return self._link is not None and self.terms.parameters.get("redundancy", 0) > 0

    def report_similarity(self, ids: Array, hashes: Array) -> bool:
        """Sends fingerprints of samples (int64 and uint64 of shape (n,)). False: no sidecar received them."""
        good = (ids >= 0) & (ids < len(self._samples))
        link = self._begun_link() if self.groups_alike and good.any() else None
        return link is not None and link.similarity(ids[good], hashes[good])

    # --- reports and state ---------------------------------------------------------------------------------------

    def epoch_report(self) -> EpochReport:
        """This rank's counts of the current or last epoch."""
        link = self._begun_link() if self._is_sampled else None
        tally = None if link is None else link.tally(self.epoch)
        if self._base_draws > 0 or self._record.has_alone():
            tally = None  # the sidecar did not serve the whole epoch
        in_order = self._contract == "exact"  # then earlier draws are all distinct, but not all recorded
        known = self._record.drawn() if in_order else self._record.served()
        distinct = int(np.unique(known).size) + (self._base_draws if in_order else 0)
        requested = self._base_draws + self._record.count
        dealt = self._draws_at_most if self._rest else rank_length(len(self._samples) - self._shift, self.world_size)
        return EpochReport(
            epoch=self.epoch,
            contract=self._contract if self._begun_on or not self._is_sampled else "exact",
            requested=requested,
            distinct=distinct,
            repeated=requested - distinct,
            skipped=(tally[5] if tally is not None and self._ended else max(0, dealt - distinct)) + self._left_out,
            losses_used=self._sent if tally is None else tally[6],
            losses_ignored=self._ignored + (0 if tally is None else tally[7]),
            losses_dropped=self._dropped,
            **self._record.totals(self._samples.sources.catalog),
        )

    def position(self, received: int) -> int:
        """Position in the epoch after the first `received` draws of this object."""
        return self._base_draws + min(received, self._record.count)

    def state(self, received: int, least: int = 1) -> Dict[str, Any]:
        """State to resume from after the first `received` draws of this object in the current epoch. `least`: the epoch
        ends when fewer draws are left."""
        received, position = min(received, self._record.count), self.position(received)
        state: Dict[str, Any] = {
            **self._must_be_same(),
            "num_replicas": self.world_size,
            "rank": self.rank,
            "seed": self.seed,
            "epoch": self.epoch,
            "position": position,
            "shift": self._shift,
            "ended": self._left_after(received) < least,
            "epochs": self._epochs,
            "losses": self._losses_ever,
        }
        if self._rest is not None:
            state.update(self._rest.state(position))
        elif self.terms.contract != "exact":
            state["served"] = zlib.compress(pack_ids(self._record.served(received), len(self._samples)))
        if self.terms.needs_losses:
            state["importance"] = self._newest_snapshot()
        return state

    def _left_after(self, received: int) -> int:
        has_all = self._ended and received + self._left_out >= self._record.count
        return 0 if has_all else self._draws_at_most - self.position(received)

    @property
    def is_whole_state(self) -> bool:
        """Whether one rank's state() suffices for the whole job, if all ranks are at one step; equal on all ranks."""
        return self.world_size == 1 or self.terms.contract == "exact"

    def _must_be_same(self) -> Dict[str, Any]:
        return {"contract": self.terms.contract, "count": len(self._samples), "revision": self._samples.revision}

    def load(self, states: States) -> None:
        """Restores a state(), or the states of all ranks, in a world of any size.

        Raises:
            ValueError: another dataset or contract; or another rank's state in mid-epoch of contract windowed.
        """
        state = job_state(states)
        check_state(state, self._must_be_same())
        self.seed = int(state["seed"])
        self._epochs = int(state["epochs"])
        self._losses_ever = int(state["losses"])
        self._snapshot = bytes(state.get("importance", b""))
        has_fallen_back = self.terms.needs_losses and self._epochs > 1 and self._losses_ever == 0
        self._start(int(state["epoch"]), "exact" if has_fallen_back else self.terms.contract)
        if self._contract == "exact":
            consumed = consumed_by(state)
            self._shift, self._base_draws = first_turn(consumed, len(self._samples), self.world_size)
            length = rank_length(len(self._samples) - self._shift, self.world_size)
            self._draws_at_most = min(self._draws_at_most, length)
            self._record = DrawRecord(served_in(state))
        elif is_mid_epoch(state, self.world_size, self.rank if self._contract == "windowed" else None):
            self._rest = Rest(state, draws_of_job(state, self.terms, self.world_size), self.rank, self.world_size)
            self._contract = "exact"
            self._draws_at_most = len(self._rest.order)
        elif state["position"] > 0:
            self._base_draws = int(state["position"])
            self._record = DrawRecord(served_in(state))

    def resume(self) -> None:
        """Continues the epoch that load() restored, after its recorded draws."""
        self._go_on()


def _on_node(samples: Samples, ids: Array) -> Array:
    """Whether the node directory holds each sample now: bool of the shape of `ids`."""
    reader = samples.sources.reader
    return np.zeros(len(ids), dtype=bool) if reader is None else np.frombuffer(reader.resident(ids), dtype=bool)
