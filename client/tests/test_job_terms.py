"""The TrainingJob's contract at both ends of the socket: the client narrows it, and the sidecar enforces it."""
import json
import pathlib
import subprocess
import sys

import PIL.Image
import pytest
import stoker
import stoker.torch
from conftest import SEED
from test_contracts import COUNT, loader_of, read
from test_real_sidecar import run  # noqa: F401  (a fixture)

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples" / "mnist" / "train_importance.py"
BETA_1 = {"beta": 1, "warmupEpochs": 1, "reuseFactor": 100}


def says(monkeypatch, origin, contract, **sampling):
    """Sets the environment of a pod whose TrainingJob sets this contract."""
    job = {"uri": origin.uri, "contract": contract, "sampling": sampling}
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": job}))


def test_loader_uses_the_jobs_contract_and_parameters(origin, run, monkeypatch):
    sidecar = run(contract="importance", sampling=BETA_1)
    says(monkeypatch, origin, "importance", **BETA_1)
    with sidecar.open() as samples:
        loader = loader_of(samples, contract="job")
        for epoch in range(3):
            for _, _, ids in loader:
                loader.report(ids, ids.float())
        report = loader.epoch_report()
        assert (report.contract, report.epoch) == ("importance", 2)
        assert report.requested < 0.8 * COUNT, "half of the samples at beta 1"


def test_program_may_only_narrow_the_jobs_contract(origin, run, monkeypatch):
    sidecar = run()
    says(monkeypatch, origin, "importance", beta=0.33)
    with sidecar.open() as samples:
        with pytest.raises(stoker.SettingsError, match="at most 0.33, not for 0.5"):
            loader_of(samples, contract="importance", beta=0.5)
        with pytest.raises(stoker.SettingsError, match="'importance' or 'windowed' or 'exact', not for 'replicate'"):
            loader_of(samples, contract="replicate")
        for narrower in ({"contract": "exact"}, {"contract": "windowed"}, {"contract": "importance", "beta": 0.2}):
            assert sorted(read(origin, loader_of(samples, **narrower))) == list(range(COUNT))  # the first epoch is full


@pytest.mark.parametrize("asked, why", [
    ({"contract": "importance"}, "allows contract 'windowed', so its trainers may ask for 'windowed' or 'exact'"),
    ({"contract": "windowed", "drift": 0.5}, "sets drift=0.02; its trainers may ask for at most 0.02"),
])
def test_sidecar_enforces_the_contract_on_a_client_without_limits(origin, run, asked, why):
    with run(contract="windowed", sampling={"drift": 0.02}).open() as samples:
        with pytest.raises(stoker.SettingsError, match=why):
            next(iter(loader_of(samples, **asked)))
        assert sorted(read(origin, loader_of(samples))) == list(range(COUNT))


def test_follower_enforces_the_contract_on_its_clients(origin, run):
    leader = run(name="leader")
    with leader.open() as samples:
        assert sorted(read(origin, loader_of(samples))) == list(range(COUNT))
        with run(name="follower", contract="exact").open() as others:
            with pytest.raises(stoker.SettingsError, match="allows contract 'exact'"):
                next(iter(loader_of(others)))


@pytest.mark.parametrize("workers", [(0, None), (2, "fork")])
def test_grouped_chunks_serve_every_sample_once(origin, run, workers):
    with run().open() as samples:
        loader = loader_of(samples, chunk_group=4, workers=workers)
        first, second = read(origin, loader), read(origin, loader)
        assert sorted(first) == sorted(second) == list(range(COUNT)) and first != second


def test_iowa_recalls_samples_when_the_reported_accuracy_stagnates(origin, run):
    with run().open() as samples:
        loader = loader_of(samples, contract="importance", family="iowa", out_rate=0.2, recall_after=1)
        requested = []
        for epoch in range(6):
            for _, _, ids in loader:
                loader.report(ids, ids.float() + 1)
            requested.append(loader.epoch_report().requested)
            loader.report_accuracy(0.5)  # stagnates
            loader.report_accuracy(float("nan"))  # ignored
        assert requested[0] == COUNT and min(requested) < COUNT
        assert max(requested[2:]) > min(requested[1:-1]), f"some samples were recalled: {requested}"


def test_waiting_share_is_sent_with_the_next_epochs_begin(origin, run, monkeypatch):
    with run().open() as samples:
        told, begin = [], samples.sources.link.begin

        def listen(**asked):
            told.append(asked["parameters"].get("waiting"))
            return begin(**asked)

        monkeypatch.setattr(samples.sources.link, "begin", listen)
        loader = loader_of(samples, contract="importance", family="iowa")
        age = 10**18  # ns; the epoch's own time is negligible beside it
        for waited, computed in ((age, 0), (0, age), (age, 3 * age)):
            for _, _, ids in loader:
                loader.report(ids, ids.float() + 1)
            loader._contract_stream().draws.note_step(waited, computed)
        next(iter(loader))
        assert told[0] is None and told[1:] == pytest.approx([1, 0, 0.25], abs=0.01)


def test_replicate_keeps_high_scoring_samples(origin, run):
    records = sum(-(-(len(origin.payloads[key]) + 32) // 64) * 64 for key in origin.keys)
    with run(grant=str(records // 4), window="1Mi").open() as samples:
        loader = loader_of(samples, contract="replicate", replication=1)
        for _ in range(6):
            for _, _, ids in loader:
                loader.report(ids, ids.float())
        kept = stoker_resident(samples)
        assert 0.1 * COUNT < len(kept) < 0.6 * COUNT


def stoker_resident(samples):
    flags = samples.sources.reader.resident(list(range(len(samples))))
    return [index for index, is_there in enumerate(flags) if is_there]


def test_example_reads_by_importance(tmp_path, run, origin, monkeypatch):
    root = tmp_path / "digits"
    for label in ("0", "1"):
        (root / label).mkdir(parents=True)
        for number in range(100):
            picture = PIL.Image.new("L", (28, 28))
            at = 4 + (number * 7) % 16
            picture.paste(255, (at, 2, at + 4, 26) if label == "0" else (2, at, 26, at + 4))
            picture.save(root / label / f"{number:03}.png")
    origin.root = root
    sampling = {"beta": 1, "warmupEpochs": 2, "reuseFactor": 100}
    sidecar = run(contract="importance", sampling=sampling)
    says(monkeypatch, origin, "importance", **sampling)
    monkeypatch.setenv("STOKER_SOCKET", str(sidecar.socket))
    command = [sys.executable, str(EXAMPLE), "--epochs", "8", "--seed", str(SEED % 1000)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["requested"] == 200 and lines[-1]["requested"] < 180
    assert lines[-1]["contract"] == "importance" and lines[-1]["test_accuracy"] > 0.8
