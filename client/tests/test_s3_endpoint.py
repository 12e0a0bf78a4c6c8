"""stoker-s3 with boto3, the real sidecar and a real S3 server: programs that only speak S3 read from the node."""

import concurrent.futures
import contextlib
import io
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import urllib.request

import pytest
from conftest import BUILD, SEED, wait_until

pytest.importorskip("boto3")
from s3_pod import (  # noqa: E402
    BUCKET,
    LOOPBACK,
    PREFIX,
    REAL,
    Neighbour,
    Pod,
    answers,
    client_of,
    free_port,
    source,
    started,
    status_of,
)


@pytest.fixture
def limits():
    """Settings of the dataset beside its place."""
    return {}


@pytest.fixture
def pod(tmp_path, limits):
    with started(Pod, tmp_path, limits) as pod:
        yield pod


def test_second_epoch_reads_nothing_at_the_origin(pod):
    assert pod.read_all() == {"fetched"}
    before = pod.origin_gets()
    assert pod.read_all() == {"hit"}
    assert pod.origin_gets() == before == len(pod.keys)


def test_objects_of_concurrent_readers_are_whole(pod):
    clients = [client_of(pod.port, LOOPBACK) for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: pod.read(pod.keys[at % len(pod.keys)], clients[at % 8]), range(300)))


def test_two_pods_of_a_node_that_read_in_step_fetch_each_object_once(pod):
    pods = [pod, Neighbour(pod)]
    pods[1].start_sidecar()
    pods[1].start_endpoint()
    pods[1].await_cache()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for key in pod.keys:
            assert {*pool.map(lambda reader, of=key: reader.read(of), pods)} <= {"hit", "fetched"}
    assert pod.origin_gets() == len(pod.keys) + 1, "the sidecar that follows proves with one GET that it may read"


@pytest.mark.parametrize("size", [7, 1000])
def test_listings_equal_the_origins(pod, size):
    def pages(client, **query):
        found = client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, PaginationConfig={"PageSize": size}, **query)
        keys, prefixes = [], []
        for page in found:
            keys += [(o["Key"], o["Size"], o["ETag"]) for o in page.get("Contents", [])]
            prefixes += [p["Prefix"] for p in page.get("CommonPrefixes", [])]
        return keys, prefixes

    for query in ({"Prefix": PREFIX}, {"Prefix": PREFIX, "Delimiter": "/"}, {"Prefix": PREFIX + "c1/"},
                  {"Prefix": PREFIX, "StartAfter": pod.keys[30]}, {"Prefix": PREFIX + "none"}, {"Prefix": "sets/"}):
        assert pages(pod.client, **query) == pages(pod.direct, **query), query


def test_heads_ranges_and_conditions_equal_the_origins(pod):
    key = next(key for key in pod.keys if len(pod.payloads[key]) > 1000)
    payload, size = pod.payloads[key], len(pod.payloads[key])
    pod.read_all()
    head, direct = (client.head_object(Bucket=BUCKET, Key=key) for client in (pod.client, pod.direct))
    assert (head["ContentLength"], head["ETag"]) == (direct["ContentLength"], direct["ETag"])
    for text, expected in (("bytes=10-19", payload[10:20]), ("bytes=-7", payload[-7:]), ("bytes=5-", payload[5:]),
                           (f"bytes=0-{size * 2}", payload)):
        got = pod.client.get_object(Bucket=BUCKET, Key=key, Range=text)
        assert got["Body"].read() == expected and source(got) == "hit"
        assert got["ContentRange"] == pod.direct.get_object(Bucket=BUCKET, Key=key, Range=text)["ContentRange"]
    assert status_of(pod.client.get_object, Bucket=BUCKET, Key=key, Range=f"bytes={size}-")[0] == 416
    assert status_of(pod.client.get_object, Bucket=BUCKET, Key=key, IfNoneMatch=head["ETag"])[0] == 304
    assert status_of(pod.client.get_object, Bucket=BUCKET, Key=key, IfMatch='"other"')[0] == 412
    assert status_of(pod.client.get_object, Bucket=BUCKET, Key=key, IfModifiedSince=head["LastModified"])[0] == 304


