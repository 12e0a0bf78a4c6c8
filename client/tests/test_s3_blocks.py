"""stoker-s3 over a dataset of format blocks, with boto3, the real sidecar and a real S3 server: large objects are cached in
ranges, and clients see whole objects."""

import concurrent.futures
import pathlib
import random
import signal

import pytest
from conftest import SEED, wait_until

pytest.importorskip("boto3")
from botocore.exceptions import ClientError, HTTPClientError, ResponseStreamingError  # noqa: E402
from s3_pod import (  # noqa: E402
    BUCKET,
    LOOPBACK,
    PREFIX,
    Pod,
    client_of,
    source,
    started,
    status_of,
)

BLOCK = 64 << 10
LARGE = PREFIX + "large.bin"
BROKEN = (ResponseStreamingError, HTTPClientError, ClientError)


def blocks_of(size):
    return max(1, -(-size // BLOCK))


class BlocksPod(Pod):
    origin_settings = {"format": "blocks", "blockSize": str(BLOCK)}

    def make_payloads(self, prng):
        sizes = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK + 4321]
        payloads = {f"{PREFIX}dir/{size:07}.bin": prng.randbytes(size) for size in sizes}
        return {**payloads, LARGE: prng.randbytes(40 * BLOCK - 99), PREFIX + "large.bin-not": b"a neighbour"}

    def blocks(self):
        # A GET of an empty object is answered from the manifest.
        return sum(blocks_of(len(payload)) for payload in self.payloads.values() if payload)

    def read_range(self, first, last, key=LARGE, **more):
        return self.client.get_object(Bucket=BUCKET, Key=key, Range=f"bytes={first}-{last}", **more)

    def gets_of(self, read):
        before = self.origin_gets()
        read()
        return self.origin_gets() - before

    def replace(self, key):
        """Other bytes of the same length, written past the endpoint."""
        self.payloads[key] = random.Random(SEED + 1).randbytes(len(self.payloads[key]))
        self.direct.put_object(Bucket=BUCKET, Key=key, Body=self.payloads[key])


@pytest.fixture
def limits():
    return {}


@pytest.fixture
def make_pod():
    return BlocksPod


@pytest.fixture
def pod(tmp_path, limits, make_pod):
    with started(make_pod, tmp_path, limits) as pod:
        yield pod


def test_each_block_is_fetched_once(pod):
    assert pod.gets_of(pod.read_all) == pod.blocks()
    assert pod.gets_of(pod.read_all) == 0
    assert pod.read(LARGE) == "hit"


def test_listings_and_heads_equal_the_origins(pod):
    def listed(client, **query):
        found = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, PaginationConfig={"PageSize": 3}, **query)
        return [(o["Key"], o["Size"], o["ETag"]) for page in found for o in page.get("Contents", [])]

    for query in ({"Prefix": PREFIX}, {"Prefix": PREFIX + "large.bin"}, {"Prefix": PREFIX, "StartAfter": LARGE}):
        assert listed(pod.client, **query) == listed(pod.direct, **query), query
    for key in pod.keys:
        head, direct = (client.head_object(Bucket=BUCKET, Key=key) for client in (pod.client, pod.direct))
        assert (head["ContentLength"], head["ETag"]) == (direct["ContentLength"], direct["ETag"])
    assert pod.origin_gets() == 0


def random_span(prng, size):
    """(text of a range, its bytes as a slice), often at a block's border."""
    def near():
        return max(0, min(size - 1, prng.randrange(size) if prng.random() < 0.5 else
                          prng.randrange(blocks_of(size) + 1) * BLOCK + prng.randrange(-2, 3)))

    form = prng.randrange(4)
    if form == 0:
        length = prng.choice([1, prng.randrange(1, size + 1), size, size + 5])
        return f"bytes=-{length}", slice(max(0, size - length), size)
    first, last = sorted((near(), near()))
    if form == 1:
        return f"bytes={first}-", slice(first, size)
    if form == 2:
        last += size
    return f"bytes={first}-{last}", slice(first, last + 1)


