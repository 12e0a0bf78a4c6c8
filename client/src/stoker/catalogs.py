"""Builds a catalog (which samples exist) without a sidecar: from a node directory, or by listing the origin."""

from __future__ import annotations

import json
import logging
import os
import time
from typing import Callable, Optional

from . import _core
from .errors import OriginError
from .origin import Origin

__all__ = ["current_revision", "list_origin"]

log = logging.getLogger("stoker")


def current_revision(directory: Optional[str]) -> Optional[int]:
    """A node directory's current revision, from current.json or else the newest manifest; None: neither is readable."""
    if directory is None:
        return None
    try:
        with open(os.path.join(directory, "current.json"), encoding="utf-8") as file:
            return int(json.load(file)["revision"], 16)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    try:
        entries = [entry for entry in os.scandir(directory) if entry.name.startswith("manifest.")]
        names = [entry.name for entry in sorted(entries, key=lambda entry: entry.stat().st_mtime_ns)]
        return int(names[-1].split(".")[1], 16) if names else None
    except (OSError, ValueError):
        return None


def list_origin(origin: Origin) -> "_core.Catalog":
    """Lists the origin and numbers its objects exactly as the sidecar does.

    Raises:
        OriginError: listing fails, or the listing is not a dataset.
    """
    log.info("stoker: listing %s", origin.describe())
    try:
        return _core.Catalog.build(origin.list(_log_each_second()))
    except _core.CoreError as error:
        raise OriginError(f"{origin.describe()}: {error.args[-1]}") from None


def _log_each_second() -> Callable[[int], None]:
    last = time.monotonic()

    def progress(count: int) -> None:
        nonlocal last
        if time.monotonic() - last >= 1.0:
            last = time.monotonic()
            log.info("stoker: %d objects listed", count)

    return progress
