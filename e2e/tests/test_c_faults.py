"""What may die: sidecar, leader, trainer, operator, API server. What may not: the training."""

import subprocess

import pytest

from harness import jobs, origin as origins
from harness.kube import CLUSTER, condition, wait_until

FULL = {"mode": "Fixed", "maxBytes": "1Gi"}
SLOW = ["--epochs", 3, "--step-ms", 60]
SYSTEM = "stoker-system"


def reference(namespace):
    """The digests that a job with this seed must show, from a run without any cache."""
    namespace.apply(jobs.training_job("reference", ["--epochs", 3], cache={"mode": "Off"}))
    namespace.wait_complete("reference")
    return digests(namespace, namespace.pods("reference")[0])


def digests(namespace, pod):
    return [epoch["digest"] for epoch in namespace.epochs(pod["metadata"]["name"])]


def kill_sidecar(kube, pod):
    """SIGKILL to the sidecar's process, from the node: nothing inside the container could soften it."""
    uid = pod["metadata"]["uid"]
    script = ("for d in /proc/[0-9]*; do p=${d#/proc/}; "
              f"grep -q 'pod{uid}\\|{uid.replace('-', '_')}' $d/cgroup 2>/dev/null && "
              "grep -q '^stoker-sidecar' $d/comm 2>/dev/null && kill -9 $p && echo killed $p; done; true")
    done = subprocess.run([CLUSTER, "shell", "1", "bash", "-c", script], capture_output=True, text=True, check=True,
                          env=kube.environment)
    assert "killed" in done.stdout, done.stdout + done.stderr


def test_a_killed_sidecar_does_not_disturb_its_trainer(namespace, kube):
    namespace.apply(jobs.dataset())
    expected = reference(namespace)
    namespace.apply(jobs.training_job("survivor", SLOW, cache=FULL))
    pod = namespace.pod("survivor")
    namespace.wait_epoch(pod["metadata"]["name"], 1)
    kill_sidecar(kube, pod)
    namespace.wait_complete("survivor")
    assert digests(namespace, pod) == expected
    after = kube.get("pod", pod["metadata"]["name"], namespace.name)
    assert after["status"]["initContainerStatuses"][0]["restartCount"] >= 1


def test_another_job_goes_on_when_the_pod_of_the_leader_is_deleted(namespace, kube):
    namespace.apply(jobs.dataset())
    expected = reference(namespace)
    namespace.apply(jobs.training_job("leader", SLOW, cache=FULL))
    leader = namespace.pod("leader")
    namespace.wait_epoch(leader["metadata"]["name"], 0)
    namespace.apply(jobs.training_job("follower", SLOW, cache=FULL))
    follower = namespace.pod("follower")
    namespace.wait_epoch(follower["metadata"]["name"], 0)
    kube.run("delete", "trainingjob", "leader", "-n", namespace.name, "--wait=false")
    kube.delete("pod", leader["metadata"]["name"], namespace.name)
    namespace.wait_complete("follower")
    assert digests(namespace, follower) == expected
    last = namespace.lines(follower["metadata"]["name"])[-1]
    assert last["event"] == "end"


def test_a_crashed_trainer_starts_again_with_all_its_ranks(namespace):
    namespace.apply(jobs.dataset(), jobs.training_job(
        "phoenix", ["--epochs", 2, "--crash-once", 1], nodes=2, cache=FULL, run_policy={"backoffLimit": 2}))
    done = namespace.wait_complete("phoenix")
    assert done["status"]["attempt"] == 2
    pods = namespace.pods("phoenix")
    second = [pod for pod in pods if pod["metadata"]["name"].startswith("phoenix-a2-")]
    assert len(second) == 2, [pod["metadata"]["name"] for pod in pods]
    for pod in second:
        assert [epoch["epoch"] for epoch in namespace.epochs(pod["metadata"]["name"])] == [0, 1]


def test_a_running_job_does_not_notice_that_the_operator_is_gone(namespace, kube):
    namespace.apply(jobs.dataset())
    expected = reference(namespace)
    namespace.apply(jobs.training_job("alone", ["--epochs", 3, "--step-ms", 250], cache=FULL))
    pod = namespace.pod("alone")
    namespace.wait_epoch(pod["metadata"]["name"], 0)
    kube.run("-n", SYSTEM, "scale", "deploy/stoker-operator", "--replicas=0")
    kube.run("-n", SYSTEM, "wait", "pod", "-l", "app.kubernetes.io/component=operator", "--for=delete",
             "--timeout=60s")
    wait_until("the job to read on without an operator", lambda: len(digests(namespace, pod)) >= 2, 240)
    kube.run("-n", SYSTEM, "scale", "deploy/stoker-operator", "--replicas=2")
    done = namespace.wait_complete("alone")
    assert digests(namespace, pod) == expected
    assert condition(done, "Complete")["observedGeneration"] == done["metadata"]["generation"]


@pytest.mark.own_cluster
def test_a_restarted_api_server_leaves_one_job_and_a_true_status(namespace, kube):
    namespace.apply(jobs.dataset(), jobs.training_job("patient", SLOW, cache=FULL))
    pod = namespace.pod("patient")
    namespace.wait_epoch(pod["metadata"]["name"], 0)
    subprocess.run([CLUSTER, "apiserver", "stop"], check=True)
    subprocess.run([CLUSTER, "apiserver", "start"], check=True)
    namespace.wait_complete("patient")
    assert len(namespace.pods("patient")) == 1
    assert namespace.epochs(pod["metadata"]["name"])[-1]["distinct"] == origins.SAMPLES
