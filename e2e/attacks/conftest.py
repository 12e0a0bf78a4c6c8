"""The neighbour that attacks may hurt, and the places they come from. The cluster is in e2e/conftest.py."""

import pytest

from harness import jobs, policies, views
from harness.strangers import STREET, Neighbour, plain_pod


@pytest.fixture(scope="session")
def street(kube, origin):
    """The neighbour's namespace, with a Dataset and a quota of its own. The origin is on its node, so that one node is free
    to be switched off."""
    place = jobs.Namespace(kube, STREET).create()
    origin.move(place.home)
    place.apply(jobs.quota("2Gi"), jobs.dataset())
    yield place
    place.delete()


@pytest.fixture
def neighbour(street, expected):
    """A job of the neighbour's that trains while the attack goes on."""
    found = Neighbour(street, expected).begin()
    yield found
    found.end()


@pytest.fixture
def foreign(street):
    """The uid of the neighbour's Dataset."""
    return street.get("dataset", "mnist")["metadata"]["uid"]


@pytest.fixture
def intruder(namespace):
    """A pod of the attacker without any view, on the neighbour's node."""
    namespace.apply(plain_pod("intruder", namespace.home))
    return views.running(namespace, "intruder")


@pytest.fixture(scope="module")
def no_policies(kube, origin):
    """Without the chart's admission policies: what stands behind them has to hold alone. They are in force again when
    the module ends."""
    with policies.absent(kube, f"{STREET}-policies"):
        yield
