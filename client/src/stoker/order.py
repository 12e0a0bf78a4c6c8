"""Epoch orders without PyTorch: pure functions of count, seed, epoch and world, the same on every machine.

The shape is that of torch's DistributedSampler (one permutation for all ranks, padded or cut to a multiple of their
number, dealt out in turns); the permutation is our own, so the ids differ from torch's. `stoker.torch.Sampler` gives
torch's.
"""

from __future__ import annotations

import numpy as np

__all__ = ["epoch_order", "permutation", "rank_length"]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def _mix(z: np.ndarray) -> np.ndarray:
    """Finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection of 64-bit words."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


def permutation(count: int, seed: int, epoch: int) -> np.ndarray:
    """A shuffled 0..count-1 as int64 of shape (count,).

    Sample i gets the i-th word of a SplitMix64 stream that is seeded with seed and epoch; the ids sorted by their words
    (ties by id) are the permutation.
    """
    words = np.array([seed & 0xFFFFFFFFFFFFFFFF, epoch & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)
    with np.errstate(over="ignore"):
        start = _mix(_mix(words[:1] + _GAMMA) + words[1:] + _GAMMA)
        keys = _mix(start + _GAMMA * np.arange(1, count + 1, dtype=np.uint64))
    return np.argsort(keys, kind="stable").astype(np.int64)


def rank_length(count: int, world_size: int, drop_last: bool = False) -> int:
    """How many ids each rank reads in an epoch."""
    return count // world_size if drop_last else -(-count // world_size)


def epoch_order(
    count: int,
    *,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world_size: int = 1,
    shuffle: bool = True,
    drop_last: bool = False,
) -> np.ndarray:
    """The ids that one rank reads in one epoch, in order: int64 of shape (rank_length(...),).

    Args:
        count: number of samples, at least 1.
        shuffle: False reads in order of the ids.
        drop_last: cut the tail that does not divide by `world_size`; otherwise the first ids are read again to fill up.

    Raises:
        ValueError: no samples, or a rank outside the world.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is outside a world of {world_size}")
    ids = permutation(count, seed, epoch) if shuffle else np.arange(count, dtype=np.int64)
    total = rank_length(count, world_size, drop_last) * world_size
    return np.resize(ids, total)[rank:total:world_size] if total else ids[:0]