@pytest.mark.parametrize("limits", [{}, {"grant": str(20 * BLOCK), "window": "1Mi"}], ids=["kept", "half kept"])
def test_random_ranges_equal_the_origins(pod, limits):
    print("seed", SEED)
    clients = [client_of(pod.port, LOOPBACK) for _ in range(4)]

    def check(at):
        prng = random.Random(SEED * 1000 + at)
        key = prng.choice([key for key in pod.keys if pod.payloads[key]])
        text, span = random_span(prng, len(pod.payloads[key]))
        got = clients[at % 4].get_object(Bucket=BUCKET, Key=key, Range=text)
        assert got["Body"].read() == pod.payloads[key][span], (key, text)
        if at % 10 == 0:
            direct = pod.direct.get_object(Bucket=BUCKET, Key=key, Range=text)
            assert [got[name] for name in ("ContentRange", "ContentLength", "ETag")] == \
                [direct[name] for name in ("ContentRange", "ContentLength", "ETag")]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(check, range(400)))
    assert status_of(pod.read_range, len(pod.payloads[LARGE]), "")[0] == 416


@pytest.mark.parametrize("limits", [{"grant": str(20 * (BLOCK + 64)), "window": "1Mi"}])
def test_later_epochs_fetch_only_the_blocks_that_do_not_fit(pod):
    blocks = blocks_of(len(pod.payloads[LARGE]))
    epochs = [pod.gets_of(lambda: pod.read(LARGE)) for _ in range(4)]
    assert epochs[0] == blocks
    assert all(abs(gets - (blocks - 20)) <= 0.03 * blocks for gets in epochs[1:]), epochs


@pytest.mark.parametrize("limits", [{"grant": "1"}])
def test_a_range_costs_its_blocks_and_not_the_object(pod):
    assert pod.gets_of(lambda: pod.read_range(3 * BLOCK + 7, 3 * BLOCK + 9)["Body"].read()) == 1
    assert pod.gets_of(lambda: pod.read_range(7 * BLOCK - 1, 9 * BLOCK)["Body"].read()) == 4
    # The endpoint still has copies of blocks 3, 6 and 9, of which the ranges above took only a part.
    assert pod.gets_of(lambda: pod.read_range(0, "")["Body"].read()) == 40 - 3


@pytest.mark.parametrize("limits", [{}, {"grant": "1"}], ids=["kept", "not kept"])
def test_ranges_in_a_row_cost_each_block_once(pod, limits):
    def read():
        step = BLOCK // 4 + 100
        parts = [pod.read_range(at, at + step - 1)["Body"].read() for at in range(0, len(pod.payloads[LARGE]), step)]
        assert b"".join(parts) == pod.payloads[LARGE]

    # A block may be requested in the moment in which its prefetch ends, and then it is fetched again.
    assert 40 <= pod.gets_of(read) <= 44


def test_ranges_of_a_changed_object_are_refused_once_and_then_new(pod):
    old = pod.payloads[LARGE]
    assert pod.read_range(0, BLOCK - 1)["Body"].read() == old[:BLOCK]
    pod.replace(LARGE)
    assert pod.read_range(0, 9)["Body"].read() == old[:10], "the node's block has the version that was listed"
    assert status_of(pod.read_range, 5 * BLOCK, 5 * BLOCK + 9) == (412, "PreconditionFailed")
    assert pod.read_range(0, 9)["Body"].read() == pod.payloads[LARGE][:10]
    assert pod.read(LARGE) is None


def test_a_response_never_mixes_two_versions(pod):
    pod.read_range(0, 4 * BLOCK - 1)["Body"].read()
    pod.replace(LARGE)
    with pytest.raises(BROKEN):  # four blocks of the old version have been sent
        pod.client.get_object(Bucket=BUCKET, Key=LARGE)["Body"].read()
    assert pod.read(LARGE) is None


