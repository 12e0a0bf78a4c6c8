"""Which contracts and parameters a program may ask for: pure functions."""

import pytest
import stoker
from stoker.contracts import CONTRACTS, Terms, check_nodes, narrow, terms
from stoker.settings import node_count

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


def test_parameter_names_in_snake_and_camel_case():
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


@pytest.mark.parametrize("env, nodes", [
    ({}, 1), ({"WORLD_SIZE": "8"}, 1), ({"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}, 1),
    ({"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, 2), ({"PET_NNODES": "3"}, 3), ({"PET_NNODES": "1:4"}, 4),
    ({"PET_NNODES": "1:4", "GROUP_WORLD_SIZE": "2"}, 2),
])
def test_node_count_comes_from_torchrun_or_the_operator(env, nodes):
    assert node_count(env) == nodes


def test_family_iowa_on_two_nodes_is_refused():
    iowa = terms("importance", {"family": "iowa"})
    check_nodes(iowa, 1)
    check_nodes(terms("importance", {"family": "icache"}), 2)
    check_nodes(terms("replicate"), 2)
    with pytest.raises(stoker.SettingsError, match="family 'iowa' works on one node.*2 nodes"):
        check_nodes(iowa, 2)
    with pytest.raises(stoker.SettingsError, match="must be numbers"):
        node_count({"PET_NNODES": "many"})
