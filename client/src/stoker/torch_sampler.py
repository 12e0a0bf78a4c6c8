"""A DistributedSampler that sends its order to the sidecar."""

from __future__ import annotations

import copy
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch
import torch.utils.data
from torch.utils.data.distributed import DistributedSampler

from .arrays import Array, Ids
from .elastic import consumed_by, first_turn
from .errors import SettingsError
from .link import AHEAD_AT_MOST
from .order import deal, rank_length
from .samples import Samples
from .saved_state import check_state
from .settings import epoch_count, initialised_world, world
from .torch_contracts import shared

__all__ = ["Planned", "Sampler", "give_epoch", "unwrap"]

_ADVANCE_EVERY = 256
_WHEN = "make the sampler or loader when torch.distributed is initialised (with Lightning in train_dataloader())"


class Planned(torch.utils.data.Dataset):
    """A dataset that gets the current epoch and its order from a sampler.

    Attributes:
        source: the Samples that it reads.
    """

    def __init__(self, source: Samples) -> None:
        self.source = source
        self._epoch = shared(torch.zeros(1, dtype=torch.int64))  # workers learn the epoch here

    def note_epoch(self, epoch: int) -> None:
        """Sets the epoch in which this process and its workers read from now on."""
        self._epoch.fill_(epoch)

    def set_plan(self, epoch: int, ids: Array, start: int, ahead: Ids = ()) -> None:
        """Sends an epoch's order to the sidecar, with the beginning of the next epoch; the sampler calls it in the main
        process."""
        self.note_epoch(epoch)
        self.source.set_plan(epoch, ids, start, ahead)

    def gather(self, ids: Ids, out: Any) -> Array:
        """As Samples.gather(), in the current epoch."""
        self.source.epoch = int(self._epoch)
        return self.source.gather(ids, out)


