"""The readers that work without a sidecar: folders, and S3 with faults."""

import datetime
import hashlib
import http.server
import os
import threading
import urllib.parse

import pytest
import stoker
from stoker.origin import Request, open_origin, retry
from stoker.origin.s3 import S3Origin
from stoker.origin.sigv4 import Credentials, sign_get
from stoker.settings import DatasetSettings

KMS = {"x-amz-server-side-encryption": "aws:kms", "x-amz-server-side-encryption-aws-kms-key-id": "arn:aws:kms:k"}
SSE_C = {"x-amz-server-side-encryption-customer-algorithm": "AES256"}
NO_MD5 = "0123456789abcdef0123456789abcdef"
ODD_KEYS = ["a b/c+d.bin", "ünï/codé.bin", "100%/x%2By.bin", "a/../b.bin", "q?x=1&y/#1.bin", "<&>/'\".bin"]


class FakeS3(http.server.ThreadingHTTPServer):
    """One bucket, two keys per page. Each request first takes an entry of `faults`; a callable answers instead."""

    daemon_threads = True

    def __init__(self, objects):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects = objects
        self.faults = []
        self.requests = []
        self.clients = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def settings(self, prefix="", **options):
        return DatasetSettings(uri=f"s3://bucket/{prefix}", endpoint=f"http://127.0.0.1:{self.server_port}", **options)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.requests.append((self.path, dict(self.headers)))
        self.server.clients.append(self.client_address)
        if self.server.faults:
            fault = self.server.faults.pop(0)
            if fault is not None:
                return fault(self)
        path, _, query = self.path.partition("?")
        if path == "/bucket":
            return self.list(dict(urllib.parse.parse_qsl(query)))
        key = urllib.parse.unquote(path[len("/bucket/"):])
        body = self.server.objects.get(key)
        if body is None:
            return self.reply(404, b"<Error><Code>NoSuchKey</Code><Message>gone</Message></Error>")
        if self.headers["If-Match"] != f'"{etag(body)}"':
            return self.reply(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        return self.reply(200, body)

    def list(self, query):
        keys = [key for key in sorted(self.server.objects, key=str.encode) if key.startswith(query.get("prefix", ""))]
        start = int(query.get("continuation-token", 0))
        rows = "".join(
            f"<Contents><Key>{urllib.parse.quote_plus(key, safe='/')}</Key><ETag>&quot;{etag(body)}&quot;</ETag>"
            f"<Size>{len(body)}</Size></Contents>"
            for key in keys[start:start + 2] for body in [self.server.objects[key]])
        more = start + 2 < len(keys)
        token = f"<NextContinuationToken>{start + 2}</NextContinuationToken>" if more else ""
        self.reply(200, (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}"
            "</ListBucketResult>").encode())


def etag(body):
    return hashlib.md5(body).hexdigest()


