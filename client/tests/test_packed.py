"""`stoker pack`, then the client with and without the real stoker-sidecar over the chunks."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request

import pytest
import stoker
from conftest import BUILD, stats
from test_real_sidecar import RealSidecar, read_epoch


def pack(*arguments):
    command = [str(BUILD / "bin" / "stoker"), "pack", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def packed(tmp_path, origin, *flags):
    result = pack(origin.root, tmp_path / "packed", "--chunk-bytes", "8Ki", *flags)
    assert result.returncode == 0, result.stderr
    return tmp_path / "packed"


@pytest.fixture
def run(tmp_path, origin, monkeypatch):
    """Makes sidecars over what `packed` wrote and stops them when the test ends."""
    entry = {"uri": f"file://{tmp_path}/packed", "format": "chunks"}
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": entry}))
    monkeypatch.setattr("stoker.link.CONNECT_TIMEOUT_S", 60.0)
    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(RealSidecar(tmp_path, origin, source=entry, **settings))


@pytest.mark.parametrize("order", ["random", "listed"])
def test_packed_epoch_serves_the_samples_of_the_loose_files(tmp_path, origin, run, order):
    packed(tmp_path, origin, "--order", order)
    with run().open() as samples, stoker.open(origin.uri) as loose:
        assert samples.labels == loose.labels and set(samples.labels) == {0, 1, 2}
        read_epoch(origin, samples, 0)
        read_epoch(origin, samples, 1)
        assert [s.key for s in samples.fetch(range(200))] == [s.key for s in loose.fetch(range(200))]
        assert samples.stats()["origin_samples"] == 0


def test_client_alone_lists_what_the_sidecar_lists(tmp_path, origin, run):
    folder = packed(tmp_path, origin)
    with stoker.open(f"file://{folder}", format="chunks") as alone, run().open() as samples:
        assert alone.revision == samples.revision
        assert [bytes(s) for s in alone.fetch(range(200))] == [origin.payloads[key] for key in origin.keys]


def test_client_goes_on_without_its_sidecar(tmp_path, origin, run):
    packed(tmp_path, origin)
    sidecar = run(grant="0", window="1Mi")
    with sidecar.open() as samples:
        samples.fetch([0])
        sidecar.stop()
        with pytest.warns(stoker.StokerWarning):
            assert [bytes(s) for s in samples.fetch(range(200))] == [origin.payloads[key] for key in origin.keys]
        assert samples.stats()["origin_samples"] > 0


def test_replaced_and_damaged_chunks_are_errors(tmp_path, origin):
    folder = packed(tmp_path, origin)
    with stoker.open(f"file://{folder}", format="chunks") as samples:
        (folder / "chunk-00000000").write_bytes(b"another chunk")
        with pytest.raises(stoker.OriginError, match="changed since it was listed"):
            samples.fetch(range(200))


def test_damaged_payload_is_an_error_of_its_sample(tmp_path, origin, monkeypatch):
    folder = packed(tmp_path, origin)
    monkeypatch.setattr("stoker.origin.retry.FIRST_DELAY_S", 0.001)
    path = folder / "chunk-00000000"
    path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1]))
    with stoker.open(f"file://{folder}", format="chunks") as samples:
        with pytest.raises(stoker.OriginError, match="do not match the checksum"):
            samples.fetch(range(200))


def test_missing_index_is_an_error_that_names_the_command(tmp_path, origin):
    folder = packed(tmp_path, origin)
    (folder / "index").unlink()
    with pytest.raises(stoker.OriginError, match="--rebuild-index"):
        stoker.open(f"file://{folder}", format="chunks")
    assert pack("--rebuild-index", folder).returncode == 0
    stoker.open(f"file://{folder}", format="chunks").close()


def test_index_of_another_pack_is_an_error_that_names_the_command(tmp_path, origin):
    folder = packed(tmp_path, origin)
    for key in origin.keys:  # the same names and sizes
        path = origin.root / key
        path.write_bytes(bytes(byte ^ 255 for byte in path.read_bytes()))
    assert pack(origin.root, tmp_path / "other", "--chunk-bytes", "8Ki").returncode == 0
    (folder / "index").write_bytes((tmp_path / "other" / "index").read_bytes())
    with pytest.raises(stoker.OriginError, match="another pack.*--rebuild-index"):
        stoker.open(f"file://{folder}", format="chunks")
    assert pack("--rebuild-index", folder).returncode == 0
    with stoker.open(f"file://{folder}", format="chunks") as samples:
        assert [bytes(s) for s in samples.fetch(range(200))] == [origin.payloads[key] for key in origin.keys]


def test_chunk_that_the_index_does_not_have_is_an_error(tmp_path, origin):
    folder = packed(tmp_path, origin)
    (folder / "chunk-00009999").write_bytes(b"another chunk")
    with pytest.raises(stoker.OriginError, match="chunks, the pack has"):
        stoker.open(f"file://{folder}", format="chunks")


def test_unknown_format_is_refused():
    with pytest.raises(stoker.SettingsError, match="objects, chunks, tar, records, megatron or tfrecord, not .parquet"):
        stoker.open("file:///nowhere", format="parquet")


def test_a_dataset_of_blocks_is_refused_with_a_hint_at_the_s3_endpoint(monkeypatch):
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"shards": {"uri": "s3://data/shards", "format": "blocks"},
                                                      "other": {"uri": "file:///nowhere"}}))
    with pytest.raises(stoker.SettingsError, match="'shards': format is blocks.*AWS_ENDPOINT_URL"):
        stoker.open("shards")
    with pytest.raises(stoker.NotFoundError):
        stoker.open("other")


def test_packed_epochs_from_s3_cost_at_most_one_request_a_sample(tmp_path, origin, programs, run, monkeypatch):
    (tmp_path / "s3" / "b").mkdir(parents=True)
    keys = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    s3 = programs("stoker-fake-s3", "--root", tmp_path / "s3", "--access-key", "AKID", "--secret-key", "secret")
    result = pack(origin.root, "s3://b/packed", "--endpoint", s3.address, "--chunk-bytes", "8Ki", "--quiet")
    assert result.returncode == 0 and result.stderr == "", result.stderr
    urllib.request.urlopen(urllib.request.Request(f"{s3.address}/__stats", method="DELETE")).close()
    entry = {"uri": "s3://b/packed", "endpoint": s3.address, "format": "chunks"}
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": entry}))
    with RealSidecar(tmp_path, origin, source=entry) as sidecar, sidecar.open() as samples:
        read_epoch(origin, samples, 0)
        read_epoch(origin, samples, 1)
    counted = stats(s3.address)
    assert counted["list"] == 1 and counted["errors"] == 0
    assert 2 < counted["get"] <= 2 + 200, "samples of a chunk may share a request"
    with stoker.open("s3://b/packed", endpoint=s3.address, format="chunks") as alone:
        read_epoch(origin, alone, 0)


def keys_in(folder, access_key):
    folder.mkdir()
    (folder / "AWS_ACCESS_KEY_ID").write_text(access_key)
    (folder / "AWS_SECRET_ACCESS_KEY").write_text("secret of " + access_key)
    return folder


def test_pack_copies_between_servers_with_keys_of_their_own(tmp_path, origin, programs, monkeypatch):
    flags = ["--chunk-bytes", "8Ki", "--quiet", "--result-file", tmp_path / "result"]
    shutil.copytree(origin.root, tmp_path / "RAW" / "b")
    (tmp_path / "PACKED" / "b").mkdir(parents=True)
    for name, prefix in (("RAW", "--from-"), ("PACKED", "--")):
        s3 = programs("stoker-fake-s3", "--root", tmp_path / name, "--access-key", name, "--secret-key", f"secret of {name}")
        flags += [f"{prefix}endpoint", s3.address, f"{prefix}credentials", keys_in(tmp_path / f"keys-{name}", name)]
    result = pack("s3://b", "s3://b", *flags)
    assert result.returncode == 0, result.stderr
    counts = json.loads((tmp_path / "result").read_text())
    assert (counts["samples"], counts["bytes"]) == (200, sum(map(len, origin.payloads.values())))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "PACKED")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret of PACKED")
    with stoker.open("s3://b", endpoint=s3.address, format="chunks") as samples:
        assert [bytes(s) for s in samples.fetch(range(200))] == [origin.payloads[key] for key in origin.keys]


def test_exit_status_tells_whether_another_run_may_succeed(tmp_path, origin):
    flags = ["--quiet", "--result-file", tmp_path / "result"]
    packed(tmp_path, origin)
    other = pack(origin.root, tmp_path / "packed", *flags)
    assert other.returncode == 3 and "chunks of another pack" in (tmp_path / "result").read_text()
    missing = pack(tmp_path / "missing", tmp_path / "there", *flags)
    assert missing.returncode == 1 and "No such file" in (tmp_path / "result").read_text()
    assert pack(origin.root, tmp_path / "there", "--threads", "0").returncode == 2


def test_killed_pack_goes_on_with_finished_chunks(tmp_path, origin):
    flags = ["--chunk-bytes", "4Ki", "--threads", "1", "--quiet"]
    command = [str(BUILD / "bin" / "stoker"), "pack", str(origin.root), str(tmp_path / "packed"), *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    give_up = time.monotonic() + 60
    while process.poll() is None and not (tmp_path / "packed" / "chunk-00000001").exists():
        assert time.monotonic() < give_up
    process.send_signal(signal.SIGKILL)
    process.communicate()
    files = {name: os.stat(tmp_path / "packed" / name).st_ino for name in os.listdir(tmp_path / "packed")}
    finished = {name: inode for name, inode in files.items() if name.startswith("chunk-") and len(name) == 14}
    again = pack(origin.root, tmp_path / "packed", *flags)
    assert again.returncode == 0, again.stderr
    assert f"{len(finished)} found" in again.stdout
    for name, inode in finished.items():
        assert os.stat(tmp_path / "packed" / name).st_ino == inode
    with stoker.open(f"file://{tmp_path}/packed", format="chunks") as samples:
        assert [bytes(s) for s in samples.fetch(range(200))] == [origin.payloads[key] for key in origin.keys]
