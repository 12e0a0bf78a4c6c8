"""One revision per attempt: ranks on two nodes never read different listings, and a mid-run change is reported."""

import random

import pytest

from harness import jobs
from harness.jobs import FULL
from harness.kube import wait_until

COUNT = 50


def text(seed, size=3000):
    return random.Random(seed).randbytes(size)


def fill(namespace, bucket, **spec):
    bucket.put({f"0/{number:02}.bin": text(number) for number in range(COUNT)})
    namespace.apply(jobs.dataset("changing", f"s3://{bucket.name}", **spec))


def read(name, args, **spec):
    return jobs.training_job(name, args, script="read_keys.py", dataset_name="changing", cache=FULL, **spec)


@pytest.mark.two_nodes
def test_ranks_with_different_revisions_restart_with_the_new_one(namespace, bucket):
    # With peers, the other node would take over this node's older listing.
    fill(namespace, bucket, peers="Off")
    # A running job keeps one node's directory at the old listing.
    namespace.apply(read("keeper", ["--hold", "0:0"], on=namespace.home))
    keeper = namespace.pod("keeper")["metadata"]["name"]
    namespace.wait_hold(keeper, "0:0")
    bucket.put({"0/07.bin": text("changed")})
    namespace.apply(read("wide", [], nodes=2, spread=True, run_policy={"backoffLimit": 8}))
    found = namespace.wait_condition("trainingjob", "wide", "OriginUnchanged", "False", "OriginChanged")
    assert "'0/07.bin'" in found["message"]
    namespace.delete_job("keeper")
    status = namespace.wait_complete("wide")["status"]
    assert status["attempt"] > 1
    data, = status["datasets"]
    assert data["revisionAttempt"] == status["attempt"]
    names = [pod["metadata"]["name"] for pod in namespace.pods("wide")]
    pods = [name for name in names if f"-a{status['attempt']}-" in name]
    both = [{line["id"]: (line["key"], line["sha256"]) for line in namespace.lines(pod) if line["event"] == "sample"}
            for pod in pods]
    assert len(both) == 2 and len(both[0]) == COUNT
    assert both[0] == both[1]


@pytest.mark.two_nodes
def test_ranks_on_two_nodes_get_one_revision(namespace, bucket):
    fill(namespace, bucket)
    namespace.apply(read("wide", ["--hold", "0:0"], nodes=2, spread=True))
    pods = [namespace.pod("wide", rank)["metadata"]["name"] for rank in range(2)]
    for pod in pods:
        namespace.wait_hold(pod, "0:0")
    data, = namespace.job("wide")["status"]["datasets"]

    def revisions():
        """A sidecar's /status may be a second old and not yet know what its trainer reads."""
        told = [namespace.sidecar(pod).get("leader", {}).get("revision") for pod in pods]
        return told if all(told) else None
    assert set(wait_until("both sidecars to tell a revision", revisions, jobs.SETTLED_SECONDS)) == {data["revision"]}
    for pod in pods:
        namespace.go(pod, "0:0")
    namespace.wait_complete("wide")


def test_an_object_changed_in_mid_run_sets_a_condition_and_the_attempt_continues(namespace, bucket):
    fill(namespace, bucket)
    namespace.apply(read("late", ["--hold", "0:0", "--hold", "1:0"]))
    pod = namespace.pod("late")["metadata"]["name"]
    namespace.wait_hold(pod, "0:0")
    namespace.wait_granted([pod], lambda size: size > 0)
    bucket.put({"0/07.bin": text("changed")})
    namespace.go(pod, "0:0")
    found = namespace.wait_condition("trainingjob", "late", "OriginUnchanged", "False", "SampleChanged")
    assert "'0/07.bin'" in found["message"]
    namespace.go(pod, "1:0")
    status = namespace.wait_complete("late")["status"]
    assert status["attempt"] == 1
    assert status["datasets"][0]["changedKey"] == "0/07.bin"


def test_a_job_suspended_twice_resumes_with_a_new_listing(namespace, bucket):
    """The trainer exits with 143 on SIGTERM, and its backoffLimit allows no restart."""
    def suspend(value):
        namespace.kube.run("patch", "trainingjob", "parked", "-n", namespace.name, "--type=merge", "-p",
                           f'{{"spec": {{"suspend": {value}}}}}')
    fill(namespace, bucket)
    namespace.apply(read("parked", ["--hold", "0:0"], run_policy={"backoffLimit": 0}))
    for words in ("changed", "changed again"):
        namespace.pod_at_hold("parked", "0:0")
        before, = namespace.job("parked")["status"]["datasets"]
        suspend("true")
        wait_until("its pods to go", lambda: not namespace.pods("parked"), jobs.SETTLED_SECONDS)
        wait_until("its Job to go", lambda: not namespace.get("job", "parked-a1"), jobs.SETTLED_SECONDS)
        namespace.wait_condition("trainingjob", "parked", "Suspended", "True", "Suspended")
        bucket.put({"0/07.bin": text(words)})
        suspend("false")
    namespace.go(namespace.pod_at_hold("parked", "0:0"), "0:0")
    status = namespace.wait_complete("parked")["status"]
    assert status["attempt"] == 1 and not status.get("restarts")
    data, = status["datasets"]
    assert data["revision"] != before["revision"] and data["revisionAttempt"] == 1


def test_an_overwritten_object_does_not_fail_the_next_attempt(namespace, bucket):
    """The trainer exits on an unreadable object; its next attempt lists the origin again."""
    fill(namespace, bucket)
    namespace.apply(read("again", ["--hold", "0:0", "--fail"], run_policy={"backoffLimit": 2}))
    pod = namespace.pod("again")["metadata"]["name"]
    namespace.wait_hold(pod, "0:0")
    namespace.wait_granted([pod], lambda size: size > 0)
    bucket.put({"0/07.bin": text("changed")})
    namespace.go(pod, "0:0")
    wait_until("attempt 2", lambda: namespace.job("again")["status"].get("attempt") == 2, jobs.SETTLED_SECONDS)
    second = namespace.pod("again")["metadata"]["name"]
    namespace.wait_hold(second, "0:0")
    namespace.go(second, "0:0")
    status = namespace.wait_complete("again")["status"]
    assert status["attempt"] == 2


def test_a_ttl_spares_the_next_job_a_listing_and_etag_does_not(namespace, bucket):
    def samples_of(name):
        namespace.apply(read(name, ["--rounds", 1], on=namespace.home))
        pod = namespace.pod(name)["metadata"]["name"]
        namespace.wait_complete(name)
        return next(line["samples"] for line in namespace.lines(pod) if line["event"] == "start")
    fill(namespace, bucket, consistency={"mode": "TTL", "ttlSeconds": 3600})
    assert samples_of("first") == COUNT
    bucket.put({"0/new.bin": text("new")})
    assert samples_of("second") == COUNT
    namespace.apply(jobs.dataset("changing", f"s3://{bucket.name}", consistency={"mode": "ETag"}))
    assert samples_of("third") == COUNT + 1
