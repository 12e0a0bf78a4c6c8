"""`stoker advise` predicts what the real sidecar reads at its origin: a smaller version of `make advise`."""

import pathlib
import sys

import pytest
from conftest import BUILD

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import advise  # noqa: E402
import servers  # noqa: E402


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("STOKER_DATASETS", "{}")
    for name, value in servers.CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("name", advise.ROWS)
def test_predicted_origin_bytes_match_a_real_run(tmp_path, name):
    bare, predicted, counted = advise.compare(BUILD, BUILD / "bin" / "stoker", advise.ROWS[name], 800, tmp_path)
    assert counted < 0.9 * bare
    assert predicted == pytest.approx(counted, rel=advise.TOLERANCE)
