"""A node whose disk is full: nothing new is kept, everything is served, the status says so, and it passes."""

import hashlib
import random
import subprocess

import pytest

from harness import jobs
from harness.kube import CLUSTER, condition, wait_until
from test_c_faults import on_node

PLACE = "/var/lib/stoker-small"
MIB = 1 << 20
ROUNDS = 40  # at most; the sidecar tries the disk again after a while


@pytest.fixture
def small_disk(kube, namespace):
    """A pool on a disk of 64 MiB, on the node where the namespace's jobs are."""
    number = namespace.home.rsplit("-", 1)[-1]
    subprocess.run([CLUSTER, "disk", number, "64m", PLACE], check=True, timeout=300)
    kube.apply(jobs.pool("1Gi", name="small", path=PLACE))
    yield PLACE
    kube.delete("cachepool", "small")
    subprocess.run([CLUSTER, "heal"], check=True, timeout=300)


def one_more_round(namespace, pod, number):
    """Lets the trainer read everything once more; what it got, by id."""
    namespace.go(pod, f"{number}:0")
    namespace.wait_hold(pod, f"{number + 1}:0")
    return {line["id"]: line.get("sha256") for line in namespace.lines(pod)
            if line["event"] == "sample" and line["round"] == number}


@pytest.mark.own_cluster
def test_a_full_disk_costs_hits_and_nothing_else(namespace, bucket, kube, small_disk):
    objects = {f"0/{number:02}.bin": random.Random(number).randbytes(MIB) for number in range(20)}
    expected = {number: hashlib.sha256(body).hexdigest() for number, (_, body) in enumerate(sorted(objects.items()))}
    bucket.put(objects)
    namespace.apply(jobs.dataset("odd", f"s3://{bucket.name}"))
    holds = [word for number in range(1, ROUNDS + 1) for word in ("--hold", f"{number}:0")]
    on_node(kube, namespace.home, f"head -c {44 * MIB} /dev/zero >{small_disk}/filler")
    pod, = namespace.start("full", ["--plan", "--rounds", ROUNDS, *holds], script="read_keys.py", dataset_name="odd",
                           cache={"mode": "Fixed", "maxBytes": "1Gi", "poolRef": {"name": "small"}})

    # 20 MiB are free and 15 % of the disk must stay so: some samples find room, not all.
    namespace.wait_hold(pod, "1:0")
    got = {line["id"]: line.get("sha256") for line in namespace.lines(pod) if line["event"] == "sample"}
    assert got == expected
    found = wait_until("the job to say that the disk is full", lambda: (
        lambda entry: entry if "keeps nothing new" in entry.get("message", "") else None)(
            condition(namespace.job("full"), "CacheAllocated")), 600)
    assert found["status"] == "True", "the bytes are granted all the same"
    assert namespace.sidecar(pod)["leader"]["residentSamples"] < len(objects)

    # Now not one byte is left.
    on_node(kube, namespace.home, f"cat /dev/zero >{small_disk}/filler-2 2>/dev/null; true")
    assert one_more_round(namespace, pod, 1) == expected

    on_node(kube, namespace.home, f"rm {small_disk}/filler {small_disk}/filler-2")
    for number in range(2, ROUNDS):
        assert one_more_round(namespace, pod, number) == expected
        if namespace.sidecar(pod)["leader"]["residentSamples"] == len(objects):
            break
    assert namespace.settled_dataset(pod, name="odd")["cachedSamples"] == len(objects)
    wait_until("the job to say that it keeps samples again", lambda: "keeps nothing new" not in condition(
        namespace.job("full"), "CacheAllocated")["message"], 600)
    namespace.go(pod, *[f"{number}:0" for number in range(1, ROUNDS + 1)])
    namespace.wait_complete("full")
