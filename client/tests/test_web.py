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
from test_faults import opened, read_all
from web_pod import Nginx, canned_server, index_of, plain_server

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
    age(root)
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
    ("1\ta\t1700000000000\n", "line 1: '1700000000000' after the second tab"),
    ("index.txt\na\nindex.txt\n", "line 3: names the index itself more than once"),
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


LATER = ["Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT", "Date: Tue, 14 Nov 2023 22:13:22 GMT"]
SAME_SECOND = [LATER[0], "Date: Tue, 14 Nov 2023 22:13:21 GMT"]


def test_an_etag_of_this_second_waits(monkeypatch):
    monkeypatch.setattr("stoker.origin.retry.ATTEMPTS", 1)
    wanted = Request(b"a", 4, '"6553f100-4"')
    for dates, passes in [(LATER, True), (SAME_SECOND, False), ([], True)]:
        with canned_server(['ETag: "6553f100-4"', "Content-Length: 4", *dates]) as uri:
            origin = open_origin(DatasetSettings(uri=uri))
            if passes:
                assert bytes(origin.read(wanted)) == b"meow"
            else:
                with pytest.raises(stoker.OriginError, match="written just now"):
                    origin.read(wanted)


def test_a_page_is_neither_an_index_nor_an_object_of_unknown_size(tmp_path):
    (tmp_path / "list.html").write_text("a.html\n")
    (tmp_path / "a.html").write_text("<p>")
    age(tmp_path)
    with plain_server(tmp_path) as uri:
        with pytest.raises(stoker.OriginError, match="'list.html': the server answers with a page"):
            open_origin(DatasetSettings(uri=uri, index="list.html")).list()
        (tmp_path / "index.txt").write_text("a.html\n")
        with pytest.raises(stoker.OriginError, match="'a.html' .*the server answers with a page"):
            open_origin(DatasetSettings(uri=uri)).list()
        (tmp_path / "index.txt").write_text("3\ta.html\n")
        assert open_origin(DatasetSettings(uri=uri)).list() == [(b"a.html", 3, f"@{LAST_WEEK}")]


def test_an_index_without_length_may_be_cut():
    index = b'1\ta\t"v"\n'
    with canned_server([], index) as uri, pytest.raises(stoker.OriginError, match="neither Content-Length nor chunks"):
        open_origin(DatasetSettings(uri=uri)).list()
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(index), index)
    with canned_server(["Transfer-Encoding: chunked"], chunked) as uri:
        assert open_origin(DatasetSettings(uri=uri)).list() == [(b"a", 1, '"v"')]


@pytest.mark.parametrize("name, value", [
    ("TOKEN", "se\ncret"), ("TOKEN", "secret\u00fc"), ("USERNAME", "se:cret"), ("USERNAME", "sec\nret"),
    ("PASSWORD", "sec\nret"),
])
def test_a_secret_that_a_header_cannot_carry_is_not_told(monkeypatch, name, value):
    monkeypatch.setenv("STOKER_HTTP_USERNAME", "me")
    monkeypatch.setenv(f"STOKER_HTTP_{name}", value)
    with pytest.raises(stoker.SettingsError, match="STOKER_HTTP_") as error:
        open_origin(settings_of(uri="https://h/a", authenticate=True))
    assert "sec" not in str(error.value) and error.value.__cause__ is None


def test_a_guest_without_a_key_waits_for_its_sidecar(nginx, origin, sidecar, monkeypatch):
    guest = {**tls_entry(nginx), "guest": True}
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": guest}))
    threading.Timer(0.5, sidecar.start).start()
    samples, _ = opened()
    with samples:
        assert read_all(samples) == origin.payloads
    assert not open_origin(settings_of(**guest)).has_key()
    assert open_origin(settings_of(**tls_entry(nginx))).has_key()


def test_the_uri_is_sent_as_written():
    for uri in ("https://h/a//", "https://h/a/"):
        assert open_origin(DatasetSettings(uri=uri)).describe() == uri
    assert open_origin(DatasetSettings(uri="https://h/a")).describe() == "https://h/a/"


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
    redirecting.targets = [
        "/x/1", f"{redirecting.other.uri}/file", "/x/2", "ftp://127.0.0.1/a", "file:///etc/passwd", "http://[", "/\u00fc"]
    origin = open_origin(DatasetSettings(uri=f"{redirecting.uri}/x"))
    origin._authorization = {"authorization": "Bearer t"}
    assert bytes(origin.read(Request(b"0", 4, '"v"'))) == b"meow"
    assert redirecting.seen == ["Bearer t", "Bearer t"] and redirecting.other.seen == [None]
    with pytest.raises(stoker.OriginError, match="more than 4 times"):
        origin.read(Request(b"2", 4, '"v"'))
    for key in (b"3", b"4", b"5", b"6"):
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
