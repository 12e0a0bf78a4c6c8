"""Several nodes: each has its own directory, and a job goes where its data is."""

import pytest

from harness import jobs, origin as origins
from harness.jobs import FULL

pytestmark = pytest.mark.two_nodes


def test_ranks_on_two_nodes_keep_what_their_node_read(namespace, kube, origin):
    namespace.apply(jobs.dataset())
    mark = origin.mark()
    pods = namespace.start("wide", ["--epochs", 3, "--hold", "3:0"], ranks=2, on=None, spread=True, cache={
        "mode": "Fixed", "maxBytes": "2Gi"})
    nodes = {kube.get("pod", pod, namespace.name)["spec"]["nodeName"] for pod in pods}
    assert len(nodes) == 2
    for pod in pods:
        namespace.wait_hold(pod, "3:0")
    status = namespace.settled_dataset(*pods)
    for first, second in zip(*[namespace.epochs(pod) for pod in pods]):
        assert first["distinct"] + second["distinct"] == origins.SAMPLES
    assert {place["node"] for place in status["placements"]} == nodes
    assert origin.since(mark).gets == status["cachedSamples"], "each node fetched each of its samples once"
    for pod in pods:
        namespace.go(pod, "3:0")
    namespace.wait_complete("wide")


@pytest.mark.parametrize("which", [0, 1], ids=["the-first-node", "the-second-node"])
def test_the_next_job_is_placed_where_the_data_is(namespace, kube, origin, which):
    node = kube.nodes()[which]
    namespace.apply(jobs.dataset())
    first, = namespace.start("first", ["--epochs", 1, "--hold", "1:0"], on=node, cache=FULL)
    namespace.wait_hold(first, "1:0")
    assert [place["node"] for place in namespace.settled_dataset(first)["placements"]] == [node]
    namespace.go(first, "1:0")
    namespace.wait_complete("first")
    mark = origin.mark()
    second, = namespace.start("second", ["--epochs", 1], on=None, cache=FULL)
    assert kube.get("pod", second, namespace.name)["spec"]["nodeName"] == node
    namespace.wait_complete("second")
    assert origin.since(mark).gets == 0
