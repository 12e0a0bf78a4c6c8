"""Bytes that no Dataset keeps leave the nodes, and nothing else does (docs/adr/0004)."""

import pytest

from harness import jobs, origin as origins
from harness.kube import wait_until
from harness.nodes import on_node

POOL = "sweep"
PATH = f"{jobs.POOL_PATH}-{POOL}"
CACHE = {**jobs.FULL, "poolRef": {"name": POOL}}
KEPT, DELETED, UNUSED = NAMES = ["kept", "deleted", "unused"]


@pytest.fixture
def pool(kube):
    """With a directory of its own, so that all that lies there is this test's."""
    kube.apply(jobs.pool(name=POOL, path=PATH))
    yield
    kube.delete("cachepool", POOL)


class Disk:
    """The pool's directory on the node where the namespace's jobs are."""

    def __init__(self, namespace):
        self.namespace = namespace

    def shell(self, script):
        return on_node(self.namespace.kube, self.namespace.home, f"cd {PATH}/{self.namespace.name}; {script}")

    def directories(self):
        """Names of the node directories with segments in them."""
        return {line.split("/")[1] for line in self.shell("find . -path './*/segments/*.seg'").splitlines()}

    def files(self, uid):
        """Every file of a node directory, with its bytes."""
        return self.shell(f"find {uid} -type f -exec sha256sum {{}} + | sort")

    def age(self, *uids):
        """As if nothing had been written for two hours; a sweep leaves alone what is younger than one."""
        self.shell(f"touch -d '2 hours ago' {' '.join(uids)}")


def fill(namespace, disk):
    """Each dataset by a job of its own, all of it. The uids of the datasets."""
    for name in NAMES:
        namespace.begin(name, ["--epochs", 1, "--hold", "1:0"], dataset_name=name, cache=CACHE)
    pods = {name: namespace.let_begin(name)[0] for name in NAMES}
    for name, pod in pods.items():
        namespace.wait_hold(pod, "1:0")
        assert namespace.settled_dataset(pod, name=name)["cachedSamples"] == origins.SAMPLES
    uids = {name: namespace.get("dataset", name)["metadata"]["uid"] for name in NAMES}
    assert disk.directories() == set(uids.values())
    for pod in pods.values():
        namespace.go(pod, "1:0")
    for name in NAMES:
        namespace.wait_complete(name)
    return uids


@pytest.mark.own_cluster
def test_deleted_and_long_unused_datasets_leave_the_node(namespace, kube, origin, pool):
    disk = Disk(namespace)
    namespace.apply(jobs.dataset(KEPT), jobs.dataset(DELETED), jobs.dataset(UNUSED, retention={"afterLastUseSeconds": 1}))
    uids = fill(namespace, disk)
    disk.age(uids[KEPT])  # so that it is the list of what lives, and not its age, that keeps it
    before = disk.files(uids[KEPT])
    assert before.count(".seg\n") >= 1
    kube.delete("dataset", DELETED, namespace.name)
    wait_until("the bytes of both to go", lambda: disk.directories() == {uids[KEPT]}, 600)
    wait_until("their statuses to say so", lambda: namespace.dataset_status(UNUSED).get("cachedBytes", 0) == 0, 600)
    assert disk.files(uids[KEPT]) == before
    mark = origin.mark()
    namespace.start("again", ["--epochs", 1], dataset_name=KEPT, cache=CACHE)
    namespace.wait_complete("again")
    assert origin.since(mark).gets == 0, "what a Dataset keeps is there for the next job"
