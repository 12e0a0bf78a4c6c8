"""Samples.gather(): copies into the caller's memory."""

import ctypes
import mmap
import os

import numpy as np
import pytest
import stoker
import torch
from conftest import Origin
from nodefiles import NodeDirectory


def joined(origin, ids):
    return b"".join(origin.payloads[origin.keys[id]] for id in ids)


@pytest.mark.parametrize("make", [
    bytearray, lambda size: np.zeros(size, np.uint8), lambda size: torch.zeros(size, dtype=torch.uint8)])
def test_gather_copies_hits_and_misses_in_order(origin, sidecar, make):
    sidecar.start(preload=0.5)
    ids = [150, 3, 3, 0, 199]
    with stoker.open("train") as samples:
        out = make(len(joined(origin, ids)) + 5)
        offsets = samples.gather(ids, out)
        assert samples.stats()["origin_samples"] == 0
    assert bytes(out)[:-5] == joined(origin, ids)
    assert offsets.dtype == np.int64
    assert np.diff(offsets).tolist() == [len(origin.payloads[origin.keys[id]]) for id in ids]
    assert sidecar.wait_for("consumed")[0]["samples"] == ids


def test_gather_works_without_a_sidecar(origin):
    with stoker.open(origin.uri) as samples:
        out = np.empty(samples.total_bytes, np.uint8)
        samples.gather(range(200), out)
    assert out.tobytes() == joined(origin, range(200))


def test_gather_of_no_samples_returns_one_offset(origin):
    with stoker.open(origin.uri) as samples:
        assert samples.gather([], bytearray()).tolist() == [0]


def test_small_buffer_is_an_error_that_says_the_size(origin):
    needed = len(joined(origin, [1, 2]))
    with stoker.open(origin.uri) as samples:
        with pytest.raises(ValueError, match=f"has {needed - 1} bytes, and these samples need {needed}"):
            samples.gather([1, 2], bytearray(needed - 1))
        assert samples.stats()["samples"] == 0


@pytest.mark.parametrize("out", [bytes(10_000), np.zeros((100, 200), np.uint8).T])
def test_buffer_must_be_writable_and_contiguous(origin, out):
    with stoker.open(origin.uri) as samples, pytest.raises((BufferError, ValueError)):
        samples.gather([1], out)


def test_large_batch_is_copied_by_threads(tmp_path):
    big = Origin(tmp_path / "big", count=40, size_max=2_000_000)
    node = node_of(tmp_path, big, range(40), capacity=1 << 27)
    with stoker.open(big.uri, directory=str(node.path)) as samples:
        out = np.empty(samples.total_bytes, np.uint8)
        samples.gather(range(40), out)
        assert samples.stats()["node_samples"] == 40
    assert out.tobytes() == joined(big, range(40))


def node_of(tmp_path, origin, ids, **options):
    with stoker.open(origin.uri) as listed:
        objects = [(s.key.encode(), len(s), s.etag) for s in listed.fetch(range(len(listed)))]
    folder = tmp_path / "node"
    folder.mkdir()
    node = NodeDirectory(str(folder), objects, **options)
    for id in ids:
        node.put(id, origin.payloads[origin.keys[id]])
    return node


def test_file_cut_between_check_and_copy_is_read_again(tmp_path, origin, monkeypatch):
    big = Origin(tmp_path / "big", count=4, size_max=400_000)
    node = node_of(tmp_path, big, range(4))
    with stoker.open(big.uri, directory=str(node.path)) as samples:
        fetch = samples.fetch_raw

        def fetch_and_cut(ids):
            found = fetch(ids)
            os.truncate(node.segment_path(), 4096)
            return found
        monkeypatch.setattr(samples, "fetch_raw", fetch_and_cut)
        out = np.empty(samples.total_bytes, np.uint8)
        samples.gather(range(4), out)
        assert samples.stats()["origin_samples"] > 0
    assert out.tobytes() == joined(big, range(4))


def resident_pages(path):
    """One flag per page of the file: whether it is in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    flags = ctypes.create_string_buffer(-(-len(mapped) // mmap.PAGESIZE))
    begin = ctypes.c_char.from_buffer(mapped)
    assert libc.mincore(ctypes.addressof(begin), len(mapped), flags) == 0
    del begin
    mapped.close()
    return [flag & 1 for flag in flags.raw]


def test_first_read_takes_only_its_own_pages_from_the_disk(tmp_path):
    big = Origin(tmp_path / "big", count=12, size_max=400_000)
    node = node_of(tmp_path, big, range(12), capacity=1 << 23)
    with stoker.open(big.uri, directory=str(node.path)) as samples:
        with open(node.segment_path(), "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if any(resident_pages(node.segment_path())):
            pytest.skip("this file system keeps its pages")
        samples.fetch([10])
        pages = sum(resident_pages(node.segment_path())[32:])  # without the header, which is read with what follows it
        assert 0 < pages <= len(big.payloads[big.keys[10]]) // mmap.PAGESIZE + 3
