"""Samples by id: hits, misses, and what is sent to the sidecar."""

import pathlib
import pickle
import time

import numpy as np
import pytest
import stoker
from stoker.pending_acks import GATHER_READS_AT_MOST, GATHER_S


def check(origin, sample):
    assert bytes(sample) == origin.payloads[sample.key]
    assert sample.key == origin.keys[sample.id]


def test_ids_follow_the_bytewise_order_of_keys(origin, sidecar):
    with stoker.open(origin.uri) as alone:
        expected = [(s.id, s.key, s.label, s.etag) for s in alone.fetch(range(len(alone)))]
        revision = alone.revision
    sidecar.start()
    with stoker.open("train") as samples:
        assert [(s.id, s.key, s.label, s.etag) for s in samples.fetch(range(len(samples)))] == expected
        assert samples.revision == revision
        assert [key for _, key, _, _ in expected] == origin.keys


def test_hit_sends_no_request(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        for sample in samples.fetch(range(len(samples))):
            check(origin, sample)
            assert sample.source == "node"
        assert samples.stats()["node_samples"] == len(origin.keys)
    assert sidecar.events("fetch") == []


def test_misses_of_a_batch_are_one_request(origin, sidecar):
    sidecar.start(preload=0.5)
    with stoker.open("train") as samples:
        ids = list(range(90, 110))
        for sample in samples.fetch(ids):
            check(origin, sample)
        assert samples.stats()["origin_samples"] == 0
    assert [event["samples"] for event in sidecar.events("fetch")] == [list(range(100, 110))]


def test_huge_batch_is_split_into_requests(origin, sidecar, monkeypatch):
    monkeypatch.setattr("stoker.samples.FETCH_AT_MOST", 64)
    sidecar.start()
    with stoker.open("train") as samples:
        for sample in samples.fetch(range(200)):
            check(origin, sample)
    assert [len(event["samples"]) for event in sidecar.events("fetch")] == [64, 64, 64, 8]


def test_acknowledgements_to_a_busy_sidecar_are_sent_later(origin, sidecar, monkeypatch):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        with monkeypatch.context() as busy:
            busy.setattr(samples.sources.link, "consumed", lambda epoch, ids: False)
            for at in range(0, 100, 20):
                samples.fetch(range(at, at + 20))
            samples.flush()
        samples.fetch([150])
    told = [id for event in sidecar.wait_for("consumed", 1) for id in event["samples"]]
    assert told == [*range(100), 150]


@pytest.mark.parametrize("convert", [list, tuple, np.array, lambda ids: np.array(ids, dtype=np.int32)])
def test_ids_may_be_any_sequence_of_integers(origin, sidecar, convert):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        assert [sample.id for sample in samples.fetch(convert([5, 3, 5]))] == [5, 3, 5]


@pytest.mark.parametrize("id", [-1, 200, 2**70])
def test_id_outside_the_dataset_is_an_index_error(origin, sidecar, id):
    sidecar.start(preload=1)
    with stoker.open("train") as samples, pytest.raises(IndexError):
        samples.fetch([0, id])
    with stoker.open(origin.uri) as samples, pytest.raises(IndexError):
        samples.fetch([0, id])


def test_id_that_is_a_float_is_a_type_error(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples, pytest.raises(TypeError):
        samples.fetch([0, 1.0])
    with stoker.open(origin.uri) as samples, pytest.raises(TypeError):
        samples.fetch([0, 1.0])


def test_misses_are_split_into_parts_of_at_least_one():
    misses = stoker._core.Misses([4, 2, 9], 10)
    assert [(part.ids, part.positions) for part in misses.split(2)] == [([4, 2], [0, 1]), ([9], [2])]
    with pytest.raises(ValueError, match="at least 1"):
        misses.split(0)


def test_sample_is_a_read_only_buffer(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        sample = samples[7]
    payload = origin.payloads[origin.keys[7]]
    assert sample.view.readonly and sample.view.format == "B" and sample.view.nbytes == len(payload) == len(sample)
    assert np.frombuffer(sample, np.uint8).tobytes() == payload
    with pytest.raises(TypeError):
        sample.view[0] = 1


def test_sample_pickles_as_a_copy(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        sample = samples[7]
        copy = pickle.loads(pickle.dumps(sample))
    assert (bytes(copy), copy.id, copy.key, copy.label, copy.etag, copy.checksum) == (
        bytes(sample), sample.id, sample.key, sample.label, sample.etag, sample.checksum)


def test_samples_read_one_by_one_are_acknowledged_together(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        order = list(range(len(samples)))[::-1]
        for id in order:
            assert bytes(samples[id]) == origin.payloads[origin.keys[id]]
        for outside in (-1, len(samples)):
            with pytest.raises(IndexError, match="outside"):
                samples[outside]
        assert samples.stats()["samples"] == samples.stats()["node_samples"] == len(samples)
    frames = [event["samples"] for event in sidecar.wait_for("consumed", 7)]
    assert sum(frames, []) == order
    assert max(map(len, frames)) <= 32 and len(frames) == 7


def test_every_read_is_acknowledged_once(origin, sidecar):
    sidecar.start(preload=0.5)
    with stoker.open("train") as samples:
        samples.set_plan(3, list(range(len(samples))))
        for at in range(0, 200, 20):
            samples.fetch(range(at, at + 20))
    assert sorted(sidecar.wait_consumed(200)) == list(range(200))
    assert {event["epoch"] for event in sidecar.events("consumed")} == {3}


def test_residents_that_are_read_one_by_one_are_acknowledged_and_counted_once(origin, sidecar):
    sidecar.start(preload=1.0)
    with stoker.open("train") as samples:
        for epoch in range(3):
            samples.set_plan(epoch, list(range(len(samples))))
            for id in range(len(samples)):
                assert samples[id].view == origin.payloads[origin.keys[id]]
            assert samples.stats()["samples"] == samples.stats()["node_samples"] == (epoch + 1) * len(samples)
        with pytest.raises(IndexError):
            samples[len(samples)]
        with pytest.raises(IndexError):
            samples[-1]
        with pytest.raises(TypeError):
            samples["1"]
    assert sorted(sidecar.wait_consumed(3 * 200)) == sorted(3 * list(range(200)))
    for epoch in range(3):
        told = [id for event in sidecar.events("consumed") if event["epoch"] == epoch for id in event["samples"]]
        assert sorted(told) == list(range(200))


def test_warm_batches_are_acknowledged_together(origin, sidecar):
    sidecar.start(preload=1.0)
    began = time.monotonic()
    with stoker.open("train") as samples:
        for _ in range(500):
            samples.fetch(range(20))
    assert len(sidecar.wait_consumed(500 * 20)) == 500 * 20
    assert len(sidecar.events("consumed")) <= 2 + 500 * 20 / GATHER_READS_AT_MOST + (time.monotonic() - began) / GATHER_S


def test_a_plan_is_sent_whole_with_its_start_position(origin, sidecar):
    sidecar.start()
    with stoker.open("train") as samples:
        samples.set_plan(2, np.arange(200)[::-1].copy(), 17)
    (plan,) = sidecar.wait_for("plan")
    assert (plan["epoch"], plan["start"], plan["samples"]) == (2, 17, list(range(199, -1, -1)))


def test_reports_sum_to_the_totals(origin, sidecar):
    sidecar.start(preload=0.5)
    with stoker.open("train") as samples:
        samples.fetch(range(80, 120))
        samples.note_step(wait_ns=5, compute_ns=7)
    (report,) = sidecar.wait_for("report")
    size = sum(len(origin.payloads[key]) for key in origin.keys[80:120])
    assert report == {"event": "report", "epoch": 0, "steps": 1, "samples": 40, "bytes": size, "hit_samples": 40,
                      "origin_samples": 0, "wait_ns": 5, "compute_ns": 7}


def test_hello_identifies_the_reader(origin, sidecar, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    sidecar.start()
    stoker.open("train").close()
    (hello,) = sidecar.events("hello")
    assert (hello["dataset"], hello["rank"], hello["world_size"]) == ("train", 3, 8)
    assert hello["stream"] != 0 and hello["version"] == 1 and hello["client"].startswith("stoker-python/")


def test_open_waits_while_the_sidecar_lists(origin, sidecar):
    sidecar.start(listings=5)
    with stoker.open("train") as samples:
        assert samples.stats()["attached"] == 1


def test_process_stats_include_closed_datasets(origin):
    before = stoker.stats().get("samples", 0)
    with stoker.open(origin.uri) as samples:
        samples.fetch([1, 2, 3])
    assert stoker.stats()["samples"] == before + 3


def test_a_pickled_copy_does_not_verify_again_what_its_maker_has_verified(origin, sidecar):
    sidecar.start(preload=1.0)
    with stoker.open("train") as samples:
        views = [sample.view for sample in samples.fetch(range(len(samples)))]
        for segment in (pathlib.Path(sidecar.settings["node"]) / "segments").iterdir():
            stored = segment.read_bytes()
            with open(segment, "r+b") as file:
                for at in (stored.find(view) for view in views):
                    if at >= 0:
                        file.seek(at)
                        file.write(bytes([stored[at] ^ 1]))
        with pickle.loads(pickle.dumps(samples)) as copy:
            assert {sample.source for sample in copy.fetch(range(len(copy)))} == {"node"}
            assert copy.stats()["corrupt"] == 0
        with stoker.open("train") as fresh:
            fresh.fetch(range(len(fresh)))
            assert fresh.stats()["corrupt"] >= len(fresh)
