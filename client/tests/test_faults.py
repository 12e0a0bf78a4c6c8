"""Faults during training: every sample is right and served exactly once."""

import json
import os
import pickle
import resource
import subprocess
import sys
import threading
import warnings

import pytest
import stoker
from conftest import wait_until

EACCES_CODE = 5  # kForbidden


def read_all(samples, batch=16):
    """Every sample once, in batches; returns {key: bytes}."""
    got = {}
    for at in range(0, len(samples), batch):
        for sample in samples.fetch(range(at, min(at + batch, len(samples)))):
            assert sample.key not in got
            got[sample.key] = bytes(sample)
    return got


def opened(name="train"):
    """Opens the dataset; returns it with the warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        samples = stoker.open(name)
    return samples, [str(warning.message) for warning in seen]


def test_client_without_a_sidecar_reads_the_origin_and_warns_once(origin, sidecar):
    samples, warned = opened()
    with samples, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_all(samples) == origin.payloads
        assert samples.stats()["origin_samples"] == 200
    assert len(warned) == 1 and "no cache for 'train'" in warned[0]


@pytest.mark.parametrize("fault, words", [
    ({"version": 2}, "the sidecar speaks protocol version 2, this client version 1"),
    ({"garbage": "ff" * 64}, "the limit is"),
    ({"garbage": "00000000" + "4200" + "0000" + "00" * 8}, "unknown frame type 66"),
    ({"garbage": "08000000" + "0300"}, "hung up"),
    ({"refuse": [EACCES_CODE, "no dataset 'train' here"]}, "no dataset 'train' here"),
    ({"wrong_directory": "/nonexistent"}, "node directory cannot be read"),
])
def test_unusable_sidecar_is_treated_as_absent(origin, sidecar, fault, words):
    sidecar.start(**fault)
    samples, warned = opened()
    with samples:
        assert read_all(samples) == origin.payloads
    assert len(warned) == 1 and words in warned[0]


def test_sidecar_death_in_mid_answer_loses_no_sample(origin, sidecar):
    sidecar.start(die_in_fetch=4)
    samples, _ = opened()
    with samples, pytest.warns(stoker.StokerWarning, match="hung up"):
        assert read_all(samples) == origin.payloads
        stats = samples.stats()
        assert stats["node_samples"] + stats["origin_samples"] == 200
        assert stats["node_samples"] >= 3 * 16 and stats["lost"] == 1


def test_reattaches_to_a_restarted_sidecar_and_sends_the_plan(origin, sidecar):
    sidecar.start()
    with stoker.open("train") as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples.set_plan(5, list(range(200)))
        samples.fetch(range(16))
        sidecar.kill()
        samples.fetch(range(16, 32))
        samples.advance(32)
        sidecar.start()
        wait_until("the client to attach again", lambda: samples.fetch([0]) and samples.stats()["attached"] == 2)
        before = samples.stats()["origin_samples"]
        for sample in samples.fetch(range(32, 200)):
            assert bytes(sample) == origin.payloads[sample.key]
        assert samples.stats()["origin_samples"] == before
    plans = sidecar.events("plan")
    assert [plan["start"] for plan in plans] == [0, 32] and plans[0]["samples"] == plans[1]["samples"]


def test_residents_are_served_without_the_sidecar(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        sidecar.kill()
        assert read_all(samples) == origin.payloads
        assert samples.stats()["origin_samples"] == 0


def test_mounted_node_directory_serves_without_any_sidecar(origin, sidecar):
    sidecar.start(preload=1).kill()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with stoker.open("train", directory=sidecar.settings["node"]) as samples:
            assert read_all(samples) == origin.payloads
            assert samples.stats()["node_samples"] == 200


def test_wrong_checksum_is_repaired_by_the_sidecar_and_never_served(origin, sidecar):
    sidecar.start(preload=1, damage=[3, 4, 5])
    with stoker.open("train") as samples:
        assert read_all(samples) == origin.payloads
        stats = samples.stats()
        assert stats["corrupt"] >= 3 and stats["origin_samples"] == 0
    assert [event["samples"] for event in sidecar.events("fetch")] == [[3, 4, 5], [3, 4, 5]]


def cut(path):
    os.truncate(path, 0)


def test_truncated_residency_table_loses_no_sample(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples.fetch(range(200))
        [table] = [name for name in os.listdir(sidecar.settings["node"]) if name.startswith("residency.")]
        sidecar.kill()  # this fake would write into the table; a real leader makes a new one
        cut(os.path.join(sidecar.settings["node"], table))
        assert read_all(samples) == origin.payloads
        assert samples.stats()["node_samples"] == 200 and samples.stats()["origin_samples"] == 200


def segments(sidecar):
    folder = os.path.join(sidecar.settings["node"], "segments")
    return [os.path.join(folder, name) for name in os.listdir(folder)]


def test_segment_truncated_before_its_first_read_is_read_at_the_origin(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sidecar.kill()
        for segment in segments(sidecar):
            cut(segment)
        assert read_all(samples) == origin.payloads
        assert samples.stats()["origin_samples"] == 200


def test_a_guests_samples_survive_damage_to_the_segments(origin, sidecar, monkeypatch):
    sidecar.start(preload=1)
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": origin.uri, "guest": True}}))
    with stoker.open("train") as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held = samples.fetch(range(200))
        sidecar.kill()
        for segment in segments(sidecar):
            cut(segment)
        for sample in held:
            assert bytes(sample) == origin.payloads[sample.key] and sample.source == "node"
            assert bytes(pickle.loads(pickle.dumps(sample))) == origin.payloads[sample.key]
        assert read_all(samples) == origin.payloads
        assert samples.stats()["origin_samples"] == 200


def test_library_reads_of_a_truncated_file_raise(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        sample = samples[0]
        for segment in segments(sidecar):
            cut(segment)
        with pytest.raises(OSError, match="was truncated"):
            pickle.dumps(sample)
        with pytest.raises(OSError, match="was truncated"):
            sample.checksum


def test_wrong_checksum_without_a_sidecar_is_read_at_the_origin(origin, sidecar):
    sidecar.start(preload=1, damage=[3])
    with stoker.open("train") as samples:
        sidecar.kill()
        with pytest.warns(stoker.StokerWarning):
            assert read_all(samples) == origin.payloads
        assert samples.stats()["origin_samples"] == 1


def test_truncated_segment_is_a_miss_and_not_a_signal(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        os.truncate(os.path.join(sidecar.settings["node"], "segments", "1.seg"), 5000)
        assert read_all(samples) == origin.payloads


def test_view_of_an_evicted_segment_stays_valid(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        held = samples.fetch(range(200))
        folder = os.path.join(sidecar.settings["node"], "segments")
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        samples.close()
        assert {sample.key: bytes(sample.view) for sample in held} == origin.payloads


def test_reads_go_to_the_origin_while_the_sidecar_bypasses_its_cache(origin, sidecar):
    sidecar.start(step_aside=True)
    with stoker.open("train") as samples:
        assert read_all(samples) == origin.payloads
        assert samples.stats()["origin_samples"] == 200


def test_reader_follows_a_new_residency_table(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples.fetch(range(10))
        sidecar.kill()
        for name in os.listdir(sidecar.settings["node"]):
            if name.startswith("residency"):
                os.unlink(os.path.join(sidecar.settings["node"], name))
        sidecar.start()
        wait_until("the client to attach again", lambda: samples.fetch([0]) and samples.stats()["attached"] == 2)
        assert read_all(samples) == origin.payloads


def test_reader_follows_a_table_that_was_replaced_under_its_connection(origin, sidecar):
    sidecar.start()
    with stoker.open("train") as samples:
        samples.fetch(range(10))
        [table] = [name for name in os.listdir(sidecar.settings["node"]) if name.startswith("residency.")]
        path = os.path.join(sidecar.settings["node"], table)
        with open(path, "rb") as old, open(path + ".new", "wb") as new:
            new.write(old.read(64).ljust(os.path.getsize(path), b"\0"))  # the header, and no words
        os.replace(path + ".new", path)
        assert read_all(samples) == origin.payloads
        assert samples.stats()["origin_samples"] == 0 and samples.stats()["attached"] == 1
    fetched = [id for event in sidecar.events("fetch") for id in event["samples"]]
    assert fetched == list(range(200)), "what the new table has is not requested again"


def test_undeliverable_object_is_an_error_with_its_key(origin, sidecar):
    sidecar.start(origin_error=[7])
    with stoker.open("train") as samples:
        (origin.root / origin.keys[7]).unlink()
        with pytest.raises(stoker.NotFoundError, match=origin.keys[7]) as caught:
            samples.fetch([6, 7])
        assert caught.value.key == origin.keys[7] and "GET broken: 404" in str(caught.value)
        assert bytes(samples[6]) == origin.payloads[origin.keys[6]]


def test_object_changed_since_listing_is_refused(origin):
    with stoker.open(origin.uri) as samples:
        (origin.root / origin.keys[7]).write_bytes(b"other")
        with pytest.raises(stoker.ChangedError, match=origin.keys[7]):
            samples.fetch([7])


def test_without_an_origin_reads_wait_for_the_sidecar(origin, sidecar, monkeypatch):
    monkeypatch.delenv("STOKER_DATASETS")
    sidecar.start()
    with stoker.open("train") as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sidecar.kill()
        threading.Timer(0.5, sidecar.start).start()
        assert read_all(samples) == origin.payloads


def test_a_client_without_an_origin_stops_waiting_at_an_origin_error_without_a_message(origin, sidecar, monkeypatch):
    monkeypatch.delenv("STOKER_DATASETS")
    monkeypatch.setattr("stoker.sources.WAIT_FOR_SIDECAR_S", 5)
    sidecar.start(origin_error=[7], origin_says="")
    with stoker.open("train") as samples, pytest.raises(stoker.OriginError, match="the origin failed"):
        samples.fetch([6, 7])


def forbid(monkeypatch, has_key):
    """Makes the origin answer 403, for a pod with credentials or without."""
    class Refusing:
        def describe(self):
            return "s3://bucket"

        def list(self, progress=None):
            raise stoker.ForbiddenError("403 AccessDenied")

        def read_many(self, requests):
            raise stoker.ForbiddenError("403 AccessDenied", requests[0].key.decode())

        def has_key(self):
            return has_key

        def close(self):
            pass

    monkeypatch.setattr("stoker.sources.open_origin", lambda settings: Refusing())


def test_guest_without_credentials_waits_for_the_sidecar_to_return(origin, sidecar, monkeypatch):
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": origin.uri, "guest": True}}))
    forbid(monkeypatch, has_key=False)
    sidecar.start()
    samples, _ = opened()
    with samples, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        sidecar.kill()
        threading.Timer(0.5, sidecar.start).start()
        assert read_all(samples) == origin.payloads
        assert len(warned) == 1
        assert samples.stats()["origin_samples"] == 0


def test_guest_without_credentials_waits_for_its_first_sidecar(origin, sidecar, monkeypatch):
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": origin.uri, "guest": True}}))
    forbid(monkeypatch, has_key=False)
    threading.Timer(0.5, sidecar.start).start()
    samples, _ = opened()
    with samples:
        assert read_all(samples) == origin.payloads


@pytest.mark.parametrize("guest, has_key", [(True, True), (False, False)])
def test_rejected_credentials_are_an_error(origin, sidecar, monkeypatch, guest, has_key):
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": origin.uri, "guest": guest}}))
    forbid(monkeypatch, has_key)
    sidecar.start()
    samples, _ = opened()
    with samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sidecar.kill()
        with pytest.raises(stoker.ForbiddenError, match="403"):
            samples.fetch([1])


def test_reads_many_segments_with_few_file_descriptors(origin, sidecar):
    """The reader holds no descriptor per segment: it reads 60 segments with a limit of 20 files."""
    sidecar.start(preload=1, capacity=1024)
    script = (
        "import resource, stoker\n"
        "with stoker.open('train') as samples:\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))\n"
        "    print(len(samples.fetch(range(200))), samples.stats()['node_samples'])\n"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert len(os.listdir(os.path.join(sidecar.settings["node"], "segments"))) > 40
    assert run.stdout.split() == ["200", "200"]
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 20


def test_interrupt_ends_a_wait_for_an_unresponsive_sidecar(origin, sidecar):
    sidecar.start(deaf=True)
    script = (
        "import signal, stoker\n"
        "samples = stoker.open('train')\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
        "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        "try:\n"
        "    samples.fetch([1])\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)
    assert run.stdout == "interrupted\n"


@pytest.mark.parametrize("text, words", [
    ("{", "not JSON"),
    ("[]", "object of objects"),
    ('{"train": {"url": "x"}}', "unknown keys: url"),
    ('{"train": {"uri": "ftp://x/y"}}', "must be s3://bucket/prefix, https://host/folder or file:///folder"),
    ("{}", "dataset 'train' has no location"),
])
def test_invalid_settings_are_named_in_the_error(monkeypatch, tmp_path, text, words):
    monkeypatch.setenv("STOKER_DATASETS", text)
    monkeypatch.setenv("STOKER_SOCKET", str(tmp_path / "none"))
    monkeypatch.setattr("stoker.sources.PATIENCE_S", 0.0)
    with warnings.catch_warnings(), pytest.raises(stoker.SettingsError, match=words):
        warnings.simplefilter("ignore")
        stoker.open("train")
