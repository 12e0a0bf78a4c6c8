"""Sampling contracts with the real stoker-sidecar: ids, labels, reports, workers, resume, and sidecar deaths."""

import json
import threading
import warnings

import numpy as np
import pytest
import stoker
import stoker.torch
import torch
from conftest import SEED
from stoker.draws import Draws
from stoker.contracts import terms
from test_real_sidecar import run  # noqa: F401  (a fixture)

WORKERS = [(0, None), (2, "fork"), (1, "spawn")]
COUNT = 200


def raw(view):
    return bytes(view)


def loader_of(samples, contract="windowed", workers=(0, None), batch_size=16, **options):
    dataset = stoker.torch.Dataset(samples, decode=raw)
    return stoker.torch.DataLoader(dataset, batch_size=batch_size, contract=contract, seed=SEED, collate_fn=pair_up,
                                   num_workers=workers[0], multiprocessing_context=workers[1], **options)


def pair_up(items):
    return [data for data, _ in items], torch.tensor([label for _, label in items])


def read(origin, loader, batches=None):
    """Ids of an epoch. Checks that every sample has its own bytes and label."""
    classes = sorted({key.split("/")[0] for key in origin.keys})
    ids = []
    for number, (datas, labels, batch) in enumerate(loader, 1):
        for data, label, id in zip(datas, labels.tolist(), batch.tolist()):
            key = origin.keys[id]
            assert data == origin.payloads[key]
            assert classes[label] == key.split("/")[0]
        ids += batch.tolist()
        if number == batches:
            break
    return ids


@pytest.mark.parametrize("workers", WORKERS)
def test_windowed_epoch_serves_every_sample_once(origin, run, workers):
    with run().open() as samples:
        loader = loader_of(samples, workers=workers)
        assert len(loader) == 13
        first, second = read(origin, loader), read(origin, loader)
        assert sorted(first) == sorted(second) == list(range(COUNT))
        assert first != second
        report = loader.epoch_report()
        assert (report.epoch, report.contract) == (1, "windowed")
        assert (report.requested, report.distinct, report.repeated, report.skipped) == (COUNT, COUNT, 0, 0)
        assert report.node_bytes + report.origin_bytes == samples.total_bytes
        assert report.alone == 0


def test_first_epoch_is_fetched_and_second_is_resident(origin, run):
    with run().open() as samples:
        loader = loader_of(samples)
        read(origin, loader)
        assert loader.epoch_report().origin_bytes == samples.total_bytes
        read(origin, loader)
        assert loader.epoch_report().node_bytes == samples.total_bytes


def test_exact_contract_has_the_order_of_the_sampler(origin, run):
    with run().open() as samples:
        loader = loader_of(samples, "exact")
        dataset = stoker.torch.Dataset(samples, decode=raw)
        for epoch in range(2):
            expected = stoker.torch.Sampler(dataset, seed=SEED).order_of(epoch).tolist()
            assert read(origin, loader) == expected
            assert loader.epoch_report().distinct == COUNT


@pytest.mark.parametrize("drop_last", [False, True])
def test_an_incomplete_last_batch_is_dropped_with_drop_last_only(origin, run, drop_last):
    with run().open() as samples:
        loader = loader_of(samples, batch_size=64, drop_last=drop_last)
        assert len(read(origin, loader)) == (192 if drop_last else 200)
        assert loader.epoch_report().skipped == (8 if drop_last else 0)


def test_ranks_share_an_epoch(origin, run):
    sidecar = run()
    got = []
    with sidecar.open() as one, sidecar.open() as two:
        for rank, samples in enumerate((one, two)):
            got.append(read(origin, loader_of(samples, num_replicas=2, rank=rank)))
    assert len(got[0]) == len(got[1]) == COUNT // 2
    assert sorted(got[0] + got[1]) == list(range(COUNT))


