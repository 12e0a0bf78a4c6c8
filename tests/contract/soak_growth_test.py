"""The soak run finds a leak in noisy samples, and no leak where there is none; it fails if its own parts do."""

import random
import sys
import threading
from types import SimpleNamespace

import pytest

from chart_test import ROOT

sys.path.insert(0, str(ROOT / "e2e"))
sys.path.insert(0, str(ROOT / "e2e" / "soak"))

from growth import FULL_MINUTES, MEMORY_FLOOR, growth, shortcomings, slope  # noqa: E402
from observer import PROGRAMS, Observer, parse  # noqa: E402
from test_soak import Killer, Lane, lost  # noqa: E402

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


class Broken:
    """A cluster whose every use raises an error that is a bug of the run, not a busy machine."""

    def __getattr__(self, name):
        raise TypeError(f"no {name}")


def ended(part):
    part.start()
    part.join(30)
    return part.errors


def a_lane(place, contents=None):
    return Lane(place, SimpleNamespace(name="b", digests=lambda: contents), 1, threading.Event())


def test_a_part_that_ends_by_a_bug_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("test_soak.KILL_EVERY_S", 0.01)
    place = Broken()
    place.name = "ns"
    for part in (a_lane(place), Killer(Broken(), [place], 0, threading.Event()),
                 Observer(Broken(), tmp_path / "samples.jsonl", interval=0.01)):
        error, = ended(part)
        assert error.startswith(part.title) and "TypeError: no " in error


def read(epochs):
    place = SimpleNamespace(name="ns", pods=lambda job: [{"metadata": {"name": job}}], epochs=lambda pod: epochs)
    return a_lane(place, {"a": "1"})


@pytest.mark.parametrize("access", ["s3", "files"])
def test_a_job_that_reads_other_bytes_than_the_origins_fails(access):
    good = {"epoch": 0, "digests": {"a": "1"}}
    read([good, good]).check_bytes("job", access)
    for epochs in ([], [good, {"epoch": 1, "digests": {"a": "2"}}], [{"epoch": 0, "digests": {}}]):
        with pytest.raises(AssertionError):
            read(epochs).check_bytes("job", access)


def test_every_sdk_job_reads_its_first_epoch_and_the_lanes_bytes():
    lane = read([{"epoch": 0, "digest": "x"}, {"epoch": 1, "digest": "y"}])
    lane.check_bytes("job", "sdk")
    lane.place.epochs = lambda pod: [{"epoch": 1, "digest": "y"}]
    with pytest.raises(AssertionError):
        lane.check_bytes("no-first-epoch", "sdk")
    lane.place.epochs = lambda pod: [{"epoch": 0, "digest": "z"}]
    with pytest.raises(AssertionError):
        lane.check_bytes("other-bytes", "sdk")


def test_a_steady_job_whose_pod_was_replaced_is_lost():
    def pod(uid, phase):
        return {"metadata": {"uid": uid}, "status": {"phase": phase}}
    for pods, is_lost in (([pod("1", "Running")], False), ([pod("1", "Failed"), pod("2", "Running")], True), ([], True)):
        place = SimpleNamespace(pods=lambda name, pods=pods: pods)
        assert bool(lost([(place, "steady", "1")])) == is_lost


def test_a_run_that_watched_or_killed_nothing_fails_from_a_quarter_of_an_hour_on():
    full, killed = set(PROGRAMS), {"stoker-sidecar": 1}
    assert shortcomings(FULL_MINUTES, FULL_MINUTES * 60, full, PROGRAMS, killed) == []
    assert shortcomings(2, 120, set(), PROGRAMS, {}) == []
    assert len(shortcomings(2, 119, set(), PROGRAMS, {})) == 1
    assert shortcomings(60, 3600, full, PROGRAMS, {}) == ["no program was killed"]
    assert len(shortcomings(60, 3600, full - {"stoker-s3"}, PROGRAMS, killed)) == 1
    assert len(shortcomings(60, 3600, set(), PROGRAMS, killed)) == len(PROGRAMS)
