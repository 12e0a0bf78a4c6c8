"""Dataset, Sampler and DataLoader: torch's streams, ImageFolder's labels, any number of workers, resume."""

import hashlib
import io
import os
import warnings

import numpy as np
import PIL.Image
import pytest
import stoker
import stoker.torch
import torch
import torch.utils.data
from torch.utils.data.distributed import DistributedSampler

WORKERS = [(0, None), (2, "fork"), (1, "spawn")]  # a spawned worker takes seconds to import torch


def raw(view):
    return bytes(view)


def loader_of(dataset, sampler, workers=(0, None), kind=stoker.torch.DataLoader, **options):
    count, context = workers
    return kind(dataset, batch_size=16, sampler=sampler, num_workers=count, multiprocessing_context=context,
                collate_fn=list, **options)


def digest(batches):
    out = hashlib.sha256()
    for batch in batches:
        for data, label in batch:
            out.update(data + bytes([label]))
    return out.hexdigest()


@pytest.mark.parametrize("count", [1, 7, 200])
@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_sampler_has_the_order_of_distributed_sampler(count, replicas, drop_last, shuffle):
    data = range(count)
    for rank in range(replicas):
        options = {"num_replicas": replicas, "rank": rank, "shuffle": shuffle, "seed": 5, "drop_last": drop_last}
        ours, theirs = stoker.torch.Sampler(data, **options), DistributedSampler(data, **options)
        for epoch in (0, 1, 9):
            ours.set_epoch(epoch)
            theirs.set_epoch(epoch)
            if count >= replicas or not drop_last:  # torch's own asserts on an empty stream
                assert list(ours) == list(theirs)
            assert len(ours) == len(theirs)


def test_world_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "2")
    sampler = stoker.torch.Sampler(range(10))
    assert (sampler.num_replicas, sampler.rank) == (4, 2)
    monkeypatch.setenv("RANK", "4")
    with pytest.raises(stoker.SettingsError, match="outside WORLD_SIZE=4"):
        stoker.torch.Sampler(range(10))
    monkeypatch.delenv("RANK")
    with pytest.raises(stoker.SettingsError, match="RANK is not"):
        stoker.torch.Sampler(range(10))
    assert stoker.torch.Sampler(range(10), num_replicas=4, rank=3).rank == 3
    assert stoker.torch.Sampler(range(10), rank=3).num_replicas == 4  # only the half that is given is known


@pytest.fixture
def initialise(monkeypatch):
    """torch.distributed as in a rank of a larger job."""
    def start(rank, size):
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_rank", lambda: rank)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: size)
    return start


@pytest.mark.parametrize("operators", [{}, {"RANK": "0", "WORLD_SIZE": "1"}])
@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("contract", [None, "exact"])
def test_reading_as_another_rank_than_torch_distributed_says_is_refused(
        origin, monkeypatch, initialise, operators, rank, contract):
    for name, value in operators.items():
        monkeypatch.setenv(name, value)
    dataset = stoker.torch.Dataset(origin.uri, decode=raw)
    options = {"contract": contract} if contract else {"sampler": stoker.torch.Sampler(dataset)}
    loader = stoker.torch.DataLoader(dataset, batch_size=None if contract is None else 10, **options)
    initialise(rank, 4)
    with pytest.raises(stoker.SettingsError, match=f"rank 0 of 1, and torch.distributed now says rank {rank} of 4"):
        next(iter(loader))


def test_given_ranks_may_differ_from_torch_distributed(initialise):
    halves = [stoker.torch.Sampler(range(8), num_replicas=2, rank=1), stoker.torch.Sampler(range(8), rank=0)]
    initialise(3, 4)
    assert len(list(halves[0])) == 4
    with pytest.raises(stoker.SettingsError, match="rank 3 of 4"):
        iter(halves[1])
    assert (stoker.torch.Sampler(range(8)).rank, stoker.torch.Sampler(range(8)).num_replicas) == (3, 4)


def test_the_sidecar_hears_the_rank_of_torch_distributed(origin, sidecar, initialise):
    sidecar.start()
    initialise(3, 4)
    with stoker.open("train"):
        hello, = sidecar.wait_for("hello")
    assert (hello["rank"], hello["world_size"]) == (3, 4)


def test_loader_without_a_contract_gives_the_epoch_to_its_sampler(origin):
    dataset = stoker.torch.Dataset(origin.uri, decode=raw)
    loader = loader_of(dataset, stoker.torch.Sampler(dataset))
    loader.set_epoch(3)
    assert loader.sampler.epoch == 3
    loader_of(dataset, None).set_epoch(3)  # torch's samplers have no epoch


