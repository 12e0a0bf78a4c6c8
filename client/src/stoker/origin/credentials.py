"""The pod's S3 credentials, looked up in the order that docs/design/origin.md gives."""

from __future__ import annotations

import configparser
import datetime
import json
import os
import threading
import urllib.parse
import xml.etree.ElementTree as ElementTree
from typing import Any, Dict, Mapping, Optional, Tuple

from ..errors import ForbiddenError
from .connect import post
from .sigv4 import Credentials

__all__ = ["CredentialChain"]

_REFRESH_BEFORE = datetime.timedelta(minutes=5)
_FILE_BYTES_MAX = 64 << 10  # limit for token files, key files and token service answers


class CredentialChain:
    """Looks up credentials: a file that another program refreshes, the environment, the projected web identity, the
    shared file; None: anonymous. Never asks a metadata service. Thread-safe.

    Args:
        file: JSON as an AWS `credential_process` prints it, read again when it changes.
        region: for the token service, when the environment names none.
        ca_file: CA certificates for the token service.
    """

    def __init__(
        self,
        env: Optional[Mapping[str, str]] = None,
        file: Optional[str] = None,
        region: str = "us-east-1",
        ca_file: Optional[str] = None,
    ) -> None:
        self._env = os.environ if env is None else env
        self._file, self._region, self._ca_file = file, region, ca_file
        self._lock = threading.Lock()
        self._held: Optional[Credentials] = None
        self._known = False
        self._version: Any = None  # of the refreshed file

    def get(self, now: datetime.datetime) -> Optional[Credentials]:
        """Valid credentials, renewed some minutes before they expire.

        Raises:
            OSError: the token service is unreachable or fails temporarily.
            ForbiddenError: the token service rejects the request, or a file has no valid credentials.
        """
        with self._lock:
            expires = self._held.expires if self._held else None
            is_due = not self._known or (expires is not None and now > expires - _REFRESH_BEFORE)
            if is_due or self._is_file_changed():
                try:
                    self._held, self._known = self._find(now), True
                except OSError:
                    if expires is None or now >= expires:
                        raise
                except ForbiddenError:
                    self._held, self._known = None, False
                    raise
            return self._held

    def has_any(self) -> bool:
        """Whether get() would find credentials; False: requests are anonymous or fail."""
        if self._file:
            return _version(self._file) is not None
        web_identity = self._env.get("AWS_ROLE_ARN") and self._env.get("AWS_WEB_IDENTITY_TOKEN_FILE")
        return bool(self._from_environment() or web_identity or self._from_shared_file())

    def _find(self, now: datetime.datetime) -> Optional[Credentials]:
        if self._file:
            return self._from_kept_file(self._file, now)
        return self._from_environment() or self._from_web_identity() or self._from_shared_file()

    def _is_file_changed(self) -> bool:
        return bool(self._file and _version(self._file) != self._version)

    def _from_kept_file(self, path: str, now: datetime.datetime) -> Credentials:
        self._version = _version(path)
        try:
            found = json.loads(_read_small(path))
            expires = found.get("Expiration")
            keys = Credentials(
                found["AccessKeyId"],
                found["SecretAccessKey"],
                found.get("SessionToken"),
                _time(expires) if expires else None,
            )
        except OSError as error:
            raise ForbiddenError(f"credentials: {path}: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ForbiddenError(f"credentials: {path} does not hold AccessKeyId and SecretAccessKey") from None
        if keys.expires is not None and now >= keys.expires:
            raise ForbiddenError(f"credentials: {path} has expired and was not renewed")
        return keys

    def _from_environment(self) -> Optional[Credentials]:
        access, secret = self._env.get("AWS_ACCESS_KEY_ID"), self._env.get("AWS_SECRET_ACCESS_KEY")
        if not access or not secret:
            return None
        return Credentials(access, secret, self._env.get("AWS_SESSION_TOKEN") or None)

    def _from_web_identity(self) -> Optional[Credentials]:
        role, file = self._env.get("AWS_ROLE_ARN"), self._env.get("AWS_WEB_IDENTITY_TOKEN_FILE")
        if not role or not file:
            return None
        query = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": role,
            "RoleSessionName": self._env.get("AWS_ROLE_SESSION_NAME") or "stoker",
            "WebIdentityToken": _read_small(file).strip(),
        }
        service = self._token_service()
        body = urllib.parse.urlencode(query).encode()
        status, answer = post(service, body, self._ca_file, self._env, _FILE_BYTES_MAX)
        fields = _fields(answer)
        if status != 200:
            words = f"credentials: {service} for role {role}: {status} {fields.get('Code')}: {fields.get('Message')}"
            may_pass = status in (408, 429) or status >= 500 or fields.get("Code") == "IDPCommunicationError"
            raise OSError(words) if may_pass else ForbiddenError(words)
        try:
            expires = _time(fields["Expiration"])
            return Credentials(fields["AccessKeyId"], fields["SecretAccessKey"], fields["SessionToken"], expires)
        except (KeyError, ValueError):
            raise OSError(f"credentials: the answer of {service} has no credentials") from None

    def _token_service(self) -> str:
        told = self._env.get("AWS_ENDPOINT_URL_STS")
        if told:
            return told
        if self._env.get("AWS_STS_REGIONAL_ENDPOINTS") == "legacy":
            return "https://sts.amazonaws.com/"
        region = self._env.get("AWS_REGION") or self._env.get("AWS_DEFAULT_REGION") or self._region
        return f"https://sts.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}/"

    def _from_shared_file(self) -> Optional[Credentials]:
        path = self._env.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.expanduser("~/.aws/credentials")
        parser = configparser.RawConfigParser()
        try:
            if not parser.read(path, encoding="utf-8"):
                return None
        except configparser.Error as error:
            raise OSError(f"{path}: {error}") from error
        profile = self._env.get("AWS_PROFILE") or "default"
        if not parser.has_option(profile, "aws_access_key_id"):
            return None
        return Credentials(
            parser.get(profile, "aws_access_key_id"),
            parser.get(profile, "aws_secret_access_key", fallback=""),
            parser.get(profile, "aws_session_token", fallback=None),
        )


def _version(path: str) -> Optional[Tuple[int, int, int]]:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _read_small(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        text = file.read(_FILE_BYTES_MAX + 1)
    if len(text) > _FILE_BYTES_MAX:
        raise OSError(f"{path} is larger than {_FILE_BYTES_MAX} bytes")
    return text


def _time(text: str) -> datetime.datetime:
    parsed = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if parsed.tzinfo is None:
        raise ValueError("a time without a zone")
    return parsed


def _fields(body: bytes) -> Dict[str, str]:
    try:
        elements = ElementTree.fromstring(body).iter()
        return {element.tag.rsplit("}", 1)[-1]: element.text or "" for element in elements}
    except ElementTree.ParseError:
        return {}
