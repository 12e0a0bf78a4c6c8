"""Near-duplicates: fingerprints of decoded samples, and how the real stoker-sidecar treats them."""

import json
import socket
import warnings

import numpy as np
import pytest
import stoker
import stoker.torch
import torch
from conftest import SEED, Origin, wait_until
from stoker.similarity import difference_hash
from stoker.torch_contracts import Fingerprinter
from test_real_sidecar import run  # noqa: F401  (a fixture)

COUNT, ALIKE = 120, 3  # samples; near-duplicates in each group
SIDE = 18


def distance(one, other):
    return bin(one ^ other).count("1")


def image(seed, side=72):
    """A smooth picture: a sum of waves."""
    prng = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side] / side
    waves = [np.sin(2 * np.pi * (a * x + b * y + c)) for a, b, c in prng.uniform(-3, 3, (6, 3))]
    return np.rint(127 + 20 * np.sum(waves, axis=0)).clip(0, 255).astype(np.uint8)


def test_similar_images_have_similar_hashes():
    prng = np.random.default_rng(SEED)
    for seed in range(20):
        one = image(seed)
        hash = difference_hash(one)
        assert 0 <= hash < 2**64
        assert distance(hash, difference_hash((one * 0.5 + 60).astype(np.uint8))) <= 8  # rounding changes flat regions
        noisy = (one + prng.integers(-2, 3, one.shape)).clip(0, 255).astype(np.uint8)
        assert distance(hash, difference_hash(noisy)) <= 8
        assert distance(hash, difference_hash(image(seed + 1000))) > 8


def test_hash_does_not_depend_on_the_image_type():
    from PIL import Image

    one = image(5)
    hash = difference_hash(one)
    assert difference_hash(torch.from_numpy(one)) == hash
    assert difference_hash(one[:, :, None].repeat(3, axis=2)) == hash
    assert difference_hash(one[None]) == hash
    assert difference_hash(one / 255) == hash
    assert distance(difference_hash(Image.fromarray(one).convert("RGB")), hash) <= 1
    assert difference_hash(np.array([[1, 2], [4, 3]], dtype=np.uint8)) is not None  # fewer pixels than cells


def test_rising_gradient_sets_every_bit():
    assert difference_hash(np.arange(64.0)[None].repeat(64, axis=0)) == 2**64 - 1
    assert difference_hash(np.zeros((64, 64))) == 0


def test_samples_that_look_alike_under_other_labels_are_no_duplicates():
    fingerprint, one = Fingerprinter(difference_hash, 1), image(1)
    assert fingerprint(0, one, 7) == fingerprint(0, one, 7)
    assert min(distance(fingerprint(0, one, 0), fingerprint(0, one, label)) for label in range(1, 1000)) > 8


def test_data_that_is_no_image_matches_only_when_equal():
    assert difference_hash(b"abc") == difference_hash(np.frombuffer(b"abc", dtype=np.uint8)) != difference_hash(b"abd")
    assert difference_hash(torch.arange(5)) is not None
    assert difference_hash("text") is None
    assert difference_hash({"x": 1}) is None
    assert difference_hash(np.array(["a"])) is None