def test_loader_gives_the_epoch_to_a_batch_sampler_or_the_sampler_in_it():
    sampler = stoker.torch.Sampler(range(10))
    in_batches = torch.utils.data.BatchSampler(sampler, 5, True)
    stoker.torch.DataLoader(range(10), batch_sampler=in_batches).set_epoch(3)
    assert sampler.epoch == 3
    randomly = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(range(10)), 5, True)
    stoker.torch.DataLoader(range(10), batch_sampler=randomly).set_epoch(3)  # has another order in every epoch
    with pytest.raises(stoker.SettingsError, match="neither the batch_sampler"):
        stoker.torch.DataLoader(range(10), batch_sampler=list(in_batches)).set_epoch(3)


@pytest.mark.filterwarnings("ignore::stoker.StokerWarning")
def test_epoch_after_a_finished_one_that_was_loaded_and_never_iterated(origin):
    def make():
        dataset = stoker.torch.Dataset(origin.uri, decode=lambda view: len(view))
        return stoker.torch.DataLoader(dataset, batch_size=10, contract="windowed", seed=7)
    first, resumed = make(), make()
    assert len(list(first)) == 20
    resumed.load_state_dict(first.state_dict())
    iter(resumed)  # as Lightning, which leaves this epoch out
    resumed.batch_sampler.sampler.set_epoch(1)
    assert [batch[-1].tolist() for batch in resumed] == [batch[-1].tolist() for batch in first]


def test_trainers_that_look_for_a_distributed_sampler_find_one():
    assert isinstance(stoker.torch.Sampler(range(10)), DistributedSampler)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("kind", [stoker.torch.DataLoader, torch.utils.data.DataLoader])
def test_samples_and_order_do_not_depend_on_workers(origin, sidecar, workers, kind):
    dataset = stoker.torch.Dataset(stoker.open(origin.uri), decode=raw)
    expected = digest(loader_of(dataset, stoker.torch.Sampler(dataset, seed=3)))
    sidecar.start(preload=0.3)
    with stoker.open("train") as samples:
        cached = stoker.torch.Dataset(samples, decode=raw)
        assert digest(loader_of(cached, stoker.torch.Sampler(cached, seed=3), workers, kind)) == expected


@pytest.mark.parametrize("workers", WORKERS)
def test_workers_have_their_own_connections_on_one_stream(origin, sidecar, workers):
    sidecar.start(preload=0.5)
    with stoker.open("train") as samples:
        dataset = stoker.torch.Dataset(samples, decode=raw)
        sampler = stoker.torch.Sampler(dataset, seed=3)
        sampler.set_epoch(4)
        order = sampler.order().tolist()
        assert len(list(loader_of(dataset, sampler, workers))) == 13
    hellos = sidecar.events("hello")
    assert len({hello["pid"] for hello in hellos}) == len(hellos) == 1 + workers[0]
    assert len({hello["stream"] for hello in hellos}) == 1
    (plan,) = sidecar.events("plan")
    assert (plan["epoch"], plan["samples"]) == (4, order)
    assert sorted(id for event in sidecar.events("fetch") for id in event["samples"]) == list(range(100, 200))
    assert {event["epoch"] for event in sidecar.events("consumed")} == {4}


@pytest.mark.parametrize("workers", WORKERS[:2])
def test_sidecar_death_changes_no_sample(origin, sidecar, workers):
    sidecar.start(die_in_fetch=5)
    with stoker.open("train") as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = stoker.torch.Dataset(samples, decode=raw)
        sampler = stoker.torch.Sampler(dataset, seed=3)
        got = [item for batch in loader_of(dataset, sampler, workers) for item in batch]
        assert [data for data, _ in got] == [origin.payloads[origin.keys[index]] for index in sampler.order()]


@pytest.mark.parametrize("workers, after", [
    *((workers, after) for workers in WORKERS[:2] for after in (0, 1, 6, 13)), (WORKERS[2], 6)])
def test_resumed_run_equals_an_uninterrupted_one(origin, workers, after):
    def run():
        dataset = stoker.torch.Dataset(stoker.open(origin.uri), decode=raw)
        return loader_of(dataset, stoker.torch.Sampler(dataset, seed=3), workers)

    whole = run()
    expected = []
    for epoch in (2, 3):
        whole.sampler.set_epoch(epoch)
        expected += list(whole)

    first = run()
    first.sampler.set_epoch(2)
    got = []
    batches = iter(first)
    for _ in range(after):
        got.append(next(batches))
    state = first.state_dict()
    assert state["position"] == min(16 * after, 200)

    second = run()
    second.load_state_dict(state)
    for epoch in range(second.sampler.epoch, 4):
        second.sampler.set_epoch(epoch)
        got += list(second)
    assert digest(got) == digest(expected)


def test_torchs_loader_resumes_by_consumed_count(origin):
    dataset = stoker.torch.Dataset(stoker.open(origin.uri), decode=raw)
    sampler = stoker.torch.Sampler(dataset, seed=3)
    batches = iter(loader_of(dataset, sampler, (2, "fork"), torch.utils.data.DataLoader))
    head = [next(batches) for _ in range(3)]
    state = sampler.state_dict(consumed=3 * 16)
    resumed = stoker.torch.Sampler(dataset, seed=0)
    resumed.load_state_dict(state)
    tail = list(loader_of(dataset, resumed, (0, None), torch.utils.data.DataLoader))
    assert digest(head + tail) == digest(loader_of(dataset, stoker.torch.Sampler(dataset, seed=3)))


