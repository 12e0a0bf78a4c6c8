"""Three jobs on one dataset through real processes: a smaller version of `make windowed` (bench/windowed)."""

import pathlib
import sys

import pytest
from conftest import BUILD

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "windowed"))
import jobs  # noqa: E402

COUNT, BATCH, EPOCHS = 2048, 4, 2


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return jobs.Data(tmp_path_factory.mktemp("windowed"), COUNT, 20000)


# The window is an eighth of so small a cache and not a tenth; never-evict fetches .8 for each job: there is no doubt.
@pytest.mark.parametrize("name, most", [("lock-step", 0.34), ("speeds 1 : .5 : .7", 0.50)])
def test_the_node_fetches_once_for_all_jobs_and_each_has_every_sample_once(tmp_path, data, name, most):
    with jobs.counting_origin(BUILD, data.root) as (endpoint, sent):
        row = jobs.run(BUILD, tmp_path / "run", data, endpoint, sent, name, BATCH, EPOCHS)
    assert all(all(epochs) for epochs in row["complete"]), row
    assert row["alone"] == 0 and row["share"] <= most, row
