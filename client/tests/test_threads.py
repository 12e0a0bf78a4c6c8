"""Several threads of one process: hits do not wait, and misses are fetched in parallel."""

import collections
import os
import threading
import warnings

import pytest
import stoker
from conftest import wait_until


class Reader(threading.Thread):
    """Calls fetch(ids) in its own thread; the outcome is in `samples` or `error`."""

    def __init__(self, samples, ids):
        super().__init__(daemon=True)
        self.source, self.ids = samples, ids
        self.samples, self.error = None, None
        self.start()

    def run(self):
        try:
            self.samples = self.source.fetch(self.ids)
        except BaseException as error:
            self.error = error

    def check(self, origin):
        self.join()
        assert self.error is None
        assert [bytes(sample) for sample in self.samples] == [origin.payloads[origin.keys[id]] for id in self.ids]
        assert {sample.source for sample in self.samples} == {"node"}


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """A file that releases stalled fetches. Without it they fail well before the suite's timeout."""
    monkeypatch.setattr("stoker.link.FETCH_TIMEOUT_S", 30.0)
    return tmp_path / "gate"


def consumed(sidecar, ids):
    """How often each id was reported as read, once all of `ids` were."""
    def told():
        return collections.Counter(id for event in sidecar.events("consumed") for id in event["samples"])
    return wait_until(f"{len(ids)} acknowledgements", lambda: set(told()) >= set(ids) and told())


def test_hit_does_not_wait_for_another_threads_miss(origin, sidecar, gate, monkeypatch):
    monkeypatch.setattr("stoker.meter.REPORT_EVERY_S", 0.0)  # every read also sends a report
    sidecar.start(preload=0.5, stall={"ids": [150], "until": str(gate)})
    with stoker.open("train") as samples:
        stalled = Reader(samples, [150])
        sidecar.wait_for("fetch")
        for at in range(0, 100, 10):
            assert all(sample.source == "node" for sample in samples.fetch(range(at, at + 10)))
            samples.flush()
        assert stalled.is_alive() and not gate.exists()
        gate.touch()
        stalled.check(origin)
    assert consumed(sidecar, [*range(100), 150]) == collections.Counter([*range(100), 150])


def test_another_threads_miss_keeps_samples_in_use(origin, sidecar, gate):
    sidecar.start(preload=0.5, stall={"ids": [150], "until": str(gate)})
    with stoker.open("train") as samples:
        stalled = Reader(samples, [150])
        sidecar.wait_for("fetch")
        samples.fetch([5])
        gate.touch()
        stalled.check(origin)
    assert consumed(sidecar, [5, 150]) == collections.Counter([5, 150])


def test_misses_of_several_threads_are_fetched_in_parallel(origin, sidecar, gate):
    stalled_ids = range(100, 106)
    sidecar.start(stall={"ids": list(stalled_ids), "until": str(gate)})
    with stoker.open("train") as samples:
        stalled = [Reader(samples, [id]) for id in stalled_ids]
        sidecar.wait_for("fetch", len(stalled_ids))
        quick = Reader(samples, [7, 8])
        quick.check(origin)
        assert all(reader.is_alive() for reader in stalled)
        gate.touch()
        for reader in stalled:
            reader.check(origin)
    ids = [7, 8, *stalled_ids]
    assert consumed(sidecar, ids) == collections.Counter(ids)


def test_threads_beyond_the_connection_limit_wait(origin, sidecar, gate, monkeypatch):
    monkeypatch.setattr("stoker.link.LANES_AT_MOST", 2)
    ids = range(100, 110)
    sidecar.start(stall={"ids": list(ids), "until": str(gate)})
    with stoker.open("train") as samples:
        readers = [Reader(samples, [id]) for id in ids]
        sidecar.wait_for("fetch", 3)
        gate.touch()
        for reader in readers:
            reader.check(origin)
    assert len(sidecar.events("hello")) == 3
    assert sorted(id for event in sidecar.events("fetch") for id in event["samples"]) == list(ids)


def test_child_forked_during_a_miss_uses_its_own_connections(origin, sidecar, gate):
    sidecar.start(preload=0.5, stall={"ids": [150, 151], "until": str(gate)})
    with stoker.open("train") as samples:
        stalled = [Reader(samples, [150]), Reader(samples, [151])]
        sidecar.wait_for("fetch", 2)
        child = os.fork()
        if child == 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                right = all(bytes(samples[id]) == origin.payloads[origin.keys[id]] for id in (3, 160))
            os._exit(0 if right and samples.stats()["origin_samples"] == 0 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert all(reader.is_alive() for reader in stalled)
        gate.touch()
        for reader in stalled:
            reader.check(origin)
        assert samples.stats()["lost"] == 0


def test_every_threads_read_is_acknowledged_once(origin, sidecar):
    sidecar.start(preload=0.3)
    with stoker.open("train") as samples:
        shares = [range(first, 200, 8) for first in range(8)]

        def read(share):
            for at in range(0, len(share), 5):
                for sample in samples.fetch(list(share[at : at + 5])):
                    assert bytes(sample) == origin.payloads[sample.key]

        ended = []
        threads = [threading.Thread(target=lambda s=share: read(s) or ended.append(0)) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ended) == len(shares), "a thread raised an exception"
        samples.tell_all()
    assert consumed(sidecar, range(200)) == collections.Counter(range(200))
