"""Reading the origin without a sidecar. Standard library only."""

from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional, Protocol, Sequence, Tuple, Union

from .. import _core
from ..errors import SettingsError
from ..settings import DatasetSettings

__all__ = ["ListedObject", "Origin", "Payload", "Request", "SlicedOrigin", "open_origin", "split_uri"]

Payload = Union[bytes, memoryview]
ListedObject = Tuple[bytes, int, str]  # key relative to the dataset, size in bytes, ETag without quotes


class Request(NamedTuple):
    """One object to read, as listed in the manifest."""

    key: bytes
    size: int
    etag: str


class Origin(Protocol):
    """A source of sample bytes. Any thread may call."""

    def describe(self) -> str:
        """Readable name: `s3://bucket/prefix at http://endpoint`."""

    def has_key(self) -> bool:
        """Whether the reader has credentials, or needs none. Public objects may be readable without credentials."""

    def list(self, progress: Optional[Callable[[int], None]] = None) -> List[ListedObject]:
        """Every object below the root, in any order, without folders; `progress` gets the number so far."""

    def read(self, request: Request) -> Payload:
        """The object's bytes, checked to be those that were listed. A large object is read in parts into one buffer.

        Raises:
            ChangedError, NotFoundError, ForbiddenError, OriginError: after bounded retries; the message names the key.
            TooLargeError: it does not fit into this process's memory.
        """

    def read_many(self, requests: Sequence[Request]) -> List[Payload]:
        """Reads several objects in parallel; results in the order of `requests`."""

    def close(self) -> None:
        """Closes connections and ends threads."""


class SlicedOrigin(Origin, Protocol):
    """An origin that also reads parts of objects."""

    def read_slice(self, request: Request, start: int, length: int) -> Payload:
        """`length` bytes (at least one) of the object from `start`; otherwise as read()."""


def split_uri(uri: str) -> Tuple[str, str, str]:
    """Scheme, bucket or host, and path. Taken literally, as by the sidecar: "%20", "?" and "#" are part of a name."""
    scheme, _, rest = uri.partition("://")
    place, slash, path = rest.partition("/")
    return scheme, place, slash + path


def open_origin(settings: DatasetSettings) -> Origin:
    """The reader for a dataset's URI.

    Raises:
        SettingsError: no URI, or an unsupported scheme.
    """
    from .chunks import ChunkOrigin
    from .directory import DirectoryOrigin
    from .s3 import S3Origin
    from .shards import ShardOrigin
    from .web import WebOrigin

    if settings.uri is None:
        raise SettingsError(f"dataset '{settings.describe()}' has no location: STOKER_DATASETS has no uri for it")
    scheme, place, path = split_uri(settings.uri)
    if scheme == "s3" and place:
        origin: SlicedOrigin = S3Origin(settings)
    elif scheme == "file" and place in ("", "localhost") and path:
        origin = DirectoryOrigin(path)
    elif scheme in ("http", "https"):
        origin = WebOrigin(settings)
    else:
        raise SettingsError(
            f"cannot read '{settings.uri}': it must be s3://bucket/prefix, https://host/folder or file:///folder")
    if settings.format == "chunks":
        return ChunkOrigin(origin)
    return ShardOrigin(origin, settings) if _core.has_shards(settings.format) else origin
