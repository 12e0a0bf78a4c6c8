"""A dataset in an S3 bucket: ListObjectsV2 and GET with If-Match, by http.client."""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import http.client
import os
import re
import ssl
import threading
import urllib.parse
import xml.etree.ElementTree as ElementTree
from email.message import Message
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from ..errors import ChangedError, ForbiddenError, NotFoundError, OriginError
from ..settings import DatasetSettings
from . import ListedObject, Payload, Request, split_uri
from .connect import Connector
from .credentials import CredentialChain
from .large import PART_BYTES, parts, place_for
from .retry import Again, Parallel, with_retries
from .sigv4 import encode_query, sign_get

__all__ = ["S3Origin"]

THREADS = 16
_AGAIN = {408, 429, 500, 502, 503, 504}
_BROKEN = (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError, OSError)


class Answer:
    """One response with its whole body."""

    def __init__(self, response: http.client.HTTPResponse, body: bytes) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = body

    def reason(self) -> str:
        """Status and the server's explanation: `403 AccessDenied: no such key id`."""
        words: Dict[str, str] = {}
        with contextlib.suppress(ElementTree.ParseError):
            words = {e.tag.rsplit("}", 1)[-1]: (e.text or "").strip() for e in ElementTree.fromstring(self.body)}
        said = ": ".join(filter(None, (words.get("Code"), words.get("Message"))))
        return f"{self.status} {said or http.client.responses.get(self.status, '')}".strip()


