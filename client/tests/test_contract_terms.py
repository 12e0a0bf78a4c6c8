"""Which contracts and parameters a program may ask for: pure functions."""

import pytest
import stoker
from stoker.contracts import CONTRACTS, Terms, narrow, terms

ALLOWED = {
    ("exact", "exact"), ("windowed", "windowed"), ("windowed", "exact"), ("importance", "importance"),
    ("importance", "windowed"), ("importance", "exact"), ("replicate", "replicate"), ("replicate", "windowed"),
    ("replicate", "exact"),
}


@pytest.mark.parametrize("allowed", CONTRACTS)
@pytest.mark.parametrize("asked", CONTRACTS)
def test_program_may_narrow_but_not_widen_a_contract(allowed, asked):
    if (allowed, asked) in ALLOWED:
        assert narrow(terms(allowed), terms(asked)).contract == asked
    else:
        with pytest.raises(stoker.SettingsError, match=f"allows contract '{allowed}'"):
            narrow(terms(allowed), terms(asked))


def test_parameter_set_by_one_side_applies():
    job = terms("importance", {"beta": 0.5})
    assert narrow(job, None) == job
    assert narrow(None, job) == job
    assert narrow(None, None) == Terms("exact", {})


@pytest.mark.parametrize("limit, ok, wrong", [
    ({"beta": 0.5}, 0.4, 0.6), ({"warmupEpochs": 3}, 4, 2), ({"reuseFactor": 3}, 1, 4), ({"lossHistory": 9}, 9, 8),
    ({"redundancy": "remove"}, "none", "repeat"),
])
def test_parameters_narrow_only_in_their_direction(limit, ok, wrong):
    (name,) = limit
    job = terms("importance", limit)
    assert narrow(job, terms("importance", {name: ok})).parameters[name] == terms("importance", {name: ok}).parameters[name]
    with pytest.raises(stoker.SettingsError, match=name):
        narrow(job, terms("importance", {name: wrong}))


def test_omitted_parameters_come_from_the_job():
    job = terms("importance", {"beta": 0.5, "warmupEpochs": 3})
    assert narrow(job, terms("importance", {"beta": 0.1})).parameters == {"beta": 0.1, "warmupEpochs": 3.0}


def test_parameter_names_may_be_snake_case_or_camel_case():
    assert terms("Importance", {"warmup_epochs": 3}) == terms("importance", {"warmupEpochs": 3})
    assert terms("importance", {"family": "Iowa", "beta": None}).parameters == {"family": 1.0}


@pytest.mark.parametrize("contract, parameters, says", [
    ("fast", {}, "no contract 'fast'"),
    ("windowed", {"beta": 1}, "no parameter 'beta'"),
    ("exact", {"beta": 1}, "there are: none"),
    ("importance", {"beta": "high"}, "must be a number"),
    ("importance", {"family": "x"}, "one of icache, iowa"),
])
def test_invalid_terms_are_named_in_the_error(contract, parameters, says):
    with pytest.raises(stoker.SettingsError, match=says):
        terms(contract, parameters)
