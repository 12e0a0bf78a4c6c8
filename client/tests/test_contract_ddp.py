"""Two ranks of one job under DistributedDataParallel with gloo, through the real stoker-sidecar."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest
import stoker
import stoker.torch
from test_real_sidecar import run  # noqa: F401  (a fixture)

COUNT = 200


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(sidecars, *arguments, script="ddp_rank.py"):
    """The processes of the two ranks, one for each sidecar."""
    place = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2",
             "STOKER_JOB": "ddp", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, pathlib.Path(__file__).with_name(script)]
    return [subprocess.Popen([*command, str(sidecar.socket), *map(str, arguments)],
                             stdout=subprocess.PIPE, text=True, env={**place, "RANK": str(rank)})
            for rank, sidecar in enumerate(sidecars)]


def results(ranks):
    """The JSON object that each rank printed in its last line."""
    told = [rank.communicate(timeout=240)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    return [json.loads(text.splitlines()[-1]) for text in told]


def train(sidecar, contract, epochs):
    """The JSON results of the two ranks."""
    return results(start([sidecar, sidecar], contract, epochs))


@pytest.mark.parametrize("contract", ["exact", "windowed"])
def test_two_ranks_share_each_epoch_with_equal_batch_counts(run, contract):  # noqa: F811
    one, two = train(run(), contract, 2)
    assert one["weights"] == two["weights"]
    for first, second in zip(one["epochs"], two["epochs"]):
        assert len(first) == len(second) == COUNT // 2
        assert sorted(first + second) == list(range(COUNT))


def test_two_ranks_draw_equal_counts_by_importance(run):  # noqa: F811
    one, two = train(run(), "importance", 3)
    assert one["weights"] == two["weights"]
    first = sorted(one["epochs"][0] + two["epochs"][0])
    assert first == list(range(COUNT))
    for rank in (one, two):
        assert [len(epoch) for epoch in one["epochs"]] == [len(epoch) for epoch in two["epochs"]]
        assert all(report["losses_used"] > 0 and report["losses_ignored"] == 0 for report in rank["reports"])
        assert all(report["contract"] == "importance" for report in rank["reports"])


# Two nodes whose sidecars do not share losses; later one node loses its sidecar.
@pytest.mark.parametrize("parameters, lengths", [
    ({"warmup_epochs": 1, "beta": 1.0, "substitute": 0}, [100, 50, 50, 100, 50]),
    ({"family": "iowa", "out_rate": 0.2, "recall_after": 2}, [100, 80, 64, 82, 66]),
])
def test_two_nodes_end_every_epoch_together(run, tmp_path, parameters, lengths):  # noqa: F811
    (tmp_path / "other").mkdir()
    kept, lost = run(name="kept"), run(name="lost", directory=str(tmp_path / "other"))
    ranks = start([kept, lost], "importance", len(lengths), json.dumps(parameters))
    while ranks[1].stdout.readline() != "epoch 2\n":
        assert ranks[1].poll() is None
    lost.stop()
    one, two = results(ranks)
    assert [len(epoch) for epoch in one["epochs"]] == [len(epoch) for epoch in two["epochs"]] == lengths
    assert one["weights"] == two["weights"]
    assert two["reports"][-1]["alone"] == lengths[-1] and one["reports"][-1]["alone"] == 0
    for first, second in zip(one["epochs"], two["epochs"]):
        assert len(set(second)) == len(second) and not set(first) & set(second)


def test_three_ranks_go_on_from_the_state_that_two_have_gathered(origin, run):  # noqa: F811
    sidecar = run()
    one, two = results(start([sidecar, sidecar], script="elastic_rank.py"))
    assert one["state"] == two["state"]
    state = {**one["state"], "served": bytes.fromhex(one["state"]["served"])}
    ids = one["ids"] + two["ids"]
    for rank in range(3):
        with sidecar.open() as samples:
            dataset = stoker.torch.Dataset(samples, decode=bytes)
            loader = stoker.torch.DataLoader(dataset, 10, contract="windowed", seed=5, collate_fn=list, num_replicas=3, rank=rank)
            loader.load_state_dict(state)
            ids += [id for batch in loader for id in batch[-1].tolist()]
    assert len(ids) == COUNT + 1 and set(ids) == set(range(COUNT)), "140 are left: 47 for each of three ranks"


def test_without_torch_distributed_there_is_no_job_state(run):  # noqa: F811
    with run().open() as samples:
        loader = stoker.torch.DataLoader(stoker.torch.Dataset(samples), 10, contract="windowed", num_replicas=2, rank=0)
        next(iter(loader.batch_sampler))
        with pytest.raises(stoker.SettingsError, match="torch.distributed, which is not initialised"):
            loader.job_state_dict()
