"""Contracts that use losses, with the real stoker-sidecar: invalid losses, mixed precision, workers, resume in
mid-epoch, and no losses; also the order of contract windowed."""

import contextlib
import logging
import math
import warnings

import numpy as np
import pytest
import stoker
import stoker.torch
import torch
from conftest import SEED, wait_until
from stoker.draws import Draws
from test_contracts import COUNT, WORKERS, loader_of, raw, read
from test_real_sidecar import run  # noqa: F401  (a fixture)

LEARNERS = [("importance", {"warmup_epochs": 1, "beta": 1.0, "substitute": 0}),
            ("importance", {"warmup_epochs": 1, "beta": 1.0}),
            ("importance", {"family": "iowa", "out_rate": 0.2}),
            ("replicate", {"replication": 2})]
WITH_SPAWN = [*WORKERS[:2], (2, "spawn")]


def loss_of(ids):
    """A finite loss for each id, larger for larger ids."""
    return 1.0 + ids.float() / COUNT


def later_loss_of(ids):
    """A smaller loss, as after training."""
    return loss_of(ids) / 10


def train(origin, loader, batches=None, losses=loss_of):
    """Ids of an epoch or of its first batches. Checks bytes and labels, and reports losses."""
    classes = sorted({key.split("/")[0] for key in origin.keys})
    served = []
    for number, (datas, labels, ids) in enumerate(loader, 1):
        keys = [origin.keys[id] for id in ids.tolist()]
        assert datas == [origin.payloads[key] for key in keys]
        assert [classes[label] for label in labels.tolist()] == [key.split("/")[0] for key in keys]
        loader.report(ids, losses(ids))
        served += ids.tolist()
        if number == batches:
            break
    return served


def used(loader):
    return loader.epoch_report().losses_used


BAD = [
    ("not a number", lambda ids: (ids, torch.full((len(ids),), math.nan)), len),
    ("infinite", lambda ids: (ids, torch.full((len(ids),), -math.inf)), len),
    ("too large for float32", lambda ids: (ids, torch.full((len(ids),), 1e300, dtype=torch.float64)), len),
    ("one too few", lambda ids: (ids, torch.ones(len(ids) - 1)), len),
    ("one too many", lambda ids: (ids, torch.ones(len(ids) + 1)), lambda ids: len(ids) + 1),
    ("their mean", lambda ids: (ids, torch.tensor(1.0)), len),
    ("a column", lambda ids: (ids, torch.ones(len(ids), 1)), len),
    ("ragged", lambda ids: (ids, [[1.0]] + [[1.0, 2.0]] * (len(ids) - 1)), len),
    ("words", lambda ids: (ids, ["much"] * len(ids)), len),
    ("of nobody", lambda ids: (ids[:0], torch.ones(len(ids))), len),
    ("of ids beyond the dataset", lambda ids: (ids + COUNT, torch.ones(len(ids))), len),
    ("of ids below it", lambda ids: (-1 - ids, torch.ones(len(ids))), len),
]


@pytest.mark.parametrize("contract, parameters", LEARNERS)
def test_invalid_loss_reports_are_counted_and_valid_ones_used(origin, run, contract, parameters):
    with run().open() as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = loader_of(samples, contract, **parameters)
        ignored = 0
        for number, (_, _, ids) in enumerate(loader):
            if number < len(BAD):
                _, spoil, count = BAD[number]
                loader.report(*spoil(ids))
                ignored += count(ids)
                report = loader.epoch_report()
                assert (report.losses_used, report.losses_ignored) == (16 * number, ignored), BAD[number][0]
            loader.report(ids, loss_of(ids))
        report = loader.epoch_report()
        assert number >= len(BAD)
        assert (report.losses_used, report.losses_ignored, report.losses_dropped) == (COUNT, ignored, 0)
        assert len(train(origin, loader)) == loader.epoch_report().losses_used


def snapshot_bytes(origin, run, p_other):
    """Size of the sampler's state, and the report, after an epoch with p_other(ids): for each sample the largest
    probability that the model gives to a wrong class."""
    with run().open() as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = loader_of(samples, "importance", family="iowa")
        for _, _, ids in loader:
            loader.report(ids, loss_of(ids), p_other=p_other(ids))
        return len(loader.state_dict()["importance"]), loader.epoch_report()


