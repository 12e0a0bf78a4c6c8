"""PyTorch: `Dataset`, `Sampler`, `DataLoader`: replacements for ImageFolder, DistributedSampler and DataLoader.

    dataset = stoker.torch.Dataset("train", transform)
    sampler = stoker.torch.Sampler(dataset, seed=7)
    loader = stoker.torch.DataLoader(dataset, batch_size=64, sampler=sampler, num_workers=8)

torch's own DataLoader works too. Stoker's also measures how long training waits for data, has an exact position even
when workers read ahead, and supports sampling contracts:

    loader = stoker.torch.DataLoader(dataset, batch_size=64, contract="importance", beta=0.33, seed=7)
    for images, labels, ids in loader:
        losses = criterion(model(images), labels)    # reduction="none"
        loader.report(ids, losses)

Samples that need no decoding on the CPU (raw images, tokens, features) go to the device without worker processes:

    loader = stoker.torch.TensorLoader("train", batch_size=256, shape=(3, 224, 224), device="cuda", shuffle=True, seed=7)
"""

from __future__ import annotations

import contextlib
import copy
import time
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.utils.data

from . import samples as _samples
from .contracts import EpochReport
from .elastic import States, job_state
from .errors import SettingsError
from .megatron import MegatronSamples
from .samples import Samples
from .tar import TarSamples
from .torch_contracts import (
    REPLACED,
    Collate,
    ContractStream,
    DrawBatches,
    Fingerprinter,
    Similarity,
    say_what_is_allowed,
    split_options,
)
from .torch_decode import decode_image, decode_raw, decode_tokens, decoding
from .torch_pipeline import CudaReader, HostReader, Records, Transform, overlapped
from .torch_sampler import Planned, Sampler, give_epoch, unwrap

__all__ = ["DataLoader", "Dataset", "Sampler", "TensorLoader", "decode_image", "decode_raw", "decode_tokens"]


class Dataset(Planned):
    """Map-style dataset of (decoded sample, label), as torchvision's ImageFolder.

    Args:
        source: name of the dataset ("train"), URI, or Samples.
        transform: applied to the result of `decode`.
        target_transform: applied to the label.
        decode: takes a read-only memoryview of the sample's bytes (uint8, shape (size,), valid while it is held) and
            returns anything; default: `decode_image` where Pillow is installed, else `decode_raw`, which is also
            that of formats Records and TFRecord. For tar shards it
            takes the `TarSample`, a dictionary of the members; default: the dictionary itself. For format Megatron it
            takes the read-only array of tokens; default: `decode_tokens`, a tensor of its own, int64 of integers.
            Sequences of several lengths in a batch need a `collate_fn`.

    Attributes:
        source: the Samples; `dataset.source.fetch(ids)` gives undecoded samples without a copy.
        classes: names of the parent folders, sorted. class_to_idx: their labels.
    """

    def __init__(
        self,
        source: Union[str, Samples],
        transform: Optional[Callable[[Any], Any]] = None,
        target_transform: Optional[Callable[[int], Any]] = None,
        decode: Optional[Callable[[Any], Any]] = None,
    ) -> None:
        super().__init__(_samples.open(source) if isinstance(source, str) else source)
        self.transform = transform
        self.target_transform = target_transform
        self._input, default = decoding(self.source)
        self.decode: Callable[[Any], Any] = decode or default
        self.classes = self.source.classes
        self.class_to_idx = {name: label for label, name in enumerate(self.classes)}
        self._gives_ids = False
        self._fingerprinter: Optional[Fingerprinter] = None

    @property
    def targets(self) -> List[int]:
        """Label of every sample, by index."""
        return self.source.labels

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Tuple[Any, Any]:
        """One sample. DataLoaders of torch before 2.0 call this; later ones call __getitems__ once per batch."""
        index = self._one_index(index)
        self.source.epoch = int(self._epoch)
        item = self._item(self.source.fetch([index])[0])
        self.source.note_used(index)
        return item

    def __getitems__(self, indices: Sequence[int]) -> List[Tuple[Any, Any]]:
        """A batch, with one request for all samples that are not on the node yet."""
        self.source.epoch = int(self._epoch)
        items = [self._item(sample) for sample in self.source.fetch(indices)]
        self.source.flush()
        return items

    def with_ids(self, fingerprinter: Optional[Fingerprinter] = None) -> "Dataset":
        """The same dataset with items (decoded sample, label, id), plus the fingerprinter's result, if one is given."""
        other = copy.copy(self)
        other._gives_ids = True
        other._fingerprinter = fingerprinter
        return other

    def _one_index(self, index: int) -> int:
        index = int(index)
        return index + len(self) if -len(self) <= index < 0 else index

    def _item(self, sample: Any) -> Tuple[Any, ...]:
        data, label = self.decode(self._input(sample)), sample.label
        taker = self._fingerprinter
        fingerprint = None if taker is None else taker(sample.id, data, label)  # before transforms, which may be random
        if self.transform is not None:
            data = self.transform(data)
        if self.target_transform is not None:
            label = self.target_transform(label)
        if taker is not None:
            return data, label, sample.id, fingerprint
        return (data, label, sample.id) if self._gives_ids else (data, label)