@pytest.mark.parametrize("limits", [{"grant": "1"}])
def test_ranges_of_an_object_that_is_not_kept_cost_one_request(pod):
    key = next(key for key in pod.keys if len(pod.payloads[key]) > 50_000)
    before = pod.origin_gets()
    parts = [pod.client.get_object(Bucket=BUCKET, Key=key, Range=span)["Body"].read()
             for span in ("bytes=-1000", "bytes=0-9999", "bytes=10000-")]
    assert parts[1] + parts[2] == pod.payloads[key] and parts[0] == pod.payloads[key][-1000:]
    assert pod.origin_gets() == before + 1
    assert pod.read(key) == "fetched"
    assert pod.origin_gets() == before + 2, "the node keeps nothing: a whole read is a request"


def test_presigned_and_virtual_host_requests_are_served(pod):
    key = f"{PREFIX}odd/a b+c&<é>.bin"
    signer = client_of(pod.port, LOOPBACK, signature_version="s3v4")
    url = signer.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": key})
    assert urllib.request.urlopen(url, timeout=10).read() == b"odd"
    virtual = client_of(pod.port, LOOPBACK, s3={"addressing_style": "virtual"})

    def to_loopback(request, **_):
        request.headers["Host"] = f"{BUCKET}.localhost:{pod.port}"
        request.url = request.url.replace(f"{BUCKET}.127.0.0.1", "127.0.0.1").replace(f"/{BUCKET}/", "/")
    virtual.meta.events.register("before-sign.s3.GetObject", to_loopback)
    assert pod.read(key, virtual) in ("hit", "fetched")


def test_clients_that_hang_up_or_stay_idle_harm_nobody(pod):
    signer = client_of(pod.port, LOOPBACK, signature_version="s3v4")
    with contextlib.ExitStack() as stack:
        for key in pod.keys:  # each is a miss, so the client is gone before its answer
            target = signer.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": key}).split("/", 3)[3]
            with socket.create_connection(("127.0.0.1", pod.port)) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets
                client.sendall(f"GET /{target} HTTP/1.1\r\nHost: 127.0.0.1:{pod.port}\r\n\r\n".encode())
        for _ in range(1200):  # more than the endpoint takes
            stack.enter_context(socket.create_connection(("127.0.0.1", pod.port)))
        assert pod.read(pod.keys[0], client_of(pod.port, LOOPBACK)) in ("hit", "fetched")
    assert pod.read_all() <= {"hit", "fetched"}


def test_other_buckets_and_writes_are_forwarded(pod):
    payload = random.Random(SEED).randbytes(11 << 20)
    pod.client.put_object(Bucket="other", Key="a/b c+é", Body=b"small", ContentType="text/plain", Metadata={"who": "we"})
    got = pod.client.get_object(Bucket="other", Key="a/b c+é")
    assert (got["Body"].read(), got["ContentType"], got["Metadata"]) == (b"small", "text/plain", {"who": "we"})
    pod.client.upload_fileobj(io.BytesIO(payload), "other", "large")  # in parts
    assert pod.client.get_object(Bucket="other", Key="large")["Body"].read() == payload
    assert pod.direct.get_object(Bucket="other", Key="large")["Body"].read() == payload
    pod.client.copy_object(Bucket="other", Key="copy", CopySource={"Bucket": "other", "Key": "a/b c+é"})
    assert [o["Key"] for o in pod.client.list_objects(Bucket="other")["Contents"]] == ["a/b c+é", "copy", "large"]
    pod.client.delete_objects(Bucket="other", Delete={"Objects": [{"Key": "large"}, {"Key": "copy"}]})
    pod.client.delete_object(Bucket="other", Key="a/b c+é")
    assert pod.direct.list_objects_v2(Bucket="other")["KeyCount"] == 0
    assert {bucket["Name"] for bucket in pod.client.list_buckets()["Buckets"]} == {BUCKET, "other"}
    assert status_of(pod.client.get_object, Bucket=BUCKET, Key=PREFIX + "none") == (404, "NoSuchKey")


