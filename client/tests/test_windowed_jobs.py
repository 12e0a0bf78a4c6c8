"""Three jobs on one dataset through real sidecars: a smaller version of `make windowed` (bench/windowed)."""

import pathlib
import sys

import pytest
from conftest import BUILD

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "windowed"))
import jobs  # noqa: E402

COUNT, ASKED = 2048, ["--batch", "4", "--epochs", "2"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return jobs.Data(tmp_path_factory.mktemp("windowed"), COUNT, 20000)


# The limits are those of `make windowed`. In so small a cache the window takes an eighth of the cache instead of a
# ninth, so the origin sends a thousandth of the dataset more: with 7/8 of the cache for residents, jobs in lock-step
# need (1 - 7/8 * 0.2) / 3 = 0.275.
@pytest.mark.parametrize("name", [name for name, (_, _, _, bar) in jobs.RUNS.items() if bar is not None])
def test_node_fetches_once_for_all_jobs(tmp_path, data, name):
    with jobs.counting_origin(BUILD, data.root) as (endpoint, sent):
        row = jobs.run(BUILD, tmp_path / "run", data, endpoint, sent, name, jobs.parse(ASKED))
    assert all(all(epochs) for epochs in row["complete"]), row
    assert row["alone"] == 0 and row["share"] <= jobs.RUNS[name][3], row
