"""A plan carries the beginning of the next epoch: when it does, when it must not, and how many reads it saves."""

import numpy as np
import pytest
import stoker
import stoker.torch
import torch.utils.data
from conftest import stats, wait_until
from stoker.link import AHEAD_AT_MOST
from test_real_sidecar import RealSidecar

KEYS = {"AWS_ACCESS_KEY_ID": "stoker", "AWS_SECRET_ACCESS_KEY": "stoker-secret"}


def plans_of(sidecar, epochs, known, shuffle=True):
    """The plans that the fake sidecar receives from a sampler iterated over these epochs."""
    with stoker.open("train") as samples:
        sampler = stoker.torch.Sampler(stoker.torch.Dataset(samples, decode=bytes), 2, 1, shuffle, 3, epochs=known)
        for epoch in epochs:
            sampler.set_epoch(epoch)
            list(sampler)
        orders = {epoch: sampler.order_of(epoch).tolist() for epoch in range(6)}
    plans = sidecar.events("plan")
    assert [plan["epoch"] for plan in plans] == list(epochs)
    assert all(plan["samples"] == orders[plan["epoch"]] for plan in plans)
    return [plan["ahead"] for plan in plans], orders


def test_all_plans_but_the_last_carry_the_next_epochs_beginning(origin, sidecar):
    sidecar.start(sees_ahead=True)
    ahead, orders = plans_of(sidecar, [0, 1, 2], known=3)
    assert ahead == [orders[1], orders[2], []]


def test_unknown_epoch_count_sends_nothing_ahead(origin, sidecar):
    sidecar.start(sees_ahead=True)
    ahead, _ = plans_of(sidecar, [0, 1], known=None)
    assert ahead == [[], []]


def test_epoch_count_comes_from_the_job(origin, sidecar, monkeypatch):
    monkeypatch.setenv("STOKER_EPOCHS", "2")
    sidecar.start(sees_ahead=True)
    ahead, orders = plans_of(sidecar, [0, 1], known=None)
    assert ahead == [orders[1], []]


@pytest.mark.parametrize("wrong", ["many", "-1", "2.5"])
def test_invalid_epoch_count_is_a_settings_error(monkeypatch, wrong):
    monkeypatch.setenv("STOKER_EPOCHS", wrong)
    with pytest.raises(stoker.SettingsError, match=f"STOKER_EPOCHS .*{wrong}"):
        stoker.torch.Sampler(range(10))
    assert stoker.torch.Sampler(range(10), epochs=3).epochs == 3


def test_old_sidecar_gets_plans_without_ahead(origin, sidecar):
    sidecar.start()
    ahead, _ = plans_of(sidecar, [0, 1], known=2)
    assert ahead == [[], []]


def test_plan_without_ahead_is_sent_when_an_older_leader_rejects_it(origin, sidecar):
    sidecar.start(sees_ahead="refuses")
    with stoker.open("train") as samples:
        samples.set_plan(4, [3, 1, 2], ahead=[7])
    assert [plan["ahead"] for plan in sidecar.events("plan")] == [[7], []]
    assert {(plan["epoch"], *plan["samples"]) for plan in sidecar.events("plan")} == {(4, 3, 1, 2)}


def test_repeated_epoch_sends_nothing_ahead(origin, sidecar):
    sidecar.start(sees_ahead=True)
    ahead, orders = plans_of(sidecar, [0, 0, 0, 1, 2], known=4)
    assert ahead == [orders[1], [], [], orders[2], orders[3]]


def test_resumed_epoch_sends_the_next_epoch_ahead(origin, sidecar):
    sidecar.start(sees_ahead=True)
    with stoker.open("train") as samples:
        sampler = stoker.torch.Sampler(stoker.torch.Dataset(samples, decode=bytes), 1, 0, seed=3, epochs=9)
        given = iter(sampler)
        for _ in range(30):
            next(given)
        sampler.load_state_dict(sampler.state_dict())
        assert len(list(sampler)) == 170
        beginning = sampler.order_of(1).tolist()
    first, resumed = sidecar.events("plan")
    assert (first["start"], resumed["start"]) == (0, 30)
    assert first["ahead"] == resumed["ahead"] == beginning


