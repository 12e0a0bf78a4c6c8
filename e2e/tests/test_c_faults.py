"""Training survives the death of the sidecar, the leader's pod, the trainer, the operator and the API server."""

import subprocess
import threading

import pytest

from harness import jobs
from harness.installation import SYSTEM
from harness.jobs import FULL
from harness.kube import CLUSTER, KubeError, condition, wait_until
from harness.nodes import kill

OPERATORS = "app.kubernetes.io/component=operator"
SLOW = ["--epochs", 3, "--step-ms", 30]
AWAY_SECONDS = 60


@pytest.mark.own_cluster
def test_a_killed_sidecar_does_not_disturb_its_trainer(namespace, kube, expected):
    namespace.apply(jobs.dataset())
    # The trainer reads slowly; on a slow machine it also waits in the middle of the last epoch.
    name, = namespace.start("survivor", [*SLOW, "--hold", "2:50"], cache=FULL)
    namespace.wait_epoch(name, 1)
    assert kill(kube, kube.get("pod", name, namespace.name), "stoker-sidecar")
    namespace.go(name, "2:50")
    namespace.wait_complete("survivor")
    assert namespace.digests(name) == expected
    after = kube.get("pod", name, namespace.name)
    assert after["status"]["initContainerStatuses"][0]["restartCount"] >= 1


def test_another_job_goes_on_when_the_pod_of_the_leader_is_deleted(namespace, kube, expected):
    namespace.apply(jobs.dataset())
    leader, = namespace.start("leader", [*SLOW, "--hold", "1:50"], cache=FULL)
    namespace.wait_hold(leader, "1:50")
    assert namespace.sidecar(leader)["role"] == "leading"
    follower, = begin_following(namespace)
    namespace.go(follower, "0:0")
    namespace.wait_epoch(follower, 0)
    assert namespace.sidecar(follower)["role"] == "following"
    kube.run("delete", "trainingjob", "leader", "-n", namespace.name, "--wait=false")
    kube.delete("pod", leader, namespace.name)
    wait_until("the other sidecar to lead", lambda: namespace.sidecar(follower).get("role") == "leading", 300)
    namespace.go(follower, "1:50")
    namespace.wait_complete("follower")
    assert namespace.digests(follower) == expected
    assert namespace.lines(follower)[-1]["event"] == "end"


def begin_following(namespace):
    """Starts a second job on the first job's node. Its sidecar follows and so gets no grant to wait for."""
    namespace.apply(jobs.training_job("follower", [*SLOW, "--hold", "0:0", "--hold", "1:50"], on=namespace.home,
                                      cache=FULL))
    name = namespace.pod("follower")["metadata"]["name"]
    namespace.wait_hold(name, "0:0")
    return [name]


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
    told = [event["message"] for event in namespace.kube.list("events", namespace.name)
            if event["reason"] == "Restarting"]
    assert any("exited with code 1" in message and '"event": "crash"' in message for message in told), told


def test_a_running_job_does_not_notice_that_the_operator_is_gone(namespace, kube, expected):
    namespace.apply(jobs.dataset())
    pod, = namespace.start("alone", ["--epochs", 3, "--hold", "1:0"], cache=FULL)
    namespace.wait_hold(pod, "1:0")
    kube.run("-n", SYSTEM, "scale", "deploy/stoker-operator", "--replicas=0")
    kube.run("-n", SYSTEM, "wait", "pod", "-l", OPERATORS, "--for=delete", "--timeout=600s")
    namespace.go(pod, "1:0")
    wait_until("the job to end without an operator",
               lambda: kube.get("pod", pod, namespace.name)["status"]["phase"] == "Succeeded", 600)
    assert condition(namespace.job("alone"), "Complete").get("status") != "True"
    kube.run("-n", SYSTEM, "scale", "deploy/stoker-operator", "--replicas=2")
    done = namespace.wait_complete("alone")
    assert namespace.digests(pod) == expected
    assert condition(done, "Complete")["observedGeneration"] == done["metadata"]["generation"]


class Killer:
    """Keeps killing every operator as soon as the kubelet has started it."""

    def __init__(self, kube):
        self.kube = kube
        self.kills = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.is_set():
            try:
                pods = self.kube.list("pods", SYSTEM, OPERATORS)
                self.kills += sum(kill(self.kube, pod, "stoker-operator") for pod in pods if "nodeName" in pod["spec"])
            except (KubeError, subprocess.SubprocessError):
                pass  # the machine is busy: the next round tries again
            self._stop.wait(0.2)


@pytest.mark.own_cluster
def test_operators_that_are_killed_for_a_minute_cost_a_job_nothing(namespace, kube, expected):
    namespace.apply(jobs.dataset())
    pod, = namespace.start("steady", ["--epochs", 3, "--step-ms", 100, "--hold", "2:50"], cache=FULL)
    namespace.wait_epoch(pod, 0)
    with Killer(kube) as killer:
        wait_until("both operators to die", lambda: killer.kills >= 2, 300)
        before = len(namespace.lines(pod))
        threading.Event().wait(AWAY_SECONDS)  # the time without operators
        wait_until("the job to read on", lambda: len(namespace.lines(pod)) > before + 5, 600)
        assert len(namespace.pods("steady")) == 1
    kube.run("-n", SYSTEM, "rollout", "status", "deploy/stoker-operator", "--timeout=600s")
    namespace.wait_hold(pod, "2:50")
    wait_until("the status to catch up", lambda: (
        namespace.job("steady")["status"].get("progress", {}).get("epoch") == 2), 600)
    namespace.go(pod, "2:50")
    done = namespace.wait_complete("steady")
    assert done["status"]["attempt"] == 1 and len(namespace.pods("steady")) == 1
    assert namespace.digests(pod) == expected


@pytest.mark.own_cluster
def test_a_restarted_api_server_leaves_one_job_and_a_true_status(namespace, expected):
    namespace.apply(jobs.dataset())
    pod, = namespace.start("patient", [*SLOW, "--hold", "2:50"], cache=FULL)
    namespace.wait_epoch(pod, 0)
    subprocess.run([CLUSTER, "apiserver", "stop"], check=True, timeout=600)
    subprocess.run([CLUSTER, "apiserver", "start"], check=True, timeout=600)
    namespace.go(pod, "2:50")
    done = namespace.wait_complete("patient")
    assert [found["metadata"]["name"] for found in namespace.pods("patient")] == [pod]
    assert done["status"]["attempt"] == 1
    assert namespace.digests(pod) == expected