def test_after_a_whole_read_of_a_changed_object_ranges_are_new(pod):
    assert pod.read_range(5 * BLOCK, 5 * BLOCK + 9)["Body"].read() == pod.payloads[LARGE][5 * BLOCK:5 * BLOCK + 10]
    pod.replace(LARGE)
    assert pod.read(LARGE) is None
    assert pod.read_range(5 * BLOCK, 5 * BLOCK + 9)["Body"].read() == pod.payloads[LARGE][5 * BLOCK:5 * BLOCK + 10]


def test_a_sidecar_that_dies_in_mid_read_changes_no_byte(pod):
    for round_ in range(3):
        part = len(pod.payloads[LARGE]) // 3
        body = pod.client.get_object(Bucket=BUCKET, Key=LARGE)["Body"]
        begin = body.read(part + round_)
        pod.kill("sidecar")
        assert begin + body.read() == pod.payloads[LARGE]
        assert pod.read(LARGE) in ("hit", "fetched", None)
        pod.start_sidecar()
        wait_until("the sidecar", lambda: pod.read(LARGE) is not None)


@pytest.mark.parametrize("limits", [{"grant": str(4 * (BLOCK + 64)), "window": "1Mi"}])
def test_an_origin_that_dies_in_mid_read_is_an_error_that_clients_see(pod):
    pod.read_range(0, 4 * BLOCK - 1)["Body"].read()  # kept
    pod.kill("sidecar")
    pod.kill("origin")
    with pytest.raises(BROKEN):
        pod.client.get_object(Bucket=BUCKET, Key=LARGE)["Body"].read()
    assert pod.read_range(0, BLOCK - 1)["Body"].read() == pod.payloads[LARGE][:BLOCK]


def test_without_a_sidecar_ranges_are_forwarded(pod):
    pod.read_range(0, 2 * BLOCK - 1)["Body"].read()
    pod.kill("sidecar")
    got = pod.read_range(BLOCK, 30 * BLOCK)
    assert source(got) == "hit", "the first block is here"
    assert got["Body"].read() == pod.payloads[LARGE][BLOCK:30 * BLOCK + 1]
    got = pod.read_range(10 * BLOCK + 1, 30 * BLOCK)
    assert source(got) is None
    assert got["Body"].read() == pod.payloads[LARGE][10 * BLOCK + 1:30 * BLOCK + 1]


class LargePod(BlocksPod):
    origin_settings = {"format": "blocks"}  # of 8 MiB

    def make_payloads(self, prng):
        return {LARGE: prng.randbytes(1 << 20) * 160}


class LargeObjectsPod(LargePod):
    origin_settings = {}


@pytest.mark.parametrize("make_pod", [LargeObjectsPod])
@pytest.mark.parametrize("limits", [{"window": "128Mi"}])
def test_the_sidecar_says_that_samples_above_the_window_need_room_in_the_grant(pod, limits):
    assert "format blocks caches large objects in ranges" in (pod.folder / "sidecar.log").read_text()


def private_bytes(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")) << 10


@pytest.mark.parametrize("make_pod", [LargePod])
@pytest.mark.parametrize("limits", [{}, {"grant": "1"}], ids=["kept", "not kept"])
def test_streaming_takes_at_most_64_mib_of_the_endpoint(pod, limits):
    payload, at, peak = pod.payloads[LARGE], 0, 0
    body = pod.client.get_object(Bucket=BUCKET, Key=LARGE)["Body"]
    for part in body.iter_chunks(4 << 20):
        assert part == payload[at:at + len(part)]
        at, peak = at + len(part), max(peak, private_bytes(pod.processes["endpoint"]))
    assert at == len(payload)
    assert peak <= 64 << 20
    assert pod.kill("endpoint", signal.SIGTERM) == 0