@pytest.fixture
def s3(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setattr(retry, "FIRST_DELAY_S", 0.001)
    server = FakeS3({f"train/{key}": key.encode() * 3 for key in ["cat/1", "cat/2", "dog/1", *ODD_KEYS]})
    server.objects["train/dog/"] = b""
    server.objects["other/x"] = b"not below the prefix"
    yield server
    server.shutdown()
    server.server_close()


def status(code, body=b"", headers=()):
    return lambda handler: handler.reply(code, body, headers)


def cut(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"x" * 10)
    handler.close_connection = True


def wrong_bytes(handler):
    handler.reply(200, b"C" * len("cat/1" * 3))


def read_one(s3):
    return S3Origin(s3.settings("train")).read(Request(b"cat/1", 15, etag(b"cat/1" * 3)))


def test_lists_all_pages_below_the_prefix_without_folders(s3):
    listing = S3Origin(s3.settings("train/")).list()
    expected = {key[6:]: body for key, body in s3.objects.items() if key.startswith("train/") and body}
    assert {key.decode(): (size, tag) for key, size, tag in listing} == {
        key: (len(body), etag(body)) for key, body in expected.items()}


def test_reads_every_key_that_it_lists(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{s3.server_port}")
    with stoker.open("s3://bucket/train") as samples:
        assert len(samples) == 9 and samples.classes == sorted(
            ["cat", "dog", "a b", "ünï", "100%", "..", "q?x=1&y", "<&>"], key=str.encode)
        for sample in samples.fetch(range(9)):
            assert bytes(sample) == s3.objects[f"train/{sample.key}"]


@pytest.mark.parametrize("fault", [status(500), status(503, headers=[("Retry-After", "0.01")]), status(429), cut,
                                   wrong_bytes])
def test_temporary_failures_are_retried(s3, fault):
    s3.faults = [fault, fault, None]
    assert read_one(s3) == b"cat/1" * 3
    assert len(s3.requests) == 3


def test_final_error_has_the_servers_message_and_the_key(s3):
    s3.faults = [status(503, b"<Error><Code>SlowDown</Code><Message>easy</Message></Error>")] * 50
    with pytest.raises(stoker.OriginError, match="'cat/1' of s3://.*503 SlowDown: easy") as caught:
        read_one(s3)
    assert caught.value.key == "cat/1" and len(s3.requests) == retry.ATTEMPTS


def encrypted(headers):
    return lambda handler: handler.reply(200, b"cat/1" * 3, headers.items())


@pytest.mark.parametrize("headers", [KMS, {"x-amz-server-side-encryption": "aws:kms:dsse"}, SSE_C])
def test_etag_of_an_encrypted_object_is_not_an_md5(s3, headers):
    s3.faults = [encrypted(headers)]
    assert S3Origin(s3.settings("train")).read(Request(b"cat/1", 15, NO_MD5)) == b"cat/1" * 3
    assert s3.requests[0][1]["if-match"] == f'"{NO_MD5}"'


@pytest.mark.parametrize("headers", [KMS, SSE_C])
def test_large_encrypted_object_is_read_in_parts(s3, monkeypatch, headers):
    monkeypatch.setattr("stoker.origin.remote.PART_BYTES", 8)
    monkeypatch.setattr("stoker.origin.large.PART_BYTES", 8)

    def part(handler):
        first, last = map(int, handler.headers["Range"][len("bytes="):].split("-"))
        body = (b"cat/1" * 3)[first:last + 1]
        handler.reply(206, body, [("Content-Range", f"bytes {first}-{last}/15"), *headers.items()])

    s3.faults = [part, part]
    assert bytes(S3Origin(s3.settings("train")).read(Request(b"cat/1", 15, NO_MD5))) == b"cat/1" * 3


@pytest.mark.parametrize("headers", [{}, {"x-amz-server-side-encryption": "AES256"}])
def test_bytes_that_do_not_match_the_md5_are_refused(s3, headers):
    s3.faults = [encrypted(headers)] * retry.ATTEMPTS
    with pytest.raises(stoker.OriginError, match="do not match their ETag"):
        S3Origin(s3.settings("train")).read(Request(b"cat/1", 15, NO_MD5))


def test_encrypted_object_of_another_size_is_refused(s3):
    s3.faults = [encrypted(KMS)]
    with pytest.raises(stoker.ChangedError, match="has 15 bytes, it was listed with 14"):
        S3Origin(s3.settings("train")).read(Request(b"cat/1", 14, NO_MD5))


@pytest.mark.parametrize("code, kind", [(403, stoker.ForbiddenError), (404, stoker.NotFoundError)])
def test_permanent_failures_are_not_retried(s3, code, kind):
    s3.faults = [status(code, b"<Error><Code>Why</Code></Error>")]
    with pytest.raises(kind, match=f"{code} Why"):
        read_one(s3)
    assert len(s3.requests) == 1


def test_replaced_object_is_refused_by_its_etag(s3):
    s3.objects["train/cat/1"] = b"other"
    with pytest.raises(stoker.ChangedError, match="cat/1"):
        read_one(s3)


def test_ignored_if_match_is_detected_by_the_etag(s3):
    s3.faults = [status(200, b"cat/2" * 3, {**KMS, "ETag": '"another"'}.items())]
    with pytest.raises(stoker.ChangedError, match="has ETag another, it was listed with"):
        read_one(s3)


def test_missing_bucket_is_an_error_when_opening(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{s3.server_port}")
    s3.faults = [status(404, b"<Error><Code>NoSuchBucket</Code></Error>")]
    with pytest.raises(stoker.NotFoundError, match="404 NoSuchBucket"):
        stoker.open("s3://bucket/train")


def test_empty_prefix_is_an_error(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{s3.server_port}")
    with pytest.raises(stoker.OriginError, match="dataset is empty"):
        stoker.open("s3://bucket/nothing")


def test_batch_is_read_over_several_connections(s3):
    origin = S3Origin(s3.settings("train"))
    requests = [Request(b"cat/1", 15, etag(b"cat/1" * 3)), Request(b"dog/1", 15, etag(b"dog/1" * 3))] * 20
    assert origin.read_many(requests) == [b"cat/1" * 3, b"dog/1" * 3] * 20
    origin.close()


def test_signature_matches_amazons_documented_example():
    """"GET Bucket (List Objects)" of Amazon's "Signature Calculations for the Authorization Header" for S3."""
    signed = sign_get(
        Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), "us-east-1",
        "examplebucket.s3.amazonaws.com", "/", [("max-keys", "2"), ("prefix", "J")],
        datetime.datetime(2013, 5, 24, tzinfo=datetime.timezone.utc))
    assert signed["authorization"].endswith("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")


@pytest.mark.parametrize("secret", ["stoker-secret", "another"])
def test_signature_is_accepted_only_with_the_right_secret(tmp_path, monkeypatch, programs, secret):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "stoker")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    payloads = {f"train/{key}": key.encode() for key in ["1", *ODD_KEYS] if ".." not in key}
    for key, body in payloads.items():
        (tmp_path / "bucket" / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bucket" / key).write_bytes(body)
    server = programs("stoker-fake-s3", "--root", tmp_path, "--access-key", "stoker", "--secret-key", "stoker-secret",
                      "--page-objects", 2)
    origin = S3Origin(DatasetSettings(uri="s3://bucket/train", endpoint=server.address))
    if secret == "another":
        with pytest.raises(stoker.ForbiddenError, match="403 SignatureDoesNotMatch"):
            origin.list()
        return
    listing = origin.list()
    assert {f"train/{key.decode()}" for key, _, _ in listing} == set(payloads)
    for key, size, tag in listing:
        assert origin.read(Request(key, size, tag)) == payloads[f"train/{key.decode()}"]


def test_session_token_is_sent_and_signed(s3, monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    read_one(s3)
    [(_, headers)] = s3.requests
    assert headers["x-amz-security-token"] == "token" and ";x-amz-security-token," in headers["authorization"]


def test_forked_worker_uses_its_own_connection(s3):
    body = b"cat/1" * 3
    origin = open_origin(s3.settings("train"))
    request = Request(b"cat/1", len(body), etag(body))
    assert origin.read(request) == body
    child = os.fork()
    if child == 0:
        os._exit(0 if origin.read(request) == body and origin.read_many([request] * 4) == [body] * 4 else 1)
    assert origin.read(request) == body
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert s3.clients.count(s3.clients[0]) == 2 and len(s3.clients) == 7


def test_without_credentials_requests_are_not_signed(s3, monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    read_one(s3)
    assert "authorization" not in s3.requests[0][1]


def test_folder_follows_links_that_stay_inside(origin):
    os.symlink(origin.root / "cat", origin.root / "lion")
    with stoker.open(origin.uri) as samples:
        assert samples.classes == ["ant", "cat", "dog", "lion"]
        assert bytes(samples[len(samples) - 1]) == bytes(samples.fetch([samples.labels.index(2) - 1])[0])


@pytest.mark.parametrize("target, words", [("/etc", "leads out"), ("nowhere", "nowhere"), (".", "links in a circle")])
def test_folder_refuses_links_that_lead_outside(origin, target, words):
    os.symlink(target, origin.root / "cat" / "link")
    with pytest.raises(stoker.OriginError, match=words):
        stoker.open(origin.uri)


def test_missing_folder_is_not_found(tmp_path):
    with pytest.raises(stoker.NotFoundError, match="none"):
        stoker.open(f"file://{tmp_path}/none")


def test_file_names_outside_utf8_are_read(tmp_path):
    os.makedirs(os.fsencode(tmp_path) + b"/\xff")
    with open(os.fsencode(tmp_path) + b"/\xff/x", "wb") as file:
        file.write(b"1")
    with stoker.open(f"file://{tmp_path}") as samples:
        assert os.fsencode(samples[0].key) == b"\xff/x" and bytes(samples[0]) == b"1"


# The sidecar does the same: a name in a URI is never decoded, and no character of it ends the path.
@pytest.mark.parametrize("name", ["a%20b", "a%2Fb", "100%", "a#b", "a?b", "a;b", "a\tb", "é", "a@b"])
def test_a_uri_is_taken_literally(tmp_path, s3, monkeypatch, name):
    for folder in {name, "a", "a b"}:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").write_text(folder)
        s3.objects[f"{folder}/x"] = folder.encode()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{s3.server_port}")
    for uri in (f"file://{tmp_path}/{name}", f"s3://bucket/{name}"):
        with stoker.open(uri) as samples:
            assert [bytes(sample) for sample in samples.fetch([0])] == [name.encode()]
            assert len(samples) == 1
