"""The last test: removes the cluster, as `make cluster-down` and `make demo-down` do."""

import pytest

from harness import kube as kubes
from harness.kube import wait_until


@pytest.mark.own_cluster
def test_the_cluster_leaves_nothing_behind(bare_kube, traces_before):
    """This test runs after all tests that change nodes, network and disks."""
    if traces_before is None:
        pytest.skip("STOKER_KEEP_CLUSTER=1: the cluster is to be kept")
    bare_kube.wait_left()
    assert bare_kube.nodes() and kubes.traces() - traces_before, "a running cluster is seen"
    kubes.take_down()
    changed = set()

    def is_as_before():
        changed.clear()
        changed.update(kubes.traces() ^ traces_before)
        return not changed
    wait_until("the machine to be as before the tests", is_as_before, seen=lambda: f"new or gone are {sorted(changed)}")
