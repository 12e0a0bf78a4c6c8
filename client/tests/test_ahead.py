"""The beginning of the next epoch rides with the plan: when it does, when it must not, and what the origin sends."""

import json
import urllib.request

import numpy as np
import pytest
import stoker
import stoker.torch
import torch.utils.data
from conftest import wait_until
from stoker.link import AHEAD_AT_MOST
from test_real_sidecar import RealSidecar

KEYS = {"AWS_ACCESS_KEY_ID": "stoker", "AWS_SECRET_ACCESS_KEY": "stoker-secret"}


def plans_of(sidecar, epochs, known, shuffle=True):
    """What the fake sidecar is told by a sampler that is iterated in these epochs."""
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


def test_every_plan_but_the_last_ones_carries_the_beginning_of_the_next_epoch(origin, sidecar):
    sidecar.start(sees_ahead=True)
    ahead, orders = plans_of(sidecar, [0, 1, 2], known=3)
    assert ahead == [orders[1], orders[2], []]


def test_nothing_is_ahead_when_nobody_says_how_many_epochs_there_are(origin, sidecar):
    sidecar.start(sees_ahead=True)
    ahead, _ = plans_of(sidecar, [0, 1], known=None)
    assert ahead == [[], []]


def test_the_number_of_epochs_is_what_the_job_says(origin, sidecar, monkeypatch):
    monkeypatch.setenv("STOKER_EPOCHS", "2")
    sidecar.start(sees_ahead=True)
    ahead, orders = plans_of(sidecar, [0, 1], known=None)
    assert ahead == [orders[1], []]


@pytest.mark.parametrize("wrong", ["many", "-1", "2.5"])
def test_a_wrong_number_of_epochs_is_a_mistake_of_the_settings(monkeypatch, wrong):
    monkeypatch.setenv("STOKER_EPOCHS", wrong)
    with pytest.raises(stoker.SettingsError, match=f"STOKER_EPOCHS .*{wrong}"):
        stoker.torch.Sampler(range(10))
    assert stoker.torch.Sampler(range(10), epochs=3).epochs == 3


def test_an_old_sidecar_gets_the_plans_that_it_knows(origin, sidecar):
    sidecar.start()
    ahead, _ = plans_of(sidecar, [0, 1], known=2)
    assert ahead == [[], []]


def test_a_sidecar_that_is_led_by_an_older_one_gets_the_plan_that_it_takes(origin, sidecar):
    sidecar.start(sees_ahead="refuses")
    with stoker.open("train") as samples:
        samples.set_plan(4, [3, 1, 2], ahead=[7])
    assert [plan["ahead"] for plan in sidecar.events("plan")] == [[7], []]
    assert {(plan["epoch"], *plan["samples"]) for plan in sidecar.events("plan")} == {(4, 3, 1, 2)}


def test_a_repeated_epoch_is_not_followed_by_the_next_one(origin, sidecar):
    sidecar.start(sees_ahead=True)
    ahead, orders = plans_of(sidecar, [0, 0, 0, 1, 2], known=4)
    assert ahead == [orders[1], [], [], orders[2], orders[3]]


def test_a_resume_in_mid_epoch_is_not_reading_it_again(origin, sidecar):
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


def test_a_subset_is_ahead_with_the_ids_of_the_whole(origin, sidecar):
    sidecar.start(sees_ahead=True)
    with stoker.open("train") as samples:
        odd = torch.utils.data.Subset(stoker.torch.Dataset(samples, decode=bytes), range(1, 200, 2))
        sampler = stoker.torch.Sampler(odd, 1, 0, seed=3, epochs=2)
        list(sampler)
        expected = [1 + 2 * index for index in sampler.order_of(1)]
    assert sidecar.events("plan")[0]["ahead"] == expected


def test_only_so_much_is_ahead_as_a_window_may_hold(origin, sidecar):
    sidecar.start(sees_ahead=True)
    with stoker.open("train") as samples:
        samples.set_plan(0, [1], ahead=np.arange(AHEAD_AT_MOST + 9) % 200)
    assert [len(plan["ahead"]) for plan in sidecar.events("plan")] == [AHEAD_AT_MOST]


# --- with the real sidecar ---------------------------------------------------------------------------------------

SAMPLES, BYTES, RESIDENTS, EPOCHS = 200, 40_000, 100, 4
RECORD = 40_064  # that many bytes with header and padding; the tests below see it if it is not


class Bucket:
    """An S3 server that counts what it is asked for."""

    def __init__(self, endpoint):
        self.endpoint = endpoint

    @property
    def gets(self):
        with urllib.request.urlopen(f"{self.endpoint}/__stats") as answer:
            return json.load(answer)["get"]


@pytest.fixture
def bucket(tmp_path, monkeypatch, programs):
    for number in range(SAMPLES):
        path = tmp_path / "s3" / "data" / f"class{number % 3}" / f"{number:04}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(4, "little") * (BYTES // 4))
    for key, value in KEYS.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr("stoker.link.CONNECT_TIMEOUT_S", 60.0)  # a busy machine is not a sidecar that is away
    monkeypatch.setenv("STOKER_DATASETS", "{}")
    server = programs("stoker-fake-s3", "--root", tmp_path / "s3", "--access-key", KEYS["AWS_ACCESS_KEY_ID"],
                      "--secret-key", KEYS["AWS_SECRET_ACCESS_KEY"])
    return Bucket(server.address)


def half_cached(folder, bucket):
    """Room for half of the samples, and a window for a fifth."""
    folder.mkdir()
    source = {"uri": "s3://data", "endpoint": bucket.endpoint}
    return RealSidecar(folder, None, source=source, grant=str(RESIDENTS * RECORD), window=str(40 * RECORD),
                       stepAsideWindow="0s")


def on_node(samples, ids):
    return not samples.sources.reader.read(ids)[1]


def train(sidecar, bucket, known):
    """Reads all epochs; gives how many objects the origin was asked for until the end of each."""
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


def test_reading_over_the_borders_asks_the_origin_for_nothing_twice_and_nothing_in_vain(tmp_path, bucket):
    with half_cached(tmp_path / "without", bucket) as sidecar:
        without = train(sidecar, bucket, None)
    missing = SAMPLES - RESIDENTS
    assert without == [SAMPLES + epoch * missing for epoch in range(EPOCHS)]
    with half_cached(tmp_path / "with", bucket) as sidecar:
        ahead = [gets - without[-1] for gets in train(sidecar, bucket, EPOCHS)]
    kept = without[-1] - ahead[-1]  # samples of an epoch's end with which the next one began
    assert 0 <= kept <= (EPOCHS - 1) * 40
    assert ahead[0] > SAMPLES, "the first epoch fetched for the second one"
    assert ahead[-1] - ahead[-2] < missing, "what the last epoch began with was there"
