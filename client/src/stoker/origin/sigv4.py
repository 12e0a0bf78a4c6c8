"""AWS Signature Version 4 for GET requests without a body, and where credentials come from."""

from __future__ import annotations

import configparser
import dataclasses
import datetime
import hashlib
import hmac
import os
import threading
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree
from typing import Dict, Mapping, Optional, Sequence, Tuple

__all__ = ["Credentials", "CredentialChain", "sign_get"]

_EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
_REFRESH_BEFORE = datetime.timedelta(minutes=5)


@dataclasses.dataclass(frozen=True)
class Credentials:
    """What to sign with. `expires` is None for keys that do not."""

    access_key: str
    secret_key: str
    token: Optional[str] = None
    expires: Optional[datetime.datetime] = None


def sign_get(
    credentials: Credentials,
    region: str,
    host: str,
    path: str,
    query: Sequence[Tuple[str, str]],
    now: datetime.datetime,
) -> Dict[str, str]:
    """The headers that make a GET a signed one.

    Args:
        host: value of the Host header.
        path: already percent-encoded, as it goes over the wire.
        query: parameters before encoding.
        now: UTC.
    """
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": host, "x-amz-content-sha256": _EMPTY_SHA256, "x-amz-date": stamp}
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        [
            "GET",
            path,
            encode_query(sorted(query)),
            *(f"{name}:{headers[name]}" for name in sorted(headers)),
            "",
            names,
            _EMPTY_SHA256,
        ]
    )
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (stamp[:8], region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, digest])
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return headers


def encode_query(query: Sequence[Tuple[str, str]]) -> str:
    """Percent-encoded as SigV4 wants it (space is %20)."""
    return "&".join(f"{urllib.parse.quote(k, safe='-_.~')}={urllib.parse.quote(v, safe='-_.~')}" for k, v in query)


class CredentialChain:
    """The pod's own credentials: environment, projected web identity, shared file; None is anonymous. Thread-safe."""

    def __init__(self, env: Optional[Mapping[str, str]] = None) -> None:
        self._env = os.environ if env is None else env
        self._lock = threading.Lock()
        self._held: Optional[Credentials] = None
        self._known = False

    def get(self, now: datetime.datetime) -> Optional[Credentials]:
        """Credentials that are good for some minutes more.

        Raises:
            OSError: the token service cannot be reached or refuses.
        """
        with self._lock:
            expires = self._held.expires if self._held else None
            if not self._known or (expires is not None and now > expires - _REFRESH_BEFORE):
                self._held = self._from_environment() or self._from_web_identity() or self._from_file()
                self._known = True
            return self._held

    def _from_environment(self) -> Optional[Credentials]:
        access, secret = self._env.get("AWS_ACCESS_KEY_ID"), self._env.get("AWS_SECRET_ACCESS_KEY")
        if not access or not secret:
            return None
        return Credentials(access, secret, self._env.get("AWS_SESSION_TOKEN") or None)

    def _from_web_identity(self) -> Optional[Credentials]:
        role, file = self._env.get("AWS_ROLE_ARN"), self._env.get("AWS_WEB_IDENTITY_TOKEN_FILE")
        if not role or not file:
            return None
        with open(file, encoding="ascii") as token:
            query = {
                "Action": "AssumeRoleWithWebIdentity",
                "Version": "2011-06-15",
                "RoleArn": role,
                "RoleSessionName": self._env.get("AWS_ROLE_SESSION_NAME") or "stoker",
                "WebIdentityToken": token.read().strip(),
            }
        region = self._env.get("AWS_REGION") or self._env.get("AWS_DEFAULT_REGION") or "us-east-1"
        service = self._env.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.amazonaws.com"
        body = urllib.parse.urlencode(query).encode()
        with urllib.request.urlopen(service, data=body, timeout=20) as answer:
            return _parse_sts(answer.read())

    def _from_file(self) -> Optional[Credentials]:
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


def _parse_sts(body: bytes) -> Credentials:
    found = {element.tag.rsplit("}", 1)[-1]: element.text or "" for element in ElementTree.fromstring(body).iter()}
    expires = datetime.datetime.fromisoformat(found["Expiration"].replace("Z", "+00:00"))
    return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], expires)
