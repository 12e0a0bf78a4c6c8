"""The soak run finds a leak in noisy samples, and no leak where there is none."""

import random
import sys

import pytest

from chart_test import ROOT

sys.path.insert(0, str(ROOT / "e2e"))
sys.path.insert(0, str(ROOT / "e2e" / "soak"))

from growth import MEMORY_FLOOR, growth, slope  # noqa: E402
from observer import parse  # noqa: E402

MIB = 1 << 20
HOUR = 3600


def samples(rate_per_hour, noise=2 * MIB, seconds=HOUR, start=50 * MIB, seed=1):
    """A sample every 30 s of a process that grows by `rate_per_hour`, after it filled its caches for ten minutes."""
    luck = random.Random(seed)
    return [(t, start + min(t / 600, 1) * 30 * MIB + rate_per_hour * t / HOUR + luck.gauss(0, noise))
            for t in range(0, seconds, 30)]


@pytest.mark.parametrize("seed", range(20))
def test_a_flat_process_with_noise_does_not_grow(seed):
    assert not growth(samples(0, seed=seed), 1200, MEMORY_FLOOR)["grows"], f"seed {seed}"


@pytest.mark.parametrize("seed", range(20))
def test_a_leak_of_twelve_mib_an_hour_grows(seed):
    found = growth(samples(12 * MIB, seed=seed), 1200, MEMORY_FLOOR)
    assert found["grows"] and 5 * MIB < found["gained"] < 11 * MIB, f"seed {seed}"


def test_the_warm_up_does_not_count():
    points = samples(0, noise=1)
    assert growth(points, 0, MEMORY_FLOOR)["gained"] > 10 * MIB
    assert abs(growth(points, 1200, MEMORY_FLOOR)["gained"]) < MIB


def test_waves_widen_the_noise():
    def wave(t):
        return 10 * MIB * ((t // 600) % 2)
    slow = [(t, wave(t)) for t in range(0, HOUR, 30)]
    shuffled = [y for _, y in slow]
    random.Random(3).shuffle(shuffled)
    mixed = [(t, y) for (t, _), y in zip(slow, shuffled)]
    assert slope(slow)[1] > 2 * slope(mixed)[1]


def test_few_samples_say_nothing():
    assert growth(samples(0)[:10], 120, MEMORY_FLOOR) is None


def test_reads_what_the_nodes_print_and_skips_ended_processes():
    found = parse("stoker-sidecar pod1-2 77 1234 2048 9 31\nstoker-node none 8 1 0 0 0\nstoker-test-x none 9 1 5 1 1\n")
    assert found == [{"program": "stoker-sidecar", "pod": "pod1-2", "pid": 77, "start": 1234, "memory": 2 * MIB,
                      "threads": 9, "descriptors": 31}]
