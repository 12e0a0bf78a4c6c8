"""What can go wrong, as users see it. The cache itself never raises: without it, samples come from the origin."""

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
    """Base of everything that this package raises by itself."""


class SettingsError(StokerError, ValueError):
    """A setting is missing or wrong; the message names it."""


class OriginError(StokerError):
    """The origin did not give what it has listed.

    Attributes:
        key: key of the object, relative to the dataset; None when the whole origin is meant.
    """

    def __init__(self, message: str, key: Optional[str] = None) -> None:
        super().__init__(message)
        self.key = key

    def __reduce__(self) -> Tuple[Any, ...]:  # so that it crosses from a DataLoader worker
        return type(self), (self.args[0], self.key)


class NotFoundError(OriginError):
    """Bucket, folder or object does not exist."""


class ForbiddenError(OriginError):
    """The origin refuses the credentials."""


class ChangedError(OriginError):
    """The object is not the one that was listed (other ETag or size)."""


class TooLargeError(OriginError):
    """The object is larger than the memory of this process; it was not read."""


class StokerWarning(UserWarning):
    """Training goes on, but not the way it was meant to: usually past the cache."""
