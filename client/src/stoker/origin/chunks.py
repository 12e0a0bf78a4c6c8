"""The samples of a dataset that `stoker pack` has put into chunks."""

from __future__ import annotations

from typing import Callable, List, Optional

from .. import _core
from ..errors import NotFoundError, OriginError
from . import ListedObject, Request
from .ranges import Range, RangeOrigin

__all__ = ["ChunkOrigin"]


class ChunkOrigin(RangeOrigin):
    """Lists the samples of all chunks, and reads a sample's bytes from its chunk; see `Origin`.

    The ETag of a sample is its place in a chunk (common/domain/chunk_format.h), as in the sidecar's manifest.
    """

    kind = "chunks"

    def list(self, progress: Optional[Callable[[int], None]] = None) -> List[ListedObject]:
        """See `Origin`."""
        objects = self._objects.list(progress)
        index = next((Request(*listed) for listed in objects if listed[0] == _core.CHUNK_INDEX_KEY), None)
        if index is None:
            raise NotFoundError(f"{self.describe()} has no index; run: stoker pack --rebuild-index", "index")
        data = bytes(self._objects.read(index))
        first = next((Request(*listed) for listed in objects if listed[0] == _core.FIRST_CHUNK_KEY), None)
        begin = b""
        if first is not None and first.size >= _core.CHUNK_FIXED_BYTES:
            begin = bytes(self._objects.read_slice(first, 0, _core.CHUNK_FIXED_BYTES))
        try:
            return _core.list_packed(data, begin, objects)
        except _core.CoreError as error:
            why = f"{self.describe()}: {error.args[-1]}"
            raise OriginError(f"{why}; if all chunks are there, run: stoker pack --rebuild-index") from None

    def find(self, request: Request) -> Optional[Range]:
        """See `RangeOrigin`."""
        place = _core.parse_place(request.etag)
        if place is None:
            return None
        key, offset, checksum, chunk_bytes, etag = place
        return Range(Request(key.encode(), chunk_bytes, etag), offset, checksum)
