"""A web server as origin: nginx and lesser servers, read by the client alone and through the real sidecar."""

import http.server
import io
import json
import os
import tarfile
import threading

import pytest
import stoker
from conftest import Origin
from stoker.origin import Request, open_origin
from stoker.settings import DatasetSettings, resolve
from test_real_sidecar import read_epoch, run  # noqa: F401 (fixture)
from web_pod import Nginx, index_of, plain_server

LAST_WEEK = 1_700_000_000


def age(root):
    """Files of the last two seconds have no version without an ETag."""
    for folder, _, names in os.walk(root):
        for name in names:
            os.utime(os.path.join(folder, name), (LAST_WEEK, LAST_WEEK))


@pytest.fixture
def files(tmp_path):
    data = Origin(tmp_path / "data", count=60)
    odd = {"cat/a b%20#?&+.bin": b"odd", "dog/\u00fc/empty.bin": b""}
    for key, payload in odd.items():
        path = data.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(payload)
    data.payloads.update(odd)
    data.keys = sorted(data.payloads, key=str.encode)
    age(data.root)
    index_of(data.root)
    return data


@pytest.fixture
def nginx(tmp_path, files):
    with Nginx(tmp_path / "nginx", files.root) as server:
        yield server


def tls_entry(nginx):
    return {"uri": nginx.tls_uri, "caFile": nginx.ca_file}


def settings_of(**entry):
    return resolve("train", env={"STOKER_DATASETS": json.dumps({"train": entry})})


@pytest.mark.parametrize("columns", [r"%s\t%P\t%T@\n", r"%s\t%P\n", r"%P\n"])
def test_client_and_sidecar_read_what_the_index_names(files, nginx, run, columns):  # noqa: F811
    index_of(files.root, columns)
    with stoker.open(nginx.uri) as alone, run(source={"uri": nginx.uri}).open() as samples:
        assert samples.revision == alone.revision
        assert [bytes(s) for s in alone.fetch(range(len(files.keys)))] == [files.payloads[key] for key in files.keys]
        asked = nginx.count("GET", "200")
        assert asked == len(files.keys)
        read_epoch(files, samples, 0)
        assert nginx.count("GET", "200") == asked + len(files.keys)
        read_epoch(files, samples, 1)
        assert nginx.count("GET", "200") == asked + len(files.keys), "the second epoch asks nothing"
        assert nginx.count("HEAD", "200") == (0 if "T@" in columns else 2 * len(files.keys))
        assert {status for *_, status in nginx.requests()} == {"200"}


def test_tls_with_private_authority_and_password(files, nginx, run, monkeypatch):  # noqa: F811
    source = {**tls_entry(nginx), "credentialsDirectory": str(nginx.folder / "secret")}
    with run(source=source).open() as samples:
        read_epoch(files, samples, 0)
    key = files.keys[0].encode()
    wanted = Request(key, len(files.payloads[files.keys[0]]), f"@{LAST_WEEK}")
    monkeypatch.setenv("STOKER_HTTP_USERNAME", "me")
    monkeypatch.setenv("STOKER_HTTP_PASSWORD", "pass word\n")
    own = open_origin(settings_of(**tls_entry(nginx), authenticate=True))
    assert bytes(own.read(wanted)) == files.payloads[files.keys[0]]
    with pytest.raises(stoker.ForbiddenError, match="401"):  # another dataset's server gets no password
        open_origin(settings_of(**tls_entry(nginx))).read(wanted)


def test_tar_shards_are_read_in_ranges(tmp_path, run, monkeypatch):  # noqa: F811
    root = tmp_path / "shards"
    root.mkdir()
    with tarfile.open(root / "0.tar", "w") as shard:
        for number in range(20):
            member = tarfile.TarInfo(f"{number:03}.bin")
            member.size = 5000
            shard.addfile(member, io.BytesIO(bytes([number]) * 5000))
    index_of(root, r"%s\t%P\n")
    with Nginx(tmp_path / "nginx", root) as nginx:
        entry = {"uri": nginx.uri, "format": "tar"}
        monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": entry}))
        with stoker.open(nginx.uri, format="tar") as alone, run(source=entry).open() as samples:
            assert samples.revision == alone.revision
            assert [samples[i]["bin"] for i in range(20)] == [bytes([i]) * 5000 for i in range(20)]
            assert [alone[i]["bin"] for i in range(20)] == [bytes([i]) * 5000 for i in range(20)]
        assert nginx.count("GET", "206") > 20 and nginx.count("GET", "200") == 0


def test_a_server_without_ranges_and_etags(files, run):  # noqa: F811
    with plain_server(files.root) as uri:
        with stoker.open(uri) as alone, run(source={"uri": uri}).open() as samples:
            assert samples.revision == alone.revision
            read_epoch(files, samples, 0)
            assert bytes(alone.fetch([0])[0]) == files.payloads[files.keys[0]]
        key = files.keys[0]
        wanted = Request(key.encode(), len(files.payloads[key]), f"@{LAST_WEEK}")
        part = open_origin(DatasetSettings(uri=uri)).read_slice(wanted, 1, 2)
        assert bytes(part) == files.payloads[key][1:3]


