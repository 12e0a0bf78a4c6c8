"""A grant that orders to fetch without a reader (DatasetWarmup) end to end: a fake operator orders it, the real sidecar
fetches from a fake S3 server that counts. A reader afterwards asks the origin for nothing."""

import time

import pytest
from conftest import Origin, stats, wait_until
from test_real_sidecar import RealSidecar

SAMPLES, SIZE_MAX = 2000, 2000
RATE = 250_000  # bytes/s: about 2 MB in 8 s
BUCKET = "train"


@pytest.fixture
def origin(tmp_path):
    return Origin(tmp_path / "root" / BUCKET, count=SAMPLES, size_max=SIZE_MAX)


def fetched(s3):
    return stats(s3.address)["get"]


def filling(asking):
    """The newest progress that the sidecar reported."""
    for message in reversed(list(asking.lines)):
        for dataset in message.get("report", {}).get("datasets", []):
            if "fill" in dataset:
                return dataset["fill"]
    return {}


def test_a_sidecar_fills_the_cache_at_the_operators_rate_and_then_serves_every_sample(tmp_path, origin, programs):
    s3 = programs("stoker-fake-s3", "--root", tmp_path / "root")
    asking = programs("stoker-fake-operator", "--ca", tmp_path / "ca.pem", "--grant", f"train={1 << 30}", "--fill", RATE)
    (tmp_path / "token").write_text("a.token")
    control = {"endpoint": asking.address, "caFile": str(tmp_path / "ca.pem"), "tokenFile": str(tmp_path / "token")}
    source = {"uri": f"s3://{BUCKET}", "endpoint": s3.address}
    sizes = [len(origin.payloads[key]) for key in origin.keys]
    with RealSidecar(tmp_path, origin, source=source, control=control, stepAsideWindow="0s") as sidecar:
        marks = []
        for share in (0.2, 0.8):
            count = wait_until(f"{share} of the samples", lambda share=share: fetched(s3) >= share * SAMPLES and fetched(s3))
            marks.append((time.monotonic(), sum(sizes[:count])))
        (began, first), (ended, last) = marks
        rate = (last - first) / (ended - began)
        print(f"filled at {rate:.0f} bytes/s of {RATE}")
        assert abs(rate - RATE) <= 0.1 * RATE, f"{rate:.0f} bytes/s"
        told = wait_until("the end", lambda: filling(asking).get("over") and filling(asking))
        assert (int(told["samples"]), int(told["storedSamples"])) == (SAMPLES, SAMPLES)
        assert (int(told["bytes"]), int(told["storedBytes"])) == (sum(sizes), sum(sizes))
        assert fetched(s3) == SAMPLES
        with sidecar.open() as samples:
            assert [bytes(data) for data in samples.fetch(range(SAMPLES))] == [
                origin.payloads[key] for key in origin.keys]
        assert fetched(s3) == SAMPLES, "the reader asked the origin for nothing"
