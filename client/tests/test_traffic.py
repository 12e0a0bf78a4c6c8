"""The real sidecar reads as much at its origin as `stoker simulate` predicts: a smaller version of `make traffic`."""

import pathlib
import sys

import pytest
from conftest import BUILD

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import traffic  # noqa: E402

SAMPLES, EPOCHS, WINDOW = 4000, 6, 1 << 20


# Contracts whose origin traffic does not depend on when a fetch ends. The traffic of `importance` does, by up to 3 %
# for so few samples; `make traffic` covers it with 20,000.
@pytest.mark.parametrize("row", ["exact", "windowed", "windowed, chunks", "windowed" + traffic.UNEQUAL])
def test_origin_traffic_matches_the_simulator(tmp_path, monkeypatch, row):
    monkeypatch.setenv("STOKER_DATASETS", "{}")
    real, manifest = traffic.measured(BUILD, row, SAMPLES, EPOCHS, tmp_path, seed=1, window=WINDOW)
    model = traffic.simulated(BUILD, row, SAMPLES, EPOCHS, manifest, seed=1, window=WINDOW)
    assert real == pytest.approx(model, rel=traffic.TOLERANCE)
