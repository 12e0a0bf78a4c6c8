"""spec.cache.profiling.mode Measured end to end: an operator requests it; the real sidecar, a training loop and a slow
origin run it. The result reaches the operator, and the loop gets the same samples as without it."""

import json

import pytest
import stoker
import stoker.torch
from conftest import SEED, Origin, wait_until
from test_real_sidecar import RealSidecar

BATCH, BATCHES, PROBE = 4, 8, 7
DELAY_MS = 100  # of each answer of the origin, so a batch read without the cache takes at least this long
BUCKET = "train"


@pytest.fixture
def origin(tmp_path):
    return Origin(tmp_path / "root" / BUCKET, count=BATCH * BATCHES)


@pytest.fixture
def job(tmp_path, origin, programs, monkeypatch):
    """The operator, and a sidecar that has all samples and serves this process."""
    s3 = programs("stoker-fake-s3", "--root", tmp_path / "root",
                  "--fault", f"operation=get,delay_ms={DELAY_MS},times=-1")
    source = {"uri": f"s3://{BUCKET}", "endpoint": s3.address}
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": source}))
    monkeypatch.setattr("stoker.link.CONNECT_TIMEOUT_S", 60.0)
    monkeypatch.setattr("stoker.meter.REPORT_EVERY_S", 0.0)
    with RealSidecar(tmp_path, origin, source=source, stepAsideWindow="0s") as sidecar, sidecar.open() as samples:
        samples.fetch(range(len(samples)))
    asking = programs("stoker-fake-operator", "--ca", tmp_path / "ca.pem", "--grant", f"train={1 << 30}",
                      "--probe", f"{PROBE}={BATCHES}")
    (tmp_path / "token").write_text("a.token")
    control = {"endpoint": asking.address, "caFile": str(tmp_path / "ca.pem"), "tokenFile": str(tmp_path / "token")}
    with RealSidecar(tmp_path, origin, source=source, control=control, stepAsideWindow="0s") as sidecar:
        monkeypatch.setenv("STOKER_SOCKET", str(sidecar.socket))
        yield asking


def reports(asking):
    return [message["report"] for message in list(asking.lines) if "report" in message]


def has_grant(asking):
    return any(int(dataset.get("grantedBytes", 0)) > 0 for report in reports(asking)
               for dataset in report.get("datasets", []))


def measured(asking):
    """The finished measurement in the newest report that has one."""
    for report in reversed(reports(asking)):
        probe = report.get("job", {}).get("probe", {})
        if int(probe.get("bypassedBatches", 0)) == int(probe.get("cachedBatches", 0)) == BATCHES:
            return probe
    return None


def read_epoch(dataset, epoch):
    sampler = stoker.torch.Sampler(dataset, 1, 0, seed=SEED)
    sampler.set_epoch(epoch)
    loader = stoker.torch.DataLoader(dataset, batch_size=BATCH, sampler=sampler, collate_fn=list)
    return sampler, [data for batch in loader for data, _ in batch]


def test_measured_times_reach_the_operator_and_samples_come_once(job, origin):
    wait_until("the grant to be in force", lambda: has_grant(job))
    with stoker.open("train") as samples:
        dataset = stoker.torch.Dataset(samples, decode=bytes)
        for epoch in range(20):
            sampler, given = read_epoch(dataset, epoch)
            assert given == [origin.payloads[origin.keys[index]] for index in sampler.order()]
            if samples.stats()["origin_samples"] >= BATCH * BATCHES:
                break
        assert samples.stats()["origin_samples"] >= BATCH * BATCHES, "nothing was read past the cache"
        read_epoch(dataset, epoch + 1)  # a measurement's last batch ends when the next batch is requested
        probe = wait_until("a report of both ways", lambda: measured(job))
    assert int(probe["id"]) == PROBE
    assert int(probe["bypassedBytes"]) > 0 and int(probe["cachedBytes"]) > 0
    bypassed, cached = int(probe["bypassedNs"]), int(probe["cachedNs"])
    assert bypassed >= BATCHES * DELAY_MS * 1e6, "each batch waited for the origin"
    assert 0 < cached < bypassed
