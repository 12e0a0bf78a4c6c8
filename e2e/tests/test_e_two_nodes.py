"""Several nodes: each has its own directory, and a job goes where its data is."""

import pytest

from harness import jobs, origin as origins
from harness.jobs import FULL

pytestmark = pytest.mark.two_nodes


def test_ranks_on_two_nodes_keep_what_they_read(namespace, kube, origin):
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
    assert status["cachedSamples"] >= origins.SAMPLES
    fetched_twice = status["peers"]["hedges"] + status["peers"]["failures"]
    assert origin.since(mark).gets <= origins.SAMPLES + fetched_twice, "the nodes fetched each sample once, together"
    for pod in pods:
        namespace.go(pod, "3:0")
    namespace.wait_complete("wide")


def test_the_next_job_is_placed_where_the_data_is(namespace, kube, origin):
    """Checks both nodes, because by chance the scheduler would choose one of them without the data."""
    homes = {f"data-{number}": node for number, node in enumerate(kube.nodes()[:2])}
    namespace.apply(*[jobs.dataset(name) for name in homes])
    for name, node in homes.items():
        namespace.begin(f"first-{name}", ["--epochs", 1, "--hold", "1:0"], on=node, dataset_name=name, cache=FULL)
    for name, node in homes.items():
        first, = namespace.let_begin(f"first-{name}")
        namespace.wait_hold(first, "1:0")
        assert [place["node"] for place in namespace.settled_dataset(first, name=name)["placements"]] == [node]
        namespace.go(first, "1:0")
        namespace.wait_complete(f"first-{name}")
    mark = origin.mark()
    for name in homes:
        namespace.begin(f"second-{name}", ["--epochs", 1], on=None, dataset_name=name, cache=FULL)
    for name, node in homes.items():
        second, = namespace.let_begin(f"second-{name}")
        assert kube.get("pod", second, namespace.name)["spec"]["nodeName"] == node
    for name in homes:
        namespace.wait_complete(f"second-{name}")
    assert origin.since(mark).gets == 0
