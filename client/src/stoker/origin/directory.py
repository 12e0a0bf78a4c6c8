"""A dataset in a folder: local disk, NFS, Lustre, a PVC."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO, Callable, List, Optional, Sequence, Tuple

from ..errors import ChangedError, ForbiddenError, NotFoundError, OriginError
from . import ListedObject, Payload, Request
from .large import PART_BYTES, parts, place_for
from .retry import Parallel

__all__ = ["DirectoryOrigin"]

THREADS = 8
PROGRESS_EVERY = 10_000


class DirectoryOrigin:
    """Reads the regular files below a folder; see `Origin`."""

    def __init__(self, root: str) -> None:
        self._root = os.fsencode(root).rstrip(b"/") or b"/"
        self._parallel = Parallel(THREADS)

    def describe(self) -> str:
        return f"file://{os.fsdecode(self._root)}"

    def has_key(self) -> bool:
        return True

    def list(self, progress: Optional[Callable[[int], None]] = None) -> List[ListedObject]:
        listing: List[ListedObject] = []
        real_root = os.path.realpath(self._root)

        def walk(folder: bytes, ancestors: Tuple[Tuple[int, int], ...]) -> None:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        self._check_link(entry.path, real_root)
                    status = entry.stat()
                    if stat.S_ISDIR(status.st_mode):
                        place = (status.st_dev, status.st_ino)
                        if place in ancestors:
                            raise OriginError(f"listing {self.describe()}: '{self._relative(entry.path)}' links in a circle")
                        walk(entry.path, (*ancestors, place))
                    elif stat.S_ISREG(status.st_mode):
                        listing.append((self._key(entry.path), status.st_size, etag_of(status)))
                        if progress is not None and len(listing) % PROGRESS_EVERY == 0:
                            progress(len(listing))

        try:
            root = os.stat(self._root)
            walk(self._root, ((root.st_dev, root.st_ino),))
        except OSError as error:
            raise _origin_error(error, f"listing {self.describe()}", None) from error
        return listing

    def read(self, request: Request) -> Payload:
        name = os.fsdecode(request.key)
        try:
            with open(os.path.join(self._root, request.key), "rb", buffering=0) as file:
                before = os.fstat(file.fileno())
                if request.size > PART_BYTES:
                    data = _read_in_parts(file, request.size, f"'{name}' below {self.describe()}", name)
                else:
                    data = _read_all(file, request.size)
                same = etag_of(before) == request.etag and etag_of(os.fstat(file.fileno())) == request.etag
        except OSError as error:
            raise _origin_error(error, f"reading '{name}' below {self.describe()}", name) from error
        if not same or len(data) != request.size:
            raise ChangedError(f"'{name}' below {self.describe()} changed since it was listed", name)
        return data

    def read_slice(self, request: Request, start: int, length: int) -> Payload:
        name = os.fsdecode(request.key)
        try:
            with open(os.path.join(self._root, request.key), "rb", buffering=0) as file:
                same = etag_of(os.fstat(file.fileno())) == request.etag
                data = os.pread(file.fileno(), length, start)
                while data and len(data) < length:
                    more = os.pread(file.fileno(), length - len(data), start + len(data))
                    data = data + more if more else b""
                same = same and etag_of(os.fstat(file.fileno())) == request.etag
        except OSError as error:
            raise _origin_error(error, f"reading '{name}' below {self.describe()}", name) from error
        if not same or len(data) != length:
            raise ChangedError(f"'{name}' below {self.describe()} changed since it was listed", name)
        return data

    def read_many(self, requests: Sequence[Request]) -> List[Payload]:
        return self._parallel.map(self.read, requests)

    def close(self) -> None:
        self._parallel.close()

    def _key(self, path: bytes) -> bytes:
        return path[len(self._root.rstrip(b"/")) + 1 :]

    def _relative(self, path: bytes) -> str:
        return os.fsdecode(self._key(path))

    def _check_link(self, path: bytes, real_root: bytes) -> None:
        """Allows links that stay inside the folder; rejects others, since skipping them would silently drop samples."""
        target = os.path.realpath(path)
        if not os.path.exists(target) or os.path.commonpath([target, real_root]) != real_root:
            raise OriginError(
                f"listing {self.describe()}: the link '{self._relative(path)}' leads out of it or nowhere",
                self._relative(path),
            )


def etag_of(status: os.stat_result) -> str:
    """A folder's substitute for an ETag, as the sidecar computes it: changes when the file is written or replaced."""
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"


def _read_all(file: BinaryIO, size: int) -> bytes:
    # Reads one byte more than listed, to detect a longer file.
    parts = []
    left = size + 1
    while left > 0:
        part = file.read(left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _read_in_parts(file: BinaryIO, size: int, what: str, key: str) -> Payload:
    """Reads the file in parts; the result is shorter or longer than `size` when the file is."""
    place = place_for(size, what, key)
    for start, end in parts(size):
        while start < end:
            part = file.read(end - start)
            if not part:
                return place[:start]
            place[start : start + len(part)] = part
            start += len(part)
    return place if not file.read(1) else b""


def _origin_error(error: OSError, doing: str, key: Optional[str]) -> OriginError:
    kinds = {FileNotFoundError: NotFoundError, NotADirectoryError: NotFoundError, PermissionError: ForbiddenError}
    return kinds.get(type(error), OriginError)(f"{doing}: {error.strerror or error}", key)
