"""A dataset in an S3 bucket: ListObjectsV2 and signed GETs with If-Match."""

from __future__ import annotations

import contextlib
import datetime
import re
import urllib.parse
import xml.etree.ElementTree as ElementTree
from email.message import Message
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from ..errors import ChangedError, OriginError
from ..settings import DatasetSettings
from . import ListedObject, Request, split_uri
from .connect import Connector
from .credentials import CredentialChain
from .remote import Answer, RemoteOrigin
from .retry import with_retries
from .sigv4 import sign_get

__all__ = ["S3Origin"]


class S3Origin(RemoteOrigin):
    """Reads the objects below one prefix of one bucket; see `Origin`."""

    def __init__(self, settings: DatasetSettings) -> None:
        _, self._bucket, path = split_uri(settings.uri or "")
        prefix = path[1:]
        self._prefix = prefix if not prefix or prefix.endswith("/") else prefix + "/"
        self._region = settings.region
        china = ".cn" if settings.region.startswith("cn-") else ""
        endpoint = settings.endpoint or f"https://s3.{settings.region}.amazonaws.com{china}"
        self._host, self._base = _place(urllib.parse.urlsplit(endpoint), self._bucket, settings.path_style)
        scheme = urllib.parse.urlsplit(endpoint).scheme
        super().__init__(f"{settings.uri} at {endpoint}", Connector(scheme, self._host, settings.ca_file))
        self._credentials = CredentialChain(
            file=settings.credentials_file, region=settings.region, ca_file=settings.ca_file
        )

    def has_key(self) -> bool:
        return self._credentials.has_any()

    def list(self, progress: Optional[Callable[[int], None]] = None) -> List[ListedObject]:
        listing: List[ListedObject] = []
        token: Optional[str] = None
        while True:
            page, token = self._list_page(token)
            listing.extend(page)
            if progress is not None:
                progress(len(listing))
            if token is None:
                return listing

    def _path_of(self, key: bytes) -> str:
        return f"{self._base}/" + urllib.parse.quote(self._prefix.encode() + key, safe="/-_.~")

    def _headers(self, path: str, query: Sequence[Tuple[str, str]]) -> Dict[str, str]:
        now = datetime.datetime.now(datetime.timezone.utc)
        credentials = self._credentials.get(now)
        if credentials is None:
            return {"host": self._host}
        return sign_get(credentials, self._region, self._host, path, query, now)

    def _condition(self, version: str) -> Dict[str, str]:
        return {"if-match": f'"{version}"'}

    def _check_version(self, request: Request, answer: Answer, key: str) -> None:
        told = re.sub('^(W/)?"(.*)"$', r"\2", answer.headers.get("ETag", request.etag))
        if told != request.etag:  # catches servers that ignore If-Match
            raise ChangedError(f"'{key}' of {self._name} has ETag {told}, it was listed with {request.etag}", key)

    def _is_md5(self, etag: str, headers: Message) -> bool:
        """Whether the ETag is the MD5 of the object's bytes: it has MD5's form, and the object is not encrypted with a KMS
        or customer key (its ETag is then not an MD5)."""
        return (
            re.fullmatch("[0-9a-f]{32}", etag) is not None
            and headers.get("x-amz-server-side-encryption", "AES256") == "AES256"
            and headers.get("x-amz-server-side-encryption-customer-algorithm") is None
        )

    def _explain(self, answer: Answer) -> str:
        words: Dict[str, str] = {}
        with contextlib.suppress(ElementTree.ParseError):
            words = {e.tag.rsplit("}", 1)[-1]: (e.text or "").strip() for e in ElementTree.fromstring(answer.body)}
        return ": ".join(filter(None, (words.get("Code"), words.get("Message"))))

    def _list_page(self, token: Optional[str]) -> Tuple[List[ListedObject], Optional[str]]:
        query = [("encoding-type", "url"), ("list-type", "2"), ("prefix", self._prefix)]
        if token is not None:
            query.append(("continuation-token", token))
        answer = with_retries(
            lambda: self._get(self._base or "/", query, {}, "the listing", None),
            lambda why: OriginError(f"listing {self._name}: {why}"),
        )
        try:
            return self._parse_page(ElementTree.fromstring(answer.body))
        except (ElementTree.ParseError, ValueError) as error:
            raise OriginError(f"listing {self._name}: the answer is not a listing ({error})") from error

    def _parse_page(self, root: ElementTree.Element) -> Tuple[List[ListedObject], Optional[str]]:
        space = root.tag[: root.tag.index("}") + 1] if "}" in root.tag else ""
        encoded = root.findtext(f"{space}EncodingType") == "url"
        listing: List[ListedObject] = []
        for item in root.iter(f"{space}Contents"):
            text = item.findtext(f"{space}Key") or ""
            key = urllib.parse.unquote_to_bytes(text.replace("+", " ")) if encoded else text.encode()
            relative = key[len(self._prefix.encode()) :]
            if relative and not relative.endswith(b"/"):
                etag = (item.findtext(f"{space}ETag") or "").strip('"')
                listing.append((relative, int(item.findtext(f"{space}Size") or 0), etag))
        more = root.findtext(f"{space}IsTruncated") == "true"
        return listing, root.findtext(f"{space}NextContinuationToken") if more else None


def _place(endpoint: urllib.parse.SplitResult, bucket: str, path_style: Optional[bool]) -> Tuple[str, str]:
    """Host, and the prefix of object paths. By default AWS endpoints get the bucket in the host name, unless its name
    has a dot (their certificates do not cover it); other endpoints get it in the path."""
    if path_style is None:
        is_amazon = (endpoint.hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn"))
        path_style = not is_amazon or "." in bucket
    base = endpoint.path.rstrip("/")
    if path_style:
        return endpoint.netloc, f"{base}/{bucket}"
    return f"{bucket}.{endpoint.netloc}", base
