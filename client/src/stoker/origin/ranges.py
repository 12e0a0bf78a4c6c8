"""Samples that are ranges of larger objects."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence

from .. import _core
from ..errors import OriginError
from . import Payload, Request, SlicedOrigin
from .retry import Again, Parallel, with_retries

__all__ = ["Range", "RangeOrigin"]

THREADS = 16


class Range(NamedTuple):
    """Where a sample lies. `checksum`: CRC-32C of its bytes; None: the format has none."""

    object: Request
    offset: int
    checksum: Optional[int]


class RangeOrigin:
    """Reads a sample's bytes from its object; see `Origin`. A format adds list() and find()."""

    kind = ""  # of the objects, for messages

    def __init__(self, objects: SlicedOrigin) -> None:
        self._objects = objects
        self._parallel = Parallel(THREADS)

    def find(self, request: Request) -> Optional[Range]:
        """The range stated by the manifest's key and ETag; None: not a sample of this format."""
        raise NotImplementedError

    def describe(self) -> str:
        """See `Origin`."""
        return f"{self._objects.describe()} ({self.kind})"

    def has_key(self) -> bool:
        """See `Origin`."""
        return self._objects.has_key()

    def read(self, request: Request) -> Payload:
        """See `Origin`."""
        found = self.find(request)
        name = request.key.decode("utf-8", "surrogateescape")
        if found is None:
            raise OriginError(f"'{name}' is not a sample of {self.describe()}", name)

        def attempt() -> Payload:
            if request.size == 0:  # has no bytes to ask for, but its object must be the listed one
                self._objects.read_slice(found.object, max(found.offset - 1, 0), 1)
                return b""
            data = self._objects.read_slice(found.object, found.offset, request.size)
            if found.checksum is not None and _core.crc32c(bytes(data)) != found.checksum:
                raise Again(f"the bytes from byte {found.offset} on do not match the checksum in their object")
            return data

        return with_retries(attempt, lambda why: OriginError(f"'{name}' of {self.describe()}: {why}", name))

    def read_many(self, requests: Sequence[Request]) -> List[Payload]:
        """See `Origin`."""
        return self._parallel.map(self.read, requests)

    def close(self) -> None:
        """See `Origin`."""
        self._parallel.close()
        self._objects.close()
