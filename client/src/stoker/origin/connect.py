"""Connections to one http or https server: proxies from the environment, and trusted certificates."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import os
import re
import ssl
import urllib.parse
from typing import Dict, Mapping, Optional, Tuple

from ..errors import SettingsError

__all__ = ["Connector", "post", "proxy_for"]

TIMEOUT_S = 30.0


class Connector:
    """Makes connections to `scheme://host[:port]`. Any thread may call.

    Attributes:
        base: prefix of every request path: empty, or scheme and host for a forwarding proxy.
        headers: extra headers for a forwarding proxy.
        is_direct: without a proxy.

    Raises:
        SettingsError: an unreadable CA file, or a proxy that is not http://.
    """

    def __init__(
        self, scheme: str, host: str, ca_file: Optional[str] = None, env: Optional[Mapping[str, str]] = None
    ) -> None:
        env = os.environ if env is None else env
        self._host = host
        self._tls = _tls(ca_file, env) if scheme == "https" else None
        self._proxy = proxy_for(scheme, urllib.parse.urlsplit(f"//{host}").hostname or "", env)
        self.is_direct = self._proxy is None
        reading_proxy = self._proxy if self._tls is None else None
        self.base = f"http://{host}" if reading_proxy else ""
        self.headers: Dict[str, str] = reading_proxy[1] if reading_proxy else {}

    def connect(self, timeout: float = TIMEOUT_S) -> http.client.HTTPConnection:
        """A connection object; it connects with its first request."""
        if self._proxy is None:
            if self._tls is None:
                return http.client.HTTPConnection(self._host, timeout=timeout)
            return http.client.HTTPSConnection(self._host, timeout=timeout, context=self._tls)
        address, headers = self._proxy
        if self._tls is None:
            return http.client.HTTPConnection(address, timeout=timeout)
        connection = http.client.HTTPSConnection(address, timeout=timeout, context=self._tls)
        connection.set_tunnel(self._host, headers=headers)
        return connection


def proxy_for(scheme: str, host: str, env: Mapping[str, str]) -> Optional[Tuple[str, Dict[str, str]]]:
    """Address and headers of the proxy; None: connect directly. Uses the same variables in the same order as the
    sidecar (common/http/proxy.h).

    Raises:
        SettingsError: the proxy is not an http:// one.
    """
    names = (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    url = next(filter(None, map(env.get, names)), None)
    if url is None or _is_excepted(host, env.get("no_proxy") or env.get("NO_PROXY") or ""):
        return None
    parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise SettingsError(f"the {scheme} proxy must be http://host:port")
    headers = {}
    if parts.username is not None:
        login = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["proxy-authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{name}:{parts.port or 80}", headers


def _is_excepted(host: str, excepted: str) -> bool:
    for entry in filter(None, re.split("[, ]+", excepted.lower())):
        name = entry.strip(".")
        if entry == "*" or host == name or host.endswith("." + name) or _is_inside(host, entry):
            return True
    return False


def _is_inside(host: str, network: str) -> bool:
    try:
        return "/" in network and ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _tls(ca_file: Optional[str], env: Mapping[str, str]) -> ssl.SSLContext:
    bundle = ca_file or env.get("AWS_CA_BUNDLE") or env.get("SSL_CERT_FILE")
    try:
        return ssl.create_default_context(cafile=bundle or None)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"cannot read CA certificates from {bundle}: {error}") from None


def post(url: str, body: bytes, ca_file: Optional[str], env: Mapping[str, str], limit: int) -> Tuple[int, bytes]:
    """Posts a form; returns status and body of the answer.

    Raises:
        OSError: no connection, or an answer longer than `limit` bytes.
    """
    parts = urllib.parse.urlsplit(url)
    connector = Connector(parts.scheme, parts.netloc, ca_file, env)
    connection = connector.connect(timeout=20.0)
    try:
        headers = {"content-type": "application/x-www-form-urlencoded", **connector.headers}
        connection.request("POST", connector.base + (parts.path or "/"), body, headers)
        response = connection.getresponse()
        answer = response.read(limit + 1)
    except http.client.HTTPException as error:
        raise OSError(f"{url}: {type(error).__name__}: {error}") from error
    finally:
        connection.close()
    if len(answer) > limit:
        raise OSError(f"{url}: the answer is longer than {limit} bytes")
    return response.status, answer
