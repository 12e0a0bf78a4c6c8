"""The fsspec file system stoker://."""

import concurrent.futures
import json
import multiprocessing
import pickle

import fsspec
import pytest
from stoker.filesystem import StokerFileSystem


@pytest.fixture
def files(origin, sidecar):
    sidecar.start(preload=0.5)
    fsspec.register_implementation("stoker", StokerFileSystem, clobber=True)
    yield fsspec.filesystem("stoker", skip_instance_cache=True)


def test_lists_datasets_folders_and_files(origin, files):
    assert files.ls("stoker://", detail=False) == ["train"]
    assert files.ls("train", detail=False) == ["train/ant", "train/cat", "train/dog"]
    assert files.ls("stoker://train/cat/", detail=False) == [f"train/{k}" for k in origin.keys if k.startswith("cat/")]
    assert files.find("train") == [f"train/{key}" for key in origin.keys]
    assert files.glob("stoker://train/*/0004.bin") == [f"train/{key}" for key in origin.keys if key.endswith("/0004.bin")]
    assert files.isdir("train/cat") and not files.exists("train/ca") and not files.exists("other/x")


def test_files_below_a_folder_are_listed_in_bytewise_order(origin, files):
    assert [entry["name"] for entry in files.files_below("train")] == [f"train/{key}" for key in origin.keys]
    cats = [f"train/{key}" for key in origin.keys if key.startswith("cat/")]
    assert [entry["name"] for entry in files.files_below("stoker://train/cat")] == cats
    assert not list(files.files_below("train/ca"))


def test_info_has_the_size_and_the_id(origin, files):
    entry = files.info(f"stoker://train/{origin.keys[7]}")
    assert (entry["size"], entry["type"], entry["id"]) == (len(origin.payloads[origin.keys[7]]), "file", 7)
    with pytest.raises(FileNotFoundError):
        files.info("train/cat/9999.bin")


def test_reads_whole_files_and_ranges(origin, files):
    payload = origin.payloads[origin.keys[0]]
    path = f"train/{origin.keys[0]}"
    assert files.cat_file(path) == payload
    assert files.cat_file(path, 1, -1) == payload[1:-1]
    paths = [f"train/{key}" for key in origin.keys[90:110]]
    assert files.cat_ranges(paths, 0, 3) == [origin.payloads[key][:3] for key in origin.keys[90:110]]
    assert files.cat(paths) == {path: origin.payloads[path[6:]] for path in paths}


def test_ranges_are_one_request(origin, files, sidecar):
    files.cat_ranges([f"train/{key}" for key in origin.keys[120:130]], 0, 1)
    assert [event["samples"] for event in sidecar.events("fetch")] == [list(range(120, 130))]


def test_opens_a_file_that_can_seek(origin, files):
    payload = origin.payloads[origin.keys[5]]
    with fsspec.open(f"stoker://train/{origin.keys[5]}") as file:
        assert file.read(1) == payload[:1]
        assert file.seek(-1, 2) == len(payload) - 1
        assert file.read() == payload[-1:] and file.read() == b""
        file.seek(0)
        assert file.read() == payload


def test_filesystem_is_read_only(files):
    with pytest.raises(OSError, match="read-only"):
        files.open("train/new", "wb")


def cat(files, path):
    return files.cat_file(path)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_filesystem_survives_fork_and_pickling(origin, files, method):
    path = f"train/{origin.keys[3]}"
    assert pickle.loads(pickle.dumps(files)).cat_file(path) == files.cat_file(path)
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        assert pool.submit(cat, files, path).result() == origin.payloads[origin.keys[3]]


def test_listing_an_unknown_dataset_raises_file_not_found(files, monkeypatch):
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({}))
    with pytest.raises(FileNotFoundError):
        files.ls("train")
