"""fsspec file system `stoker://NAME/key`, read-only: pyarrow, pandas and others read a dataset's samples as files.

    pandas.read_parquet("stoker://train/part-0.parquet")
    pyarrow.dataset.dataset("train/", filesystem=fsspec.filesystem("stoker"))
"""

from __future__ import annotations

import io
import threading
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from fsspec.spec import AbstractFileSystem

from . import samples as _samples
from ._core import Sample
from .samples import Samples
from .settings import dataset_names

__all__ = ["StokerFileSystem"]

_AFTER_SLASH = "0"  # the character after "/"


class StokerFileSystem(AbstractFileSystem):
    """Files of datasets: `NAME/key`, where NAME is a name under the job's `spec.datasets`. Read-only.

    Each dataset is opened at its first use, with `options` as in stoker.open(). Reading a part of a file fetches the
    whole sample. Survives fork and pickling. Any thread may call.
    """

    protocol = "stoker"
    root_marker = ""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        names = (
            "endpoint", "region", "path_style", "directory", "format", "record_bytes", "record_suffix", "socket", "verify",
        )
        self._options = {key: value for key, value in options.items() if key in names}
        self._open_datasets: Dict[str, Samples] = {}
        self._opening = threading.Lock()

    # --- the manifest as folders ---------------------------------------------------------------------------------

    def ls(self, path: str, detail: bool = True, **_: Any) -> List[Any]:
        """The files and folders in a folder; a file's own entry for a file. Without a name: the datasets."""
        path = self._strip_protocol(path)
        if not path:
            entries = [_folder(name) for name in dataset_names()]
        else:
            entry = self.info(path)
            entries = [entry] if entry["type"] == "file" else list(self._children(path))
        return entries if detail else [entry["name"] for entry in entries]

    def info(self, path: str, **__: Any) -> Dict[str, Any]:
        """Name, size, type, and for a file its ETag and sample id."""
        path = self._strip_protocol(path)
        name, _, key = path.partition("/")
        if not name:
            return _folder("")
        if name not in self._open_datasets and name not in dataset_names():
            raise FileNotFoundError(path)
        samples = self.samples(name)
        if not key:
            return _folder(name)
        id = _place(samples, key)
        if id < len(samples) and _key(samples, id) == key:
            return _file(name, samples, id)
        id = _place(samples, key + "/")
        if id < len(samples) and _key(samples, id).startswith(key + "/"):
            return _folder(path)
        raise FileNotFoundError(path)

    def files_below(self, path: str) -> Iterator[Dict[str, Any]]:
        """The entries of all files in a folder and its folders, in bytewise order of their keys."""
        name, _, folder = self._strip_protocol(path).partition("/")
        samples, prefix = self.samples(name), folder and folder + "/"
        for id in range(_place(samples, prefix), len(samples)):
            if not _key(samples, id).startswith(prefix):
                return
            yield _file(name, samples, id)

    def _children(self, path: str) -> Iterator[Dict[str, Any]]:
        name, _, folder = path.partition("/")
        samples, prefix = self.samples(name), folder and folder + "/"
        id = _place(samples, prefix)
        while id < len(samples):
            key = _key(samples, id)
            if not key.startswith(prefix):
                return
            child, is_below, _ = key[len(prefix) :].partition("/")
            if is_below:
                yield _folder(f"{name}/{prefix}{child}")
                id = _place(samples, prefix + child + _AFTER_SLASH)
            else:
                yield _file(name, samples, id)
                id += 1

    # --- bytes ---------------------------------------------------------------------------------------------------

    def cat_file(self, path: str, start: Optional[int] = None, end: Optional[int] = None, **_: Any) -> bytes:
        """The bytes start..end of a file; negative numbers count from its end."""
        return bytes(self.fetch([path])[0].view[start:end])

    def cat_ranges(
        self,
        paths: Sequence[str],
        starts: Any,
        ends: Any,
        max_gap: Optional[int] = None,
        on_error: str = "return",
        **_: Any,
    ) -> List[Any]:
        """A part of each file; one request per dataset for all of them."""
        starts = list(starts) if isinstance(starts, (list, tuple)) else [starts] * len(paths)
        ends = list(ends) if isinstance(ends, (list, tuple)) else [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            raise ValueError("paths, starts and ends must have the same length")
        try:
            fetched = self.fetch(paths)
        except Exception:
            return list(super().cat_ranges(paths, starts, ends, max_gap, on_error=on_error))
        return [bytes(sample.view[start:end]) for sample, start, end in zip(fetched, starts, ends)]

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if mode != "rb":
            raise OSError("stoker:// is read-only")
        return io.BufferedReader(_SampleFile(self.fetch([path])[0]))

    def fetch(self, paths: Sequence[str]) -> List[Sample]:
        """The samples of the paths, in their order, with one request per dataset."""
        wanted: Dict[str, List[Tuple[int, int]]] = {}
        for at, path in enumerate(paths):
            entry = self.info(path)
            if entry["type"] != "file":
                raise IsADirectoryError(path)
            wanted.setdefault(entry["name"].partition("/")[0], []).append((at, entry["id"]))
        out: List[Any] = [None] * len(paths)
        for name, places in wanted.items():
            samples = self.samples(name)
            for (at, _), sample in zip(places, samples.fetch_raw([id for _, id in places])):
                out[at] = sample
            samples.flush()
        return out

    def samples(self, name: str) -> Samples:
        """The dataset's Samples, opened at the first use."""
        with self._opening:
            if name not in self._open_datasets:
                self._open_datasets[name] = _samples.open(name, **self._options)
            return self._open_datasets[name]


class _SampleFile(io.RawIOBase):
    """A sample as a file; reads copy from its mapped bytes."""

    def __init__(self, sample: Sample) -> None:
        super().__init__()
        self._view, self._at = sample.view, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._view)}[whence]
        if base + offset < 0:
            raise ValueError("negative position")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        part = self._view[self._at : self._at + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


def _key(samples: Samples, id: int) -> str:
    return samples.sources.catalog.describe(id)[0].decode("utf-8", "surrogateescape")


def _place(samples: Samples, key: str) -> int:
    """The first id whose key is not below `key`, bytewise."""
    wanted, low, high = key.encode("utf-8", "surrogateescape"), 0, len(samples)
    while low < high:
        middle = (low + high) // 2
        if samples.sources.catalog.describe(middle)[0] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def _folder(name: str) -> Dict[str, Any]:
    return {"name": name, "size": 0, "type": "directory"}


def _file(name: str, samples: Samples, id: int) -> Dict[str, Any]:
    key, size, etag, _ = samples.sources.catalog.describe(id)
    return {
        "name": f"{name}/{key.decode('utf-8', 'surrogateescape')}",
        "size": size,
        "type": "file",
        "ETag": etag,
        "id": id,
    }
