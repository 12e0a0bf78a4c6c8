"""A dataset on a web server: files that an index names, read by GETs with the version that was listed."""

from __future__ import annotations

import base64
import email.utils
import http.client
import ipaddress
import os
import re
import urllib.parse
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from .. import _core
from ..errors import ChangedError, ForbiddenError, OriginError, SettingsError
from ..settings import DatasetSettings
from . import ListedObject, Request
from .connect import Connector
from .remote import Answer, RemoteOrigin
from .retry import Again, with_retries

__all__ = ["WebOrigin"]

UNCUT_BYTES_MAX = 16 << 20  # larger objects are never read whole to get a part
REDIRECTS_MAX = 4
_REDIRECTS = {301, 302, 303, 307, 308}
_METADATA = {"100.100.100.200", "fd00:ec2::254"}
_PLAIN = {"accept-encoding": "identity", "cache-control": "no-transform"}


class WebOrigin(RemoteOrigin):
    """Reads the files below an http(s) URL; see `Origin`. docs/design/origin.md says what a version is.

    Raises:
        SettingsError: not the URL of a folder.
    """

    def __init__(self, settings: DatasetSettings, env: Optional[Mapping[str, str]] = None) -> None:
        uri = settings.uri or ""
        self._root = uri if uri.endswith("/") else uri + "/"
        self._index = settings.index or _core.HTTP_INDEX_NAME
        try:
            _core.check_http_uri(self._root)
        except _core.CoreError as error:
            raise SettingsError(f"'{self._root}' {error.args[-1]}") from None
        self._url = urllib.parse.urlsplit(self._root)
        self._ca_file, self._is_guest = settings.ca_file, settings.guest
        env = os.environ if env is None else env
        is_safe = self._url.scheme == "https"
        self._authorization = _authorization(env) if settings.authenticate and is_safe else {}
        super().__init__(self._root, Connector(self._url.scheme, self._url.netloc, settings.ca_file))

    def has_key(self) -> bool:
        """See `Origin`. Servers of other namespaces get no credentials, so they may want some."""
        return bool(self._authorization) or not self._is_guest

    def list(self, progress: Optional[Callable[[int], None]] = None) -> List[ListedObject]:
        """See `Origin`."""
        where = f"listing {self._name}: '{self._index}'"
        answer = with_retries(
            lambda: self._get(self._path_of(self._index.encode()), [], {}, f"'{self._index}'", None),
            lambda why: OriginError(f"{where}: {why}"),
        )
        _check_encoding(answer, where, None)
        _check_page(answer, where, None)
        if "Content-Length" not in answer.headers and answer.headers.get("Transfer-Encoding", "").lower() != "chunked":
            raise OriginError(f"{where}: the answer has neither Content-Length nor chunks, so a cut would not be noticed")
        try:
            entries = _core.parse_http_index(self._index, answer.body)
        except _core.CoreError as error:
            raise OriginError(f"listing {self._name}: {error.args[-1]}") from None
        listing = [(key, size, version) for key, size, version in entries if size is not None and version]
        asked = [entry for entry in entries if entry[1] is None or not entry[2]]
        listing += self._parallel.map(self._ask, asked)
        if progress is not None:
            progress(len(listing))
        return listing

    def _ask(self, entry: Tuple[bytes, Optional[int], str]) -> ListedObject:
        """Gets the size and version of one object by a HEAD request."""
        listed_key, listed_size, _ = entry
        key = listed_key.decode("utf-8", "surrogateescape")
        what = f"'{key}' of {self._name}"

        def attempt() -> ListedObject:
            answer = self._get(self._path_of(listed_key), [], {}, f"'{key}'", key, "HEAD")
            _check_encoding(answer, what, key)
            size, version = answer.headers.get("Content-Length", ""), _version_of(answer)
            if not size.isdecimal() or version is None:
                lacks = "Content-Length" if version else "ETag and no Last-Modified"
                raise OriginError(f"{what}: HEAD gives no {lacks}, so a change could not be noticed", key)
            if listed_size is None:
                _check_page(answer, what, key)
            elif int(size) != listed_size:
                raise OriginError(f"{what} has {size} bytes and {listed_size} in the index; make the index again", key)
            self._check_version(Request(listed_key, int(size), version), answer, key)
            return listed_key, int(size), version

        return with_retries(attempt, lambda why: OriginError(f"HEAD {what}: {why}", key))

    def _path_of(self, key: bytes) -> str:
        return self._url.path + urllib.parse.quote(key, safe="/-_.~")

    def _headers(self, path: str, query: Sequence[Tuple[str, str]]) -> Dict[str, str]:
        return {**_PLAIN, **self._authorization}

    def _condition(self, version: str) -> Dict[str, str]:
        if version.startswith("@"):
            return {"if-unmodified-since": email.utils.formatdate(int(version[1:]), usegmt=True)}
        return {} if version.startswith("W/") else {"if-match": version}

    def _check_version(self, request: Request, answer: Answer, key: str) -> None:
        what = f"'{key}' of {self._name}"
        _check_encoding(answer, what, key)
        is_time = request.etag.startswith("@")
        told = _time_of(answer) if is_time else answer.headers.get("ETag")
        if told is None or _opaque(told) != _opaque(request.etag):
            raise ChangedError(f"{what} has version {told or 'missing'}, it was listed with {request.etag}", key)
        _check_settled(answer, is_time, what, key)

    def _read_part(self, request: Request, path: str, key: str, start: int, end: int) -> Answer:
        if request.size > UNCUT_BYTES_MAX:
            return super()._read_part(request, path, key, start, end)
        answer = self._get_object(request, path, {"range": f"bytes={start}-{end - 1}"}, key)
        if answer.status == 206:
            self._check_part(request, answer, key, start, end)
            return answer
        self._check_whole(request, answer, key)
        answer.body = answer.body[start:end]
        return answer

    def _check_range(self, response: http.client.HTTPResponse, headers: Dict[str, str]) -> None:
        size = response.getheader("Content-Length", "")
        is_small = size.isdecimal() and int(size) <= UNCUT_BYTES_MAX
        if response.status == 200 and "range" in headers and not is_small:
            raise OriginError(
                f"{self._name} does not answer range requests, so objects above 16 MiB cannot be read in parts")

    def _exchange(
        self, path: str, query: List[Tuple[str, str]], headers: Dict[str, str], method: str = "GET"
    ) -> Answer:
        answer = super()._exchange(path, query, headers, method)
        url = f"{self._url.scheme}://{self._url.netloc}{path}"
        for _ in range(REDIRECTS_MAX):
            location = answer.headers.get("Location")
            if answer.status not in _REDIRECTS or not location:
                return answer
            try:
                url = urllib.parse.urljoin(url, location)
                answer = self._follow(urllib.parse.urlsplit(url), headers, method)
            except SettingsError:
                raise
            except ValueError:  # "http://[", or characters that a request cannot have
                raise OriginError(f"{self._name} redirects to a malformed address, which is not followed") from None
        if answer.status in _REDIRECTS:
            raise OriginError(f"{self._name} redirects more than {REDIRECTS_MAX} times")
        return answer

    def _follow(self, url: urllib.parse.SplitResult, headers: Dict[str, str], method: str) -> Answer:
        """The answer of a redirect's target: without credentials from another host, and not from this machine."""
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        if (url.scheme, url.netloc) == (self._url.scheme, self._url.netloc):
            return super()._exchange(target, [], headers, method)
        is_weaker = self._url.scheme == "https" and url.scheme != "https"
        if is_weaker or url.scheme not in ("http", "https") or "@" in url.netloc or not url.hostname:
            raise OriginError(f"{self._name} redirects to {url.scheme}://{url.hostname}, which is not followed")
        connector = Connector(url.scheme, url.netloc, self._ca_file)
        connection = connector.connect()
        try:
            connection.connect()
            peer = connection.sock.getpeername()[0]
            if connector.is_direct and _is_local(peer) and not _names_local(self._url.hostname or ""):
                raise ForbiddenError(f"{self._name} redirects to {url.hostname}, an address of this machine")
            connection.request(method, connector.base + target, headers={**_PLAIN, **headers, **connector.headers})
            response = connection.getresponse()
            self._check_range(response, headers)
            return Answer(response, response.read())
        finally:
            connection.close()


