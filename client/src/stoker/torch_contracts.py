"""The sampling contract part of stoker.torch.DataLoader."""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
import math
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np
import torch
import torch.utils.data

from .arrays import Array
from .contracts import EpochReport, narrow, terms
from .draws import Draws
from .elastic import States, job_state
from .errors import SettingsError
from .samples import Samples
from .similarity import difference_hash

__all__ = [
    "REPLACED",
    "Collate",
    "ContractStream",
    "DrawBatches",
    "Fingerprinter",
    "Similarity",
    "say_what_is_allowed",
    "shared",
    "split_options",
]

log = logging.getLogger("stoker")

PENDING_AT_MOST = 64  # losses in transfer from a GPU
NOT_NUMBERS = (TypeError, ValueError, RuntimeError)  # raised by torch.as_tensor()


# Fingerprint function of a decoded sample; None: the default; False: the program sends fingerprints itself.
Similarity = Union[None, bool, Callable[[Any], Optional[int]]]

REPLACED = ("sampler", "batch_sampler", "shuffle")  # arguments of torch's loader that a contract replaces


def split_options(options: Mapping[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Splits options into the contract's parameters and those of torch's DataLoader."""
    torchs = inspect.signature(torch.utils.data.DataLoader.__init__).parameters
    return (
        {key: value for key, value in options.items() if key not in torchs},
        {key: value for key, value in options.items() if key in torchs and key not in REPLACED},
    )


def say_what_is_allowed(dataset: Any) -> None:
    """Logs an allowed contract that the program does not use; without one, every TrainingJob allows its own sampler."""
    settings = None if dataset is None else dataset.source.sources.settings
    if settings is not None and settings.terms is not None and settings.terms.contract != "exact":
        log.info(
            "stoker: the TrainingJob allows contract '%s' for '%s'; pass contract=\"job\" to the DataLoader to use it",
            settings.terms.contract,
            settings.describe(),
        )


def shared(numbers: torch.Tensor) -> torch.Tensor:
    """Moves numbers to shared memory, so that DataLoader workers see changes; where that fails, workers keep copies."""
    try:
        return numbers.share_memory_()
    except RuntimeError:
        return numbers


def _numbers(values: Any) -> torch.Tensor:
    """Raises one of NOT_NUMBERS if the values are ragged or not numeric."""
    return values.detach() if isinstance(values, torch.Tensor) else torch.as_tensor(values)


def _to_host(values: torch.Tensor) -> torch.Tensor:
    """Starts copying numbers to pinned memory, as float32; an event recorded afterwards tells when they are there."""
    host = torch.empty(values.shape, dtype=torch.float32, pin_memory=True)
    return host.copy_(values.to(torch.float32), non_blocking=True)


@functools.lru_cache(maxsize=None)
def label_bits(label: int) -> int:
    """64 bits that depend on the label only. Fingerprints XOR these are as near as before if the labels are equal, and
    differ in about half of their bits otherwise: samples that look alike under other labels are no duplicates."""
    return int.from_bytes(hashlib.blake2b(b"%d" % label, digest_size=8).digest(), "big")


class Fingerprinter:
    """Computes fingerprints of decoded samples, in workers and the training process, until each was sent."""

    def __init__(self, similarity: Callable[[Any], Optional[int]], count: int) -> None:
        self.similarity = similarity
        self.told = shared(torch.zeros(count, dtype=torch.uint8))  # 1 for each sample whose fingerprint was sent

    def __call__(self, id: int, data: Any, label: int) -> Optional[int]:
        found = None if self.told[id] else self.similarity(data)
        return None if found is None else found ^ label_bits(label)


class Hashed(NamedTuple):
    """A batch from a worker, with the fingerprints that were not sent yet."""

    batch: Tuple[Any, ...]
    ids: torch.Tensor  # int64
    hashes: torch.Tensor  # the bits of uint64 as int64


class Collate:
    """Collates (data, label, id) items: `inner`'s result for (data, label), followed by the ids. Items with a fourth
    entry, a fingerprint or None, become a Hashed."""

    def __init__(self, inner: Optional[Callable[[List[Any]], Any]]) -> None:
        self.inner = inner or torch.utils.data.default_collate

    def __call__(self, items: List[Tuple[Any, ...]]) -> Any:
        ids = torch.tensor([item[2] for item in items], dtype=torch.int64)
        batch = self.inner([item[:2] for item in items])
        whole = (*batch, ids) if isinstance(batch, (tuple, list)) else (batch, ids)
        if len(items[0]) == 3:
            return whole
        hashed = [(item[2], item[3]) for item in items if item[3] is not None]
        told = torch.tensor([id for id, _ in hashed], dtype=torch.int64)
        bits = np.array([hash for _, hash in hashed], dtype=np.uint64).view(np.int64)
        return Hashed(whole, told, torch.from_numpy(bits))


class DrawBatches:
    """A batch sampler: draws each batch when the loader asks for it, in the process that trains."""

    def __init__(self, stream: "ContractStream", batch_size: int, drop_last: bool) -> None:
        self.stream, self.batch_size, self.drop_last = stream, batch_size, drop_last

    @property
    def sampler(self) -> "ContractStream":
        """Lightning calls its set_epoch() before each epoch, also before one whose iterator is left out after a resume."""
        return self.stream

    def __len__(self) -> int:
        share = self.stream.draws.share
        return share // self.batch_size if self.drop_last else -(-share // self.batch_size)

    def __iter__(self) -> Iterator[List[int]]:
        self.stream.begin()  # with the first batch, because torch makes iterators that it does not use
        draws = self.stream.draws
        while True:
            ids = draws.next(self.batch_size)
            if len(ids) < self.batch_size and (self.drop_last or len(ids) == 0):
                draws.leave_out(len(ids))
                return
            yield ids.tolist()


class ContractStream:
    """One loader's stream: the next epoch, the samples that the loop received, and the losses that it reports."""

    def __init__(
        self,
        samples: Samples,
        contract: str,
        parameters: Mapping[str, Any],
        *,
        batch_size: int,
        seed: int,
        rank: int,
        world_size: int,
        exact: Callable[[int, int, int], Array],
        check_world: Callable[[], None],
        on_epoch: Callable[[int], None],
        similarity: Similarity = None,
    ) -> None:
        if contract == "job":
            asked = None
            if parameters:
                raise SettingsError('contract="job" takes its parameters from the TrainingJob; to set them, name the contract')
        else:
            asked = terms(contract, parameters)
        agreed = narrow(samples.sources.settings.terms, asked)
        self.draws = Draws(
            samples,
            agreed,
            seed=seed,
            rank=rank,
            world_size=world_size,
            batch_size=batch_size,
            exact=exact,
        )
        self.next_epoch = 0
        self.received = 0  # samples of the current iteration that the loop has received
        self._check_world, self._on_epoch = check_world, on_epoch
        self.fingerprinter: Optional[Fingerprinter] = None
        if self.draws.groups_alike and similarity is not False:
            taken = Fingerprinter(similarity if callable(similarity) else difference_hash, len(samples))
            self.fingerprinter = taken
            self.draws.on_new_sidecar = taken.told.zero_
        self._is_loaded = False
        self._pending: Deque[Tuple[Array, torch.Tensor, Optional[torch.Tensor], Any]] = deque()

    def begin(self) -> None:
        """Starts an iteration: the next epoch, or the loaded one."""
        self._check_world()
        self._flush(wait=True)
        self.received = 0
        if self._is_loaded and self.draws.epoch == self.next_epoch:
            self._on_epoch(self.next_epoch)
            self.draws.resume()
        else:
            self._on_epoch(self.next_epoch)
            self.draws.begin(self.next_epoch)
        self._is_loaded = False
        self.next_epoch += 1

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration."""
        self.next_epoch = epoch

    def take(self, batch: Any) -> Any:
        """Records a batch from the loader; returns the part for the loop."""
        if isinstance(batch, Hashed):
            self.report_similarity(batch.ids, batch.hashes)
            batch = batch.batch
        self.received += len(batch[-1])
        return batch

    def report_similarity(self, ids: Any, hashes: Any) -> None:
        """See DataLoader.report_similarity()."""
        named = np.asarray(ids.cpu() if isinstance(ids, torch.Tensor) else ids, dtype=np.int64)
        if isinstance(hashes, torch.Tensor):
            hashes = hashes.cpu().numpy()
        bits = hashes.astype(np.uint64) if isinstance(hashes, np.ndarray) else np.array(list(hashes), dtype=np.uint64)
        if named.ndim != 1 or named.shape != bits.shape:
            raise ValueError(f"one hash for each id: {named.shape} ids and {bits.shape} hashes")
        if self.draws.report_similarity(named, bits) and self.fingerprinter is not None:
            self.fingerprinter.told[torch.from_numpy(named)] = 1

    def report(self, ids: Any, losses: Any, p_other: Any = None) -> None:
        """See DataLoader.report()."""
        self._flush(wait=False)
        named = np.asarray(ids.cpu() if isinstance(ids, torch.Tensor) else ids, dtype=np.int64)
        values = self._usable("losses", losses)
        others = None if p_other is None else self._usable("p_other", p_other)
        if values is None:
            values = torch.full(named.shape, math.nan)  # counted as ignored
        if values.ndim != 1:
            self.draws.warn_once(
                "shape of losses",
                f"loader.report() needs one loss per sample, shape ({named.size},), got shape "
                f'{tuple(values.shape)}: use reduction="none"; losses of other shapes are ignored',
            )
        if values.is_cuda and len(self._pending) < PENDING_AT_MOST:
            host, host_others = _to_host(values), None if others is None else _to_host(others)
            done = torch.cuda.Event()
            done.record()
            self._pending.append((named, host, host_others, done))
        else:
            on_cpu = values.to(torch.float32).cpu().numpy()
            self.draws.report(named, on_cpu, None if others is None else others.to(torch.float32).cpu().numpy())

    def _usable(self, name: str, values: Any) -> Optional[torch.Tensor]:
        """The values of an argument of report(). None, with one warning: they are ragged or not numeric."""
        try:
            return _numbers(values)
        except NOT_NUMBERS as error:
            text = f"loader.report() ignores {name}, which must be numbers of shape (n,): {error}"
            self.draws.warn_once(f"type of {name}", text)
            return None

    def epoch_report(self) -> EpochReport:
        """See DataLoader.epoch_report()."""
        self._flush(wait=True)
        return self.draws.epoch_report()

    def state(self, least: int) -> Dict[str, Any]:
        """See DataLoader.state_dict(). `least`: samples of the smallest batch."""
        return self.draws.state(self.received, least)

    def job_state(self, least: int, group: Any) -> Dict[str, Any]:
        """See DataLoader.job_state_dict()."""
        state = self.state(least)
        if self.draws.is_whole_state:
            return state
        own = {"importance": state.pop("importance")} if self.draws.terms.needs_losses else {}  # large; one is enough
        if not torch.distributed.is_available() or not torch.distributed.is_initialized():
            raise SettingsError("the job's state is gathered with torch.distributed, which is not initialised")
        states: List[Any] = [None] * torch.distributed.get_world_size(group)
        torch.distributed.all_gather_object(states, state, group=group)
        return {**job_state(states), **own}

    def load(self, states: States) -> None:
        """See DataLoader.load_state_dict()."""
        self.draws.load(states)
        self.next_epoch = self.draws.epoch
        self._is_loaded = True
        self.received = 0

    def _flush(self, wait: bool) -> None:
        """Sends the losses that have arrived from the GPU."""
        while self._pending and (wait or self._pending[0][3].query()):
            ids, losses, p_others, done = self._pending.popleft()
            if wait:
                done.synchronize()
            self.draws.report(ids, losses.numpy(), None if p_others is None else p_others.numpy())
