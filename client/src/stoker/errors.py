"""Errors that users may see. The cache itself never raises: without it, samples come from the origin."""

from __future__ import annotations

from typing import Any, Optional, Tuple

__all__ = [
    "ChangedError",
    "ForbiddenError",
    "NotFoundError",
    "OriginError",
    "SettingsError",
    "StokerError",
    "StokerWarning",
    "TooLargeError",
]


class StokerError(Exception):
    """Base class of all errors that this package raises."""


class SettingsError(StokerError, ValueError):
    """A setting is missing or wrong; the message names it."""


class OriginError(StokerError):
    """The origin does not deliver an object that it listed.

    Attributes:
        key: of the object, relative to the dataset; None: the error concerns the whole origin.
    """

    def __init__(self, message: str, key: Optional[str] = None) -> None:
        super().__init__(message)
        self.key = key

    def __reduce__(self) -> Tuple[Any, ...]:  # DataLoader workers pickle errors
        return type(self), (self.args[0], self.key)


class NotFoundError(OriginError):
    """The bucket, folder or object does not exist."""


class ForbiddenError(OriginError):
    """The origin rejects the credentials."""


class ChangedError(OriginError):
    """The object changed since it was listed (other ETag or size)."""


class TooLargeError(OriginError):
    """The object does not fit into this process's memory; it was not read."""


class StokerWarning(UserWarning):
    """Training continues in a degraded mode, usually without the cache."""