def _authorization(env: Mapping[str, str]) -> Dict[str, str]:
    token, user, password = (env.get(f"STOKER_HTTP_{name}", "").rstrip() for name in ("TOKEN", "USERNAME", "PASSWORD"))
    if re.search(r"[\x00-\x1f\x7f]", token + user + password) or not token.isascii() or ":" in user:
        raise SettingsError(
            "STOKER_HTTP_TOKEN, STOKER_HTTP_USERNAME and STOKER_HTTP_PASSWORD must not have control characters, the "
            "token only ASCII, and the user name no colon"
        )
    if token:
        return {"authorization": f"Bearer {token}"}
    if user:
        return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}
    return {}


def _version_of(answer: Answer) -> Optional[str]:
    """The version of the object, as in sidecar/origin/http_version.h; None: neither ETag nor Last-Modified was sent."""
    etag = answer.headers.get("ETag", "")
    return etag if re.fullmatch('(W/)?"[^"]+"', etag) else _time_of(answer)


def _opaque(version: str) -> str:
    return version[2:] if version.startswith("W/") else version


def _time_of(answer: Answer) -> Optional[str]:
    seconds = _seconds_of(answer, "Last-Modified")
    return None if seconds is None or seconds < 0 else f"@{seconds}"


def _seconds_of(answer: Answer, name: str) -> Optional[int]:
    try:
        seconds = int(email.utils.parsedate_to_datetime(answer.headers[name]).timestamp())
    except (TypeError, ValueError):  # missing, or not a date
        return None
    return seconds if seconds <= _core.HTTP_SECONDS_MAX else None


def _check_encoding(answer: Answer, what: str, key: Optional[str]) -> None:
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise OriginError(f"{what}: the server encodes it (Content-Encoding: {encoding}); turn compression off there", key)


def _check_page(answer: Answer, what: str, key: Optional[str]) -> None:
    """Rejects web pages: a sign-in page, or one for a missing file, comes with status 200, too."""
    if answer.headers.get_content_type() in ("text/html", "application/xhtml+xml"):
        raise OriginError(
            f"{what}: the server answers with a page ({answer.headers['Content-Type']}); if it is the object, the index "
            "must name its size", key)


def _check_settled(answer: Answer, is_time: bool, what: str, key: str) -> None:
    """Rejects a too recent version: two writes in one second share Last-Modified, and nginx makes ETags from it."""
    now, modified = _seconds_of(answer, "Date"), _seconds_of(answer, "Last-Modified")
    if now is None or modified is None:
        if is_time:
            raise OriginError(
                f"{what}: the server sends neither an ETag nor a Date, so a change could not be noticed", key)
    elif now <= modified + 1:
        raise Again("by the server's clock the object was written just now or will be", 1.0)


def _is_local(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_link_local or address.is_unspecified or str(address) in _METADATA


def _names_local(host: str) -> bool:
    try:
        return _is_local(host)
    except ValueError:
        return host == "localhost"
