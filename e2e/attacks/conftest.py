"""Fixtures: the neighbour (the victim) and the pods that attack it. The cluster's fixtures are in e2e/conftest.py."""

import pytest

from harness import jobs, policies, views
from harness.strangers import NEIGHBOUR, Neighbour, plain_pod


@pytest.fixture(scope="session")
def neighbour_ns(kube, origin):
    """The neighbour's namespace, with its own Dataset and quota. Moves the origin to the neighbour's node, so that a
    test can switch off the other node."""
    place = jobs.Namespace(kube, NEIGHBOUR).create()
    origin.move(place.home)
    place.apply(jobs.quota("2Gi"), jobs.dataset())
    yield place
    place.delete()


@pytest.fixture
def neighbour(neighbour_ns, expected):
    """A job in the neighbour's namespace that trains during the attack."""
    found = Neighbour(neighbour_ns, expected).begin()
    yield found
    found.end()


@pytest.fixture
def foreign(neighbour_ns):
    """The uid of the neighbour's Dataset."""
    return neighbour_ns.get("dataset", "mnist")["metadata"]["uid"]


@pytest.fixture
def intruder(namespace):
    """The attacker's pod on the neighbour's node; it mounts no view."""
    namespace.apply(plain_pod("intruder", namespace.home))
    return views.running(namespace, "intruder")


@pytest.fixture(scope="module")
def no_policies(kube, origin):
    """Removes the chart's admission policies until the test module ends, to test the defences behind them."""
    with policies.absent(kube, f"{NEIGHBOUR}-policies"):
        yield
