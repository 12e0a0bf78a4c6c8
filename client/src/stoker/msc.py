"""NVIDIA's multi-storage-client (MSC): `msc://PROFILE/key` reads a dataset's samples through Stoker. Read-only.

    profiles:                 # in the file that MSC_CONFIG names
      train:
        provider_bundle: {type: stoker.msc.StokerProviderBundle, options: {base_path: train}}

Needs multi-storage-client and fsspec. MSC has no hook for storage providers, only for bundles that name one of
its own. So this module adds its class to MSC's table of providers.
"""

from __future__ import annotations

import io
import os
import tempfile
from typing import Any, Dict, Iterator, NoReturn, Optional

from multistorageclient import config, providers
from multistorageclient.providers.base import BaseStorageProvider
from multistorageclient.types import AWARE_DATETIME_MIN, ObjectMetadata, StorageProviderConfig

from .filesystem import StokerFileSystem

__all__ = ["StokerProviderBundle", "StokerStorageProvider"]

_NAME = "stoker"


class StokerProviderBundle(config.SimpleProviderBundle):
    """What a profile of MSC names as its `provider_bundle`. `options`: those of StokerStorageProvider."""

    def __init__(self, **options: Any) -> None:
        super().__init__(StorageProviderConfig(_NAME, options))


class StokerStorageProvider(BaseStorageProvider):
    """Reads `stoker://` for MSC. Any thread may call.

    Args:
        base_path: the dataset's name ("train"), or a folder in it ("train/en").
        config_dict, telemetry_provider: set by MSC.
        options: those of stoker.open().

    Reading a range reads the whole sample. A sample has no time of modification. Everything that writes raises OSError.
    """

    def __init__(self, base_path: str, config_dict: Any = None, telemetry_provider: Any = None, **options: Any) -> None:
        super().__init__(base_path, _NAME, config_dict, telemetry_provider)
        self._files = StokerFileSystem(**options)

    def _get_object(self, path: str, byte_range: Any = None) -> bytes:
        if byte_range is None:
            return self._files.cat_file(path)
        return self._files.cat_file(path, byte_range.offset, byte_range.offset + byte_range.size)

    def _get_object_metadata(self, path: str, strict: bool = True) -> ObjectMetadata:
        entry = self._files.info(path)
        if entry["type"] == "directory":
            if not (strict or path.endswith("/")):
                raise FileNotFoundError(path)
            return _metadata({**entry, "name": entry["name"] + "/"})
        return _metadata(entry)

    def _list_objects(
        self,
        path: str,
        start_after: Optional[str] = None,
        end_at: Optional[str] = None,
        include_directories: bool = False,
        symlink_handling: Any = None,
    ) -> Iterator[ObjectMetadata]:
        try:
            is_file = self._files.info(path)["type"] == "file"
        except FileNotFoundError:
            return
        entries = self._files.ls(path) if is_file or include_directories else self._files.files_below(path)
        for entry in entries:
            name = entry["name"]
            if (start_after is None or name > start_after) and (end_at is None or name <= end_at):
                yield _metadata(entry)

    def _download_file(self, remote_path: str, f: Any, metadata: Any = None) -> int:
        view = self._files.fetch([remote_path])[0].view
        if isinstance(f, io.TextIOBase):
            f.write(bytes(view).decode())
        elif not isinstance(f, str):
            f.write(view)
        else:
            folder = os.path.dirname(os.path.abspath(f))
            os.makedirs(folder, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as part:
                part.write(view)
            os.replace(part.name, f)
        return len(view)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise OSError(f"{self._base_path}: datasets are read-only through Stoker; write through a profile of the origin")

    _put_object = _copy_object = _delete_object = _make_symlink = _upload_file = _refuse


def _metadata(entry: Dict[str, Any]) -> ObjectMetadata:
    return ObjectMetadata(
        key=entry["name"],
        content_length=entry["size"],
        last_modified=AWARE_DATETIME_MIN,
        type=entry["type"],
        etag=entry.get("ETag"),
    )


config.STORAGE_PROVIDER_MAPPING[_NAME] = StokerStorageProvider.__name__
providers.StokerStorageProvider = StokerStorageProvider
