"""access Files: a program that reads files reads through the cache, without a changed line."""

import pytest

from harness import jobs
from harness.jobs import FULL
from harness.kube import wait_until
from harness.nodes import kill
from test_b_s3_access import event, restarts

SAMPLES = 200
FILES = [{"name": "train", "datasetRef": {"name": "photos"}, "access": "Files", "mountPath": "/data/train"}]


@pytest.mark.own_cluster
def test_a_script_that_walks_a_folder_reads_each_sample_once_from_the_origin(namespace, kube, origin, bucket):
    bucket.put_random(SAMPLES, 2000)
    namespace.apply(jobs.dataset("photos", f"s3://{bucket.name}"))
    mark = origin.mark()
    pod, = namespace.start("files", ["--root", "/data/train", "--hold", "1:0", "--hold", "2:0", "--hold", "2:1",
                                     "--hold", "2:3"], script="plain_files.py", cache=FULL, datasets=FILES)
    namespace.wait_hold(pod, "1:0")
    assert origin.since(mark).gets == SAMPLES
    namespace.go(pod, "1:0")
    namespace.wait_hold(pod, "2:0")
    assert origin.since(mark).gets == SAMPLES, "the second epoch reads nothing from the origin"

    assert kill(kube, kube.get("pod", pod, namespace.name), "stoker-files")
    namespace.go(pod, "2:0")  # waits for the next stoker-files, which the kubelet starts
    namespace.wait_hold(pod, "2:1")
    assert kill(kube, kube.get("pod", pod, namespace.name), "stoker-sidecar")
    namespace.go(pod, "2:1")
    namespace.wait_hold(pod, "2:3")
    wait_until("the sidecar and stoker-files to start again", lambda: min(restarts(namespace, pod).values()) >= 1, 300)
    namespace.go(pod, "2:3")
    namespace.wait_complete("files")
    expected = bucket.digests()
    assert len(expected) == SAMPLES
    assert [epoch["digests"] for epoch in namespace.epochs(pod)] == [expected] * 3
    assert event(namespace, pod, "mapped")["sha256"] == expected[min(expected)]