class Sampler(DistributedSampler):
    """The same indices as torch's DistributedSampler; also sends the order to the sidecar. Trainers that replace every
    other sampler by a DistributedSampler keep this one.

    Args:
        dataset: a stoker.torch.Dataset, a torch Subset of one, or anything with a length (then nothing is sent).
        num_replicas, rank: default: torch.distributed where it is initialised, else WORLD_SIZE and RANK, else 1 and 0.
        shuffle: False reads in order.
        seed: the same on all ranks; epoch e is shuffled with seed + e.
        drop_last: drop the tail that does not divide by num_replicas instead of repeating the first indices.
        epochs: number of epochs of the training, 0 to epochs-1. Every plan but the last one's then carries the
            beginning of the next epoch, so that the sidecar fetches on while this one ends. Default: the TrainingJob's
            (STOKER_EPOCHS). 0 or unset: unknown; nothing is fetched for a next epoch that may not come. Nor is it when
            the program reads the same epoch repeatedly.

    Raises SettingsError where `rank` is left out, WORLD_SIZE is set and RANK is not, and torch.distributed is not
    initialised. Iterating raises it where torch.distributed was initialised later and differs from the default that was
    taken: the ranks would read the same samples, and what the program has computed from len() would be wrong.

    State is O(1): seed, epoch and position. After load_state_dict() the next iteration starts at the position. The
    world may then have another size: it reads what the old one has left of the epoch, in the same order.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: Optional[int] = None,
        rank: Optional[int] = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        epochs: Optional[int] = None,
    ) -> None:
        self._is_default = (rank is None, num_replicas is None)
        if num_replicas is None or rank is None:
            here = world()
            num_replicas = here.size if num_replicas is None else num_replicas
            if rank is None and num_replicas > 1 and not here.is_rank_known:
                raise SettingsError(f"WORLD_SIZE is set and RANK is not: {_WHEN}, or start the program with torchrun")
            rank = here.rank if rank is None else rank
        self.num_replicas, self.rank = num_replicas, rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"rank {self.rank} is outside a world of {self.num_replicas}")
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epochs = epoch_count() if epochs is None else epochs
        self.epoch = 0
        self.num_samples = rank_length(len(dataset), self.num_replicas, drop_last)
        self.total_size = self.num_samples * self.num_replicas
        self._shift = 0  # of the next iteration: samples of the epoch before this world's first turn
        self._start = 0  # position at which it begins
        self._began_shift = self._began_at = 0  # of the current iteration
        self._yielded = 0  # indices given out by the current one
        self._is_new_epoch = False  # set_epoch() has begun an epoch that was not iterated yet
        self._last_epoch: Optional[int] = None  # previously iterated epoch

    def __len__(self) -> int:
        return self.num_samples

    def order(self) -> Array:
        """This rank's indices of the current epoch: int64 of shape (len(self),)."""
        count = len(self.dataset)
        if self.shuffle:
            generator = torch.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = torch.randperm(count, generator=generator).numpy()
        else:
            indices = np.arange(count, dtype=np.int64)
        return deal(indices, self.rank, self.num_replicas, drop_last=self.drop_last, consumed=self._shift)

    def order_of(self, epoch: int, shift: int = 0, seed: Optional[int] = None) -> Array:
        """As order(), of any epoch, dealt out from its position `shift` on. `seed`: default: the sampler's."""
        other = copy.copy(self)
        other.epoch, other._shift, other.seed = epoch, shift, self.seed if seed is None else seed
        return other.order()

    def check_world(self) -> None:
        """Raises SettingsError where torch.distributed now says otherwise than the default rank or size of this sampler."""
        now = initialised_world()
        if now is None:
            return
        is_other_rank = self._is_default[0] and now.rank != self.rank
        if is_other_rank or (self._is_default[1] and now.size != self.num_replicas):
            raise SettingsError(
                f"the sampler was made as rank {self.rank} of {self.num_replicas}, and torch.distributed now says rank "
                f"{now.rank} of {now.size}: {_WHEN}, or pass num_replicas and rank"
            )

    def __iter__(self) -> Iterator[int]:
        self.check_world()
        order = self.order()
        self._began_shift, self._began_at, self._yielded = self._shift, self._start, 0
        self._shift = self._start = 0
        self._is_new_epoch = False
        dataset, ids = unwrap(self.dataset, order)
        if dataset is not None:
            dataset.set_plan(self.epoch, ids, self._began_at, self._ahead(dataset))
        self._last_epoch = self.epoch
        return self._indices(order, self._began_at, dataset.source if dataset is not None else None)

    def _ahead(self, dataset: Planned) -> Array:
        """The first ids of the next epoch; empty if it is unknown whether there is one."""
        is_next_known = self.epoch + 1 < self.epochs and self.epoch != self._last_epoch
        if not (is_next_known and dataset.source.sees_ahead()):
            return np.empty(0, dtype=np.int64)
        return unwrap(self.dataset, self.order_of(self.epoch + 1)[:AHEAD_AT_MOST])[1]

    def _indices(self, order: Array, start: int, source: Optional[Samples]) -> Iterator[int]:
        # In blocks: as Python integers, a long order takes five times the memory of the array.
        for begin in range(start, len(order), _ADVANCE_EVERY):
            for position, index in enumerate(order[begin : begin + _ADVANCE_EVERY].tolist(), begin + 1):
                self._yielded += 1
                if source is not None and position % _ADVANCE_EVERY == 0:
                    source.advance(position)
                    source.heartbeat()
                yield index

    def set_epoch(self, epoch: int) -> None:
        """Call it before each epoch, as with DistributedSampler. Setting the loaded epoch keeps its loaded position."""
        if epoch != self.epoch:
            self._shift = self._start = 0
            self._is_new_epoch = True
        self.epoch = epoch

    def position(self, consumed: Optional[int] = None) -> int:
        """Position in the epoch after `consumed` indices of the current iteration; see state_dict()."""
        if self._is_new_epoch:
            return 0  # `consumed` is of the epoch before
        length = rank_length(len(self.dataset) - self._began_shift, self.num_replicas, self.drop_last)
        return min(self._began_at + (self._yielded if consumed is None else consumed), length)

    def left(self, consumed: int) -> int:
        """Samples of this rank's epoch after `consumed` indices of the current iteration."""
        return self.position(self.num_samples) - self.position(consumed)

    def state_dict(self, consumed: Optional[int] = None) -> Dict[str, int]:
        """State to resume from.

        Args:
            consumed: samples of this rank that the training loop has received since the iteration began (batches x
                batch size). Needed with DataLoader workers, which read ahead of the loop; stoker.torch.DataLoader
                counts it for you. Default: all indices given out, which is right with num_workers=0.

        All ranks must have received equally many; then the state of one is the state of all.
        """
        return {
            "seed": self.seed,
            "epoch": self.epoch,
            "position": self.position(consumed),
            "num_replicas": self.num_replicas,
            "shift": 0 if self._is_new_epoch else self._began_shift,
            "count": len(self.dataset),
        }

    def load_state_dict(self, state: Dict[str, int]) -> None:
        """Restores a state_dict() of the same dataset, in a world of any size.

        Raises:
            ValueError: the state has another number of samples, or a position outside its epoch.
        """
        count = len(self.dataset)
        check_state(state, {"count": count})
        consumed = consumed_by(state, self.drop_last)
        self._shift, self._start = first_turn(consumed, count, self.num_replicas, self.drop_last)
        self.seed, self.epoch = state["seed"], state["epoch"]
        self._is_new_epoch = False
        self._last_epoch = None  # resuming an epoch does not read it a second time
        self._began_shift, self._began_at, self._yielded = self._shift, self._start, 0


def unwrap(dataset: Any, indices: Array) -> Tuple[Optional[Planned], Array]:
    """The Planned below any Subsets, and `indices` mapped into it; (None, ...): no Planned."""
    while isinstance(dataset, torch.utils.data.Subset):
        indices = np.asarray(dataset.indices, dtype=np.int64)[indices]
        dataset = dataset.dataset
    return (dataset if isinstance(dataset, Planned) else None), indices


def give_epoch(loader: torch.utils.data.DataLoader, epoch: int) -> None:
    """Calls set_epoch() of the loader's sampler, of its batch_sampler and of the sampler in that, where they have one.

    Raises:
        SettingsError: a batch_sampler of the program has none, and its sampler is none of torch's own.
    """
    batches = loader.batch_sampler
    inner = getattr(batches, "sampler", None)
    takers: List[Any] = [taker for taker in (loader.sampler, batches, inner) if hasattr(taker, "set_epoch")]
    is_given = batches is not None and loader.batch_size is None
    if is_given and not takers and type(inner).__module__ != torch.utils.data.RandomSampler.__module__:
        raise SettingsError("loader.set_epoch(): neither the batch_sampler nor its sampler has set_epoch()")
    for taker in takers:
        taker.set_epoch(epoch)