def test_subset_sends_dataset_ids_ahead(origin, sidecar):
    sidecar.start(sees_ahead=True)
    with stoker.open("train") as samples:
        odd = torch.utils.data.Subset(stoker.torch.Dataset(samples, decode=bytes), range(1, 200, 2))
        sampler = stoker.torch.Sampler(odd, 1, 0, seed=3, epochs=2)
        list(sampler)
        expected = [1 + 2 * index for index in sampler.order_of(1)]
    assert sidecar.events("plan")[0]["ahead"] == expected


def test_a_plan_names_at_most_65536_samples_of_the_next_epoch(origin, sidecar):
    sidecar.start(sees_ahead=True)
    with stoker.open("train") as samples:
        samples.set_plan(0, [1], ahead=np.arange(AHEAD_AT_MOST + 9) % 200)
    assert [len(plan["ahead"]) for plan in sidecar.events("plan")] == [AHEAD_AT_MOST]


# --- with the real sidecar ---------------------------------------------------------------------------------------

SAMPLES, BYTES, RESIDENTS, EPOCHS = 200, 40_000, 100, 4
RECORD = 40_064  # record size in bytes with header and padding; the tests below fail if it is wrong


class Bucket:
    """An S3 server that counts GET requests."""

    def __init__(self, endpoint):
        self.endpoint = endpoint

    @property
    def gets(self):
        return stats(self.endpoint)["get"]


@pytest.fixture
def bucket(tmp_path, monkeypatch, programs):
    for number in range(SAMPLES):
        path = tmp_path / "s3" / "data" / f"class{number % 3}" / f"{number:04}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(4, "little") * (BYTES // 4))
    for key, value in KEYS.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr("stoker.link.CONNECT_TIMEOUT_S", 60.0)  # a slow machine must not look like an absent sidecar
    monkeypatch.setenv("STOKER_DATASETS", "{}")
    server = programs("stoker-fake-s3", "--root", tmp_path / "s3", "--access-key", KEYS["AWS_ACCESS_KEY_ID"],
                      "--secret-key", KEYS["AWS_SECRET_ACCESS_KEY"])
    return Bucket(server.address)


def half_cached(folder, bucket):
    """A sidecar with room for half of the samples and a window for a fifth."""
    folder.mkdir()
    source = {"uri": "s3://data", "endpoint": bucket.endpoint}
    return RealSidecar(folder, None, source=source, grant=str(RESIDENTS * RECORD), window=str(40 * RECORD),
                       stepAsideWindow="0s")


def on_node(samples, ids):
    return not samples.sources.reader.read(ids)[1]


def train(sidecar, bucket, known):
    """Reads all epochs; returns the total of objects requested from the origin at the end of each."""
    gets = []
    with sidecar.open() as samples:
        dataset = stoker.torch.Dataset(samples, decode=lambda view: bytes(view[:4]))
        sampler = stoker.torch.Sampler(dataset, 1, 0, seed=3, epochs=known)
        loader = stoker.torch.DataLoader(dataset, batch_size=4, sampler=sampler, collate_fn=list)
        for epoch in range(EPOCHS):
            sampler.set_epoch(epoch)
            assert len(list(loader)) == SAMPLES // 4
            samples.tell_all()
            if epoch + 1 < (known or 0):
                beginning = sampler.order_of(epoch + 1)[:20]
                wait_until("the next epoch's beginning, fetched in this one", lambda: on_node(samples, beginning))
            gets.append(bucket.gets)
        assert samples.stats()["origin_samples"] == 0
    return gets


def test_ahead_causes_no_repeated_or_wasted_origin_reads(tmp_path, bucket):
    with half_cached(tmp_path / "without", bucket) as sidecar:
        without = train(sidecar, bucket, None)
    missing = SAMPLES - RESIDENTS
    assert without == [SAMPLES + epoch * missing for epoch in range(EPOCHS)]
    with half_cached(tmp_path / "with", bucket) as sidecar:
        ahead = [gets - without[-1] for gets in train(sidecar, bucket, EPOCHS)]
    kept = without[-1] - ahead[-1]  # samples that ended one epoch and began the next
    assert 0 <= kept <= (EPOCHS - 1) * 40
    assert ahead[0] > SAMPLES, "the first epoch fetched for the second one"
    assert ahead[-1] - ahead[-2] < missing, "what the last epoch began with was there"