class DataLoader(torch.utils.data.DataLoader):
    """torch's DataLoader with the same arguments. It also reports how long training waits for data; state_dict() and
    load_state_dict() are exact with any number of workers.

    Args (beyond torch's, all by name):
        contract: "exact", "windowed", "importance" or "replicate"; "job": the TrainingJob's. Batches then end with the
            ids of the served samples, int64 of shape (batch,), and epochs count up by themselves. Replaces shuffle,
            sampler and batch_sampler. Default: no contract, batches as torch makes them.
        seed: of the contract's draws; the same on all ranks.
        num_replicas, rank: defaults as in Sampler.
        similarity: for contracts with `redundancy`: maps a decoded sample, before transforms, to a fingerprint
            0..2**64-1, which for near-duplicates differs in at most three bits, or to None for a sample without
            near-duplicates. Samples with different labels are never near-duplicates. Runs in the workers, once per
            sample. Default: `stoker.similarity.difference_hash`, for images. False: the program sends fingerprints by
            report_similarity().
        any other name: a parameter of the contract, such as beta=0.33; see docs/reference/sampling-contracts.md.

    Without a sidecar a contract's epoch is complete: every sample of the rank's share once, shuffled. A sidecar that
    disconnects and reconnects in mid-epoch loses no sample.

    Raises:
        SettingsError: unknown contract or parameter, or more than the TrainingJob allows.
    """

    _received = 0
    _stream: Optional[ContractStream] = None

    def __init__(
        self,
        dataset: Any,
        batch_size: Optional[int] = 1,
        *args: Any,
        contract: Optional[str] = None,
        seed: int = 0,
        num_replicas: Optional[int] = None,
        rank: Optional[int] = None,
        similarity: Similarity = None,
        **options: Any,
    ) -> None:
        if contract is None:
            super().__init__(dataset, batch_size, *args, **options)
            say_what_is_allowed(unwrap(dataset, np.empty(0, dtype=np.int64))[0])
            return
        if not isinstance(dataset, Dataset):
            raise SettingsError("a contract needs a whole stoker.torch.Dataset, not a Subset")
        if args or not batch_size or any(options.get(key) is not None for key in REPLACED):
            raise SettingsError("a contract needs batch_size, and replaces shuffle, sampler and batch_sampler")
        ours, options = split_options(options)
        exact = Sampler(dataset, num_replicas, rank, seed=seed)
        self._stream = ContractStream(
            dataset.source,
            contract,
            ours,
            batch_size=batch_size,
            seed=seed,
            rank=exact.rank,
            world_size=exact.num_replicas,
            exact=exact.order_of,
            check_world=exact.check_world,
            on_epoch=dataset.note_epoch,
            similarity=similarity,
        )
        dataset = dataset.with_ids(self._stream.fingerprinter)
        batches = DrawBatches(self._stream, batch_size, options.pop("drop_last", False))
        collate = Collate(options.pop("collate_fn", None))
        super().__init__(dataset, batch_sampler=batches, collate_fn=collate, **options)

    def __iter__(self) -> Iterator[Any]:
        dataset, _ = unwrap(self.dataset, np.empty(0, dtype=np.int64))
        self._received = 0
        return self._measured(self._batches(), dataset.source if dataset is not None else None)

    def _batches(self) -> Iterator[Any]:
        """The batches of one iteration, as _measured() takes them."""
        batches: Iterator[Any] = super().__iter__()
        return batches

    def _measured(self, batches: Iterator[Any], source: Optional[Samples]) -> Iterator[Any]:
        handed_out = None
        try:
            while True:
                asked = time.monotonic_ns()
                compute = 0 if handed_out is None else asked - handed_out
                try:
                    batch = next(batches)
                except StopIteration:
                    self._note(source, 0, compute, 0)
                    return
                handed_out = time.monotonic_ns()
                self._received += 1
                if self._stream is not None:
                    batch = self._stream.take(batch)
                self._note(source, handed_out - asked, compute, 1)
                yield batch
        finally:
            if isinstance(batches, Generator):
                batches.close()  # ends the thread of a TensorLoader; Python 3.12 would keep it as long as this iterator

    def _note(self, source: Optional[Samples], wait_ns: int, compute_ns: int, steps: int) -> None:
        if source is None:
            return
        if self._stream is not None:
            source.advance(self._stream.draws.position(self._stream.received))
            self._stream.draws.note_step(wait_ns, compute_ns)
        elif isinstance(self.sampler, Sampler) and self.batch_size is not None:
            source.advance(self.sampler.position(self._received * self.batch_size))
        source.note_step(wait_ns, compute_ns, steps)

    def stats(self) -> Dict[str, int]:
        """Counts of the dataset's reads by this process and all workers, also ended ones: Samples.total_stats().

        Raises:
            SettingsError: the loader does not read a stoker.torch.Dataset.
        """
        dataset, _ = unwrap(self.dataset, np.empty(0, dtype=np.int64))
        if dataset is None:
            raise SettingsError("loader.stats() needs a stoker.torch.Dataset")
        return dataset.source.total_stats()

    def report(self, ids: Any, losses: Any, p_other: Any = None) -> None:
        """Reports the losses of a step's samples to the contract. Cheap: one frame per batch, dropped when the sidecar
        is busy; losses on a GPU are copied asynchronously.

        Args:
            ids: of the batch, integers of shape (n,).
            losses: one per id, of shape (n,), any floating type, any device; use `reduction="none"`. Losses that are
                not finite, not numeric or of another shape are ignored and counted; they never raise.
            p_other: one per id, of shape (n,): the largest probability, by the model, among the classes other than the
                sample's own. Only family iowa uses it, for its margin; without it, and for values outside 0..1, the
                margin uses 1 - exp(-loss), the largest value that it can have. Values that are not numeric or of
                another shape are ignored, with one warning; the losses beside them are used.
        """
        self._contract_stream().report(ids, losses, p_other)

    def report_similarity(self, ids: Any, hashes: Any) -> None:
        """Sends each sample's fingerprint to a contract with `redundancy`, once per sample; see `similarity`. From the
        next epoch on, samples whose fingerprints differ in at most three bits count as near-duplicates.

        Args:
            ids: integers of shape (n,). hashes: 64 bits per id, as uint64, or as int64 with the same bits.

        Raises:
            ValueError: ids and hashes differ in number.
        """
        self._contract_stream().report_similarity(ids, hashes)

    def report_accuracy(self, accuracy: float) -> None:
        """Reports the accuracy on held-out samples, 0..1 (else ignored), between two epochs. Family iowa recalls samples
        when it stagnates (unreported: when losses do); replicate uses its growth to deal out samples."""
        self._contract_stream().draws.report_accuracy(accuracy)

    def epoch_report(self) -> EpochReport:
        """This rank's counts of the current or last epoch. With workers it counts draws, which in mid-epoch are ahead
        of the loop."""
        return self._contract_stream().epoch_report()

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration. A contract's epochs otherwise count up from 0, or from a loaded state.
        Without a contract it is the set_epoch() of the sampler or batch_sampler; torch's own have none and need none.
        SettingsError: another batch_sampler has none, nor has its sampler."""
        if self._stream is not None:
            self._stream.set_epoch(epoch)
        else:
            give_epoch(self, epoch)

    def state_dict(self) -> Dict[str, Any]:
        """State after the batches that the training loop has received: the sampler's, or the contract's.

        Raises:
            SettingsError: neither a contract nor a stoker.torch.Sampler with a batch_size.
        """
        if self._stream is not None:
            return self._stream.state(self._least)
        sampler, received = self._our_sampler(), self._received * (self.batch_size or 1)
        if sampler.left(received) < self._least:
            received = sampler.num_samples  # the rest is an incomplete batch, which is dropped
        return sampler.state_dict(received)

    def job_state_dict(self, group: Any = None) -> Dict[str, Any]:
        """One state for the whole job, to be loaded by any number of ranks. All ranks must call it in the same step,
        because it gathers their states with torch.distributed; only contracts whose order the sidecar chooses need it.

        Args:
            group: the process group to gather in; default: all processes. It must have each rank of the loader's
                `num_replicas` at least once, and no process without a loader.

        Raises:
            SettingsError: there are several ranks, and torch.distributed is not initialised.
            ValueError: a rank is missing in the group, or the ranks are not in the same step.
        """
        return self.state_dict() if self._stream is None else self._stream.job_state(self._least, group)

    def load_state_dict(self, state: States) -> None:
        """Restores a state_dict(), a job_state_dict() or a list of the state_dict() of all ranks: the next iteration
        begins after the last received batch. The number of ranks may be another one: they go on with the samples of the
        epoch that nobody has read. All ranks must load the same.

        Raises:
            ValueError: it belongs to another dataset or contract; or, in mid-epoch of contract windowed, it is of
                another rank alone.
        """
        if self._stream is not None:
            self._stream.load(state)
            return
        self._received = 0
        self._our_sampler().load_state_dict(job_state(state))

    @property
    def _least(self) -> int:
        """Samples of the smallest batch."""
        if self._stream is not None:
            return self._stream.draws.batch_size if self.batch_sampler.drop_last else 1
        return (self.batch_size or 1) if self.drop_last else 1

    def _our_sampler(self) -> Sampler:
        if not isinstance(self.sampler, Sampler) or self.batch_size is None:
            raise SettingsError("loader state needs sampler=stoker.torch.Sampler(...) and batch_size")
        return self.sampler

    def _contract_stream(self) -> ContractStream:
        if self._stream is None:
            raise SettingsError('this loader has no contract; make it with contract="..."')
        return self._stream


class TensorLoader(DataLoader):
    """Batches of samples that are records of one shape and type, without decoding and without worker processes. One
    thread copies a batch from the node's files into pinned memory and from there to the device, on a CUDA stream of its
    own, while the loop computes. Batches are (data, labels), under a contract (data, labels, ids), as DataLoader's; ids
    stay on the CPU. Tensors are the caller's to keep or change. The other methods are DataLoader's.

    Args:
        dataset: name of the dataset ("train"), URI, Samples, or a Dataset without transforms (or a Subset of one).
        batch_size: samples per batch.
        shape, dtype: of one sample; its bytes are the elements in row-major order, little-endian.
        device: where data and labels go: the CPU (default) or a CUDA device.
        transform: called in the loader's thread with the data of a batch, of shape (n, *shape), on the device, without
            gradients, on CUDA under the loader's stream. Its result replaces the data.
        prefetch: batches that are read ahead of the loop, at least 1. They take up memory of the device.
        sampler: default: Sampler(dataset, num_replicas, rank, shuffle, seed).
        drop_last: leave out the last batch of an epoch if it is smaller than batch_size.
        contract, parameters: as in DataLoader. Fingerprints are the program's task: report_similarity().

    Iterating raises SettingsError for a sample that has not the size of `shape` and `dtype`. Errors of reading and of
    the transform reach the loop. A forked child cannot go on with an iterator of its parent: RuntimeError.

    Raises:
        SettingsError: an argument is wrong; the message names it.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        *,
        shape: Sequence[int],
        dtype: Any = torch.uint8,
        device: Any = None,
        transform: Transform = None,
        prefetch: int = 2,
        sampler: Any = None,
        shuffle: bool = False,
        seed: int = 0,
        num_replicas: Optional[int] = None,
        rank: Optional[int] = None,
        drop_last: bool = False,
        contract: Optional[str] = None,
        **parameters: Any,
    ) -> None:
        dataset = Dataset(dataset, decode=decode_raw) if isinstance(dataset, (str, Samples)) else dataset
        plain = unwrap(dataset, np.empty(0, dtype=np.int64))[0]
        if not isinstance(plain, Dataset) or plain.transform is not None or plain.target_transform is not None:
            raise SettingsError("`dataset` of a TensorLoader is a name, a URI, Samples, or a Dataset without transforms")
        if isinstance(plain.source, (TarSamples, MegatronSamples)):
            raise SettingsError("a TensorLoader reads samples of one shape, not tar shards or sequences; use a DataLoader")
        if plain.decode not in (decode_image, decode_raw):
            raise SettingsError("a TensorLoader does not call the Dataset's `decode`; use `transform`, which gets a batch")
        if prefetch < 1 or not batch_size or (sampler is not None and shuffle):
            raise SettingsError("a TensorLoader needs batch_size and prefetch >= 1, and either sampler or shuffle")
        if split_options(parameters)[1] or (parameters and contract is None):
            raise SettingsError(f"a TensorLoader without a contract or workers has no arguments {sorted(parameters)}")
        self._device = torch.device("cpu" if device is None else device)
        if self._device.type not in ("cpu", "cuda"):
            raise SettingsError(f"device '{self._device}' of a TensorLoader is neither a CPU nor a CUDA device")
        self._records = Records(plain, shape, dtype)
        self._transform, self._prefetch, self._samples_at_most = transform, prefetch, batch_size
        if contract is None:
            ours = Sampler(dataset, num_replicas, rank, shuffle, seed) if sampler is None else sampler
            super().__init__(dataset, batch_size, sampler=ours, drop_last=drop_last)
        else:
            plain.source.keep_connection_free()
            options = {"sampler": sampler, "shuffle": shuffle or None, "drop_last": drop_last, **parameters}
            super().__init__(
                dataset,
                batch_size,
                contract=contract,
                seed=seed,
                num_replicas=num_replicas,
                rank=rank,
                similarity=False,
                **options,
            )

    def _batches(self) -> Iterator[Any]:
        reader: Union[CudaReader, HostReader] = HostReader(self._records, self._transform)
        if self._device.type == "cuda":
            reader = CudaReader(self._records, self._transform, self._device, self._samples_at_most)
        requests = (unwrap(self.dataset, np.asarray(indices, dtype=np.int64))[1] for indices in self.batch_sampler)
        with contextlib.closing(overlapped(requests, reader.read, self._prefetch)) as read:
            for ready in read:
                reader.hand_over(ready)
                yield ready[:2] if self._stream is None else ready[:3]