def test_sidecar_killed_in_mid_epoch_loses_and_repeats_no_sample(origin, run):
    sidecar = run()
    with sidecar.open() as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = loader_of(samples, batch_size=10)
        ids = []
        for number, (_, _, batch) in enumerate(loader):
            ids += batch.tolist()
            if number == 4:
                sidecar.stop()
            if number == 9:
                sidecar.start()
                while not samples.sources.link.is_attached():
                    threading.Event().wait(0.01)
        assert sorted(ids) == list(range(COUNT))
        report = loader.epoch_report()
        assert 0 < report.alone < 100
        assert (report.requested, report.distinct, report.skipped) == (COUNT, COUNT, 0)
        assert samples.stats()["attached"] == 2


def test_new_leader_continues_the_epoch(origin, run):
    leader, follower = run(name="leader"), run(name="follower")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with follower.open() as samples:
            ids = []
            for number, (_, _, batch) in enumerate(loader_of(samples, batch_size=10)):
                ids += batch.tolist()
                if number == 8:
                    leader.stop()
            assert sorted(ids) == list(range(COUNT))
            assert samples.stats()["attached"] == 1


@pytest.mark.parametrize("workers", WORKERS[:2])
@pytest.mark.parametrize("after", [0, 3, 13])
def test_resumed_epoch_serves_the_remaining_samples(origin, run, workers, after):
    sidecar = run()
    with sidecar.open() as samples:
        loader = loader_of(samples, workers=workers)
        loader.set_epoch(1)
        first = read(origin, loader, batches=after) if after else []
        state = json.loads(json.dumps(loader.state_dict(), default=lambda value: value.hex()))
    assert state["position"] == len(first)
    state["served"] = bytes.fromhex(state["served"])
    with sidecar.open() as samples:
        loader = loader_of(samples, workers=workers)
        loader.load_state_dict(state)
        rest = read(origin, loader)
        assert sorted(first + rest) == list(range(COUNT))
        assert loader.epoch_report().epoch == (1 if after else 0)
        assert sorted(read(origin, loader)) == list(range(COUNT))


def test_state_saved_under_another_contract_is_refused(origin, run):
    with run().open() as samples:
        state = loader_of(samples).state_dict()
        with pytest.raises(ValueError, match="contract=windowed"):
            loader_of(samples, "exact").load_state_dict(state)


def test_without_a_sidecar_warns_once_and_serves_every_sample_once(origin):
    with stoker.open(origin.uri) as samples:
        loader = loader_of(samples)
        with pytest.warns(stoker.StokerWarning, match="needs a sidecar") as told:
            assert sorted(read(origin, loader)) == list(range(COUNT))
            assert sorted(read(origin, loader)) == list(range(COUNT))
        assert len(told) == 1
        assert loader.epoch_report().alone == COUNT


@pytest.mark.parametrize("contract", ["importance", "replicate"])
@pytest.mark.parametrize("world_size", [1, 3])
def test_repeated_draws_count_when_an_epoch_continues_without_its_sidecar(origin, contract, world_size):
    """12 draws with a sidecar gave 10 samples; without it, the rank ends after as many draws as its share has."""
    with stoker.open(origin.uri) as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = Draws(samples, terms(contract), seed=SEED, rank=0, world_size=world_size, batch_size=8)
        draws.begin(0)
        had = draws.next(10)
        draws.load({**draws.state(received=10), "position": 12})
        draws.resume()
        ids = []
        while len(got := draws.next(8)) > 0:
            ids += got.tolist()
        assert len(ids) == len(set(ids)) == draws.share - 12
        assert not set(ids) & set(had.tolist())


def test_unknown_parameter_error_lists_the_known_ones(origin, run):
    with run().open() as samples:
        with pytest.raises(stoker.SettingsError, match="has no parameter 'bta'; there are: beta"):
            loader_of(samples, "importance", bta=0.3)
        with pytest.raises(stoker.SettingsError, match="no contract 'fast'"):
            loader_of(samples, "fast")
        with pytest.raises(stoker.SettingsError, match="replaces shuffle"):
            loader_of(samples, shuffle=True)


