"""Samples.total_stats() and loader.stats(): counts over processes."""

import multiprocessing
import os
import pickle

import pytest
import stoker
import stoker.torch
from stoker.shared_counts import KEYS, SharedCounts
from stoker.shared_file import SharedFile


def raw(view):
    return bytes(view)


def make_loader(samples, workers, method=None):
    dataset = stoker.torch.Dataset(samples, decode=raw)
    return stoker.torch.DataLoader(dataset, batch_size=16, num_workers=workers, collate_fn=list,
                                   multiprocessing_context=method)


@pytest.mark.parametrize("workers, method", [(0, None), (2, "fork"), (2, "spawn")])
def test_loader_counts_the_reads_of_ended_workers(origin, workers, method):
    with stoker.open(origin.uri) as samples:
        loader = make_loader(samples, workers, method)
        for epoch in (1, 2):
            assert sum(len(batch) for batch in loader) == 200
            assert loader.stats()["samples"] == loader.stats()["origin_samples"] == 200 * epoch
        assert loader.stats()["origin_bytes"] == 2 * samples.total_bytes
        assert samples.stats()["samples"] == (400 if workers == 0 else 0)
    assert loader.stats()["samples"] == 400  # closed


def test_hits_of_forked_workers_are_counted_once(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        samples.fetch(range(50))
        loader = make_loader(samples, 2, "fork")
        assert len(list(loader)) == 13
        assert loader.stats()["node_samples"] == loader.stats()["samples"] == 250
        assert loader.stats()["attached"] == 3


def read_one_by_one(samples):
    for id in range(70):
        samples[id]


def test_a_child_neither_counts_nor_acknowledges_single_reads_of_its_parent(sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        for _ in range(2):  # the first reads verify, the second ones are noted only
            read_one_by_one(samples)
        child = multiprocessing.get_context("fork").Process(target=read_one_by_one, args=(samples,))
        child.start()
        child.join()
        assert samples.total_stats()["samples"] == 3 * 70
    assert sorted(sidecar.wait_consumed(3 * 70)) == sorted(3 * list(range(70)))


def test_single_reads_of_a_child_are_counted_when_it_ends(origin):
    with stoker.open(origin.uri) as samples:
        child = multiprocessing.get_context("fork").Process(target=read_one_by_one, args=(samples,))
        child.start()
        child.join()
        assert samples.total_stats()["samples"] == 70


def test_shared_counts_unpickled_with_a_wrong_token_are_not_shared():
    counts = SharedCounts()
    rebuild, (maker, file, token, size) = SharedFile(8 * len(KEYS)).__reduce__()
    stranger = SharedCounts()
    stranger.__setstate__(rebuild(maker, file, bytes(len(token)), size))
    stranger.update(dict.fromkeys(KEYS, 1))
    assert set(counts.totals().values()) == {0} and set(stranger.totals().values()) == {1}
    pickle.loads(pickle.dumps(counts)).update(dict.fromkeys(KEYS, 2))
    assert set(counts.totals().values()) == {2}


def test_an_unpickled_file_is_not_shared_after_the_pickled_one_is_closed():
    shared = SharedFile(8)
    shared.memory[SharedFile.DATA_AT] = 7
    kept = pickle.dumps(shared)
    copy = pickle.loads(kept)
    assert copy.is_shared and copy.memory[SharedFile.DATA_AT] == 7
    again = pickle.dumps(copy)
    del shared
    assert not pickle.loads(kept).is_shared
    assert pickle.loads(again).is_shared
    del copy
    assert not pickle.loads(again).is_shared


def test_unpickled_shared_counts_close_their_files():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        pickle.loads(pickle.dumps(SharedCounts()))
    assert len(os.listdir("/proc/self/fd")) == before
