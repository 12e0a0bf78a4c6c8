"""WebDataset: shards are read through Stoker. Importing this module teaches WebDataset to open `stoker://NAME/key`.

    import stoker.wds
    dataset = webdataset.WebDataset(stoker.wds.shards("train"), shardshuffle=100).shuffle(1000).decode("rgb")

With format Tar the samples of a shard come sorted by key, not in the archive's order; with Objects in the archive's.

Needs webdataset and fsspec. A spawned worker imports this module with the script's main module.
"""

from __future__ import annotations

import io
from typing import Any, BinaryIO, Iterator, List

from webdataset.gopen import gopen_schemes

from .errors import SettingsError
from .filesystem import StokerFileSystem
from .samples import Samples
from .tar import TarSamples

__all__ = ["shards"]

_ENDINGS = (".tar", ".tar.gz", ".tgz")  # WebDataset unpacks them
_AT_ONCE = 64  # samples of a shard per request
_BLOCK_BYTES = 512  # of a tar archive

_files = StokerFileSystem()


def shards(dataset: str) -> List[str]:
    """The URLs of a dataset's tar shards, sorted, for WebDataset. `dataset`: a name ("train"), or a folder in it
    ("train/en"). The dataset has format Tar, whose samples are cached one by one, or Objects, whose shards are whole.

    Raises:
        FileNotFoundError: there is no such dataset or folder.
        SettingsError: it has no shard.
    """
    found = [f"stoker://{name}" for name in _shards_below(dataset)]
    if not found:
        raise SettingsError(f"dataset '{dataset}' has no tar shards: no key ends in {', '.join(_ENDINGS)}")
    return found


def _shards_below(folder: str) -> Iterator[str]:
    for entry in _files.ls(folder):
        is_file, name = entry["type"] == "file", entry["name"]
        if name.endswith(_ENDINGS) and (is_file or _is_unpacked(name)):
            yield name
        elif not is_file:
            yield from _shards_below(name)


def _is_unpacked(path: str) -> bool:
    """Whether the dataset has format Tar, in which a shard is a folder of its samples."""
    return isinstance(_files.samples(path.partition("/")[0]), TarSamples)


def _open(url: str, mode: str = "rb", bufsize: int = -1, **_: Any) -> BinaryIO:
    """Called by WebDataset for URLs with `stoker:`."""
    if mode != "rb" or _files.isfile(url):
        file: BinaryIO = _files.open(url, mode)
        return file
    name = _files.info(url)["name"]
    if not _is_unpacked(name):
        raise IsADirectoryError(url)
    ids = [entry["id"] for entry in _files.files_below(name)]
    return io.BufferedReader(_Shard(_files.samples(name.partition("/")[0]), ids))


class _Shard(io.RawIOBase):
    """Samples of format Tar as one tar archive. Reads copy from their mapped bytes."""

    def __init__(self, samples: Samples, ids: List[int]) -> None:
        super().__init__()
        self._parts = _archive(samples, ids)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._rest = part
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def _archive(samples: Samples, ids: List[int]) -> Iterator[memoryview]:
    for begin in range(0, len(ids), _AT_ONCE):
        for sample in samples.fetch_raw(ids[begin : begin + _AT_ONCE]):
            yield sample.view
            yield memoryview(bytes(-len(sample) % _BLOCK_BYTES))
        samples.flush()
    yield memoryview(bytes(2 * _BLOCK_BYTES))  # end of the archive


gopen_schemes["stoker"] = _open
