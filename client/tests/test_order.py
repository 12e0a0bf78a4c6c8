"""The epoch order without torch: properties, and golden vectors for every implementation."""

import json
import pathlib

import numpy as np
import pytest
from stoker.order import epoch_order, permutation, rank_length, walk_order

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "contract" / "golden" / "order.json"


@pytest.mark.parametrize("count", [1, 2, 10, 1000])
@pytest.mark.parametrize("world_size", [1, 2, 7])
@pytest.mark.parametrize("drop_last", [False, True])
def test_epoch_covers_every_sample_once_except_padding(count, world_size, drop_last):
    dealt = [epoch_order(count, seed=1, epoch=2, rank=rank, world_size=world_size, drop_last=drop_last)
             for rank in range(world_size)]
    assert {len(ids) for ids in dealt} == {rank_length(count, world_size, drop_last)}
    ids = np.concatenate(dealt)
    assert ids.dtype == np.int64
    if drop_last:
        assert len(set(ids.tolist())) == len(ids)
    else:
        assert set(ids.tolist()) == set(range(count))


def test_epochs_and_seeds_give_different_orders():
    orders = {tuple(permutation(50, seed, epoch)) for seed in range(5) for epoch in range(5)}
    assert len(orders) == 25


def test_positions_are_uniform():
    """Each sample is in the first half about half of the time (4,000 draws: six sigma are 190)."""
    first_half = sum(np.isin(np.arange(20), permutation(20, 7, epoch)[:10]).astype(int) for epoch in range(4000))
    assert abs(first_half - 2000).max() < 190


@pytest.mark.parametrize("vector", json.loads(GOLDEN.read_text())["vectors"])
def test_order_equals_the_golden_vectors(vector):
    assert epoch_order(**vector["arguments"]).tolist() == vector["ids"]


@pytest.mark.parametrize("vector", json.loads(GOLDEN.read_text())["walks"])
def test_walk_orders_equal_the_golden_ones(vector):
    assert walk_order(**vector["arguments"]).tolist() == vector["ids"]


@pytest.mark.parametrize("count", [1, 2, 3, 64, 65, 1000])
def test_the_walk_orders_of_all_ranks_cover_every_sample_once_except_padding(count):
    for world_size in (1, 3, 7):
        dealt = [walk_order(count, seed=1, epoch=2, rank=rank, world_size=world_size) for rank in range(world_size)]
        assert {len(ids) for ids in dealt} == {rank_length(count, world_size)}
        assert set(np.concatenate(dealt).tolist()) == set(range(count))


@pytest.mark.parametrize("arguments", [{"count": 0}, {"count": 5, "rank": 2, "world_size": 2},
                                       {"count": 5, "rank": -1}])
def test_invalid_worlds_are_refused(arguments):
    with pytest.raises(ValueError):
        epoch_order(**arguments)
