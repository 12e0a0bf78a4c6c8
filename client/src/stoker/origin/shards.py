"""The samples of a dataset in shards: tar shards (WebDataset), rows of one size, Megatron's .bin and .idx, TFRecords."""

from __future__ import annotations

import threading
from typing import Callable, List, Optional

from .. import _core
from ..errors import NotFoundError, OriginError
from ..settings import DatasetSettings
from . import ListedObject, Request, SlicedOrigin
from .ranges import Range, RangeOrigin

__all__ = ["ShardOrigin"]


class ShardOrigin(RangeOrigin):
    """Lists the samples of all shards by their indexes, and reads a sample's bytes from its shard; see `Origin`.

    The ETag of a sample is its place in a shard (common/domain/range_place.h), as in the sidecar's manifest.
    """

    def __init__(self, objects: SlicedOrigin, settings: DatasetSettings) -> None:
        super().__init__(objects)
        self._format = _core.ShardFormat(settings.format, settings.record_bytes, settings.record_suffix)
        self.kind = self._format.describe()

    def list(self, progress: Optional[Callable[[int], None]] = None) -> List[ListedObject]:
        """See `Origin`."""
        try:
            shards = _core.find_shards(self._format, self._objects.list(progress))
        except _core.CoreError as error:
            kind = NotFoundError if error.args[0] == "not_found" else OriginError
            raise kind(f"{self._objects.describe()}: {error.args[-1]}") from None
        samples: List[ListedObject] = []
        lock = threading.Lock()

        def index(shard: _core.ListedShard) -> None:
            found = self._index(shard)
            with lock:
                samples.extend(found)
                if progress is not None:
                    progress(len(samples))

        self._parallel.map(index, shards)
        if not samples:
            raise OriginError(f"{self._objects.describe()}: {_core.no_samples(len(shards))}")
        return samples

    def _index(self, shard: _core.ListedShard) -> List[ListedObject]:
        read = Request(*shard.to_read())
        try:
            window = shard.next()
            while window is not None:
                shard.take(self._objects.read_slice(read, *window) if window[1] else b"")
                window = shard.next()
            return shard.take_samples()
        except _core.CoreError as error:
            key = read.key.decode("utf-8", "surrogateescape")
            raise OriginError(f"{self.describe()}: {error.args[-1]}", key) from None

    def find(self, request: Request) -> Optional[Range]:
        """See `RangeOrigin`."""
        place = _core.parse_range_place(request.key, request.etag)
        if place is None or place[1] + request.size > place[2]:
            return None
        key, offset, object_bytes, etag, checksum = place
        return Range(Request(key, object_bytes, etag), offset, checksum)
