"""Measuring the cache's speedup: what is counted, and that the sample stream stays the same."""

import pytest
import stoker
import stoker.torch
from conftest import SEED, wait_until
from stoker.probe import Probe


def run_batches(probe, count, at=0, cached_ns=10, past_ns=30, epoch=0):
    """Runs batches of 100 bytes, with a duration per source; returns when the next would be requested."""
    changes = []
    for number in range(count):
        if probe.next_batch(at, epoch, 100):
            changes.append(number)
        at += past_ns if probe.bypassing else cached_ns
    return at, changes


def test_measures_the_requested_batches_with_and_without_the_cache():
    probe = Probe()
    probe.begin(7, 16)
    at, changes = run_batches(probe, 16 + 2 + 16)
    assert changes == [16]
    assert probe.bypassing
    assert probe.next_batch(at, 0, 100)
    assert not probe.bypassing
    assert probe.progress() == [16, 16 * 30, 1600, 16, 16 * 10, 1600]
    before = probe.progress()
    assert run_batches(probe, 50, at=at + 10) == (at + 510, [])
    assert probe.progress() == before, "the measurement has ended"


def test_each_measurement_id_is_measured_once():
    probe = Probe()
    probe.begin(0, 4)
    assert not probe.next_batch(0, 0, 100) and not probe.is_running
    probe.begin(7, 4)
    run_batches(probe, 10)
    done = probe.progress()
    probe.begin(7, 4)
    assert not probe.is_running and probe.progress() == done
    probe.begin(8, 4)
    assert probe.progress() == [0] * 6
    run_batches(probe, 3)
    assert probe.is_running


def test_gap_between_epochs_is_not_measured():
    probe = Probe()
    probe.begin(7, 4)
    at, _ = run_batches(probe, 2)
    at, _ = run_batches(probe, 9, at=at + 1_000_000, epoch=1)
    assert probe.progress()[3:5] == [4, 40]


def test_failed_measurement_is_ended():
    probe = Probe()
    probe.begin(7, 4)
    at, _ = run_batches(probe, 6)
    assert probe.bypassing
    probe.give_up()
    assert not probe.bypassing and not probe.next_batch(at, 0, 100)
    probe.begin(7, 4)
    assert not probe.is_running


def read_epochs(samples, epochs, workers=0):
    """The items that a training loop gets, in order."""
    dataset = stoker.torch.Dataset(samples, decode=bytes)
    sampler = stoker.torch.Sampler(dataset, 1, 0, seed=SEED)
    given = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        loader = stoker.torch.DataLoader(dataset, batch_size=4, sampler=sampler, num_workers=workers, collate_fn=list)
        given += [data for batch in loader for data, _ in batch]
    return given


@pytest.fixture
def short_reports(monkeypatch):
    monkeypatch.setattr("stoker.meter.REPORT_EVERY_S", 0.0)  # also in forked workers


@pytest.mark.parametrize("workers", [0, 2])
def test_measurement_keeps_the_sample_order_and_reports_both_times(
    sidecar, short_reports, workers
):
    sidecar.start(preload=1.0)
    with stoker.open("train", socket=sidecar.socket) as samples:
        plain = read_epochs(samples, 3)
        assert samples.stats()["origin_samples"] == 0
    sidecar.kill()
    sidecar.start(preload=1.0, probe=[7, 8])
    with stoker.open("train", socket=sidecar.socket) as samples:
        assert read_epochs(samples, 3, workers) == plain
        past = samples.stats()["origin_samples"]
    assert past == (0 if workers else (8 + 1) * 4)
    wait_until("the end of the measurement", lambda: any(
        event["cached_batches"] == 8 and event["bypassed_batches"] == 8 and not event["bypassing"]
        for event in sidecar.events("probed")))
    assert {event["id"] for event in sidecar.events("probed")} == {7}
    assert any(event["bypassing"] for event in sidecar.events("probed"))


def test_unreachable_origin_ends_the_measurement(sidecar, monkeypatch, short_reports):
    monkeypatch.delenv("STOKER_DATASETS")
    sidecar.start(preload=1.0, probe=[7, 4])
    with stoker.open("train", socket=sidecar.socket) as samples:
        assert len(read_epochs(samples, 2)) == 2 * len(samples)
        assert samples.stats()["origin_samples"] == 0
    last = wait_until("the last report", lambda: sidecar.events("probed"))[-1]
    assert not last["bypassing"] and last["bypassed_batches"] == 0
