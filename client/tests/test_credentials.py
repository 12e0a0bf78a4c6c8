"""Credentials of a direct read: files, the environment, web identity. The token service is a fake on loopback."""

import datetime
import http.server
import json
import os
import threading
import urllib.parse

import pytest
import stoker
from stoker.origin.credentials import CredentialChain
from stoker.origin.sigv4 import Credentials


def at(text):
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)


NOON = at("2026-01-31T12:00:00")


class TokenService(http.server.ThreadingHTTPServer):
    """Answers the n-th request with access key n, valid until one o'clock; or with `status` and `body`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.status, self.body = [], 200, None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append({name: value for name, value in urllib.parse.parse_qsl(form)})
        body = self.server.body or (
            f"<R><C><AccessKeyId>{len(self.server.asked)}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
            "<SessionToken>t</SessionToken><Expiration>2026-01-31T13:00:00Z</Expiration></C></R>")
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


@pytest.fixture
def service():
    server = TokenService()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def identity(tmp_path, service):
    """Environment variables of a web identity."""
    (tmp_path / "token").write_text("jwt 1\n")
    return {"AWS_ROLE_ARN": "arn:r", "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
            "AWS_ENDPOINT_URL_STS": service.url, "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}


def test_most_explicit_credentials_win(tmp_path, identity):
    shared = tmp_path / "credentials"
    shared.write_text("[default]\naws_access_key_id = shared\naws_secret_access_key = s\n")
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps({"AccessKeyId": "kept", "SecretAccessKey": "s"}))
    env = {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    assert CredentialChain(env).get(NOON) is None
    env["AWS_SHARED_CREDENTIALS_FILE"] = str(shared)
    assert CredentialChain(env).get(NOON) == Credentials("shared", "s")
    env.update(identity)
    assert CredentialChain(env).get(NOON).access_key == "1"
    env.update(AWS_ACCESS_KEY_ID="environment", AWS_SECRET_ACCESS_KEY="s")
    assert CredentialChain(env).get(NOON) == Credentials("environment", "s")
    assert CredentialChain(env, file=str(kept)).get(NOON) == Credentials("kept", "s")


def test_web_identity_is_exchanged_once_and_renewed_before_expiry(tmp_path, service, identity):
    chain = CredentialChain(identity)
    assert chain.get(NOON) == Credentials("1", "s", "t", at("2026-01-31T13:00:00"))
    assert chain.get(at("2026-01-31T12:54:00")).access_key == "1"
    (tmp_path / "token").write_text("jwt 2\n")
    assert chain.get(at("2026-01-31T12:56:00")).access_key == "2"
    assert [(form["RoleArn"], form["WebIdentityToken"]) for form in service.asked] == [
        ("arn:r", "jwt 1"), ("arn:r", "jwt 2")]


def test_failed_renewal_keeps_credentials_until_expiry(service, identity):
    chain = CredentialChain(identity)
    chain.get(NOON)
    service.status, service.body = 503, "<E><Code>Busy</Code><Message>later</Message></E>"
    assert chain.get(at("2026-01-31T12:59:00")).access_key == "1"
    with pytest.raises(OSError, match="503 Busy: later"):
        chain.get(at("2026-01-31T13:00:00"))


def test_refusal_carries_the_services_message(service, identity):
    service.status, service.body = 403, "<E><Code>AccessDenied</Code><Message>no such role</Message></E>"
    with pytest.raises(stoker.ForbiddenError, match="for role arn:r: 403 AccessDenied: no such role") as caught:
        CredentialChain(identity).get(NOON)
    assert "jwt" not in str(caught.value)


@pytest.mark.parametrize("body", ["<html>", "<R><AccessKeyId>a</AccessKeyId></R>", "x" * 100_000])
def test_answer_without_credentials_is_a_temporary_error(service, identity, body):
    service.body = body
    with pytest.raises(OSError, match="has no credentials|longer than"):
        CredentialChain(identity).get(NOON)


@pytest.mark.parametrize("env, expected", [
    ({}, "https://sts.eu-west-1.amazonaws.com/"),
    ({"AWS_REGION": "r", "AWS_DEFAULT_REGION": "d"}, "https://sts.r.amazonaws.com/"),
    ({"AWS_REGION": "cn-north-1"}, "https://sts.cn-north-1.amazonaws.com.cn/"),
    ({"AWS_STS_REGIONAL_ENDPOINTS": "legacy"}, "https://sts.amazonaws.com/"),
    ({"AWS_ENDPOINT_URL_STS": "http://sts.svc"}, "http://sts.svc"),
])
def test_the_token_service_is_the_regions_unless_the_environment_names_another(env, expected):
    assert CredentialChain(env, region="eu-west-1")._token_service() == expected


def replace(path, **keys):
    """Replaces the file as credential programs do: a new file under the old name."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(keys))
    os.replace(new, path)


def test_credentials_file_is_read_again_when_replaced(tmp_path):
    path = tmp_path / "keys.json"
    replace(path, AccessKeyId="old", SecretAccessKey="s", SessionToken="t", Expiration="2026-01-31T13:00:00Z")
    chain = CredentialChain({}, file=str(path))
    assert chain.get(NOON) == Credentials("old", "s", "t", at("2026-01-31T13:00:00"))
    replace(path, AccessKeyId="new", SecretAccessKey="s")
    assert chain.get(NOON) == Credentials("new", "s")


def test_expired_credentials_file_is_refused_until_renewed(tmp_path):
    path = tmp_path / "keys.json"
    replace(path, AccessKeyId="a", SecretAccessKey="s", Expiration="2026-01-31T13:00:00Z")
    chain = CredentialChain({}, file=str(path))
    chain.get(NOON)
    for _ in range(2):
        with pytest.raises(stoker.ForbiddenError, match="keys.json has expired and was not renewed"):
            chain.get(at("2026-01-31T13:00:00"))
    replace(path, AccessKeyId="b", SecretAccessKey="s", Expiration="2026-01-31T14:00:00Z")
    assert chain.get(at("2026-01-31T13:00:00")).access_key == "b"


@pytest.mark.parametrize("text", ["", "s3cr3t", "[]", "{\"AccessKeyId\": \"a\"}", "x" * 100_000])
def test_invalid_credentials_file_is_named_and_not_quoted(tmp_path, text):
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(stoker.ForbiddenError, match="keys.json") as caught:
        CredentialChain({}, file=str(path)).get(NOON)
    assert "s3cr3t" not in str(caught.value)


def test_missing_credentials_file_is_named(tmp_path):
    with pytest.raises(stoker.ForbiddenError, match="none.json: No such file"):
        CredentialChain({}, file=str(tmp_path / "none.json")).get(NOON)
