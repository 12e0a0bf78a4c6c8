"""A job that goes on with another number of ranks: nothing is read twice, nothing is left out."""

import itertools
import json
import random
import urllib.request
from collections import Counter

import pytest
import stoker
import stoker.torch
import torch
from conftest import SEED, stats, wait_until
from stoker.order import epoch_order
from test_real_sidecar import RealSidecar
from torch.utils.data.distributed import DistributedSampler

EPOCH = 3


class Model:
    """The reads that a run with changing worlds must make in one epoch: a list of samples from which each step of a world
    takes one sample for each rank, in turns. Knows nothing of positions or shifts."""

    def __init__(self, order, drop_last):
        self.order, self.left, self.drop_last = order, list(order), drop_last

    def begin(self, ranks):
        """Each rank's stream from here on."""
        left = list(self.left)
        if self.drop_last:
            left = left[: len(left) // ranks * ranks]
        padding = 0
        while len(left) % ranks != 0:
            left.append(self.order[padding % len(self.order)])
            padding += 1
        return [left[rank::ranks] for rank in range(ranks)]

    def take(self, ranks, samples):
        """All ranks have read so many more."""
        del self.left[: ranks * samples]


def sampler_of(data, ranks, rank, **options):
    sampler = stoker.torch.Sampler(data, ranks, rank, seed=5, **options)
    sampler.set_epoch(EPOCH)
    return sampler


@pytest.mark.parametrize("case", range(300))
def test_changing_worlds_read_the_epoch_once_and_in_order(case):
    prng = random.Random(SEED + case)
    count = prng.randint(1, 60)
    options = {"shuffle": prng.random() < 0.7, "drop_last": prng.random() < 0.4}
    data, state, seen = range(count), None, Counter()
    whole = sampler_of(data, 1, 0, shuffle=options["shuffle"])
    model = Model(whole.order().tolist(), options["drop_last"])
    context = f"STOKER_TEST_SEED={SEED} case {case}"
    for change in range(prng.randint(1, 5)):
        ranks, batch = prng.randint(1, 9), prng.randint(1, 6)
        samplers = [sampler_of(data, ranks, rank, **options) for rank in range(ranks)]
        if state is not None:
            for sampler in samplers:
                sampler.load_state_dict(json.loads(json.dumps(state)))
        expected = model.begin(ranks)
        got = [list(sampler) for sampler in samplers]
        assert got == expected, context
        if change == 0:
            assert got == [list(sampler_of(data, ranks, rank, **options)) for rank in range(ranks)]
        steps = min(prng.randint(0, 4) * batch, len(got[0]))
        states = [sampler.state_dict(consumed=steps) for sampler in samplers]
        assert all(other == states[0] for other in states), context
        state = states[0]
        for stream in got:
            seen.update(stream[:steps])
        if steps == len(got[0]):
            model.left = []
        else:
            model.take(ranks, steps)
        assert len(json.dumps(state)) < 130
    ranks = prng.randint(1, 9)
    last = [sampler_of(data, ranks, rank, **options) for rank in range(ranks)]
    for sampler, stream in zip(last, model.begin(ranks)):
        sampler.load_state_dict(state)
        assert list(sampler) == stream, context
        seen.update(stream)
    assert options["drop_last"] or set(seen) == set(data), context
    for rank, sampler in enumerate(last):
        sampler.set_epoch(EPOCH + 1)
        fresh = DistributedSampler(data, ranks, rank, options["shuffle"], 5, options["drop_last"])
        fresh.set_epoch(EPOCH + 1)
        if count >= ranks or not options["drop_last"]:  # torch's own asserts on an empty stream
            assert list(sampler) == list(fresh), context


def test_a_sample_is_repeated_only_as_padding():
    """10 samples: 4 ranks read 1 each, 3 ranks 1 each, 2 ranks the last 3 and one to fill up."""
    first = [sampler_of(range(10), 4, rank) for rank in range(4)]
    order = sampler_of(range(10), 1, 0).order().tolist()
    iterators = [iter(sampler) for sampler in first]
    assert [next(iterator) for iterator in iterators] == order[:4]
    second = [sampler_of(range(10), 3, rank) for rank in range(3)]
    for sampler in second:
        sampler.load_state_dict(first[0].state_dict())
    iterators = [iter(sampler) for sampler in second]
    assert [next(iterator) for iterator in iterators] == order[4:7]
    third = [sampler_of(range(10), 2, rank) for rank in range(2)]
    for sampler in third:
        sampler.load_state_dict(second[2].state_dict())
    assert [list(sampler) for sampler in third] == [[order[7], order[9]], [order[8], order[0]]]


def test_a_state_without_the_new_fields_is_one_of_an_unchanged_world():
    old = {"seed": 5, "epoch": EPOCH, "position": 2, "num_replicas": 4, "count": 10}
    order = sampler_of(range(10), 1, 0).order().tolist()
    for ranks, stream in ((4, [order[8]]), (2, [order[8]]), (1, order[8:])):
        sampler = sampler_of(range(10), ranks, 0)
        sampler.load_state_dict(old)
        assert list(sampler) == stream
    with pytest.raises(ValueError, match="position 4 is outside 0..3"):
        sampler.load_state_dict({**old, "position": 4})


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_an_epoch_that_has_ended_is_not_taken_up_by_another_world(ranks):
    for drop_last in (False, True):
        ended = sampler_of(range(10), 4, 0, drop_last=drop_last)
        list(ended)
        other = sampler_of(range(10), ranks, 0, drop_last=drop_last)
        other.load_state_dict(ended.state_dict())
        assert list(other) == []


def test_a_batch_that_the_loader_drops_is_not_left_for_another_world():
    old = torch.utils.data.TensorDataset(torch.arange(20))
    loader = stoker.torch.DataLoader(old, 3, sampler=sampler_of(old, 2, 0), drop_last=True)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    other = sampler_of(old, 1, 0)
    other.load_state_dict(loader.state_dict())
    assert list(other) == []


def test_the_state_of_a_begun_epoch_does_not_have_the_last_ones_position():
    sampler = sampler_of(range(10), 2, 0)
    loader = stoker.torch.DataLoader(range(10), 2, sampler=sampler)
    list(loader)
    sampler.set_epoch(EPOCH + 1)
    assert loader.state_dict()["position"] == 0
    assert loader.state_dict()["epoch"] == EPOCH + 1


def test_an_epoch_that_is_read_again_is_read_whole():
    sampler = sampler_of(range(10), 3, 0)
    sampler.load_state_dict({**sampler_of(range(10), 4, 0).state_dict(), "position": 1})
    assert len(list(sampler)) == 2
    assert list(sampler) == list(sampler_of(range(10), 3, 0))


def test_order_without_torch_deals_out_the_rest():
    whole = epoch_order(11, seed=1, epoch=2).tolist()
    got = [epoch_order(11, seed=1, epoch=2, rank=rank, world_size=3, consumed=4).tolist() for rank in range(3)]
    assert got == [[whole[4], whole[7], whole[10]], [whole[5], whole[8], whole[0]], [whole[6], whole[9], whole[1]]]
    with pytest.raises(ValueError, match="consumed must be 0..11"):
        epoch_order(11, consumed=12)


# --- with the real sidecar -----------------------------------------------------------------------------------------

BYTES, COUNT = 20_000, 210
RECORD = 20_032
WORLDS = [(4, 3), (2, 6), (3, None)]  # ranks, and steps of 5 samples until the next change


@pytest.fixture
def bucket(tmp_path, monkeypatch, programs):
    """An S3 server with COUNT samples; its address."""
    for number in range(COUNT):
        path = tmp_path / "s3" / "data" / f"{number:04}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(4, "little") * (BYTES // 4))
    for key, value in {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr("stoker.link.CONNECT_TIMEOUT_S", 60.0)  # a slow machine must not look like an absent sidecar
    monkeypatch.setenv("STOKER_DATASETS", "{}")
    server = programs("stoker-fake-s3", "--root", tmp_path / "s3", "--access-key", "AKID", "--secret-key", "secret")
    return server.address


def fail_once(bucket, ids):
    """The next GET of each of these samples fails, and counts as an error."""
    lines = [f"operation=get,key={id:04}.bin,status=503" for id in ids]
    urllib.request.urlopen(urllib.request.Request(f"{bucket}/__faults", "\n".join(lines).encode(), method="POST")).close()


class World:
    """The ranks of one attempt of the job, with a new sidecar process on the same node directory."""

    def __init__(self, folder, bucket, contract, ranks, grant):
        source = {"uri": "s3://data", "endpoint": bucket}
        self.sidecar = RealSidecar(folder, None, name=f"ranks{ranks}", source=source, grant=grant, window="1Mi",
                                   stepAsideWindow="0s")
        self.contract, self.ranks = contract, ranks

    def __enter__(self):
        self.sidecar.start()
        self.samples = [self.sidecar.open() for _ in range(self.ranks)]
        self.loaders = [
            stoker.torch.DataLoader(stoker.torch.Dataset(samples, decode=stoker.torch.decode_raw), 5, seed=SEED,
                                    contract=self.contract, num_replicas=self.ranks, rank=rank)
            for rank, samples in enumerate(self.samples)]
        return self

    def __exit__(self, *_):
        for samples in self.samples:
            samples.close()
        self.sidecar.stop()

    def read(self, steps=None):
        """Reads the ranks' batches in turns, at most so many steps; returns each rank's ids."""
        iterators, ids = [iter(loader) for loader in self.loaders], [[] for _ in self.loaders]
        for step in itertools.count():
            batches = [next(iterator, None) for iterator in iterators] if step != steps else [None]
            if batches[0] is None:
                assert batches.count(None) == len(batches), "all ranks end in the same step"
                return ids
            for mine, (data, _, batch) in zip(ids, batches):
                assert data[:, 0].tolist() == [id % 256 for id in batch.tolist()]
                mine += batch.tolist()


def run_worlds(folder, bucket, contract, grant, check):
    """Reads an epoch in three worlds, and the next one in the last. `check(world, ids)` is called after each change of
    the world with all that was read before it, and at the end."""
    state, seen, lengths = None, [], []
    for ranks, steps in WORLDS:
        with World(folder, bucket, contract, ranks, grant) as world:
            for loader in world.loaders:
                loader.set_epoch(EPOCH) if state is None else loader.load_state_dict(state)
            ids = world.read(steps)
            lengths.append([len(mine) for mine in ids])
            seen += sum(ids, [])
            check(world, seen)
            state = [loader.state_dict() for loader in world.loaders]
            assert sum(samples.stats()["origin_samples"] for samples in world.samples) == 0
            if steps is None:
                following = sum(world.read(), [])
    assert lengths == [[15] * 4, [30] * 2, [30] * 3]
    assert sorted(seen) == sorted(following) == list(range(COUNT))
    return seen


@pytest.mark.parametrize("contract", ["exact", "windowed"])
def test_each_object_is_fetched_once_in_three_worlds(tmp_path, bucket, contract):
    def check(world, ids):
        reader = world.samples[0].sources.reader
        # A sidecar that is killed loses what is on its way, and the next one asks again.
        wait_until("the end of all fetches", lambda: sum(reader.resident(range(COUNT))) == stats(bucket)["get"])
        assert len(ids) <= stats(bucket)["get"] <= COUNT

    run_worlds(tmp_path, bucket, contract, str(2 * COUNT * RECORD), check)
    assert stats(bucket)["get"] == COUNT and stats(bucket)["errors"] == 0


# Nothing is kept, and the window holds a quarter of the samples: a plan that had what is read already would fetch it.
@pytest.mark.parametrize("contract", ["exact", "windowed"])
def test_what_other_worlds_have_read_is_not_fetched_ahead(tmp_path, bucket, contract):
    def check(world, ids):
        assert stats(bucket)["errors"] == 0
        if len(ids) < COUNT:
            fail_once(bucket, set(ids))
        else:
            world.samples[0].fetch(ids[:30])
            assert stats(bucket)["errors"] > 0, "the faults count"

    run_worlds(tmp_path, bucket, contract, "0", check)


def test_an_ended_epoch_is_over_for_the_next_world(tmp_path, bucket):
    with World(tmp_path, bucket, "windowed", 2, "0") as world:
        ids = sum(world.read(), [])
        state = world.loaders[1].state_dict()
    with World(tmp_path, bucket, "windowed", 3, "0") as world:
        for loader in world.loaders:
            loader.load_state_dict(state)
        assert world.read() == [[], [], []]
        assert sorted(sum(world.read(), [])) == sorted(ids) == list(range(COUNT))
        assert world.loaders[0].epoch_report().contract == "windowed"


def test_an_ended_epoch_is_over_for_another_rank_of_the_same_world(tmp_path, bucket):
    with World(tmp_path, bucket, "windowed", 2, "0") as world:
        world.read()
        state = world.loaders[0].state_dict()
    with World(tmp_path, bucket, "windowed", 2, "0") as world:
        for loader in world.loaders:
            loader.load_state_dict(state)
        assert world.read() == [[], []]
        assert sorted(sum(world.read(), [])) == list(range(COUNT))


# Without the losses, an epoch that reads 100 of 200 samples would have about 25 of any 50.
def test_losses_outlive_a_change_of_the_world(origin, tmp_path, monkeypatch):
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": origin.uri}}))
    monkeypatch.setattr("stoker.link.CONNECT_TIMEOUT_S", 60.0)

    def loader_on(samples, ranks, rank):
        dataset = stoker.torch.Dataset(samples, decode=bytes)
        return stoker.torch.DataLoader(dataset, 10, contract="importance", beta=1.0, warmup_epochs=1, substitute=0, seed=SEED,
                                       num_replicas=ranks, rank=rank, collate_fn=list)

    with RealSidecar(tmp_path, origin, name="old") as sidecar, sidecar.open() as samples:
        loader = loader_on(samples, 1, 0)
        for batch in loader:
            loader.report(batch[-1], torch.where(batch[-1] < 50, 9.0, 1.0) + batch[-1] / 1000)
        state = loader.state_dict()
    (tmp_path / "other").mkdir()
    got = []
    with RealSidecar(tmp_path, origin, name="new", directory=str(tmp_path / "other")) as sidecar:
        for rank in range(2):
            with sidecar.open() as samples:
                loader = loader_on(samples, 2, rank)
                loader.load_state_dict(state)
                assert list(loader) == []
                got.append([id for batch in loader for id in batch[-1].tolist()])
                assert loader.epoch_report().contract == "importance"
    assert len(got[0]) == len(got[1]) == 50
    assert sum(id < 50 for id in sum(got, [])) >= 38
