"""Contracts in a job that goes on with another number of ranks, and the state of the whole job. Without a sidecar."""

import random
from collections import Counter

import numpy as np
import pytest
import stoker
import stoker.torch
import torch
from conftest import SEED
from stoker.contracts import terms
from stoker.draws import Draws
from stoker.elastic import job_state

EPOCH = 3


def draws_of(samples, contract, ranks, rank, **parameters):
    return Draws(samples, terms(contract, parameters), seed=SEED, rank=rank, world_size=ranks, batch_size=4)


def world_after(samples, contract, ranks, count, epoch=0, **parameters):
    """The draws of all ranks after each has drawn `count` samples of the epoch."""
    world = [draws_of(samples, contract, ranks, rank, **parameters) for rank in range(ranks)]
    for draws in world:
        draws.begin(epoch)
        draws.next(count)
    return world


def rest_of(draws):
    """The ids that are left of the epoch of a loaded state."""
    draws.resume()
    ids = []
    while len(got := draws.next(4)) > 0:
        ids += got.tolist()
    return ids


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
@pytest.mark.parametrize("case", range(40))
@pytest.mark.parametrize("contract", ["exact", "windowed"])
def test_contracts_serve_every_sample_once_through_changes(origin, contract, case):
    """A world repeats fewer samples than it has ranks, to fill up."""
    prng = random.Random(SEED + case)
    with stoker.open(origin.uri) as samples:
        state, seen, repeats = None, [], 0
        for _ in range(prng.randint(1, 4)):
            ranks = prng.choice([1, 2, 3, 4, 5, 7])
            world = [draws_of(samples, contract, ranks, rank) for rank in range(ranks)]
            for draws in world:
                draws.begin(EPOCH) if state is None else (draws.load(state), draws.resume())
            repeats += ranks - 1
            batches = prng.randint(1, max(1, 30 // ranks))
            for draws in world:
                for _ in range(batches):
                    seen += draws.next(4).tolist()
            states = [draws.state(batches * 4) for draws in world]
            state = states if contract == "windowed" and "consumed" not in states[0] else prng.choice(states)
        last = [draws_of(samples, contract, 1, 0) for _ in range(1)]
        last[0].load(state)
        seen += rest_of(last[0])
        counts = Counter(seen)
        assert set(counts) == set(range(len(samples))), f"STOKER_TEST_SEED={SEED}"
        assert sum(counts.values()) - len(counts) <= repeats, f"STOKER_TEST_SEED={SEED}"


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_the_ranks_of_the_new_world_read_equally_many(origin):
    with stoker.open(origin.uri) as samples:
        for contract in ("exact", "windowed", "importance", "replicate"):
            old = [draws_of(samples, contract, 4, rank) for rank in range(4)]
            for draws in old:
                draws.begin(EPOCH)
                draws.next(20)
            states = [draws.state(20) for draws in old]
            rests = []
            for rank in range(3):
                draws = draws_of(samples, contract, 3, rank)
                draws.load(states)
                rests.append(rest_of(draws))
            assert [len(rest) for rest in rests] == [40, 40, 40]
            assert len(set(sum(rests, []))) == 120
            report = draws.epoch_report()
            assert report.contract == "exact" and report.skipped == 0


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_windowed_needs_the_states_of_all_ranks_in_mid_epoch_only(origin):
    with stoker.open(origin.uri) as samples:
        old = [draws_of(samples, "windowed", 2, rank) for rank in range(2)]
        new = draws_of(samples, "windowed", 3, 1)
        new.load(old[0].state(0))
        assert len(rest_of(new)) == 67  # nothing was read: the epoch is that of the new world
        for draws in old:
            draws.begin(0)
            draws.next(60)
        with pytest.raises(ValueError, match="rank 1 alone.*num_replicas=2.*job_state_dict"):
            new.load(old[1].state(60))
        with pytest.raises(ValueError, match=r"ranks \[0\] of 2 are missing"):
            new.load([old[1].state(60), old[1].state(60)])
        with pytest.raises(ValueError, match="epoch=0, here it is 1"):
            new.load([{**old[0].state(60), "epoch": 1}, old[1].state(60)])
        for draws in old:
            draws.next(40)
        new.load(old[1].state(100))
        assert rest_of(new) == []
        new.begin(1)
        assert len(rest_of(new)) == 67


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_importance_goes_on_from_one_ranks_state(origin):
    with stoker.open(origin.uri) as samples:
        old = draws_of(samples, "importance", 4, 2)
        old.begin(EPOCH)
        had = old.next(20).tolist()
        rests = []
        for rank in range(2):
            new = draws_of(samples, "importance", 2, rank)
            new.load(old.state(20))
            rests += rest_of(new)
        assert len(rests) == len(set(rests)) == 200 - 80
        assert not set(rests) & set(had)


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_what_drop_last_left_of_a_rest_is_not_read_later(origin):
    """200 samples: 2 ranks read 30 each, 4 ranks 3 batches of 10 each, and drop 5 each."""
    with stoker.open(origin.uri) as samples:
        dataset = stoker.torch.Dataset(samples, decode=bytes)

        def loader(ranks, rank, state):
            made = stoker.torch.DataLoader(dataset, 10, contract="windowed", seed=SEED, num_replicas=ranks, rank=rank,
                                           drop_last=True, collate_fn=list)
            made.load_state_dict(state)
            return made

        state = [draws.state(30) for draws in world_after(samples, "windowed", 2, 30)]
        loaders = [loader(4, rank, state) for rank in range(4)]
        assert [len(list(each)) for each in loaders] == [3, 3, 3, 3]
        assert list(loader(1, 0, loaders[0].state_dict())) == []


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_windowed_refuses_the_state_of_another_rank_in_mid_epoch(origin):
    with stoker.open(origin.uri) as samples:
        old = world_after(samples, "windowed", 2, 30)
        new = draws_of(samples, "windowed", 2, 1)
        with pytest.raises(ValueError, match="rank 0 alone.*each rank's own"):
            new.load(old[0].state(30))
        new.load(old[1].state(30))
        assert len(rest_of(new)) == 70
        new.load(old[0].state(0))
        assert len(rest_of(new)) == 100, "nothing was read"


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_one_rank_reads_no_more_of_a_selective_epoch_than_was_left(origin):
    """beta=1: two ranks draw 50 each; 40 are read, then 20, 10 more after the change, in two processes."""
    parameters = {"beta": 1.0, "warmup_epochs": 1}
    with stoker.open(origin.uri) as samples:
        old = world_after(samples, "importance", 2, 20, epoch=5, **parameters)
        state = [draws.state(20) for draws in old]
        for left in (60, 50):
            draws = draws_of(samples, "importance", 1, 0, **parameters)
            draws.load(state)
            assert len(rest_of(draws)) == left
            state = draws.state(10)


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_an_epoch_that_fell_back_remembers_what_was_read_before(origin):
    """Two times resumed; the losses come after the first time, so the epoch is one of importance again."""
    with stoker.open(origin.uri) as samples:
        draws = draws_of(samples, "importance", 1, 0)
        draws.begin(0)
        draws.begin(1)
        seen = draws.next(50).tolist()
        again = draws_of(samples, "importance", 1, 0)
        again.load(draws.state(50))
        again.resume()
        seen += again.next(20).tolist()
        report = again.epoch_report()
        assert (report.contract, report.requested, report.distinct, report.repeated) == ("exact", 70, 70, 0)
        again.report(np.array(seen[-1:]), np.ones(1, dtype=np.float32))
        last = draws_of(samples, "importance", 1, 0)
        last.load(again.state(20))
        seen += rest_of(last)
        assert sorted(seen) == list(range(len(samples)))


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_the_seed_of_the_state_counts_under_exact(origin):
    with stoker.open(origin.uri) as samples:
        dataset = stoker.torch.Dataset(samples, decode=bytes)

        def loader(ranks, rank, **options):
            return stoker.torch.DataLoader(dataset, 10, contract="exact", num_replicas=ranks, rank=rank, collate_fn=list,
                                           **options)

        old = loader(1, 0, seed=7)
        batches = iter(old)
        ids = [id for _ in range(5) for id in next(batches)[-1].tolist()]
        for rank in range(2):
            new = loader(2, rank)
            new.load_state_dict(old.state_dict())
            ids += [id for batch in new for id in batch[-1].tolist()]
        assert sorted(ids) == list(range(len(samples)))


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_states_of_earlier_versions_are_in_the_order_of_ranks(origin):
    with stoker.open(origin.uri) as samples:
        old = world_after(samples, "windowed", 2, 30)
        states = [draws.state(30) for draws in old]
        for state in states:
            for key in ("rank", "shift", "ended"):
                del state[key]
        ids = sum((draws._record.served().tolist() for draws in old), [])
        for rank in range(2):
            new = draws_of(samples, "windowed", 2, rank)
            new.load(states)
            ids += rest_of(new)
        assert sorted(ids) == list(range(len(samples)))


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_states_of_different_steps_are_refused_before_the_epochs_end(origin):
    with stoker.open(origin.uri) as samples:
        one, two = world_after(samples, "windowed", 2, 50)
        with pytest.raises(ValueError, match="position=10, here it is 50"):
            job_state([one.state(50), two.state(10)])
        one.next(50)
        assert job_state([one.state(100), two.state(50)])["consumed"] == 150


class Gathering:
    """Stands for torch.distributed in one process: gives these states to all, and remembers what this rank gave."""

    def __init__(self, monkeypatch, states, group=None):
        self.states, self.group, self.given = states, group, []
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda group=None: self._in(group, len(states)))
        monkeypatch.setattr(torch.distributed, "all_gather_object", self._gather)

    def _in(self, group, value):
        assert group is self.group
        return value

    def _gather(self, out, state, group=None):
        assert len(out) == self._in(group, len(self.states))
        self.given.append(state)
        out[:] = self.states


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_each_rank_counts_once_in_the_gathered_state_of_a_group(origin, monkeypatch):
    """Two processes for each rank, as with tensor parallelism."""
    with stoker.open(origin.uri) as samples:
        states = [draws.state(20) for draws in world_after(samples, "importance", 2, 20)]
        assert job_state(states + states) == job_state(states)
        group = object()
        dataset = stoker.torch.Dataset(samples, decode=bytes)
        loader = stoker.torch.DataLoader(dataset, 20, contract="importance", seed=SEED, num_replicas=2, rank=1, collate_fn=list)
        next(iter(loader))
        monkeypatch.setattr(Draws, "_newest_snapshot", lambda self: b"losses of rank 1")
        gathering = Gathering(monkeypatch, [states[0], states[0], states[1], states[1]], group)
        state = loader.job_state_dict(group=group)
        assert (state["consumed"], state["importance"]) == (40, b"losses of rank 1")
        assert "importance" not in gathering.given[0], "it has bytes for each sample, and the job needs one of them"


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_a_rank_without_losses_takes_part_in_the_gathering(origin, monkeypatch):
    """Rank 1 never reports, so it has fallen back to exact by itself."""
    with stoker.open(origin.uri) as samples:
        dataset = stoker.torch.Dataset(samples, decode=bytes)
        loaders = [stoker.torch.DataLoader(dataset, 10, contract="importance", seed=SEED, num_replicas=2, rank=rank,
                                           collate_fn=list) for rank in range(2)]
        for batch in loaders[0]:
            loaders[0].report(batch[-1], torch.ones(len(batch[-1])))
        list(loaders[1])
        for loader in loaders:
            next(iter(loader))
        assert [loader.epoch_report().contract for loader in loaders] == ["importance", "exact"]
        states = [loader.state_dict() for loader in loaders]
        gathering = Gathering(monkeypatch, states)
        assert [loader.job_state_dict()["consumed"] for loader in loaders] == [20, 20]
        assert len(gathering.given) == 2
