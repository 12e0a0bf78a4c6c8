"""Objects on a server: GETs with retries over connections that are kept. S3 and web servers share it."""

from __future__ import annotations

import functools
import hashlib
import http.client
import os
import ssl
import threading
from email.message import Message
from typing import Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

from ..errors import ChangedError, ForbiddenError, NotFoundError, OriginError
from . import Payload, Request
from .connect import Connector
from .large import PART_BYTES, parts, place_for
from .retry import Again, Parallel, with_retries
from .sigv4 import encode_query

__all__ = ["Answer", "RemoteOrigin"]

T = TypeVar("T")

THREADS = 16
_AGAIN = {408, 429, 500, 502, 503, 504}
_BROKEN = (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError, OSError)


class Answer:
    """One response with its whole body."""

    def __init__(self, response: http.client.HTTPResponse, body: bytes) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = body


class RemoteOrigin:
    """Reads objects; see `Origin`. A kind of server adds list(), has_key() and the hooks.

    Args:
        name: the origin's name in messages.
    """

    def __init__(self, name: str, connector: Connector) -> None:
        self._name, self._connector = name, connector
        self._parallel = Parallel(THREADS)
        self._local = threading.local()

    def _path_of(self, key: bytes) -> str:
        """Hook: path of an object's URL, as sent."""
        raise NotImplementedError

    def _headers(self, path: str, query: Sequence[Tuple[str, str]]) -> Dict[str, str]:
        """Hook: host, and what authorizes a GET."""
        raise NotImplementedError

    def _condition(self, version: str) -> Dict[str, str]:
        """Hook: headers that ask for this version only."""
        raise NotImplementedError

    def _check_version(self, request: Request, answer: Answer, key: str) -> None:
        """Hook: raises ChangedError for an answer of another version."""
        raise NotImplementedError

    def _is_md5(self, etag: str, headers: Message) -> bool:
        """Hook: whether the version is the MD5 of the bytes."""
        return False

    def _explain(self, answer: Answer) -> str:
        """Hook: the server's explanation of an error."""
        return ""

    def _reason(self, answer: Answer) -> str:
        """Status and explanation: `403 AccessDenied: no such key id`."""
        said = self._explain(answer) or http.client.responses.get(answer.status, "")
        return f"{answer.status} {said}".strip()

    def describe(self) -> str:
        """See `Origin`."""
        return self._name

    def read(self, request: Request) -> Payload:
        """See `Origin`."""
        key = request.key.decode("utf-8", "surrogateescape")
        path = self._path_of(request.key)
        if request.size > PART_BYTES:
            return self._read_in_parts(request, path, key)

        def attempt() -> bytes:
            answer = self._get_object(request, path, {}, key)
            self._check_whole(request, answer, key)
            if self._is_md5(request.etag, answer.headers) and _md5(answer.body) != request.etag:
                raise Again(f"the bytes do not match their ETag {request.etag}")
            return answer.body

        return self._retrying(attempt, key)

    def read_slice(self, request: Request, start: int, length: int) -> Payload:
        """See `SlicedOrigin`."""
        key = request.key.decode("utf-8", "surrogateescape")
        path = self._path_of(request.key)
        return self._retrying(lambda: self._read_part(request, path, key, start, start + length), key).body

    def read_many(self, requests: Sequence[Request]) -> List[Payload]:
        """See `Origin`."""
        return self._parallel.map(self.read, requests)

    def _read_in_parts(self, request: Request, path: str, key: str) -> memoryview:
        """Reads in parts, so that a broken connection costs one part and not gigabytes."""
        place = place_for(request.size, f"'{key}' of {self._name}", key)
        is_md5 = True
        for start, end in parts(request.size):
            answer = self._retrying(functools.partial(self._read_part, request, path, key, start, end), key)
            place[start:end] = answer.body
            is_md5 = is_md5 and self._is_md5(request.etag, answer.headers)
        if is_md5 and _md5(place) != request.etag:
            raise OriginError(f"the bytes of '{key}' of {self._name} do not match their ETag {request.etag}", key)
        return place

    def _retrying(self, attempt: Callable[[], T], key: str) -> T:
        return with_retries(attempt, lambda why: OriginError(f"GET '{key}' of {self._name}: {why}", key))

    def _read_part(self, request: Request, path: str, key: str, start: int, end: int) -> Answer:
        answer = self._get_object(request, path, {"range": f"bytes={start}-{end - 1}"}, key)
        self._check_part(request, answer, key, start, end)
        return answer

    def _check_whole(self, request: Request, answer: Answer, key: str) -> None:
        if len(answer.body) != request.size:
            raise ChangedError(
                f"'{key}' of {self._name} has {len(answer.body)} bytes, it was listed with {request.size}", key)

    def _check_part(self, request: Request, answer: Answer, key: str, start: int, end: int) -> None:
        told = answer.headers.get("Content-Range", "")
        if not told.endswith(f"/{request.size}"):
            raise ChangedError(
                f"'{key}' of {self._name} was listed with {request.size} bytes, its Content-Range is '{told}' now", key)
        if told != f"bytes {start}-{end - 1}/{request.size}" or len(answer.body) != end - start:
            raise Again(f"asked for bytes {start}-{end - 1}, got {len(answer.body)} with Content-Range '{told}'")

    def _get_object(self, request: Request, path: str, headers: Dict[str, str], key: str) -> Answer:
        answer = self._get(path, [], {**self._condition(request.etag), **headers}, f"'{key}'", key)
        self._check_version(request, answer, key)
        return answer

    def close(self) -> None:
        """See `Origin`."""
        self._parallel.close()

    def _get(
        self,
        path: str,
        query: List[Tuple[str, str]],
        headers: Dict[str, str],
        what: str,
        key: Optional[str],
        method: str = "GET",
    ) -> Answer:
        """One request. Raises Again for temporary failures, else the matching error."""
        try:
            answer = self._exchange(path, query, headers, method)
        except _BROKEN as error:
            raise Again(f"{type(error).__name__}: {error}") from error
        if answer.status == 200 or (answer.status == 206 and "range" in headers):
            return answer
        if answer.status in _AGAIN:
            raise Again(self._reason(answer), _retry_after(answer))
        message = f"{method} {what} of {self._name}: {self._reason(answer)}"
        if answer.status == 412:
            raise ChangedError(f"{message}; it changed since it was listed", key)
        kinds = {401: ForbiddenError, 403: ForbiddenError, 404: NotFoundError}
        raise kinds.get(answer.status, OriginError)(message, key)

    def _exchange(
        self, path: str, query: List[Tuple[str, str]], headers: Dict[str, str], method: str = "GET"
    ) -> Answer:
        signed = self._headers(path, query)
        target = self._connector.base + path + ("?" + encode_query(sorted(query)) if query else "")
        connection = self._connection()
        try:
            connection.request(method, target, headers={**signed, **headers, **self._connector.headers})
            response = connection.getresponse()
            self._check_range(response, headers)
            return Answer(response, response.read())
        except BaseException:
            connection.close()
            self._local.connection = None
            raise

    def _check_range(self, response: http.client.HTTPResponse, headers: Dict[str, str]) -> None:
        """Refuses the whole object in place of a range, before its body is read."""
        if response.status == 200 and "range" in headers:
            raise http.client.HTTPException("asked for a range, got the whole object")

    def _connection(self) -> http.client.HTTPConnection:
        """One kept-alive connection for each thread and process."""
        held = getattr(self._local, "connection", None)
        if held is None or self._local.pid != os.getpid():
            held = self._connector.connect()
            self._local.connection, self._local.pid = held, os.getpid()
        return held


def _md5(body: Payload) -> str:
    return hashlib.new("md5", body, usedforsecurity=False).hexdigest()


def _retry_after(answer: Answer) -> Optional[float]:
    try:
        return max(0.0, float(answer.headers.get("Retry-After", "")))
    except ValueError:
        return None
