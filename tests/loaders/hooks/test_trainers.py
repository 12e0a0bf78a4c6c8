"""Lightning, Accelerate and the Hugging Face Trainer with stoker.torch: the ranks together read each sample once an epoch."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
COUNT, EPOCHS = 200, 2
EVERY_EPOCH = [list(range(COUNT))] * EPOCHS


@pytest.fixture
def place(origin, tmp_path, monkeypatch):
    """An environment without a sidecar."""
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": origin.uri}}))
    monkeypatch.setenv("STOKER_SOCKET", str(tmp_path / "no.sock"))
    path = os.pathsep.join([os.environ["PYTHONPATH"], str(HERE)])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "HOME": str(tmp_path)}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(script, folder, options, env):
    command = [sys.executable, "-W", "ignore", str(HERE / script), str(folder), json.dumps(options)]
    return subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(processes):
    told = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), "\n".join(text[-3000:] for text in told)


def read_by(folder, ranks):
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]


def train(script, folder, place, ranks, **options):
    """The ids that each rank read, of `ranks` processes as torchrun starts them."""
    world = {} if ranks == 1 else {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                                   "MASTER_PORT": str(free_port()), "TORCHELASTIC_RUN_ID": "run"}
    own = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} if ranks > 1 else {} for rank in range(ranks)]
    finish([start(script, folder, {"ranks": ranks, **options}, {**place, **world, **rank}) for rank in own])
    return read_by(folder, ranks)


def together(read):
    """The ids that all ranks read in each epoch, sorted. Each rank reads equally many."""
    assert len({json.dumps([len(epoch) for epoch in rank]) for rank in read}) == 1
    return [sorted(id for rank in epoch for id in rank) for epoch in zip(*read)]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("early", [False, True])
def test_lightning_keeps_the_sampler(place, tmp_path, ranks, early):
    read = train("lightning_job.py", tmp_path, place, ranks, epochs=EPOCHS, early=early)
    assert together(read) == EVERY_EPOCH and read[0][0] != read[0][1]


def test_lightning_starts_its_own_ranks(place, tmp_path):
    options = {"ranks": 2, "epochs": EPOCHS}
    finish([start("lightning_job.py", tmp_path, options, place)])
    assert together(read_by(tmp_path, 2)) == EVERY_EPOCH


@pytest.mark.parametrize("contract", ["exact", "windowed"])
def test_lightning_reads_under_a_contract(place, tmp_path, contract):
    options = {"epochs": EPOCHS, "contract": contract, "trainer": {"use_distributed_sampler": False}}
    assert together(train("lightning_job.py", tmp_path, place, 2, **options)) == EVERY_EPOCH


def test_lightning_goes_on_in_mid_epoch(place, tmp_path):
    first = train("lightning_job.py", tmp_path, place, 1, epochs=EPOCHS, stop=7)
    second = train("lightning_job.py", tmp_path, place, 1, epochs=EPOCHS, resume=True)
    assert len(first[0][0]) == 70
    assert [sorted(one + two) for one, two in zip(first[0], second[0])] == EVERY_EPOCH


@pytest.mark.parametrize("ranks", [1, 2])
def test_accelerate_reads_a_loader_that_is_not_prepared(place, tmp_path, ranks):
    assert together(train("accelerate_job.py", tmp_path, place, ranks, epochs=EPOCHS)) == EVERY_EPOCH


def test_accelerate_divides_a_prepared_loader_again(place, tmp_path):
    read = train("accelerate_job.py", tmp_path, place, 2, epochs=1, prepare=True)
    assert len(together(read)[0]) == COUNT // 2


@pytest.mark.parametrize("ranks", [1, 2])
def test_hf_trainer_reads_the_loader_of_get_train_dataloader(place, tmp_path, ranks):
    read = train("transformers_job.py", tmp_path, place, ranks, epochs=EPOCHS)
    part = COUNT // ranks
    assert together([[ids[:part], ids[part:]] for ids in read]) == EVERY_EPOCH and read[0][:part] != read[0][part:]


def test_hf_trainer_goes_on_in_mid_epoch(place, tmp_path):
    first, = train("transformers_job.py", tmp_path, place, 1, epochs=EPOCHS, stop=7)
    second, = train("transformers_job.py", tmp_path, place, 1, epochs=EPOCHS, resume=str(tmp_path / "out" / "checkpoint-7"))
    assert sorted(first + second[:130]) == sorted(second[130:]) == list(range(COUNT))
