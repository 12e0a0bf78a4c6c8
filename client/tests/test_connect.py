"""Connections of a direct read: proxies, certificates, and where the bucket goes in the URL."""

import http.server
import select
import socket
import ssl
import subprocess
import threading

import pytest
import stoker
from stoker.origin import Request, retry
from stoker.origin.connect import proxy_for
from stoker.origin.s3 import S3Origin
from stoker.settings import DatasetSettings, resolve

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for name in (*NAMES, *map(str.upper, NAMES), "AWS_CA_BUNDLE", "SSL_CERT_FILE", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setattr(retry, "FIRST_DELAY_S", 0.001)


class Server(http.server.ThreadingHTTPServer):
    """Answers every GET with "bytes", and CONNECT as a proxy does; `requests` holds method, target and headers."""

    daemon_threads = True

    def __init__(self, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests = []
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # clients that reject the certificate


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.requests.append(("GET", self.path, dict(self.headers)))
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"bytes")

    def do_CONNECT(self):
        self.server.requests.append(("CONNECT", self.path, dict(self.headers)))
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            self.send_response(200)
            self.end_headers()
            ends = {self.connection: there, there: self.connection}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        self.close_connection = True
                        return
                    ends[end].sendall(data)


@pytest.fixture
def servers():
    started = []

    def start(certificate=None):
        started.append(Server(certificate))
        return started[-1]

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """(certificate, key) of 127.0.0.1; self-signed and not trusted."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True,
                   capture_output=True)
    return str(cert), str(key)


def read(**settings):
    return S3Origin(DatasetSettings(uri="s3://bucket/train", **settings)).read(Request(b"cat/1", 5, "1-1"))


def address(server):
    return f"127.0.0.1:{server.server_port}"


def test_http_proxy_gets_the_absolute_url(servers, monkeypatch):
    proxy = servers()
    monkeypatch.setenv("HTTP_PROXY", f"http://me:p%40ss@{address(proxy)}")
    assert read(endpoint="http://s3.example:9000") == b"bytes"
    [(_, target, headers)] = proxy.requests
    assert target == "http://s3.example:9000/bucket/train/cat/1"
    assert headers["host"] == "s3.example:9000" and headers["proxy-authorization"] == "Basic bWU6cEBzcw=="
    assert "SignedHeaders=host;" in headers["authorization"]


def test_https_proxy_gets_connect(servers, monkeypatch, certificate):
    proxy, server = servers(), servers(certificate)
    monkeypatch.setenv("HTTPS_PROXY", f"http://{address(proxy)}")
    assert read(endpoint=f"https://{address(server)}", ca_file=certificate[0]) == b"bytes"
    assert proxy.requests[0][:2] == ("CONNECT", address(server))
    assert "authorization" not in {name.lower() for name in proxy.requests[0][2]}
    assert server.requests[0][1] == "/bucket/train/cat/1"


def test_no_proxy_hosts_are_reached_directly(servers, monkeypatch):
    server = servers()
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "example,127.0.0.0/8")
    assert read(endpoint=f"http://{address(server)}") == b"bytes"
    assert server.requests[0][1] == "/bucket/train/cat/1"


@pytest.mark.parametrize("env, expected", [
    ({}, None),
    ({"HTTP_PROXY": "http://upper:1"}, "upper:1"),
    ({"HTTP_PROXY": "http://upper:1", "http_proxy": "http://lower"}, "lower:80"),
    ({"HTTPS_PROXY": "http://other"}, None),
    ({"ALL_PROXY": "all:3128"}, "all:3128"),
    ({"HTTP_PROXY": "http://p", "NO_PROXY": "*"}, None),
    ({"HTTP_PROXY": "http://p", "NO_PROXY": "x, .ml.svc"}, None),
    ({"HTTP_PROXY": "http://p", "NO_PROXY": "svc"}, None),
    ({"HTTP_PROXY": "http://p", "NO_PROXY": "vc,s3.ml,10.0.0.0/8"}, "p:80"),
])
def test_proxy_is_chosen_from_the_environment(env, expected):
    found = proxy_for("http", "s3.ml.svc", env)
    assert (found[0] if found else None) == expected


def test_proxy_that_is_not_http_is_refused(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "socks5://s:1080")
    with pytest.raises(stoker.SettingsError, match="must be http://"):
        read(endpoint="http://s3.example")


@pytest.mark.parametrize("by", ["ca_file", "AWS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_ca_file_makes_a_private_server_trusted(servers, monkeypatch, certificate, by):
    endpoint = f"https://{address(servers(certificate))}"
    monkeypatch.setattr(retry, "ATTEMPTS", 1)
    with pytest.raises(stoker.OriginError, match="CERTIFICATE_VERIFY_FAILED"):
        read(endpoint=endpoint)
    if by == "ca_file":
        assert read(endpoint=endpoint, ca_file=certificate[0]) == b"bytes"
    else:
        monkeypatch.setenv(by, certificate[0])
        assert read(endpoint=endpoint) == b"bytes"


def test_missing_ca_file_is_named_in_the_error():
    with pytest.raises(stoker.SettingsError, match="cannot read CA certificates from /none.pem"):
        S3Origin(DatasetSettings(uri="s3://bucket", ca_file="/none.pem"))


@pytest.mark.parametrize("uri, settings, expected", [
    ("s3://b/p", {}, ("b.s3.us-east-1.amazonaws.com", "")),
    ("s3://b.c/p", {}, ("s3.us-east-1.amazonaws.com", "/b.c")),
    ("s3://b/p", {"region": "cn-north-1"}, ("b.s3.cn-north-1.amazonaws.com.cn", "")),
    ("s3://b/p", {"endpoint": "http://s3:9000"}, ("s3:9000", "/b")),
    ("s3://b/p", {"endpoint": "http://s3:9000", "path_style": False}, ("b.s3:9000", "")),
    ("s3://b/p", {"path_style": True}, ("s3.us-east-1.amazonaws.com", "/b")),
])
def test_bucket_is_in_the_host_or_in_the_path(uri, settings, expected):
    origin = S3Origin(DatasetSettings(uri=uri, **settings))
    assert (origin._host, origin._base) == expected


def test_environment_sets_ca_and_credentials_files():
    env = {"STOKER_DATASETS": '{"train": {"uri": "s3://b", "caFile": "/ca", "credentialsFile": "/k"}}'}
    settings = resolve("train", env=env)
    assert (settings.ca_file, settings.credentials_file, settings.path_style) == ("/ca", "/k", None)
