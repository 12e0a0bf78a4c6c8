"""Nodes that read one dataset fetch from each other: the origin is asked once. Requests are counted at the origin. With
NODES=3 the same tests run on three nodes."""

import contextlib
import subprocess
import time

import pytest

from harness import jobs, origin as origins
from harness.kube import CLUSTER, condition, wait_until
from harness.nodes import on_node
from test_b_training import bytes_on_the_node

LISTS = -(-origins.SAMPLES // 1000)  # requests of one listing: a page has 1,000 objects

pytestmark = pytest.mark.two_nodes


@pytest.fixture
def group(namespace, kube, origin):
    """Starts a job with a rank on every node; `pool`: the share of the dataset that the nodes may keep together.
    Returns its pods once every node knows the others."""
    def start(name, args, pool, **spec):
        nodes = len(kube.nodes())
        whole = bytes_on_the_node(origin.sizes())
        namespace.begin(name, args, ranks=nodes, on=None, spread=True, cache={
            "mode": "Fixed", "maxBytes": str(int(pool * whole))}, **spec)
        pods = [namespace.pod(name, rank)["metadata"]["name"] for rank in range(nodes)]
        wait_until("every node to know the others", lambda: nodes_of(namespace) == nodes, 120)
        return namespace.let_begin(name, ranks=nodes) and pods
    return start


def nodes_of(namespace):
    return namespace.dataset_status().get("peers", {}).get("nodes", 0)


def read_in_an_epoch(pods):
    """Reads of all ranks: torch's sampler gives each rank as many samples, so some are read by two."""
    return -(-origins.SAMPLES // len(pods)) * len(pods)


def at_holds(namespace, pods, place):
    for pod in pods:
        namespace.wait_hold(pod, place)


def test_the_origin_is_asked_once_for_each_sample(namespace, group, origin):
    namespace.apply(jobs.dataset())
    mark = origin.mark()
    pods = group("wide", ["--epochs", 3, "--hold", "3:0"], pool=1.15)
    at_holds(namespace, pods, "3:0")
    for epoch in zip(*[namespace.epochs(pod) for pod in pods]):
        assert sum(rank["distinct"] for rank in epoch) == read_in_an_epoch(pods)
    status = namespace.settled_dataset(*pods)
    peers = status["peers"]
    assert origin.since(mark).gets == origins.SAMPLES + peers["hedges"] + peers["failures"]
    assert peers["hedges"] + peers["failures"] <= origins.SAMPLES // 100, peers
    assert status["cachedSamples"] >= origins.SAMPLES
    assert origin.since(mark).lists == LISTS, "one node lists the origin for all nodes"
    for pod in pods:
        namespace.go(pod, "3:0")
    namespace.wait_complete("wide")


CLAIRVOYANT = [{"name": "train", "datasetRef": {"name": "mnist"}, "placement": "Clairvoyant", "clairvoyant": {"seed": 7}}]


def test_with_placement_clairvoyant_nodes_keep_what_their_ranks_read_most(namespace, kube, group, origin):
    namespace.apply(jobs.dataset())
    mark = origin.mark()
    pods = group("seer", ["--epochs", 3, "--hold", "3:0"], pool=1.15, epochs=3, datasets=CLAIRVOYANT)
    at_holds(namespace, pods, "3:0")
    namespace.wait_condition("trainingjob", "seer", "ClairvoyantPlacement", reason="InForce")
    peers = namespace.settled_dataset(*pods)["peers"]
    assert peers["placement"] == "Clairvoyant"
    assert origin.since(mark).gets == origins.SAMPLES + peers["hedges"] + peers["failures"]
    assert peers["hedges"] + peers["failures"] <= origins.SAMPLES // 100, peers
    by_hash = 3 * origins.SAMPLES * (1 - 1 / len(kube.nodes()))  # reads of samples that another node keeps
    assert peers["samples"] < 0.75 * by_hash, "on two nodes half of it, on three 0.56"
    for pod in pods:
        namespace.go(pod, "3:0")
    namespace.wait_complete("seer")


def test_a_program_that_reads_in_another_order_is_told(namespace, group):
    namespace.apply(jobs.dataset())
    pods = group("astray", ["--epochs", 2, "--seed", 8, "--hold", "2:0"], pool=1.15, epochs=2, datasets=CLAIRVOYANT)
    found = namespace.wait_condition("trainingjob", "astray", "ClairvoyantPlacement", "False", "ReadsDiffer")
    assert "check order, seed and dropLast" in found["message"]
    wait_until("the hash to place samples", lambda: namespace.dataset_status()["peers"]["placement"] == "Hash", 60)
    for pod in pods:
        namespace.go(pod, "2:0")
    namespace.wait_complete("astray")


def test_nodes_that_together_keep_half_the_dataset_fetch_the_other_half_in_each_epoch(namespace, group, origin):
    namespace.apply(jobs.dataset())
    pods = group("half", ["--epochs", 3, "--hold", "1:0", "--hold", "2:0", "--hold", "3:0"], pool=0.5)
    marks = []
    for epoch in (1, 2, 3):
        at_holds(namespace, pods, f"{epoch}:0")
        marks.append(origin.mark())
        for pod in pods:
            namespace.go(pod, f"{epoch}:0")
    namespace.wait_complete("half")
    for before, after in zip(marks, marks[1:]):
        gets = origin.since(before).gets - origin.since(after).gets
        assert abs(gets - 0.5 * origins.SAMPLES) <= 0.02 * origins.SAMPLES, gets


def test_a_dataset_without_peers_is_fetched_by_each_node(namespace, kube, origin):
    namespace.apply(jobs.dataset(peers="Off"))
    mark = origin.mark()
    pods = namespace.start("alone", ["--epochs", 2, "--hold", "1:0", "--hold", "2:0"], ranks=len(kube.nodes()), on=None,
                           spread=True, cache=jobs.FULL)
    at_holds(namespace, pods, "1:0")
    assert nodes_of(namespace) == 0
    first = origin.since(mark).gets
    assert first == read_in_an_epoch(pods)
    for pod in pods:
        namespace.go(pod, "1:0", "2:0")
    namespace.wait_complete("alone")
    assert origin.since(mark).gets > first, "in a new order a node needs samples that only another node has"


@pytest.mark.own_cluster
def test_after_a_node_is_replaced_only_its_samples_are_fetched_again(namespace, kube, origin, group):
    """A node loses power in mid-epoch and comes back with an empty disk. The job starts again by itself, and the origin
    is asked for what that node held, not for what the others hold."""
    origin.move(namespace.home)
    namespace.apply(jobs.dataset())
    holds = ["--hold", "1:0", "--hold", "1:5", "--hold", "2:0"]
    pods = group("phoenix", ["--epochs", 2, *holds], pool=1.15)
    at_holds(namespace, pods, "1:0")
    namespace.settled_dataset(*pods)
    first = [namespace.epochs(pod)[0]["digest"] for pod in pods]
    held = {pod: int(namespace.sidecar(pod)["leader"]["residentSamples"]) for pod in pods}
    lost = next(pod for pod in pods if node_of(namespace, pod) != namespace.home)
    for pod in pods:
        namespace.go(pod, "1:0")
    at_holds(namespace, pods, "1:5")
    mark = origin.mark()

    began = time.monotonic()
    replace_node(kube, node_of(namespace, lost))
    again = [wait_until(f"rank {rank} to start again", lambda rank=rank: restarted(namespace, "phoenix", rank, pods), 300)
             for rank in range(len(pods))]
    print(f"a replaced node: all ranks ready again after {time.monotonic() - began:.0f} s")
    for pod in again:
        namespace.go(pod, "0:0", "1:0", "1:5")
    at_holds(namespace, again, "2:0")
    assert [namespace.epochs(pod)[0]["digest"] for pod in again] == first

    peers = namespace.settled_dataset(*again)["peers"]
    only_there = origins.SAMPLES - sum(count for pod, count in held.items() if pod != lost)
    gets, repeated = origin.since(mark).gets, peers["hedges"] + peers["failures"]
    print(f"{gets} GETs; it held {held[lost]} samples, {only_there} of them alone; {repeated} requests to peers failed")
    assert only_there <= gets <= held[lost] + repeated
    for pod in again:
        namespace.go(pod, "2:0")
    namespace.wait_complete("phoenix")
    assert namespace.job("phoenix")["status"]["restarts"] == 0, "a restart of a node is no failure of the training"


@pytest.mark.own_cluster
def test_while_a_nodes_link_is_down_the_others_read_its_samples_at_the_origin(namespace, kube, origin, group):
    """A node's network fails while all ranks wait before epoch 1, and comes back when the other ranks are done."""
    origin.move(namespace.home)
    namespace.apply(jobs.dataset())
    pods = group("cut", ["--epochs", 3, "--hold", "1:0", "--hold", "3:0"], pool=1.15)
    at_holds(namespace, pods, "1:0")
    namespace.settled_dataset(*pods)
    away = next(pod for pod in pods if node_of(namespace, pod) != namespace.home)
    held = int(namespace.sidecar(away)["leader"]["residentSamples"])
    others = [pod for pod in pods if pod != away]
    mark = origin.mark()
    with link_down(kube, node_of(namespace, away)):
        for pod in others:
            namespace.go(pod, "1:0")
        at_holds(namespace, others, "3:0")
        gets = origin.since(mark).gets
    print(f"{gets} GETs while the link was down; the node held {held} samples")
    assert 0 < gets <= held * len(others), "an epoch's reads of its samples, and none that another node has"
    namespace.go(away, "1:0")
    at_holds(namespace, [away], "3:0")
    for epoch in zip(*[namespace.epochs(pod) for pod in pods]):
        assert sum(rank["distinct"] for rank in epoch) == read_in_an_epoch(pods)
    for pod in pods:
        namespace.go(pod, "3:0")
    namespace.wait_complete("cut")
    assert namespace.job("cut")["status"]["restarts"] == 0


@contextlib.contextmanager
def link_down(kube, node):
    """The node is off the network meanwhile; afterwards it is ready."""
    number = node.rsplit("-", 1)[-1]
    subprocess.run([CLUSTER, "link", number, "down"], check=True, timeout=60)
    try:
        yield
    finally:
        subprocess.run([CLUSTER, "link", number, "up"], check=True, timeout=60)
    wait_until(f"{node} to be ready", lambda: condition(kube.get("node", node), "Ready").get("status") == "True", 120)


def node_of(namespace, pod):
    return namespace.get("pod", pod)["spec"]["nodeName"]


def replace_node(kube, node):
    """The node's cache is gone when it starts again, as on new hardware."""
    number = node.rsplit("-", 1)[-1]
    subprocess.run([CLUSTER, "node-kill", number], check=True, timeout=120)
    subprocess.run([CLUSTER, "node-start", number], check=True, timeout=300)
    on_node(kube, node, f"rm -rf {jobs.POOL_PATH}/*")


def restarted(namespace, job, rank, earlier):
    """The rank's pod that is none of `earlier`, once its trainer waits before its first batch."""
    for pod in namespace.pods(job):
        name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
        if name not in earlier and labels.get("batch.kubernetes.io/job-completion-index") == str(rank) and any(
                line["event"] == "hold" for line in namespace.lines(name)):
            return name
    return None
