"""Tar shards in a real S3 server, read with the real sidecar; its GETs are counted."""

import contextlib
import io
import json
import tarfile

import pytest
import stoker

pytest.importorskip("boto3")
from conftest import BUILD, wait_until  # noqa: E402
from s3_pod import BUCKET, PREFIX, REAL, Pod, skip_without_gateway  # noqa: E402


def shard(prng, first, count, size_max):
    """The bytes of a shard, and its samples by stem."""
    samples = {f"n{at % 3}/{at:05}": {"jpg": prng.randbytes(prng.randrange(1, size_max)), "cls": str(at % 3).encode()}
               for at in range(first, first + count)}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for stem, members in samples.items():
            for extension, data in members.items():
                info = tarfile.TarInfo(f"{stem}.{extension}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue(), samples


class TarPod(Pod):
    origin_settings = {"format": "tar"}

    def make_payloads(self, prng):
        """Two shards of small samples and one of large ones."""
        payloads, self.samples = {PREFIX + "train.json": b"{}"}, {}
        for name, count, size_max in (("small-0", 150, 8_000), ("small-1", 150, 8_000), ("large", 40, 240_000)):
            payloads[f"{PREFIX}{name}.tar"], samples = shard(prng, 1000 * len(payloads), count, size_max)
            self.samples.update({f"{name}.tar/{stem}": {"__key__": stem, **sample} for stem, sample in samples.items()})
        return payloads

    def start_sidecar(self):
        socket = self.folder / "s.sock"
        socket.unlink(missing_ok=True)
        super().start_sidecar()
        wait_until("the sidecar's socket", socket.exists)

    def open(self):
        return stoker.open("train", socket=str(self.folder / "s.sock"))

    def read_samples(self, samples):
        got = {sample.key: sample for sample in samples.fetch(range(len(samples)))}
        assert {key: {name: bytes(value) if name != "__key__" else value for name, value in sample.items()}
                for key, sample in got.items()} == self.samples
        return {sample.source for sample in got.values()}


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes pods and stops them when the test ends."""
    skip_without_gateway()
    monkeypatch.setattr("stoker.link.CONNECT_TIMEOUT_S", 60.0)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", REAL[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", REAL[1])
    with contextlib.ExitStack() as stack:
        def start(**limits):
            pod = TarPod(tmp_path, stack, limits)
            entry = {"uri": f"s3://{BUCKET}/{PREFIX}", "endpoint": f"http://127.0.0.1:{pod.origin_port}", "format": "tar"}
            monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": entry}))
            pod.start_sidecar()
            return pod
        yield start


def test_second_epoch_makes_no_get(make):
    pod = make()
    with pod.open() as samples:
        listing = pod.origin_gets()
        assert listing <= 2 * 5 + 42, "windows of 256 KiB over small samples, one a large sample"
        pod.read_samples(samples)
        cold = pod.origin_gets() - listing
        print(f"GETs: listing {listing}, epoch 1 {cold} of {len(samples)} samples")
        assert 0 < cold <= len(samples)
        wait_until("the samples on the node", lambda: all(samples.sources.reader.resident(range(len(samples)))))
        assert pod.read_samples(samples) == {"node"}
        assert pod.origin_gets() == listing + cold


def test_listing_again_reads_only_changed_shards(make):
    pod = make()
    with pod.open() as samples:
        revision = samples.revision
        pod.read_samples(samples)
        wait_until("the samples on the node", lambda: all(samples.sources.reader.resident(range(len(samples)))))
    pod.kill("sidecar")
    before = pod.origin_gets()
    pod.start_sidecar()
    with pod.open() as samples:
        assert samples.revision == revision and pod.read_samples(samples) == {"node"}
        assert pod.origin_gets() == before
    pod.kill("sidecar")
    pod.direct.put_object(Bucket=BUCKET, Key=PREFIX + "new.tar", Body=pod.payloads[PREFIX + "small-0.tar"])
    pod.start_sidecar()
    with pod.open() as samples:
        assert len(samples) == len(pod.samples) + 150 and samples.revision != revision
        assert 0 < pod.origin_gets() - before <= 5


def test_the_client_reads_the_same_revision_and_samples_without_a_sidecar(make):
    pod = make(grant="0", window="4Mi")
    with pod.open() as samples:
        revision = samples.revision
        pod.kill("sidecar")
        with pytest.warns(stoker.StokerWarning):
            assert "origin" in pod.read_samples(samples)
    with pytest.warns(stoker.StokerWarning), pod.open() as samples:
        assert samples.revision == revision and pod.read_samples(samples) == {"origin"}


def test_endpoint_without_objects_says_so(make):
    pod = make()
    pod.run("endpoint", BUILD / "bin" / "stoker-s3")
    assert pod.processes.pop("endpoint").wait() != 0
    assert "format tar" in (pod.folder / "endpoint.log").read_text()