def test_invalid_losses_are_counted_and_do_not_raise(origin):
    with stoker.open(origin.uri) as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = loader_of(samples, "importance")
        read(origin, loader, batches=1)
        loader.report(torch.arange(4), torch.tensor([1.0, float("nan"), float("inf"), 2.0]))
        loader.report(torch.arange(3), torch.ones(2))
        loader.report([COUNT, -1], [1.0, 1.0])
        loader.report(torch.arange(5), torch.tensor(0.5))
        loader.report(np.arange(2), torch.ones(2, dtype=torch.float16))
        report = loader.epoch_report()
        assert report.losses_ignored == 2 + 3 + 2 + 5
        assert report.losses_dropped == 4


def test_importance_without_losses_falls_back_with_one_warning(origin, monkeypatch):
    with stoker.open(origin.uri) as samples:
        loader = loader_of(samples, "importance")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(origin, loader)
        with pytest.warns(stoker.StokerWarning, match="no losses in a whole epoch") as told:
            for _ in range(3):
                assert sorted(read(origin, loader)) == list(range(COUNT))
        assert len(told) == 1
        assert loader.epoch_report().contract == "exact"


def test_job_limits_what_the_program_may_ask_for(origin, run, monkeypatch):
    def job_says(**entry):
        monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": origin.uri, **entry}}))
        return sidecar.open()

    sidecar = run()
    with job_says(contract="windowed") as samples:
        assert sorted(read(origin, loader_of(samples, "job"))) == list(range(COUNT))
        loader_of(samples, "exact")
        with pytest.raises(stoker.SettingsError, match="allows contract 'windowed'.*'windowed' or 'exact'"):
            loader_of(samples, "importance")
    with job_says(contract="importance", sampling={"beta": 0.5, "warmupEpochs": 3}) as samples:
        loader_of(samples, "importance", beta=0.33, warmup_epochs=4)
        for wrong in ({"beta": 0.6}, {"warmup_epochs": 2}):
            with pytest.raises(stoker.SettingsError, match="the program may ask for"):
                loader_of(samples, "importance", **wrong)
    with pytest.raises(stoker.SettingsError, match="dataset 'train'.*no contract"):
        job_says(contract="sometimes")


def test_epoch_stays_a_permutation_under_random_sidecar_restarts(origin, run):
    """The sidecar stops and restarts at random points of an epoch; the ids stay a permutation."""
    sidecar = run()
    prng = np.random.default_rng(SEED)
    with sidecar.open() as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = Draws(samples, terms("windowed"), seed=SEED, rank=0, world_size=1, batch_size=8)
        for epoch in range(3):
            draws.begin(epoch)
            ids, stops = [], set(prng.integers(0, COUNT // 8, 3).tolist())
            for number in range(COUNT):
                if number in stops:
                    (sidecar.stop if sidecar.process else sidecar.start)()
                got = draws.next(8)
                if len(got) == 0:
                    break
                samples.fetch(got)
                ids += got.tolist()
            assert sorted(ids) == list(range(COUNT)), f"STOKER_TEST_SEED={SEED}"


@pytest.mark.parametrize("contract, parameters", [
    ("importance", {"warmup_epochs": 1, "beta": 1.0}),
    ("importance", {"warmup_epochs": 1, "beta": 1.0, "substitute": 0}),
    ("importance", {"family": "iowa", "out_rate": 0.2}),
    ("replicate", {"replication": 2}),
])
def test_loss_based_contracts_serve_matching_labels(origin, run, contract, parameters):
    with run(grant="20Ki").open() as samples:
        loader = loader_of(samples, contract, **parameters)
        for epoch in range(4):
            for datas, labels, ids in loader:
                keys = [origin.keys[id] for id in ids.tolist()]
                assert datas == [origin.payloads[key] for key in keys]
                assert [samples.classes[label] for label in labels.tolist()] == [key.split("/")[0] for key in keys]
                loader.report(ids, 1.0 + ids.float())
            report = loader.epoch_report()
            assert (report.epoch, report.contract) == (epoch, contract)
            assert report.requested == report.distinct + report.repeated > 0
            assert report.losses_used == report.requested and report.losses_ignored == 0
            if epoch == 0:
                assert report.distinct == COUNT
        state = loader.state_dict()
        assert len(state["importance"]) > 0 and state["losses"] > COUNT