def test_a_pod_reads_what_it_has_written(pod):
    key = pod.keys[3]
    pod.read(key)
    pod.payloads[key] = b"new"
    pod.client.put_object(Bucket=BUCKET, Key=key, Body=b"new")
    assert pod.read(key) is None
    pod.client.put_object(Bucket=BUCKET, Key=PREFIX + "zz", Body=b"1")
    assert PREFIX + "zz" in [o["Key"] for o in pod.client.list_objects_v2(Bucket=BUCKET, Prefix=PREFIX)["Contents"]]


def test_requests_with_wrong_keys_are_refused(pod):
    for key, code in (((LOOPBACK[0], "wrong"), "SignatureDoesNotMatch"), (REAL, "InvalidAccessKeyId")):
        assert status_of(client_of(pod.port, key).get_object, Bucket=BUCKET, Key=pod.keys[0]) == (403, code)
        assert status_of(client_of(pod.port, key).put_object, Bucket="other", Key="x", Body=b"1") == (403, code)
    anonymous = client_of(pod.port, LOOPBACK, signature_version=__import__("botocore").UNSIGNED)
    assert status_of(anonymous.get_object, Bucket=BUCKET, Key=pod.keys[0]) == (403, "AccessDenied")
    assert pod.direct.list_objects_v2(Bucket="other")["KeyCount"] == 0


def test_a_dead_sidecar_changes_no_answer(pod):
    for key in pod.keys[:30]:
        pod.read(key)
    pod.kill("sidecar")
    assert {pod.read(key) for key in pod.keys[:30]} == {"hit"}
    assert {pod.read(key) for key in pod.keys[30:]} == {None}, "misses come from the origin"
    pod.start_sidecar()
    # While the endpoint attaches again, for some 0.1 s, it forwards what the node does not hold.
    wait_until("every sample on the node", lambda: None not in pod.read_all())
    assert pod.read_all() == {"hit"}


def test_without_a_sidecar_everything_is_forwarded(pod):
    pod.kill("sidecar")
    pod.kill("endpoint")
    pod.start_endpoint()
    assert pod.read_all() == {None}
    listed = pod.client.list_objects_v2(Bucket=BUCKET, Prefix=PREFIX)["Contents"]
    assert [o["Key"] for o in listed] == pod.keys


def test_while_the_origin_is_away_misses_get_a_status_after_which_clients_try_again(pod):
    pod.read_all()
    pod.kill("origin")
    assert pod.read_all() == {"hit"}
    assert status_of(pod.client.get_object, Bucket="other", Key="x") == (503, "SlowDown")


def test_endpoint_exits_with_zero_on_sigterm(pod):
    pod.read_all()
    assert pod.kill("endpoint", signal.SIGTERM) == 0


def test_hits_reach_the_jobs_counters(pod, tmp_path):
    pod.kill("sidecar")
    port = free_port()
    settings = {"socket": str(tmp_path / "s.sock"), "http": {"listen": f"127.0.0.1:{port}"}, "datasets": [
        {"name": "train", "directory": str(tmp_path / "node"), "reservedFree": 0.001,
         "origin": {"uri": f"s3://{BUCKET}/{PREFIX[:-1]}", "endpoint": f"http://127.0.0.1:{pod.origin_port}"}}]}
    (tmp_path / "sidecar.yaml").write_text(json.dumps(settings))
    pod.run("sidecar", BUILD / "bin" / "stoker-sidecar", "--config", tmp_path / "sidecar.yaml")

    def hits():
        status = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=10))
        return status["datasets"][0]["job"]["hitSamples"]

    wait_until("the sidecar", lambda: answers(port))
    wait_until("every sample on the node", lambda: None not in pod.read_all())  # it forwards until it has attached again
    pod.read_all()
    wait_until("the hits of an epoch", lambda: hits() >= len(pod.keys))
