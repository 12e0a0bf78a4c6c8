"""An S3 server with a certificate of a private authority: `caFile` of STOKER_DATASETS."""

import json
import ssl
import subprocess

import pytest
import stoker
from stoker.origin.s3 import S3Origin
from stoker.settings import resolve

from test_origin import FakeS3


@pytest.fixture
def authority(tmp_path):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=private",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "ca.crt"],
        check=True, capture_output=True)
    return tmp_path


@pytest.fixture
def server(authority):
    fake = FakeS3({"a.bin": b"1234"})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "ca.crt", authority / "key.pem")
    fake.socket = context.wrap_socket(fake.socket, server_side=True)
    yield fake
    fake.shutdown()
    fake.server_close()


def settings_of(server, **more):
    entry = {"uri": "s3://bucket", "endpoint": f"https://127.0.0.1:{server.server_port}", "pathStyle": True, **more}
    return resolve("train", env={"STOKER_DATASETS": json.dumps({"train": entry})})


def test_ca_file_of_the_job_is_trusted(authority, server):
    origin = S3Origin(settings_of(server, caFile=str(authority / "ca.crt")))
    assert [key for key, _, _ in origin.list()] == [b"a.bin"]


def test_server_is_refused_without_the_ca_file(server, monkeypatch):
    monkeypatch.setattr("stoker.origin.retry.ATTEMPTS", 1)
    with pytest.raises(stoker.OriginError):
        S3Origin(settings_of(server)).list()
