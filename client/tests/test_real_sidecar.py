"""The client with the real stoker-sidecar, over a folder as origin."""

import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import warnings

import pytest
import stoker
import stoker.torch
import torch.utils.data
from conftest import BUILD, Origin, wait_until


class RealSidecar:
    """stoker-sidecar with one dataset, "train"; several may share one node directory. `control`: address of the
    operator to report to. `with` starts and stops it."""

    def __init__(self, folder, origin, name="s", source=None, control=None, **dataset):
        self.socket = folder / f"{name}.sock"
        self.node = folder / "node"
        self.node.mkdir(exist_ok=True)
        self.settings = folder / f"{name}.yaml"
        dataset = {"name": "train", "origin": source or {"uri": origin.uri}, "directory": str(self.node),
                   "reservedFree": 0.001, **dataset}
        settings = {"socket": str(self.socket), "datasets": [dataset], **({"control": control} if control else {})}
        self.settings.write_text(json.dumps(settings))
        self.log = folder / f"{name}.log"
        self.process = None

    def start(self):
        self.socket.unlink(missing_ok=True)
        with open(self.log, "ab") as log:
            command = [str(BUILD / "bin" / "stoker-sidecar"), "--config", str(self.settings)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until("the socket of the sidecar", lambda: self.socket.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()
        return self

    def stop(self, with_signal=signal.SIGKILL):
        if self.process is not None:
            self.process.send_signal(with_signal)
            self.process.wait()
            self.process = None

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def open(self, **options):
        return stoker.open("train", socket=str(self.socket), **options)


@pytest.fixture
def run(tmp_path, origin, monkeypatch):
    """Makes sidecars and stops them when the test ends."""
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": origin.uri}}))
    monkeypatch.setattr("stoker.link.CONNECT_TIMEOUT_S", 60.0)  # a slow machine must not look like an absent sidecar
    with contextlib.ExitStack() as stack:
        def make(of=origin, **settings):
            return stack.enter_context(RealSidecar(tmp_path, of, **settings))
        yield make


def raw(view):
    return bytes(view)


def read_epoch(origin, samples, epoch, workers=0):
    """Reads one epoch with the torch classes; checks every sample's bytes and the sampler's order."""
    dataset = stoker.torch.Dataset(samples, decode=raw)
    sampler = stoker.torch.Sampler(dataset, 1, 0, seed=3)
    sampler.set_epoch(epoch)
    loader = stoker.torch.DataLoader(dataset, batch_size=16, sampler=sampler, num_workers=workers, collate_fn=list)
    got = [data for batch in loader for data, _ in batch]
    assert got == [origin.payloads[origin.keys[index]] for index in sampler.order()]


@pytest.mark.parametrize("workers", [0, 2])
def test_cold_epoch_uses_the_sidecar_and_the_next_only_files(origin, run, workers):
    sidecar = run()
    with sidecar.open() as samples:
        read_epoch(origin, samples, 0, workers)
        sidecar.stop()  # the files alone serve resident samples
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read_epoch(origin, samples, 1)
        assert samples.stats()["origin_samples"] == 0


def test_sidecars_manifest_equals_the_clients_listing(origin, run):
    with stoker.open(origin.uri) as alone, run().open() as samples:
        assert samples.revision == alone.revision
        assert [s.etag for s in samples.fetch(range(200))] == [s.etag for s in alone.fetch(range(200))]


# The sidecar's error quotes a key that is not UTF-8. A client that fails to decode it does not ask the origin.
def test_an_error_that_quotes_a_key_of_any_bytes_is_an_error_of_that_key(tmp_path, run):
    lost = os.fsencode(tmp_path) + b"/data/a\xff"
    os.makedirs(os.path.dirname(lost))
    for path in (lost, os.fsencode(tmp_path) + b"/data/b"):
        with open(path, "wb") as file:
            file.write(b"1")
    with run(source={"uri": f"file://{tmp_path}/data"}).open() as samples:
        os.unlink(lost)
        with pytest.raises(stoker.OriginError, match="the sidecar said"):
            samples.fetch([0, 1])


def test_epochs_stream_through_a_window_of_a_tenth_of_the_bytes(tmp_path, run):
    big = Origin(tmp_path / "big", count=300, size_max=80_000)
    assert sum(map(len, big.payloads.values())) > 10 << 20
    sidecar = run(of=big, grant="0", window="1Mi")
    with sidecar.open() as samples:
        for epoch in range(3):
            read_epoch(big, samples, epoch)
        assert samples.stats()["samples"] == 900
        assert samples.stats()["origin_samples"] == 0


def test_sidecar_restart_in_mid_epoch_loses_no_sample(origin, run):
    sidecar = run()
    with sidecar.open() as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert samples.stats()["attached"] == 1, "the socket accepts connections as soon as it exists"
        dataset = stoker.torch.Dataset(samples, decode=raw)
        sampler = stoker.torch.Sampler(dataset, 1, 0, seed=3)
        loader = torch.utils.data.DataLoader(dataset, batch_size=10, sampler=sampler, collate_fn=list)
        got = []
        for number, batch in enumerate(loader):
            got += [data for data, _ in batch]
            if number == 5:
                sidecar.stop()
            if number == 8:
                sidecar.start()
        assert got == [origin.payloads[origin.keys[index]] for index in sampler.order()]
        wait_until("the client to attach again", lambda: samples.fetch([0]) and samples.stats()["attached"] == 2)
        before = samples.stats()["origin_samples"]
        read_epoch(origin, samples, 1)
        assert samples.stats()["origin_samples"] == before


def test_follower_takes_over_without_an_error_in_its_trainer(origin, run):
    leader, follower = run(name="leader"), run(name="follower")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with follower.open() as samples:
            for sample in samples.fetch(range(60)):
                assert bytes(sample) == origin.payloads[sample.key]
            leader.stop()
            for at in range(60, 200, 20):
                for sample in samples.fetch(range(at, at + 20)):
                    assert bytes(sample) == origin.payloads[sample.key]
            assert samples.stats()["attached"] == 1


def damage(segment, payload):
    """Flips a bit of the payload in the file; False: the file does not hold it."""
    with open(segment, "r+b") as file:
        at = file.read().find(payload)
        if at >= 0:
            file.seek(at)
            file.write(bytes([payload[0] ^ 1]))
    return at >= 0


def test_flipped_bit_on_disk_is_repaired_and_never_served(origin, run):
    sidecar = run()
    with sidecar.open() as samples:
        samples.fetch(range(200))
    victim = max(origin.payloads.values(), key=len)
    id = origin.keys.index(next(key for key, payload in origin.payloads.items() if payload == victim))
    damaged = [damage(segment, victim) for segment in (sidecar.node / "data" / "segments").iterdir()]
    assert damaged.count(True) == 1
    with sidecar.open() as samples:
        assert bytes(samples[id]) == victim
        stats = samples.stats()
        assert stats["corrupt"] >= 1 and stats["node_samples"] == 1


def test_planned_samples_are_fetched_ahead(origin, run):
    sidecar = run()
    with sidecar.open() as samples:
        samples.set_plan(0, list(range(200)))
        def is_all_there():
            _, missing, _ = samples.sources.reader.read(range(200))
            return not missing
        wait_until("the sidecar to fetch samples before they are requested", is_all_there)
    assert os.listdir(sidecar.node / "data" / "segments")


def test_threads_stream_through_a_window_of_a_third_of_the_bytes(tmp_path, run):
    big = Origin(tmp_path / "big", count=300, size_max=80_000)
    sidecar = run(of=big, grant="0", window="4Mi")
    with sidecar.open() as samples:
        samples.set_plan(0, list(range(300)))

        def read(first):
            for at in range(first, 300, 40):
                for sample in samples.fetch(range(at, min(at + 10, 300))):
                    assert bytes(sample) == big.payloads[sample.key]
            return True

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert list(pool.map(read, range(0, 40, 10))) == [True] * 4
        samples.tell_all()
        assert samples.stats()["samples"] == 300 and samples.stats()["origin_samples"] == 0