def test_valid_probabilities_p_other_reach_the_sampler(origin, run):
    without, _ = snapshot_bytes(origin, run, lambda ids: None)
    for give in (lambda ids: torch.full((len(ids),), 0.25), lambda ids: np.full(len(ids), 0.25),
                 lambda ids: [0.25] * len(ids), lambda ids: torch.full((len(ids),), 0.25, dtype=torch.float16)):
        known, report = snapshot_bytes(origin, run, give)
        assert known == without + COUNT, "a byte for each sample"
        assert (report.losses_used, report.losses_ignored) == (COUNT, 0)


@pytest.mark.parametrize("spoilt", [
    lambda ids: torch.full((len(ids),), math.nan),
    lambda ids: torch.full((len(ids),), math.inf),
    lambda ids: torch.full((len(ids),), 1e300, dtype=torch.float64),
    lambda ids: torch.full((len(ids),), -0.5),
    lambda ids: torch.ones(len(ids) - 1),
    lambda ids: torch.ones(len(ids), 1),
    lambda ids: torch.tensor(0.5),
    lambda ids: [[0.5]] + [[0.25, 0.5]] * (len(ids) - 1),
    lambda ids: ["much"] * len(ids),
    lambda ids: [None] * len(ids),
    lambda ids: {"p": 0.5},
    lambda ids: np.full(len(ids), "0.5", dtype=object),
], ids=["nan", "infinite", "huge", "negative", "one too few", "a column", "a number", "ragged", "words", "none", "a dict",
        "objects"])
def test_losses_are_used_although_the_probabilities_p_other_are_invalid(origin, run, spoilt):
    without, _ = snapshot_bytes(origin, run, lambda ids: None)
    found, report = snapshot_bytes(origin, run, spoilt)
    assert found == without
    assert (report.losses_used, report.losses_ignored) == (COUNT, 0)


def test_a_p_other_that_is_no_list_of_numbers_warns_once(origin, run):
    with run().open() as samples, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loader = loader_of(samples, "importance", family="iowa")
        for _, _, ids in loader:
            loader.report(ids, loss_of(ids), p_other=[[0.5]] + [[0.25, 0.5]] * (len(ids) - 1))
    assert len([warning for warning in caught if "p_other" in str(warning.message)]) == 1


def test_valid_losses_of_a_batch_are_used_beside_invalid_ones(origin, run):
    def spoilt(ids):
        losses = loss_of(ids)
        losses[::4] = math.nan
        return losses

    with run().open() as samples:
        loader = loader_of(samples, "importance", warmup_epochs=1)
        assert sorted(train(origin, loader, losses=spoilt)) == list(range(COUNT))
        report = loader.epoch_report()
        assert (report.losses_used, report.losses_ignored) == (COUNT - 50, 50)


