"""Continues an epoch in a world with another number of ranks.

Under a fixed order, ranks in step read a prefix of the epoch's permutation: after p samples each, W ranks have read its
first p x W positions. One number therefore says what is left, whatever the batch sizes and however often the world has
changed; the new world deals the rest out in turns. Where the sidecar chooses the order, one bit per sample says it.
"""

from __future__ import annotations

import zlib
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from .contracts import Terms
from .order import deal, epoch_order, rank_length
from .saved_state import check_state, pack_ids, served_in

__all__ = ["Rest", "State", "States", "consumed_by", "draws_of_job", "first_turn", "is_mid_epoch", "job_state"]

State = Mapping[str, Any]
States = Union[State, Sequence[State]]  # of one rank or of the whole job, or one of each rank of the job


def consumed_by(state: State, drop_last: bool = False) -> int:
    """Samples of the epoch's permutation, from its start, that the ranks of the state's world have read together. An
    epoch that has ended there is consumed whole: its padding and a dropped tail are not left for others.

    Raises:
        ValueError: the position is outside the epoch.
    """
    count, ranks, position = int(state["count"]), int(state["num_replicas"]), int(state["position"])
    shift = int(state.get("shift", 0))
    length = rank_length(count - shift, ranks, drop_last)
    if not 0 <= position <= length:
        raise ValueError(f"position {position} is outside 0..{length}")
    return count if position == length or state.get("ended") else shift + position * ranks


def first_turn(consumed: int, count: int, world_size: int, drop_last: bool = False) -> Tuple[int, int]:
    """Where a world resumes after `consumed` of `count` samples: (shift, position). `deal(..., consumed=shift)` is then
    a rank's order, of which it has the first `position` ids behind it. Without a change of the world shift is 0."""
    if consumed >= count:
        return 0, rank_length(count, world_size, drop_last)
    return consumed % world_size, consumed // world_size


class Rest:
    """The unread samples of an epoch whose order the sidecar chose, dealt out in one order for all ranks.

    Args:
        state: saved by the previous world. Unread samples follow each other in the permutation of its seed and epoch.
        draws: most draws of all ranks together in the whole epoch; None: the epoch has every sample once.

    Attributes:
        order: this rank's ids: int64. Equally many for all ranks; the first ids are repeated to fill up.

    Raises:
        ValueError: the state is of one rank among several, and no sample may be read twice.
    """

    def __init__(self, state: State, draws: Optional[int], rank: int, world_size: int) -> None:
        self._count = int(state["count"])
        if draws is None and not _is_of_all(state):
            raise ValueError(
                f"the state is of rank {state.get('rank', '?')} alone, saved in mid-epoch with "
                f"num_replicas={state['num_replicas']}; load each rank's own state, or with another number of ranks "
                "job_state_dict() or a list of the states of all ranks"
            )
        self._served = served_in(state)
        self._consumed = _draws_of(state)
        is_read = np.zeros(self._count, dtype=bool)
        is_read[self._served] = True
        permutation = epoch_order(self._count, seed=state["seed"], epoch=state["epoch"])
        unread = permutation[~is_read[permutation]]
        if _has_ended(state):
            unread = unread[:0]
        elif draws is not None:
            left = max(0, min(draws, self._count) - self._consumed)
            unread = np.resize(unread if unread.size > 0 else permutation, left)
        self._unread, self._world_size, self._draws = unread, world_size, draws
        self.order = deal(unread, rank, world_size)

    def state(self, position: int) -> Dict[str, Any]:
        """The part of a state that concerns the whole job, after each rank has read `position` ids."""
        read = np.concatenate([self._served, self._unread[: position * self._world_size]])
        return {
            "consumed": self._consumed + position * self._world_size,
            "served": zlib.compress(pack_ids(read, self._count)),
            **({} if self._draws is None else {"draws": self._draws}),
        }


def draws_of_job(state: State, terms: Terms, world_size: int) -> Optional[int]:
    """The most draws that the ranks of a world make together in the epoch of a state; None: it has every sample once. A
    single rank's epoch has no bound of its own, so it ends where that of the ranks before would have ended."""
    if terms.contract == "windowed" or "draws" in state:
        return state.get("draws")
    ranks = world_size if world_size > 1 else int(state["num_replicas"])
    share = rank_length(int(state["count"]), ranks)
    return ranks * _core.draws_of_epoch(terms.contract, terms.parameters, ranks, int(state["epoch"]), share)


def is_mid_epoch(state: State, world_size: int, rank: Optional[int]) -> bool:
    """Whether a rank of a world of this size cannot draw on from a state of a contract whose order the sidecar chooses:
    samples of its epoch were read, by other ranks or in a Rest. `rank` None: the state of any rank will do."""
    is_of_others = state["num_replicas"] != world_size or rank not in (None, state.get("rank", rank))
    return (_draws_of(state) > 0 or _has_ended(state)) and ("consumed" in state or is_of_others)


def job_state(states: States) -> Dict[str, Any]:
    """One state for the whole job from the states of all its ranks, saved in the same step; a single state as it is.
    If a rank has several states, the first counts. States of older versions do not name their rank: list them by rank.

    Raises:
        ValueError: a rank is missing, or the states differ in world, dataset, contract, epoch or, before its end, step.
    """
    if isinstance(states, Mapping):
        return dict(states)
    if not states:
        raise ValueError("the list of states is empty")
    of_rank: Dict[int, State] = {}
    for index, state in enumerate(states):
        of_rank.setdefault(state.get("rank", index), state)
    first = dict(states[0])
    if len(states) == 1:
        return first
    for state in states[1:]:
        _check_same_step(state, first)
    if "consumed" in first or "served" not in first:  # each state is that of the whole job
        return first
    missing = sorted(set(range(first["num_replicas"])) - set(of_rank))
    if missing:
        raise ValueError(f"the states of ranks {missing} of {first['num_replicas']} are missing")
    ranks = list(of_rank.values())
    served = np.concatenate([served_in(state) for state in ranks])
    return {
        **first,
        "position": min(state["position"] for state in ranks),
        "consumed": sum(state["position"] for state in ranks),
        "losses": max(state["losses"] for state in ranks),
        "ended": all(_has_ended(state) for state in ranks),
        "served": zlib.compress(pack_ids(served, first["count"])),
    }


def _check_same_step(state: State, first: State) -> None:
    keys = ["contract", "count", "num_replicas", "revision", "seed", "epoch", "shift", "consumed"]
    may_be_behind = "served" in first and (_has_ended(state) or _has_ended(first))
    if not may_be_behind:
        keys.append("position")
    check_state(state, {key: first.get(key) for key in keys})


def _is_of_all(state: State) -> bool:
    return "consumed" in state or state["num_replicas"] == 1 or _has_ended(state)


def _draws_of(state: State) -> int:
    """Number of draws that all ranks had made when the state was saved."""
    return int(state.get("consumed", state["position"] * state["num_replicas"]))


def _has_ended(state: State) -> bool:
    return bool(state.get("ended")) or state["position"] >= rank_length(state["count"], state["num_replicas"])
