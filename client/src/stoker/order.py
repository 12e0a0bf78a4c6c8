"""Epoch orders without PyTorch: pure functions of count, seed, epoch and world, the same on every machine.

As in torch's DistributedSampler, one permutation for all ranks is padded or cut to a multiple of their number and
dealt out in turns. The permutation differs from torch's; for torch's ids use `stoker.torch.Sampler`. `walk_order`
deals out the permutation in which sidecars walk an epoch under contract importance.
"""

from __future__ import annotations

from typing import Iterator

import numpy as np

from .arrays import Array

__all__ = ["deal", "epoch_order", "permutation", "rank_length", "walk_order"]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_WORD = (1 << 64) - 1


def _mix(z: Array) -> Array:
    """Finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection of 64-bit words."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


def permutation(count: int, seed: int, epoch: int) -> Array:
    """A shuffled 0..count-1 as int64 of shape (count,).

    Sample i gets word i of a SplitMix64 stream seeded with seed and epoch; sorting the ids by word (ties by id) gives
    the permutation.
    """
    words = np.array([seed & 0xFFFFFFFFFFFFFFFF, epoch & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)
    with np.errstate(over="ignore"):
        start = _mix(_mix(words[:1] + _GAMMA) + words[1:] + _GAMMA)
        keys = _mix(start + _GAMMA * np.arange(1, count + 1, dtype=np.uint64))
    return np.argsort(keys, kind="stable").astype(np.int64)


def rank_length(count: int, world_size: int, drop_last: bool = False) -> int:
    """How many ids each rank reads in an epoch."""
    return count // world_size if drop_last else -(-count // world_size)


def deal(ids: Array, rank: int, world_size: int, *, drop_last: bool = False, consumed: int = 0) -> Array:
    """One rank's ids from an order for all ranks, beginning at position `consumed` of the order: int64 of shape
    (rank_length(len(ids) - consumed, ...),). Padding repeats the first ids of the whole order."""
    length = rank_length(len(ids) - consumed, world_size, drop_last)
    dealt: Array = np.take(ids, consumed + rank + world_size * np.arange(length, dtype=np.int64), mode="wrap")
    return dealt


def epoch_order(
    count: int,
    *,
    seed: int = 0,
    epoch: int = 0,
    rank: int = 0,
    world_size: int = 1,
    shuffle: bool = True,
    drop_last: bool = False,
    consumed: int = 0,
) -> Array:
    """The ids that one rank reads in one epoch, in order: int64 of shape (rank_length(count - consumed, ...),).

    Args:
        count: number of samples, at least 1.
        shuffle: False reads in the order of ids.
        drop_last: drop the tail that does not divide by `world_size`; otherwise the first ids are repeated to fill up.
        consumed: samples of this epoch that the ranks of another world have read together, each equally many; the
            result is this rank's share of the others.

    Raises:
        ValueError: no samples, a rank outside the world, or `consumed` outside 0..count.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is outside a world of {world_size}")
    if not 0 <= consumed <= count:
        raise ValueError(f"consumed must be 0..{count}, not {consumed}")
    ids = permutation(count, seed, epoch) if shuffle else np.arange(count, dtype=np.int64)
    return deal(ids, rank, world_size, drop_last=drop_last, consumed=consumed)


def walk_order(count: int, *, seed: int = 0, epoch: int = 0, rank: int = 0, world_size: int = 1) -> Array:
    """One rank's ids in the order in which a sidecar walks them under contract importance: int64 of shape
    (rank_length(count, world_size),). The order is a Feistel network over the next power of two, applied again until
    the result is below `count`; see sidecar/core/sampling/epoch_permutation.h.
    """
    bits = max(2, (count - 1).bit_length())
    right_bits = (bits + 1) // 2
    left_mask, right_mask = (1 << (bits - right_bits)) - 1, (1 << right_bits) - 1
    luck = _words(next(_words(seed & _WORD)) ^ (epoch * 0xD1342543DE82EF95 & _WORD))
    keys = [next(luck) for _ in range(8)]
    rotation = _below(luck, count)

    def network(words: Array) -> Array:
        left, right = words >> np.uint64(right_bits), words & np.uint64(right_mask)
        for even, odd in zip(keys[::2], keys[1::2]):
            left = left ^ (_scramble(right, even) & np.uint64(left_mask))
            right = right ^ (_scramble(left, odd) & np.uint64(right_mask))
        return (left << np.uint64(right_bits)) | right

    turns = np.arange(rank_length(count, world_size), dtype=np.uint64)
    words = network((turns * np.uint64(world_size) + np.uint64(rank)) % np.uint64(count))
    outside = words >= count
    while outside.any():
        words[outside] = network(words[outside])
        outside = words >= count
    return ((words + np.uint64(rotation)) % np.uint64(count)).astype(np.int64)


def _words(state: int) -> Iterator[int]:
    """The words of SplitMix64."""
    while True:
        state = (state + int(_GAMMA)) & _WORD
        yield int(_mix(np.array([state], dtype=np.uint64))[0])


def _below(words: Iterator[int], bound: int) -> int:
    """Uniform in [0, bound): Lemire's rejection."""
    product = next(words) * bound
    while product & _WORD < (_WORD + 1 - bound) % bound:
        product = next(words) * bound
    return product >> 64


def _scramble(words: Array, key: int) -> Array:
    mixed = (words ^ np.uint64(key)) * np.uint64(0xFF51AFD7ED558CCD)
    return ((mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xC4CEB9FE1A85EC53)) >> np.uint64(32)