def test_wrong_loss_length_warns_once(origin, run, caplog):
    with run().open() as samples, caplog.at_level(logging.WARNING, logger="stoker"):
        loader = loader_of(samples, "importance")
        train(origin, loader, losses=lambda ids: torch.ones(3))
        assert loader.epoch_report().losses_ignored == COUNT
        assert sum("are ignored" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.parametrize("type_of", [torch.bfloat16, torch.float16, torch.float64])
def test_losses_of_any_floating_type_are_used_with_or_without_autograd_graph(origin, run, type_of):
    def losses(ids):
        weight = torch.ones(1, requires_grad=True)
        return (loss_of(ids) * weight).to(type_of)

    with run().open() as samples:
        loader = loader_of(samples, "importance", warmup_epochs=1, beta=1.0)
        train(origin, loader, losses=losses)
        assert used(loader) == COUNT
        kept = train(origin, loader, losses=losses)
        assert len(set(kept)) == len(kept) < COUNT
        assert np.mean(kept) > COUNT / 2  # a larger id has a larger loss
        assert used(loader) == len(kept)


@pytest.mark.parametrize("workers", WITH_SPAWN)
@pytest.mark.parametrize("contract, parameters", LEARNERS[1::2])
def test_losses_used_is_the_same_with_loader_workers(origin, run, contract, parameters, workers):
    with run(grant="20Ki").open() as samples:
        loader = loader_of(samples, contract, workers, **parameters)
        assert sorted(train(origin, loader)) == list(range(COUNT))
        served = train(origin, loader)
        report = loader.epoch_report()
        assert (report.epoch, report.contract, report.requested) == (1, contract, len(served))
        assert (report.distinct, report.losses_used) == (len(set(served)), len(served))
        assert report.distinct < COUNT
        assert report.alone == report.losses_ignored == report.losses_dropped == 0


@pytest.mark.parametrize("workers", WORKERS[:2])
@pytest.mark.parametrize("contract, parameters", LEARNERS)
def test_loss_based_epoch_resumes_in_the_middle(origin, run, contract, parameters, workers):
    """The sidecar is new to the job: all it knows comes from the saved state."""
    sidecar = run(grant="20Ki")
    with sidecar.open() as samples:
        loader = loader_of(samples, contract, workers, **parameters)
        train(origin, loader)
        train(origin, loader, losses=later_loss_of)
        first = train(origin, loader, batches=4, losses=later_loss_of)
        state = loader.state_dict()
    assert (state["epoch"], state["position"], state["seed"]) == (2, len(first), SEED)
    sidecar.stop()
    sidecar.start()
    with sidecar.open() as samples:
        loader = loader_of(samples, contract, workers, **parameters)
        loader.load_state_dict(state)
        rest = train(origin, loader, losses=later_loss_of)
        report = loader.epoch_report()
        both = first + rest
        assert (report.epoch, report.contract, report.alone) == (2, contract, 0)
        assert (report.requested, report.distinct, report.repeated) == (
            len(both), len(set(both)), len(both) - len(set(both)))
        if contract == "replicate":
            assert report.requested == COUNT
        else:
            assert report.requested < COUNT  # the contract selects samples, so it has the losses
            assert len(set(rest)) == len(rest)
            assert not set(first) & set(rest)  # samples served before the resume do not replace others either
            assert report.repeated == 0
        train(origin, loader)
        assert loader.epoch_report().epoch == 3


@pytest.mark.parametrize("parameters", [{}, {"family": "iowa"}])
@pytest.mark.parametrize("world_size", [1, 3])
def test_sidecar_finishes_an_epoch_that_ranks_began_without_it(origin, run, parameters, world_size):
    """Without the sidecar each rank reads its own share in the sidecar's order, so no sample is read twice."""
    sidecar = run()
    sidecar.stop()
    served = []
    with warnings.catch_warnings(), contextlib.ExitStack() as opened:
        warnings.simplefilter("ignore")
        readers = []
        for rank in range(world_size):
            samples = opened.enter_context(sidecar.open())
            loader = loader_of(samples, "importance", batch_size=5, num_replicas=world_size, rank=rank, **parameters)
            batches = iter(loader)
            served += [next(batches)[-1].tolist() for _ in range(3 + rank)]
            readers.append((samples, loader, batches))
        sidecar.start()
        for samples, loader, batches in readers:
            wait_until("the link", samples.sources.link.is_attached)
            served += [ids.tolist() for _, _, ids in batches]
            report = loader.epoch_report()
            assert report.requested == report.distinct == loader_length(world_size)
            assert 15 <= report.alone < report.requested
    ids = [id for batch in served for id in batch]
    assert set(ids) == set(range(COUNT))
    assert len(ids) == world_size * loader_length(world_size)


def loader_length(world_size):
    return -(-COUNT // world_size)


@pytest.mark.parametrize("workers", WORKERS[:2])
@pytest.mark.parametrize("contract", ["importance", "replicate"])
def test_missing_losses_warn_once_and_fall_back_to_exact(origin, run, contract, workers):
    with run().open() as samples, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", stoker.StokerWarning)
        loader = loader_of(samples, contract, workers)
        assert sorted(read(origin, loader)) == list(range(COUNT))
        assert loader.epoch_report().contract == contract
        exact = stoker.torch.Sampler(stoker.torch.Dataset(samples, decode=raw), seed=SEED)
        for epoch in (1, 2):
            assert read(origin, loader) == exact.order_of(epoch).tolist()
            assert loader.epoch_report().contract == "exact"
        texts = [str(warning.message) for warning in told if issubclass(warning.category, stoker.StokerWarning)]
        assert len(texts) == 1 and "no losses in a whole epoch" in texts[0]


def test_losses_reported_only_after_the_last_batch_prevent_the_fallback_to_exact(origin, run):
    with run().open() as samples, warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = loader_of(samples, "importance", warmup_epochs=1)
        ids = read(origin, loader)
        loader.report(ids[-8:], [1.0] * 8)  # after the last batch, as lists
        read(origin, loader)
        assert loader.epoch_report().contract == "importance"


def test_losses_without_a_sidecar_are_dropped_and_counted(origin, run):
    sidecar = run()
    with sidecar.open() as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = loader_of(samples, "importance")
        train(origin, loader, batches=4)
        sidecar.stop()
        wait_until("the link to notice", lambda: not samples.sources.link.is_attached() or loader.report([0], [1.0]))
        before = loader.epoch_report().losses_dropped
        loader.report(torch.arange(5), torch.ones(5))
        assert loader.epoch_report().losses_dropped == before + 5


@pytest.mark.parametrize("drift", [0.0, 0.02])
def test_windowed_order_mixes_resident_and_missing_samples(tmp_path, run, drift):
    """Every prefix of an epoch is mixed: resident and missing samples within the drift, all classes, not the last
    prefix."""
    epochs, prefix = 12, 50
    with run(grant="20Ki").open() as samples:
        labels = np.array(samples.labels)
        loader = loader_of(samples, drift=drift)
        orders, kept = [], []
        for _ in range(epochs):
            orders.append(np.concatenate([ids.numpy() for _, _, ids in loader]))
            kept.append(loader.epoch_report().node_bytes)
    positions = np.argsort(orders, axis=1)
    assert all(sorted(order) == list(range(COUNT)) for order in orders)
    assert min(kept[1:]) > 0  # there are residents, so the order could prefer them
    # Mean position of a sample: uniform on 0..199, so 99.5, with sd 58 / sqrt(epochs) = 17; none of 200 is beyond 5 sd.
    assert np.abs(positions.mean(axis=0) - 99.5).max() < 5 * 17 + 2 * drift * COUNT
    # Prefixes of 50 of 200 share 12.5 samples by chance, sd 2.7; the test takes the mean of eleven.
    shared = [len(np.intersect1d(one[:prefix], two[:prefix])) for one, two in zip(orders, orders[1:])]
    assert np.mean(shared) < 12.5 + 5 * 2.7 / math.sqrt(epochs - 1) + 2 * drift * COUNT
    # Each class is a third: 16.7 of 50, sd 2.9 (without replacement).
    counts = np.array([np.bincount(labels[order[:prefix]], minlength=3) for order in orders])
    assert np.abs(counts.mean(axis=0) - 16.7).max() < 5 * 2.9 / math.sqrt(epochs) + 2 * drift * COUNT


@pytest.mark.parametrize("length", [20, 50])  # the sidecar deals 34
def test_a_rank_draws_its_part_even_if_its_sidecar_deals_another_number(origin, run, monkeypatch, length):  # noqa: F811
    with run().open() as samples:
        loader = loader_of(samples, "importance", num_replicas=3, rank=0, warmup_epochs=1, beta=1.0, substitute=0)
        assert len(train(origin, loader)) == 67
        assert len(train(origin, loader)) == 34
        monkeypatch.setattr(Draws, "_draws_of_epoch", property(lambda self: length))
        served = train(origin, loader)
        assert len(set(served)) == len(served) == length
        assert loader.epoch_report().alone == max(0, length - 34)


def test_a_rank_without_losses_reads_as_many_as_the_others(origin):
    with stoker.open(origin.uri) as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = loader_of(samples, "importance", num_replicas=2, rank=0, warmup_epochs=1, beta=1.0)
        assert [len(read(origin, loader)) for _ in range(4)] == [100, 50, 50, 100]
        assert loader.epoch_report().contract == "exact"


@pytest.mark.parametrize("bad", [{"reuse_factor": 0}, {"beta": -1}, {"family": "iowa", "recall_after": 0.5}])
def test_a_parameter_outside_its_bounds_is_refused_without_a_sidecar(origin, bad):
    with stoker.open(origin.uri) as samples, pytest.raises(stoker.SettingsError, match=" is -?0?.*(outside|multiple)"):
        loader_of(samples, "importance", num_replicas=2, rank=0, **bad)