def test_state_of_another_dataset_is_refused(origin):
    state = stoker.torch.Sampler(range(10), 2, 0).state_dict()
    with pytest.raises(ValueError, match="count=10"):
        stoker.torch.Sampler(range(11), 2, 0).load_state_dict(state)


def test_resume_sends_the_position(origin, sidecar):
    sidecar.start()
    with stoker.open("train") as samples:
        dataset = stoker.torch.Dataset(samples, decode=raw)
        sampler = stoker.torch.Sampler(dataset, seed=3)
        sampler.load_state_dict({**sampler.state_dict(), "epoch": 6, "position": 48})
        list(loader_of(dataset, sampler))
    (plan,) = sidecar.wait_for("plan")
    assert (plan["epoch"], plan["start"], plan["sample_count"]) == (6, 48, 200)


def test_loader_reports_steps_and_their_times(origin, sidecar):
    sidecar.start(preload=1)
    with stoker.open("train") as samples:
        dataset = stoker.torch.Dataset(samples, decode=raw)
        list(loader_of(dataset, stoker.torch.Sampler(dataset, seed=3)))
    reports = sidecar.wait_for("report")
    assert sum(report["steps"] for report in reports) == 13
    assert sum(report["samples"] for report in reports) == 200
    assert all(sum(report[key] for report in reports) > 0 for key in ("wait_ns", "compute_ns"))


def test_labels_equal_image_folders(origin):
    """torchvision's documentation of ImageFolder: classes are the sorted folder names, targets their indices."""
    dataset = stoker.torch.Dataset(origin.uri, decode=raw)
    classes = sorted(entry.name for entry in os.scandir(origin.root) if entry.is_dir())
    files = [(name, label) for label, folder in enumerate(classes) for name in sorted(os.listdir(origin.root / folder))]
    assert dataset.classes == classes
    assert dataset.class_to_idx == {name: label for label, name in enumerate(classes)}
    assert dataset.targets == [label for _, label in files]
    assert [dataset[index] for index in (0, 100, 199)] == [
        (origin.payloads[f"{classes[files[index][1]]}/{files[index][0]}"], files[index][1]) for index in (0, 100, 199)]


def test_images_are_decoded_by_default_and_both_transforms_applied(tmp_path):
    (tmp_path / "red").mkdir()
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (3, 2), (255, 0, 0)).save(buffer, "PNG")
    (tmp_path / "red" / "a.png").write_bytes(buffer.getvalue())
    dataset = stoker.torch.Dataset(f"file://{tmp_path}", transform=np.asarray, target_transform=str)
    pixels, label = dataset[0]
    assert pixels.shape == (2, 3, 3) and pixels[0, 0].tolist() == [255, 0, 0] and label == "0"


def test_raw_decoder_returns_a_writable_copy(origin):
    dataset = stoker.torch.Dataset(origin.uri, decode=stoker.torch.decode_raw)
    tensor, _ = dataset[0]
    assert tensor.dtype == torch.uint8 and bytes(tensor.tolist()) == origin.payloads[origin.keys[0]]
    tensor.fill_(0)
    assert bytes(dataset[0][0].tolist()) == origin.payloads[origin.keys[0]]


def test_negative_indices_count_from_the_end(origin):
    dataset = stoker.torch.Dataset(origin.uri, decode=raw)
    assert dataset[-1] == dataset[199]
    with pytest.raises(IndexError):
        dataset[-201]


def test_the_plan_of_a_subset_has_the_datasets_ids(origin, sidecar):
    sidecar.start()
    with stoker.open("train") as samples:
        odd = torch.utils.data.Subset(stoker.torch.Dataset(samples, decode=raw), range(1, 200, 2))
        few = torch.utils.data.Subset(odd, [5, 6, 7, 8])
        sampler = stoker.torch.Sampler(few, seed=3)
        got = [data for batch in loader_of(few, sampler) for data, _ in batch]
    expected = [11 + 2 * index for index in DistributedSampler(range(4), 1, 0, seed=3)]
    assert got == [origin.payloads[origin.keys[id]] for id in expected]
    assert sidecar.events("plan")[0]["samples"] == expected


def test_batch_is_one_request_with_getitems(origin, sidecar):
    sidecar.start()
    with stoker.open("train") as samples:
        dataset = stoker.torch.Dataset(samples, decode=raw)
        assert [data for data, _ in dataset.__getitems__([3, 9])] == [
            origin.payloads[origin.keys[index]] for index in (3, 9)]
    assert [event["samples"] for event in sidecar.events("fetch")] == [[3, 9]]
