"""AWS Signature Version 4 for GET requests without a body."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import hmac
import urllib.parse
from typing import Dict, Optional, Sequence, Tuple

__all__ = ["Credentials", "encode_query", "sign_get"]

_EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclasses.dataclass(frozen=True)
class Credentials:
    """Signing keys. `expires` is None for permanent ones."""

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
    """Headers that sign a GET.

    Args:
        host: value of the Host header.
        path: percent-encoded, as sent.
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
    """The query, percent-encoded as SigV4 requires (a space becomes %20)."""
    return "&".join(f"{urllib.parse.quote(k, safe='-_.~')}={urllib.parse.quote(v, safe='-_.~')}" for k, v in query)
