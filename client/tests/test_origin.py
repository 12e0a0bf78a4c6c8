"""The readers that work without a sidecar: folders, and S3 with everything that can go wrong there."""

import datetime
import hashlib
import http.server
import os
import threading
import urllib.parse

import pytest
import stoker
from stoker.origin import Request, retry
from stoker.origin.s3 import S3Origin
from stoker.origin.sigv4 import CredentialChain, Credentials, sign_get
from stoker.settings import DatasetSettings

ODD_KEYS = ["a b/c+d.bin", "ünï/codé.bin", "100%/x%2By.bin", "a/../b.bin", "q?x=1&y/#1.bin", "<&>/'\".bin"]


class FakeS3(http.server.ThreadingHTTPServer):
    """One bucket, pages of two keys; `faults` are taken from the front: a callable gets the handler and answers."""

    daemon_threads = True

    def __init__(self, objects):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects = objects
        self.faults = []
        self.requests = []
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
        keys = [key for key in sorted(self.server.objects, key=str.encode) if key.startswith(query["prefix"])]
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


def test_lists_page_by_page_below_the_prefix_without_folders_whatever_the_keys(s3):
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
def test_what_may_pass_is_tried_again(s3, fault):
    s3.faults = [fault, fault, None]
    assert read_one(s3) == b"cat/1" * 3
    assert len(s3.requests) == 3


def test_it_gives_up_with_the_servers_words_and_the_key(s3):
    s3.faults = [status(503, b"<Error><Code>SlowDown</Code><Message>easy</Message></Error>")] * 50
    with pytest.raises(stoker.OriginError, match="'cat/1' of s3://.*503 SlowDown: easy") as caught:
        read_one(s3)
    assert caught.value.key == "cat/1" and len(s3.requests) == retry.ATTEMPTS


@pytest.mark.parametrize("code, kind", [(403, stoker.ForbiddenError), (404, stoker.NotFoundError)])
def test_what_does_not_pass_is_told_at_once(s3, code, kind):
    s3.faults = [status(code, b"<Error><Code>Why</Code></Error>")]
    with pytest.raises(kind, match=f"{code} Why"):
        read_one(s3)
    assert len(s3.requests) == 1


def test_an_object_that_was_replaced_is_refused_by_its_etag(s3):
    s3.objects["train/cat/1"] = b"other"
    with pytest.raises(stoker.ChangedError, match="cat/1"):
        read_one(s3)


def test_a_missing_bucket_is_told_when_opening(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{s3.server_port}")
    s3.faults = [status(404, b"<Error><Code>NoSuchBucket</Code></Error>")]
    with pytest.raises(stoker.NotFoundError, match="404 NoSuchBucket"):
        stoker.open("s3://bucket/train")


def test_an_empty_prefix_is_no_dataset(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{s3.server_port}")
    with pytest.raises(stoker.OriginError, match="dataset is empty"):
        stoker.open("s3://bucket/nothing")


def test_a_batch_is_read_over_several_connections(s3):
    origin = S3Origin(s3.settings("train"))
    requests = [Request(b"cat/1", 15, etag(b"cat/1" * 3)), Request(b"dog/1", 15, etag(b"dog/1" * 3))] * 20
    assert origin.read_many(requests) == [b"cat/1" * 3, b"dog/1" * 3] * 20
    origin.close()


def test_the_signature_is_that_of_the_documented_example():
    """"GET Bucket (List Objects)" of Amazon's "Signature Calculations for the Authorization Header" for S3."""
    signed = sign_get(
        Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), "us-east-1",
        "examplebucket.s3.amazonaws.com", "/", [("max-keys", "2"), ("prefix", "J")],
        datetime.datetime(2013, 5, 24, tzinfo=datetime.timezone.utc))
    assert signed["authorization"].endswith("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")


def test_credentials_come_from_the_environment_then_a_file_then_not_at_all(tmp_path):
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = f\naws_secret_access_key = g\n")
    now = datetime.datetime.now(datetime.timezone.utc)
    env = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SHARED_CREDENTIALS_FILE": str(file)}
    assert CredentialChain(env).get(now) == Credentials("a", "b")
    del env["AWS_ACCESS_KEY_ID"]
    assert CredentialChain(env).get(now) == Credentials("f", "g")
    env["AWS_SHARED_CREDENTIALS_FILE"] = str(tmp_path / "none")
    assert CredentialChain(env).get(now) is None


def test_a_projected_web_identity_is_exchanged_for_keys(tmp_path):
    token = tmp_path / "token"
    token.write_text("jwt")
    answer = ("<R><AccessKeyId>i</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
              "<Expiration>2030-01-01T00:00:00Z</Expiration></R>")
    asked = []

    class Sts(Handler):
        def do_POST(self):
            asked.append(urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.reply(200, answer.encode())

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sts)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {"AWS_ROLE_ARN": "arn:r", "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
           "AWS_ENDPOINT_URL_STS": f"http://127.0.0.1:{server.server_port}"}
    chain = CredentialChain(env)
    for year, calls in ((2029, 1), (2029, 1), (2030, 2)):
        got = chain.get(datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc))
        assert (got.access_key, got.secret_key, got.token) == ("i", "s", "t") and len(asked) == calls
    assert asked[0]["WebIdentityToken"] == ["jwt"] and asked[0]["RoleArn"] == ["arn:r"]
    server.shutdown()
    server.server_close()


def test_a_folder_follows_links_that_stay_inside(origin):
    os.symlink(origin.root / "cat", origin.root / "lion")
    with stoker.open(origin.uri) as samples:
        assert samples.classes == ["ant", "cat", "dog", "lion"]
        assert bytes(samples[len(samples) - 1]) == bytes(samples.fetch([samples.labels.index(2) - 1])[0])


@pytest.mark.parametrize("target, words", [("/etc", "leads out"), ("nowhere", "nowhere"), (".", "circle")])
def test_a_folder_refuses_links_that_do_not(origin, target, words):
    os.symlink(target, origin.root / "cat" / "link")
    with pytest.raises(stoker.OriginError, match=words):
        stoker.open(origin.uri)


def test_a_folder_that_does_not_exist_is_not_found(tmp_path):
    with pytest.raises(stoker.NotFoundError, match="none"):
        stoker.open(f"file://{tmp_path}/none")


def test_names_that_are_no_utf8_are_read_too(tmp_path):
    os.makedirs(os.fsencode(tmp_path) + b"/\xff")
    with open(os.fsencode(tmp_path) + b"/\xff/x", "wb") as file:
        file.write(b"1")
    with stoker.open(f"file://{tmp_path}") as samples:
        assert os.fsencode(samples[0].key) == b"\xff/x" and bytes(samples[0]) == b"1"
