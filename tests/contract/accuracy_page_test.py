"""The verdicts of `make accuracy`: what counts as held, broken, or undecided."""

import math
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "accuracy"))
import page  # noqa: E402
import train  # noqa: E402


def entry(row, change, interval, noise=0.4):
    made = {"data": "mnist5k", "row": row, "seeds": 5, "change": change, "interval": interval}
    return {**made, "bar": page.bar_of(made, noise)}


def test_only_exact_the_noise_and_replicate_r_3_have_no_accuracy_bar():
    assert [row for row in train.ROWS if entry(row, 0, 0)["bar"] is None] == [page.EXACT, page.NOISE, "replicate, r = 3"]


@pytest.mark.parametrize("change, interval, expected", [
    (-0.1, 0.3, page.HELD),
    (-0.2, 0.3, page.HELD),
    (-0.21, 0.3, page.WIDE),
    (-0.7, 0.21, page.WIDE),
    (-0.8, 0.2, page.BROKEN),
    (0.0, math.nan, None),
])
def test_state_follows_from_the_change_of_accuracy_and_its_interval(change, interval, expected):
    assert page.state(entry("importance (IIS)", change, interval)) == expected


def test_windowed_may_differ_by_the_noise_of_a_shuffle_in_both_directions():
    width = 3 * 0.4 / math.sqrt(5)
    states = [page.state(entry("windowed", change, 0.9)) for change in (-width - 0.01, -width, width, width + 0.01)]
    assert states == [page.BROKEN, page.HELD, page.HELD, page.BROKEN]


@pytest.mark.parametrize("rows, status", [
    ([(-0.1, 0.1)], 0),
    ([(-0.1, 0.1), (-0.4, 0.3)], 2),
    ([(-0.4, 0.3), (-2, 0.3)], 1),
])
def test_verdict_counts_bars_held_and_returns_1_if_one_is_broken_2_if_one_is_undecided(rows, status, capsys):
    table = [entry("importance, IOWA", *row) for row in rows]
    assert page.verdict(table) == status
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"{[page.state(row) for row in table].count(page.HELD)} bars held")
    assert (page.undecided(table) == ["importance, IOWA"]) == any(page.state(row) == page.WIDE for row in table)


@pytest.mark.parametrize("shares, words", [
    ([0.3, 0.2], "I/O"),
    ([0.01, 0.07, 0.01], "compute"),  # between the limits the verdict stays as it was
    ([0.07, 0.01, 0.01, 0.2], "I/O 50 %"),
    ([], ""),
])
def test_bottleneck_of_a_run_follows_from_its_wait_shares_as_in_the_sidecar(shares, words):
    assert page.bottleneck_of([{"waiting": shares}]) == words
