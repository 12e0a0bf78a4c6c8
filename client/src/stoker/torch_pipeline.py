"""The thread, the pinned buffers and the CUDA stream of stoker.torch.TensorLoader."""

from __future__ import annotations

import concurrent.futures
import itertools
import math
import os
from collections import deque
from typing import Any, Callable, Deque, Generator, Iterator, List, NamedTuple, Optional, Sequence, TypeVar, Union

import numpy as np
import torch

from .arrays import Array
from .errors import SettingsError
from .torch_sampler import Planned

__all__ = ["CudaReader", "HostReader", "Ready", "Records", "Transform", "overlapped"]

BUFFERS = 2  # pinned: one is filled while the other is copied to the device

Transform = Optional[Callable[[Any], Any]]
Request = TypeVar("Request")
Result = TypeVar("Result")


class Ready(NamedTuple):
    """A batch. `ids`: int64 of shape (n,), on the CPU. `written`: the CUDA event after the last write to data and
    labels; None on the CPU."""

    data: Any
    labels: torch.Tensor
    ids: torch.Tensor
    written: Any


class Records:
    """The samples of a dataset as records of one shape and type. Immutable; any thread may call.

    Attributes:
        size: bytes of a record.

    Raises:
        SettingsError: the shape has no elements.
    """

    def __init__(self, dataset: Planned, shape: Sequence[int], dtype: Any) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        if any(length < 1 for length in self.shape):
            raise SettingsError(f"shape {self.shape} of a sample has no elements")
        self.size = math.prod(self.shape) * torch.empty(0, dtype=dtype).element_size()
        self._dataset = dataset
        self._labels = torch.tensor(dataset.source.labels, dtype=torch.int64)

    def read(self, ids: Array, out: torch.Tensor) -> None:
        """Copies the records into `out`, uint8 of shape (n * size,), and acknowledges them.

        Raises:
            SettingsError: a sample has another size; the message has its key. Errors of Samples.gather().
        """
        catalog = self._dataset.source.sources.catalog
        fits = catalog.bytes_of(ids) == len(ids) * self.size
        if fits and bool((np.diff(self._dataset.gather(ids, out)) == self.size).all()):
            return
        key, size = next((key, size) for key, size, _, _ in map(catalog.describe, ids.tolist()) if size != self.size)
        raise SettingsError(
            f"sample '{key.decode(errors='replace')}' has {size} bytes; shape {self.shape} of {self.dtype} needs {self.size}"
        )

    def labels_of(self, ids: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """The labels, in `out`; both int64 of shape (n,)."""
        return torch.index_select(self._labels, 0, ids, out=out)

    def shaped(self, raw: torch.Tensor) -> torch.Tensor:
        """The same memory as a tensor of shape (n, *shape)."""
        return raw.view(self.dtype).view(-1, *self.shape)


class HostReader:
    """Reads batches into CPU tensors. Every batch has its own memory. One thread at a time calls read()."""

    def __init__(self, records: Records, transform: Transform) -> None:
        self._records, self._transform = records, transform

    def read(self, ids: Array) -> Ready:
        """A batch; raises as Records.read() and the transform."""
        raw = torch.empty(len(ids) * self._records.size, dtype=torch.uint8)
        self._records.read(ids, raw)
        ids_here = torch.from_numpy(ids)
        labels = self._records.labels_of(ids_here, torch.empty_like(ids_here))
        with torch.no_grad():
            data = self._records.shaped(raw)
            return Ready(data if self._transform is None else self._transform(data), labels, ids_here, None)

    def hand_over(self, ready: Ready) -> None:
        """Makes the batch usable by the calling thread: it is already."""


class _Buffer:
    """Pinned memory of one batch. `copied`: the CUDA event after the last copy from it; None: never copied."""

    def __init__(self, records: Records, batch_size: int) -> None:
        self.raw = torch.empty(batch_size * records.size, dtype=torch.uint8, pin_memory=True)
        self.labels = torch.empty(batch_size, dtype=torch.int64, pin_memory=True)
        self.copied: Any = None


class CudaReader:
    """Reads batches into pinned buffers, in turns, and copies each to a CUDA device on a stream of its own. read() waits
    until the copy from its buffer's last turn has ended. One thread at a time calls read(); hand_over() may run in
    another."""

    def __init__(self, records: Records, transform: Transform, device: torch.device, batch_size: int) -> None:
        self._records, self._transform, self._batch_size = records, transform, batch_size
        self._device = device if device.index is not None else torch.device("cuda", torch.cuda.current_device())
        self._stream = torch.cuda.Stream(self._device)
        self._stream.wait_stream(torch.cuda.current_stream(self._device))  # the transform's tensors are written there
        self._buffers: List[_Buffer] = []
        self._turn = 0

    def read(self, ids: Array) -> Ready:
        """A batch whose copy may still be running; raises as Records.read(), the transform and CUDA."""
        with torch.cuda.device(self._device), torch.cuda.stream(self._stream), torch.no_grad():
            buffer = self._next_buffer()
            count, ids_here = len(ids), torch.from_numpy(ids)
            self._records.read(ids, buffer.raw[: count * self._records.size])
            self._records.labels_of(ids_here, buffer.labels[:count])
            raw = buffer.raw[: count * self._records.size].to(self._device, non_blocking=True)
            labels = buffer.labels[:count].to(self._device, non_blocking=True)
            buffer.copied = written = torch.cuda.Event()
            written.record(self._stream)
            data = self._records.shaped(raw)
            if self._transform is not None:
                data, written = self._transform(data), torch.cuda.Event()
                written.record(self._stream)
            return Ready(data, labels, ids_here, written)

    def _next_buffer(self) -> _Buffer:
        if len(self._buffers) < BUFFERS:
            self._buffers.append(_Buffer(self._records, self._batch_size))
        buffer = self._buffers[self._turn % BUFFERS]
        self._turn += 1
        if buffer.copied is not None:
            buffer.copied.synchronize()
        return buffer

    def hand_over(self, ready: Ready) -> None:
        """Makes the caller's current stream wait for the batch, and its memory last as long as that stream uses it."""
        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(ready.written)
        for tensor in _tensors((ready.data, ready.labels)):
            if tensor.is_cuda:
                tensor.record_stream(stream)


Reader = Union[HostReader, CudaReader]


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _tensors(inner)


def overlapped(
    requests: Iterator[Request], read: Callable[[Request], Result], ahead: int
) -> Generator[Result, None, None]:
    """Yields read(request) for each request, in order, and runs read() in one thread, `ahead` requests ahead of the
    caller. Requests are taken in the caller's thread. When the iterator ends, fails, is closed or collected, it waits
    for the running read() and ends the thread.

    Raises:
        RuntimeError: in a forked child of the process that made the iterator; the child has no such thread.
        Exceptions of `requests` and `read`.
    """
    maker = os.getpid()
    pool = concurrent.futures.ThreadPoolExecutor(1, "stoker-tensors")
    pending: Deque[concurrent.futures.Future[Result]] = deque()
    try:
        while True:
            if os.getpid() != maker:
                raise RuntimeError(f"this iterator belongs to process {maker}; a forked child needs its own: iter(loader)")
            for request in itertools.islice(requests, ahead + 1 - len(pending)):
                pending.append(pool.submit(read, request))
            if not pending:
                return
            yield pending.popleft().result()
    finally:
        if os.getpid() == maker:
            pool.shutdown(wait=True, cancel_futures=True)
