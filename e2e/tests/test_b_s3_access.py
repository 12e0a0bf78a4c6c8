"""access S3: a program with a plain S3 client reads through the cache, without a changed line."""

import pytest

from harness import jobs
from harness.jobs import FULL
from harness.kube import wait_until
from harness.nodes import kill

SAMPLES = 200
BY_S3 = [{"name": "train", "datasetRef": {"name": "photos"}, "access": "S3"}]


@pytest.fixture
def checkpoints(origin, bucket):
    made = origin.bucket(f"{bucket.name}-out").create()
    yield made
    made.destroy()


def event(namespace, pod, name):
    return next(line for line in namespace.lines(pod) if line["event"] == name)


def restarts(namespace, pod):
    states = namespace.get("pod", pod)["status"]["initContainerStatuses"]
    return {state["name"]: state["restartCount"] for state in states}


@pytest.mark.own_cluster
def test_a_plain_boto3_script_reads_each_sample_once_from_the_origin(namespace, kube, origin, bucket, checkpoints):
    bucket.put_random(SAMPLES, 2000)
    namespace.apply(jobs.dataset("photos", f"s3://{bucket.name}"))
    mark = origin.mark()
    pod, = namespace.start(
        "plain", ["--bucket", bucket.name, "--checkpoints", checkpoints.name, "--hold", "1:0", "--hold", "2:0",
                  "--hold", "2:1", "--hold", "2:3"], script="plain_boto3.py", cache=FULL, datasets=BY_S3)
    namespace.wait_hold(pod, "1:0")
    assert origin.since(mark).gets == SAMPLES
    namespace.go(pod, "1:0")
    namespace.wait_hold(pod, "2:0")
    assert origin.since(mark).gets == SAMPLES, "the second epoch reads nothing from the origin"
    checkpoint = event(namespace, pod, "checkpoint")["sha256"]
    assert checkpoints.digests() == {"run/model.pt": checkpoint}

    namespace.go(pod, "2:0")
    namespace.wait_hold(pod, "2:1")
    assert kill(kube, kube.get("pod", pod, namespace.name), "stoker-sidecar")
    namespace.go(pod, "2:1")  # reads while the sidecar is dead or starts again
    namespace.wait_hold(pod, "2:3")
    wait_until("the sidecar to start again", lambda: restarts(namespace, pod)["stoker-sidecar"] >= 1, 300)
    namespace.go(pod, "2:3")
    namespace.wait_complete("plain")
    epochs = namespace.epochs(pod)
    assert [(epoch["epoch"], epoch["retries"]) for epoch in epochs] == [(0, 0), (1, 0), (2, 0)]
    expected = bucket.digests()
    assert len(expected) == SAMPLES
    for epoch in epochs:
        assert epoch["digests"] == expected
    assert restarts(namespace, pod)["stoker-s3"] == 0


def test_blocks_of_large_objects_are_each_fetched_once(namespace, origin, bucket, checkpoints):
    bucket.put_random(3, (5 << 20) + 7)
    blocks = 3 * 6
    namespace.apply(jobs.dataset("photos", f"s3://{bucket.name}", format="Blocks", blockSize="1Mi"))
    mark = origin.mark()
    pod, = namespace.start("plain", ["--bucket", bucket.name, "--checkpoints", checkpoints.name, "--hold", "1:0"],
                           script="plain_boto3.py", cache=FULL, datasets=BY_S3)
    namespace.wait_hold(pod, "1:0")
    assert origin.since(mark).gets == blocks
    namespace.go(pod, "1:0")
    namespace.wait_complete("plain")
    assert origin.since(mark).gets == blocks, "later epochs read nothing from the origin"
    assert [epoch["digests"] for epoch in namespace.epochs(pod)] == [bucket.digests()] * 3
    wait_until("the Dataset to count its blocks", lambda: namespace.dataset_status("photos").get("samples") == blocks)