def test_a_large_file_needs_ranges(tmp_path):
    root = tmp_path / "large"
    root.mkdir()
    with open(root / "a.bin", "wb") as file:
        file.truncate((16 << 20) + 1)
    age(root)
    with plain_server(root) as uri, pytest.raises(stoker.OriginError, match="does not answer range requests"):
        open_origin(DatasetSettings(uri=uri)).read_slice(Request(b"a.bin", (16 << 20) + 1, f"@{LAST_WEEK}"), 5, 5)


@pytest.mark.parametrize("when", [LAST_WEEK, LAST_WEEK + 1])
def test_a_changed_file_is_an_error(files, nginx, when):
    key = files.keys[0]
    path = files.root / key
    etag = open_origin(DatasetSettings(uri=nginx.uri, index="index.txt"))
    index_of(files.root, r"%P\n")
    listed = {found: (found, size, version) for found, size, version in etag.list()}
    path.write_bytes(files.payloads[key] + (b"x" if when == LAST_WEEK else b""))
    os.utime(path, (when, when))
    with pytest.raises(stoker.ChangedError, match=r"changed|version"):
        etag.read(Request(*listed[key.encode()]))
    same_second = Request(key.encode(), len(files.payloads[key]), f"@{LAST_WEEK}")
    with pytest.raises(stoker.ChangedError):
        etag.read(same_second)


@pytest.mark.parametrize("text, said", [
    ("", "index.txt is empty"),
    ("1\t../a\n", "line 1: '../a' is not a key"),
    ("a\n1\thttp://other/a\n", "line 2"),
    ("1\ta\n1\ta\r\n", "line 2"),
])
def test_a_hostile_index_is_refused(files, nginx, text, said):
    (files.root / "index.txt").write_text(text)
    with pytest.raises(stoker.OriginError, match=said):
        open_origin(DatasetSettings(uri=nginx.uri)).list()


def test_an_index_that_is_wrong_or_missing(files, nginx):
    (files.root / "index.txt").write_text(f"1000000\t{files.keys[0]}\n")
    with pytest.raises(stoker.OriginError, match="make the index again"):
        open_origin(DatasetSettings(uri=nginx.uri)).list()
    with pytest.raises(stoker.NotFoundError, match=r"none\.txt"):
        open_origin(DatasetSettings(uri=nginx.uri, index="none.txt")).list()


class Redirecting(http.server.ThreadingHTTPServer):
    """Redirects "/x/N" to `targets[N]`, and answers all else with a file; notes the Authorization of each request."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _RedirectHandler)
        self.targets, self.seen = [], []
        self.uri = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _RedirectHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.seen.append(self.headers.get("authorization"))
        target = self.server.targets[int(self.path[3:])] if self.path.startswith("/x/") else None
        self.send_response(302 if target else 200)
        self.send_header("Location", target) if target else self.send_header("ETag", '"v"')
        self.send_header("Content-Length", "0" if target else "4")
        self.end_headers()
        self.wfile.write(b"" if target else b"meow")


@pytest.fixture
def redirecting():
    with Redirecting() as server, Redirecting() as other:
        server.other = other
        yield server
        server.shutdown()
        other.shutdown()


def test_redirects_are_followed_without_credentials_to_another_host(redirecting):
    redirecting.targets = ["/x/1", f"{redirecting.other.uri}/file", "/x/2", "ftp://127.0.0.1/a", "file:///etc/passwd"]
    origin = open_origin(DatasetSettings(uri=f"{redirecting.uri}/x"))
    origin._authorization = {"authorization": "Bearer t"}
    assert bytes(origin.read(Request(b"0", 4, '"v"'))) == b"meow"
    assert redirecting.seen == ["Bearer t", "Bearer t"] and redirecting.other.seen == [None]
    with pytest.raises(stoker.OriginError, match="more than 4 times"):
        origin.read(Request(b"2", 4, '"v"'))
    for key in (b"3", b"4"):
        with pytest.raises(stoker.OriginError, match="not followed"):
            origin.read(Request(key, 4, '"v"'))


def test_a_remote_server_does_not_lead_to_this_machine(redirecting):
    redirecting.targets = [f"{redirecting.other.uri}/file"]
    origin = open_origin(DatasetSettings(uri=f"{redirecting.uri}/x"))
    origin._url = origin._url._replace(netloc=f"data.example.com:{redirecting.server_port}")  # its connections stay
    with pytest.raises(stoker.ForbiddenError, match="an address of this machine"):
        origin.read(Request(b"0", 4, '"v"'))
    assert redirecting.other.seen == []


@pytest.mark.parametrize("uri", ["http://me@host/a", "https://host/a?b", "https://host/../a", "https://host/a b"])
def test_an_address_that_is_no_folder_is_refused(uri):
    with pytest.raises(stoker.SettingsError):
        open_origin(DatasetSettings(uri=uri))
