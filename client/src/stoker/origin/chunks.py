"""The samples of a dataset that `stoker pack` has put into chunks."""

from __future__ import annotations

from typing import Callable, List, Optional, Sequence

from .. import _core
from ..errors import NotFoundError, OriginError
from . import ListedObject, Payload, Request, SlicedOrigin
from .retry import Again, Parallel, with_retries

__all__ = ["ChunkOrigin"]

THREADS = 16


class ChunkOrigin:
    """Lists the samples of all chunks, and reads a sample's bytes from its chunk; see `Origin`.

    The ETag of a sample is its place in a chunk (common/domain/chunk_format.h), as in the sidecar's manifest.
    """

    def __init__(self, chunks: SlicedOrigin) -> None:
        self._chunks = chunks
        self._parallel = Parallel(THREADS)

    def describe(self) -> str:
        return f"{self._chunks.describe()} (chunks)"

    def has_key(self) -> bool:
        return self._chunks.has_key()

    def list(self, progress: Optional[Callable[[int], None]] = None) -> List[ListedObject]:
        objects = self._chunks.list(progress)
        index = next((Request(*listed) for listed in objects if listed[0] == _core.CHUNK_INDEX_KEY), None)
        if index is None:
            raise NotFoundError(f"{self.describe()} has no index; run: stoker pack --rebuild-index", "index")
        data = bytes(self._chunks.read(index))
        first = next((Request(*listed) for listed in objects if listed[0] == _core.FIRST_CHUNK_KEY), None)
        begin = b""
        if first is not None and first.size >= _core.CHUNK_FIXED_BYTES:
            begin = bytes(self._chunks.read_slice(first, 0, _core.CHUNK_FIXED_BYTES))
        try:
            return _core.list_packed(data, begin, objects)
        except _core.CoreError as error:
            why = f"{self.describe()}: {error.args[-1]}"
            raise OriginError(f"{why}; if all chunks are there, run: stoker pack --rebuild-index") from None

    def read(self, request: Request) -> Payload:
        place = _core.parse_place(request.etag)
        name = request.key.decode("utf-8", "surrogateescape")
        if place is None:
            raise OriginError(f"'{name}' of {self.describe()} is not a sample of a chunk", name)
        key, offset, checksum, chunk_bytes, etag = place
        chunk = Request(key.encode(), chunk_bytes, etag)

        def attempt() -> Payload:
            if request.size == 0:  # has no bytes to ask for, but its chunk must be the listed one
                self._chunks.read_slice(chunk, offset - 1, 1)
                return b""
            data = self._chunks.read_slice(chunk, offset, request.size)
            if _core.crc32c(bytes(data)) != checksum:
                raise Again("the bytes do not match the checksum in the chunk's header")
            return data

        return with_retries(attempt, lambda why: OriginError(f"'{name}' of {self.describe()}: {why}", name))

    def read_many(self, requests: Sequence[Request]) -> List[Payload]:
        return self._parallel.map(self.read, requests)

    def close(self) -> None:
        self._parallel.close()
        self._chunks.close()
