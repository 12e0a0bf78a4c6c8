"""The samples of a dataset in tar shards (WebDataset)."""

from __future__ import annotations

import threading
from typing import Callable, List, Optional

from .. import _core
from ..errors import NotFoundError, OriginError
from . import ListedObject, Request
from .ranges import Range, RangeOrigin

__all__ = ["ShardOrigin"]


class ShardOrigin(RangeOrigin):
    """Lists the samples of all tar shards by their headers, and reads a sample's bytes from its shard; see `Origin`.

    The ETag of a sample is its place in a shard (common/domain/range_place.h), as in the sidecar's manifest.
    """

    kind = "tar shards"

    def list(self, progress: Optional[Callable[[int], None]] = None) -> List[ListedObject]:
        """See `Origin`."""
        objects = self._objects.list(progress)
        packed = next((key for key, _, _ in objects if _core.is_compressed_shard(key)), None)
        if packed is not None:
            name = packed.decode("utf-8", "surrogateescape")
            raise OriginError(
                f"'{name}' of {self.describe()} is compressed: unpack it first, because the samples of a compressed tar "
                "file cannot be read one by one",
                name,
            )
        shards = [Request(*listed) for listed in objects if _core.is_tar_shard(listed[0])]
        if not shards:
            raise NotFoundError(f"{self.describe()} has no object whose key ends in .tar")
        samples: List[ListedObject] = []
        lock = threading.Lock()

        def index(shard: Request) -> None:
            found = self._index(shard)
            with lock:
                samples.extend(found)
                if progress is not None:
                    progress(len(samples))

        self._parallel.map(index, shards)
        return samples

    def _index(self, shard: Request) -> List[ListedObject]:
        try:
            index = _core.TarIndex(shard.key, shard.size, shard.etag)
            window = index.next()
            while window is not None:
                index.take(self._objects.read_slice(shard, *window))
                window = index.next()
            return index.samples()
        except _core.CoreError as error:
            key = shard.key.decode("utf-8", "surrogateescape")
            raise OriginError(f"{self.describe()}: {error.args[-1]}", key) from None

    def find(self, request: Request) -> Optional[Range]:
        """See `RangeOrigin`."""
        place = _core.parse_range_place(request.key, request.etag)
        if place is None or request.size == 0 or place[1] + request.size > place[2]:
            return None
        key, offset, object_bytes, etag = place
        return Range(Request(key, object_bytes, etag), offset, None)
