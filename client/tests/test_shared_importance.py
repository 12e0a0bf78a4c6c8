"""Two jobs read one node directory by importance, each through its own stoker-sidecar: a leader and a follower. They
run in lock-step, so the counts do not depend on speed. `make importance` measures the same at full size."""

import json
import pathlib
import sys

import numpy as np
import pytest
from conftest import BUILD

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import shared_importance  # noqa: E402

SAMPLES, EPOCHS, CACHE = 2000, 6, 0.2
SCALE = 0.1  # of the second job's losses


@pytest.fixture
def uri(tmp_path, monkeypatch):
    """The origin of SAMPLES files."""
    shared_importance.write_dataset(tmp_path / "origin", SAMPLES)
    uri = f"file://{tmp_path / 'origin'}"
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": uri}}))
    return uri


def run(folder, uri, scale, weights):
    """Each job's ids, epoch by epoch, and its mean hit share over the later half of the epochs."""
    folder.mkdir()
    grant = int(CACHE * SAMPLES) * shared_importance.RECORD_BYTES
    with shared_importance.sidecars(BUILD, folder, uri, grant, weights) as sockets:
        jobs = [shared_importance.Trainer(job, socket, scale if job else 1.0)
                for job, socket in enumerate(sockets)]
        served = [[] for _ in jobs]
        hits = [[] for _ in jobs]
        for epoch in range(EPOCHS):
            for job in jobs:
                job.begin(epoch)
            given = [[np.zeros(0, dtype=np.int64)] for _ in jobs]
            running = set(range(len(jobs)))
            while running:
                for number in sorted(running):
                    ids = jobs[number].step()
                    given[number].append(ids)
                    if not len(ids):
                        running.discard(number)
            for number, job in enumerate(jobs):
                served[number].append(np.concatenate(given[number]))
                hits[number].append(job.hit_share())
        for job in jobs:
            job.samples.close()
    return served, [float(np.mean(of_job[EPOCHS // 2:])) for of_job in hits]


def test_loss_scale_does_not_change_two_jobs_shares_of_the_cache(uri, tmp_path):
    served, shared = run(tmp_path / "shared", uri, SCALE, {})
    other_scale, _ = run(tmp_path / "scale", uri, 1.0, {})
    _, one_map = run(tmp_path / "one-map", uri, SCALE, {"job-0": 1, "job-1": 0})
    for job in range(2):
        for epoch in range(EPOCHS):
            assert np.array_equal(served[job][epoch], other_scale[job][epoch]), (job, epoch)
    assert len(served[0][EPOCHS - 1]) < 0.65 * SAMPLES, "losses are used: about half of the samples are read"
    assert one_map[0] > 1.2 * one_map[1], "one job's importance map favours that job"
    assert 0.8 < shared[0] / shared[1] < 1.25, "aggregated importance is fair to both"
    assert shared[1] > 1.1 * one_map[1]
    assert sum(shared) > sum(one_map)