class S3Origin:
    """Reads the objects below one prefix of one bucket; see `Origin`."""

    def __init__(self, settings: DatasetSettings) -> None:
        _, self._bucket, path = split_uri(settings.uri or "")
        prefix = path[1:]
        self._prefix = prefix if not prefix or prefix.endswith("/") else prefix + "/"
        self._region = settings.region
        china = ".cn" if settings.region.startswith("cn-") else ""
        endpoint = settings.endpoint or f"https://s3.{settings.region}.amazonaws.com{china}"
        self._name = f"{settings.uri} at {endpoint}"
        self._host, self._base = _place(urllib.parse.urlsplit(endpoint), self._bucket, settings.path_style)
        scheme = urllib.parse.urlsplit(endpoint).scheme
        self._connector = Connector(scheme, self._host, settings.ca_file)
        self._credentials = CredentialChain(
            file=settings.credentials_file, region=settings.region, ca_file=settings.ca_file
        )
        self._parallel = Parallel(THREADS)
        self._local = threading.local()

    def describe(self) -> str:
        return self._name

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

    def read(self, request: Request) -> Payload:
        key = request.key.decode("utf-8", "surrogateescape")
        path = "/" + urllib.parse.quote(self._prefix.encode() + request.key, safe="/-_.~")
        if request.size > PART_BYTES:
            return self._read_in_parts(request, path, key)

        def attempt() -> bytes:
            answer = self._get_object(request, path, {}, key)
            if len(answer.body) != request.size:
                raise ChangedError(
                    f"'{key}' of {self._name} has {len(answer.body)} bytes, it was listed with {request.size}", key
                )
            if _is_md5(request.etag, answer.headers) and _md5(answer.body) != request.etag:
                raise Again(f"the bytes do not match their ETag {request.etag}")
            return answer.body

        return with_retries(attempt, lambda why: OriginError(f"GET '{key}' of {self._name}: {why}", key))

    def read_slice(self, request: Request, start: int, length: int) -> Payload:
        key = request.key.decode("utf-8", "surrogateescape")
        path = "/" + urllib.parse.quote(self._prefix.encode() + request.key, safe="/-_.~")
        return with_retries(
            lambda: self._read_part(request, path, key, start, start + length),
            lambda why: OriginError(f"GET '{key}' of {self._name}: {why}", key),
        ).body

    def read_many(self, requests: Sequence[Request]) -> List[Payload]:
        return self._parallel.map(self.read, requests)

    def _read_in_parts(self, request: Request, path: str, key: str) -> memoryview:
        """Reads in parts, so that a broken connection costs one part and not gigabytes."""
        place = place_for(request.size, f"'{key}' of {self._name}", key)
        is_md5 = True
        for start, end in parts(request.size):
            answer = with_retries(
                functools.partial(self._read_part, request, path, key, start, end),
                lambda why: OriginError(f"GET '{key}' of {self._name}: {why}", key),
            )
            place[start:end] = answer.body
            is_md5 = is_md5 and _is_md5(request.etag, answer.headers)
        if is_md5 and _md5(place) != request.etag:
            raise OriginError(f"the bytes of '{key}' of {self._name} do not match their ETag {request.etag}", key)
        return place

    def _read_part(self, request: Request, path: str, key: str, start: int, end: int) -> Answer:
        answer = self._get_object(request, path, {"range": f"bytes={start}-{end - 1}"}, key)
        told = answer.headers.get("Content-Range", "")
        if not told.endswith(f"/{request.size}"):
            raise ChangedError(
                f"'{key}' of {self._name} was listed with {request.size} bytes, its Content-Range is '{told}' now", key)
        if told != f"bytes {start}-{end - 1}/{request.size}" or len(answer.body) != end - start:
            raise Again(f"asked for bytes {start}-{end - 1}, got {len(answer.body)} with Content-Range '{told}'")
        return answer

    def _get_object(self, request: Request, path: str, headers: Dict[str, str], key: str) -> Answer:
        answer = self._get(path, [], {"if-match": f'"{request.etag}"', **headers}, f"'{key}'", key)
        told = re.sub('^(W/)?"(.*)"$', r"\2", answer.headers.get("ETag", request.etag))
        if told != request.etag:  # catches servers that ignore If-Match
            raise ChangedError(f"'{key}' of {self._name} has ETag {told}, it was listed with {request.etag}", key)
        return answer

    def close(self) -> None:
        self._parallel.close()

    def _list_page(self, token: Optional[str]) -> Tuple[List[ListedObject], Optional[str]]:
        query = [("encoding-type", "url"), ("list-type", "2"), ("prefix", self._prefix)]
        if token is not None:
            query.append(("continuation-token", token))
        answer = with_retries(
            lambda: self._get("", query, {}, "the listing", None),
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

    def _get(
        self, path: str, query: List[Tuple[str, str]], headers: Dict[str, str], what: str, key: Optional[str]
    ) -> Answer:
        """One GET. Raises Again for temporary failures, else the matching error."""
        try:
            answer = self._exchange(path, query, headers)
        except _BROKEN as error:
            raise Again(f"{type(error).__name__}: {error}") from error
        if answer.status in (200, 206):
            return answer
        if answer.status in _AGAIN:
            raise Again(answer.reason(), _retry_after(answer))
        message = f"GET {what} of {self._name}: {answer.reason()}"
        if answer.status == 412:
            raise ChangedError(f"{message}; it changed since it was listed", key)
        kinds = {401: ForbiddenError, 403: ForbiddenError, 404: NotFoundError}
        raise kinds.get(answer.status, OriginError)(message, key)

    def _exchange(self, path: str, query: List[Tuple[str, str]], headers: Dict[str, str]) -> Answer:
        now = datetime.datetime.now(datetime.timezone.utc)
        path = self._base + path or "/"
        credentials = self._credentials.get(now)
        signed = {"host": self._host}
        if credentials:
            signed = sign_get(credentials, self._region, self._host, path, query, now)
        target = self._connector.base + path + ("?" + encode_query(sorted(query)) if query else "")
        connection = self._connection()
        try:
            connection.request("GET", target, headers={**signed, **headers, **self._connector.headers})
            response = connection.getresponse()
            if response.status == 200 and "range" in headers:
                raise http.client.HTTPException("asked for a range, got the whole object")
            return Answer(response, response.read())
        except BaseException:
            connection.close()
            self._local.connection = None
            raise

    def _connection(self) -> http.client.HTTPConnection:
        """One kept-alive connection for each thread and process."""
        held = getattr(self._local, "connection", None)
        if held is None or self._local.pid != os.getpid():
            held = self._connector.connect()
            self._local.connection, self._local.pid = held, os.getpid()
        return held


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


def _is_md5(etag: str, headers: Message) -> bool:
    """Whether an ETag is the MD5 of the object's bytes: it has MD5's form, and the object is not encrypted with a KMS
    or customer key (its ETag is then not an MD5)."""
    return (
        re.fullmatch("[0-9a-f]{32}", etag) is not None
        and headers.get("x-amz-server-side-encryption", "AES256") == "AES256"
        and headers.get("x-amz-server-side-encryption-customer-algorithm") is None
    )


def _md5(body: Payload) -> str:
    return hashlib.new("md5", body, usedforsecurity=False).hexdigest()


def _retry_after(answer: Answer) -> Optional[float]:
    try:
        return max(0.0, float(answer.headers.get("Retry-After", "")))
    except ValueError:
        return None
