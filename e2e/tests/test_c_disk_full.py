"""A full disk: the sidecar keeps nothing new, serves everything, reports it, and recovers when there is room."""

import hashlib
import random
import subprocess

import pytest

from harness import jobs
from harness.kube import CLUSTER, condition, wait_until
from harness.nodes import on_node

PLACE = "/var/lib/stoker-small"
MIB = 1 << 20
DISK = 700 * MIB  # 15 % stay free and 384 MiB are for transient samples; the rest holds what the test keeps
ROUNDS = 200  # the most rounds that the job reads; the sidecar tries the disk again after a while


@pytest.fixture
def small_disk(kube, namespace):
    """A pool on its own small disk, on the node of the namespace's jobs."""
    number = namespace.home.rsplit("-", 1)[-1]
    subprocess.run([CLUSTER, "disk", number, str(DISK), PLACE], check=True, timeout=300)
    # A subdirectory, because a pool's directory must be empty and this disk holds other files.
    kube.apply(jobs.pool("1Gi", name="small", path=f"{PLACE}/pool"))
    yield SmallDisk(kube, namespace.home)
    kube.delete("cachepool", "small")
    subprocess.run([CLUSTER, "heal"], check=True, timeout=300)


class SmallDisk:
    def __init__(self, kube, node):
        self.kube = kube
        self.node = node

    def leave(self, size):
        """Fills the disk with another file until `size` bytes are free. If the disk is full earlier, because the
        sidecar writes at the same time, the file takes what there is."""
        on_node(self.kube, self.node, f"rm -f {PLACE}/filler; head -c $(( $(stat -f -c '%a * %S' {PLACE}) - {size} )) "
                                      f"/dev/zero >{PLACE}/filler 2>/dev/null || df {PLACE}")

    def free(self):
        on_node(self.kube, self.node, f"rm {PLACE}/filler")


class Reader:
    """A job that reads all objects in each of its rounds, and its progress."""

    def __init__(self, namespace, pod, expected):
        self.namespace = namespace
        self.pod = pod
        self.expected = expected
        self.round = 0

    def read(self):
        """Lets the job read everything once more and checks every byte."""
        self.namespace.go(self.pod, f"{self.round}:0")
        self.namespace.wait_hold(self.pod, f"{self.round + 1}:0")
        got = {line["id"]: line.get("sha256") for line in self.namespace.lines(self.pod)
               if line["event"] == "sample" and line["round"] == self.round}
        assert got == self.expected
        self.round += 1

    def resident(self):
        return self.namespace.sidecar(self.pod)["leader"]["residentSamples"]

    def wait_said(self, words, said=True):
        """Waits until the job's condition has these words about its node (`said`), or no longer has them."""
        def says():
            found = condition(self.namespace.job("full"), "CacheAllocated")
            return found if (words in found.get("message", "")) == said else None
        return wait_until(f"the job to tell of its disk, '{words}': {said}", says, 600)


@pytest.mark.own_cluster
def test_a_full_disk_costs_hits_and_nothing_else(namespace, bucket, origin, small_disk):
    objects = {f"0/{number:02}.bin": random.Random(number).randbytes(MIB) for number in range(20)}
    bucket.put(objects)
    namespace.apply(jobs.dataset("odd", f"s3://{bucket.name}"))
    small_disk.leave(150 * MIB)
    pod, = namespace.start("full", ["--plan", "--rounds", ROUNDS, "--hold-each"], script="read_keys.py",
                           dataset_name="odd", cache={"mode": "Fixed", "maxBytes": "1Gi", "poolRef": {"name": "small"}})
    reader = Reader(namespace, pod, {number: hashlib.sha256(body).hexdigest()
                                     for number, (_, body) in enumerate(sorted(objects.items()))})
    # Only the space that must stay free is left, so the cache may keep nothing.
    reader.read()
    assert reader.resident() == 0
    told = reader.wait_said("keeps at most 0B of the")
    assert "lower reservedFree" in told["message"], "the message says what to do"
    wait_until("the Dataset's status to agree", lambda: (
        "keeps at most 0B" in condition(namespace.get("dataset", "odd"), "Ready").get("message", "")), 600)

    # Now the disk is completely full.
    small_disk.leave(0)
    reader.read()
    assert reader.wait_said("keeps nothing new")["status"] == "True", "the grant stays although the disk is full"

    small_disk.free()

    def all_kept():
        reader.read()
        return reader.resident() == len(objects)
    wait_until("the sidecar to try the disk again", all_kept, 600, 2)
    assert namespace.settled_dataset(pod, name="odd")["cachedSamples"] == len(objects)
    reader.wait_said("keeps", False)

    small_disk.leave(0)
    mark = origin.mark()
    reader.read()
    assert origin.since(mark).gets == 0, "resident samples are served from a full disk, too"
    namespace.go(pod, *[f"{number}:0" for number in range(reader.round, ROUNDS + 1)])
    namespace.wait_complete("full")