@pytest.fixture
def pictures(tmp_path):
    """COUNT pictures in groups of ALIKE near-duplicates: equal but for one bright pixel."""
    made = Origin(tmp_path / "pictures", count=COUNT, classes=("a",))
    prng = np.random.default_rng(SEED)
    for number, key in enumerate(made.keys):
        picture = image(number // ALIKE, SIDE)
        picture[tuple(prng.integers(0, SIDE, 2))] ^= 1
        made.payloads[key] = picture.tobytes()
        (made.root / key).write_bytes(made.payloads[key])
    return made


@pytest.fixture
def start(pictures, run, monkeypatch):  # noqa: F811
    """Makes sidecars for the pictures and waits until they accept connections."""

    def make(**settings):
        monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": pictures.uri}}))
        sidecar = run(of=pictures, **settings)
        wait_until("a connection", lambda: takes_connections(sidecar.socket))
        return sidecar

    return make


def takes_connections(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def decode(view):
    return np.frombuffer(view, dtype=np.uint8).reshape(SIDE, SIDE)


def dataset_of(samples):
    return stoker.torch.Dataset(samples, decode=decode, transform=lambda picture: torch.from_numpy(picture.copy()))


def loader_of(samples, redundancy, workers=0, **options):
    options = {"out_rate": 0, **options}
    return stoker.torch.DataLoader(dataset_of(samples), batch_size=10, contract="importance", family="iowa", redundancy=redundancy,
                                   seed=SEED, num_workers=workers, **options)


def train(loader):
    served = []
    for batch in loader:
        datas, labels, ids = batch
        assert datas.shape == (len(ids), SIDE, SIDE)
        loader.report(ids, torch.ones(len(ids)))
        served += ids.tolist()
    return served


def groups_of(served):
    """The groups of the samples, sorted."""
    return sorted(id // ALIKE for id in served)


@pytest.mark.parametrize("workers", [0, 2])
def test_after_the_first_epoch_duplicates_are_read_in_turns(start, workers):
    with start().open() as samples:
        loader = loader_of(samples, "remove", workers)
        assert sorted(train(loader)) == list(range(COUNT))
        turns = [train(loader) for _ in range(ALIKE)]
        assert [groups_of(served) for served in turns] == [list(range(COUNT // ALIKE))] * ALIKE
        assert sorted(sum(turns, [])) == list(range(COUNT)), "each has had its turn"
        report = loader.epoch_report()
        assert (report.requested, report.skipped) == (COUNT // ALIKE, COUNT - COUNT // ALIKE)
        assert int(loader._stream.fingerprinter.told.sum()) == COUNT  # so workers hash each sample once
        state = loader.state_dict()
    with start(name="other").open() as samples:
        loader = loader_of(samples, "remove", workers)
        loader.load_state_dict(state)
        assert train(loader) == []  # the epoch has ended
        assert len(train(loader)) == COUNT // ALIKE


def test_resident_duplicate_replaces_a_missing_sample(start):
    with start(grant="20Ki").open() as samples:
        loader = loader_of(samples, "repeat")
        assert sorted(train(loader)) == list(range(COUNT))
        before = loader.epoch_report()
        served = train(loader)
        report = loader.epoch_report()
        assert len(served) == COUNT
        assert report.origin_bytes < before.origin_bytes
        assert report.repeated > 0  # a duplicate is served twice instead of another of its group
        groups = np.array(served) // ALIKE
        assert (np.bincount(groups, minlength=COUNT // ALIKE) == ALIKE).all()


def test_program_may_supply_its_own_similarity(start):
    def nothing_alike(picture):
        raise AssertionError("fingerprints were not needed")

    with start().open() as samples:
        loader = loader_of(samples, "none", similarity=nothing_alike)
        assert len(train(loader)) == len(train(loader)) == COUNT

        loader = loader_of(samples, "remove", similarity=lambda picture: None)
        assert len(train(loader)) == len(train(loader)) == COUNT

        loader = loader_of(samples, "remove", similarity=False)
        train(loader)
        loader.report_similarity(range(COUNT), [(id // 6) * 0x0101010101010101 for id in range(COUNT)])
        loader.report_similarity([COUNT, -1], [0, 0])
        with pytest.raises(ValueError, match="one hash for each id"):
            loader.report_similarity([1, 2], [3])
        assert len(train(loader)) == COUNT // 3, "six that are alike are read as four and two"


def test_new_sidecar_gets_the_fingerprints_again(start):
    sidecar = start()
    with sidecar.open() as samples, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = loader_of(samples, "remove")
        train(loader)
        sidecar.stop()
        sidecar.start()
        wait_until("the link", lambda: loader.report([0], [1.0]) or samples.sources.link.is_attached()
                   and samples.stats()["attached"] == 2)
        assert sorted(train(loader)) == list(range(COUNT))
        assert groups_of(train(loader)) == list(range(COUNT // ALIKE))


def test_follower_forwards_fingerprints_under_the_jobs_contract(pictures, start, monkeypatch):
    job = {"contract": "importance", "sampling": {"family": "iowa", "redundancy": "remove", "outRate": 0}}
    start(name="leader", **job)
    follower = start(name="follower", **job)
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": pictures.uri, **job}}))
    with follower.open() as samples:
        loader = stoker.torch.DataLoader(dataset_of(samples), batch_size=10, contract="job", seed=SEED)
        assert len(train(loader)) == COUNT
        assert len(train(loader)) == COUNT // ALIKE
        with pytest.raises(stoker.SettingsError, match="redundancy"):
            loader_of(samples, "repeat", out_rate=0)
