"""multi-storage-client with the provider of stoker.msc."""

import json
import pickle

import multistorageclient
import pytest
from multistorageclient.types import Range

PROFILE = {"provider_bundle": {"type": "stoker.msc.StokerProviderBundle", "options": {"base_path": "train"}}}


@pytest.fixture
def client(origin, sidecar, tmp_path, monkeypatch):
    sidecar.start(preload=0.5)
    (tmp_path / "msc.json").write_text(json.dumps({"profiles": {"train": PROFILE}}))
    monkeypatch.setenv("MSC_CONFIG", str(tmp_path / "msc.json"))
    config = multistorageclient.StorageClientConfig.from_dict({"profiles": {"train": PROFILE}}, "train")
    return multistorageclient.StorageClient(config)


def test_reads_whole_samples_and_ranges(origin, client):
    for key in (origin.keys[0], origin.keys[-1]):
        assert client.read(key) == origin.payloads[key]
        assert client.read(key, byte_range=Range(1, 3)) == origin.payloads[key][1:4]
        assert client.read(key, byte_range=Range(0, 10_000)) == origin.payloads[key]


def test_url_of_the_profile_is_opened(origin, client):
    with multistorageclient.open(f"msc://train/{origin.keys[7]}") as file:
        assert file.read(1) == origin.payloads[origin.keys[7]][:1]
        file.seek(0)
        assert file.read() == origin.payloads[origin.keys[7]]


def test_lists_finds_and_describes(origin, client):
    assert [found.key for found in client.list_recursive()] == origin.keys
    cats = [key for key in origin.keys if key.startswith("cat/")]
    assert [found.key for found in client.list(path="cat")] == cats
    assert [found.key for found in client.list(path="cat", start_after=cats[1], end_at=cats[3])] == cats[2:4]
    assert [found.key for found in client.list(include_directories=True)] == ["ant", "cat", "dog"]
    assert [found.key for found in client.list(path=cats[0])] == cats[:1] and not list(client.list(path="ca"))
    assert client.glob("*/0004.bin") == [key for key in origin.keys if key.endswith("/0004.bin")]
    assert client.is_file(cats[0]) and not client.is_file("cat") and not client.is_file("cat/none")
    found = client.info(cats[0])
    assert (found.key, found.content_length, found.type) == (cats[0], len(origin.payloads[cats[0]]), "file")
    assert found.etag and client.info("cat").type == "directory"
    with pytest.raises(FileNotFoundError):
        client.info("cat/none")


def test_downloads_to_files(origin, client, tmp_path):
    keys = origin.keys[90:110]
    places = [str(tmp_path / "copies" / key) for key in keys]
    client.download_files(keys, places)
    assert [open(place, "rb").read() for place in places] == [origin.payloads[key] for key in keys]
    assert {path.name for path in (tmp_path / "copies").rglob("*") if path.is_file()} == {key[4:] for key in keys}


@pytest.mark.parametrize("write", [
    lambda client, key: client.write(key, b"x"),
    lambda client, key: client.delete(key),
    lambda client, key: client.copy(key, "new"),
    lambda client, key: client.upload_file(key, __file__),
])
def test_writing_is_refused(origin, client, write):
    with pytest.raises(OSError, match="read-only"):
        write(client, origin.keys[0])


def test_client_survives_pickling(origin, client):
    assert pickle.loads(pickle.dumps(client)).read(origin.keys[3]) == origin.payloads[origin.keys[3]]


def test_mscs_own_cache_takes_samples(origin, client, tmp_path):
    settings = {"profiles": {"train": {**PROFILE, "caching_enabled": True}},
                "cache": {"size": "100M", "location": str(tmp_path / "cache")}}
    cached = multistorageclient.StorageClient(multistorageclient.StorageClientConfig.from_dict(settings, "train"))
    for _ in range(2):
        assert cached.read(origin.keys[5]) == origin.payloads[origin.keys[5]]
