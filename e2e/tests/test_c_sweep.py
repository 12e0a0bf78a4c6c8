"""Sweeps remove the bytes of deleted and long unused Datasets, and nothing else (docs/adr/0004)."""

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
    """A pool with its own directory, so that everything in it belongs to this test."""
    kube.apply(jobs.pool(name=POOL, path=PATH))
    yield
    kube.delete("cachepool", POOL)


class Disk:
    """The pool's directory on the node of the namespace's jobs."""

    def __init__(self, namespace):
        self.namespace = namespace

    def shell(self, script):
        return on_node(self.namespace.kube, self.namespace.home, f"cd {PATH}/{self.namespace.name}; {script}")

    def directories(self):
        """Names of the node directories that have segments."""
        return {line.split("/")[1] for line in self.shell("find . -path './*/segments/*.seg'").splitlines()}

    def files(self, uid):
        """Every file of a node directory, with its bytes."""
        return self.shell(f"find {uid} -type f -exec sha256sum {{}} + | sort")

    def age(self, *uids):
        """Sets all times back by two hours; a sweep skips directories written within the last hour."""
        self.shell(f"touch -d '2 hours ago' {' '.join(uids)}")


def fill(namespace, disk):
    """Caches each dataset completely, each by its own job. Returns the datasets' uids."""
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
    disk.age(uids[KEPT])  # so that the list of live Datasets keeps it, not its age
    before = disk.files(uids[KEPT])
    assert before.count(".seg\n") >= 1
    kube.delete("dataset", DELETED, namespace.name)
    wait_until("the bytes of both to be removed", lambda: disk.directories() == {uids[KEPT]}, 600)
    wait_until("their statuses to say so", lambda: namespace.dataset_status(UNUSED).get("cachedBytes", 0) == 0, 600)
    assert disk.files(uids[KEPT]) == before
    mark = origin.mark()
    namespace.start("again", ["--epochs", 1], dataset_name=KEPT, cache=CACHE)
    namespace.wait_complete("again")
    assert origin.since(mark).gets == 0, "the next job reads the kept Dataset from the node"
