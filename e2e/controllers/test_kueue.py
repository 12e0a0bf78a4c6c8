"""TrainingJobs in queues of the real Kueue: admission, preemption, a restart and a suspension."""

import json

import pytest
import yaml

from harness import controllers, jobs
from harness.foreign import HOLDS, SAMPLES, job, ranks_read_each_sample_once, reader, template
from harness.installation import image
from harness.jobs import FULL, SETTLED_SECONDS
from harness.kube import condition, wait_until

SYSTEM = "kueue-system"
NAMESPACED = ("ConfigMap", "Deployment", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount")
ALONE = [{"name": "cpu", "nominalQuota": "100"}, {"name": "memory", "nominalQuota": "1Ti"},
         {"name": "ephemeral-storage", "nominalQuota": "1Ti"}, {"name": "pods", "nominalQuota": "1"}]


def manifests(kube):
    """The objects of Kueue's own chart, without the metrics proxy (this cluster lacks its image) and without the API of
    queue lengths (if it did not answer, no namespace could be deleted)."""
    name, _, tag = image("kueue").rpartition(":")
    text = kube.helm("template", "kueue", controllers.manifests_of("kueue"), "--namespace", SYSTEM,
                     f"--set=controllerManager.manager.image.repository={name}",
                     f"--set=controllerManager.manager.image.tag={tag}",
                     "--set=controllerManager.manager.image.pullPolicy=IfNotPresent",
                     "--set=controllerManager.manager.resources.requests.cpu=50m",
                     "--set=controllerManager.manager.resources.limits.cpu=2")
    found = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}]
    found += [item for item in yaml.safe_load_all(text) if item and item["kind"] != "APIService"]
    for item in found:
        if item["kind"] in NAMESPACED:
            item["metadata"].setdefault("namespace", SYSTEM)
        if item["kind"] == "Deployment":
            containers = item["spec"]["template"]["spec"]["containers"]
            item["spec"]["template"]["spec"]["containers"] = [one for one in containers if one["name"] == "manager"]
    return found


@pytest.fixture(scope="module")
def kueue(kube, origin):  # pylint: disable=unused-argument
    """Kueue, a flavor, and a queue with room for one pod at a time."""
    with controllers.installed(kube, "kueue", manifests(kube)):
        wait_until("Kueue's webhooks to answer", lambda: applied(kube, flavor(), cluster_queue(),
                                                                 priority("low", 1), priority("high", 1000)), 300, 2)
        yield
        for kind in ("clusterqueue", "resourceflavor", "workloadpriorityclass"):
            kube.run("delete", kind, "--all", "--wait=false", check=False)


def applied(kube, *objects):
    kube.apply(*objects)
    return True


def made(kind, name, version="v1beta1", **fields):
    return {"apiVersion": f"kueue.x-k8s.io/{version}", "kind": kind, "metadata": {"name": name}, **fields}


def flavor():
    return made("ResourceFlavor", "any")


def cluster_queue():
    return made("ClusterQueue", "gpus", spec={
        "namespaceSelector": {}, "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": [entry["name"] for entry in ALONE],
                            "flavors": [{"name": "any", "resources": ALONE}]}]})


def priority(name, value):
    return made("WorkloadPriorityClass", name, value=value)


def queued(name, args, level="low", **spec):
    job = jobs.training_job(name, args, cache=FULL, **spec)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": level}
    return job


def state(place, name):
    return condition(place.job(name), "Finished").get("reason")


def workload(place, name):
    """The job's Workload; {} while there is none."""
    return place.get("workload", f"trainingjob-{name}") or {}


def holds(place, name, kind):
    return condition(workload(place, name), kind).get("status") == "True"


def admitted_since(place, name):
    """The Workload's uid and the time since which it has been admitted."""
    item = workload(place, name)
    found = condition(item, "Admitted")
    return item["metadata"]["uid"], found["status"], found["lastTransitionTime"]


def wait_queued(place, name):
    wait_until(f"{name} to wait in the queue",
               lambda: state(place, name) == "Queued" and condition(workload(place, name), "QuotaReserved") and
               not holds(place, name, "QuotaReserved"), SETTLED_SECONDS)
    assert not [pod for pod in place.pods(name) if pod["status"].get("phase") == "Running"]


def wait_finished(place, name):
    wait_until(f"the Workload of {name} to be finished", lambda: holds(place, name, "Finished"), SETTLED_SECONDS)


def patch(place, kind, name, spec):
    place.kube.run("patch", kind, name, "-n", place.name, "--type=merge", "-p", json.dumps({"spec": spec}))


def suspend(place, name, value):
    patch(place, "trainingjob", name, {"suspend": value})


@pytest.fixture
def strict(kube, kueue):  # pylint: disable=unused-argument
    """Sets manageJobsWithoutQueueName as docs/reference/kueue.md says: Kueue suspends every Job without a queue."""
    key = "controller_manager_config.yaml"
    before = kube.get("configmap", "kueue-manager-config", SYSTEM)["data"][key]
    config = yaml.safe_load(before)
    config["manageJobsWithoutQueueName"] = True
    config["integrations"]["externalFrameworks"] = ["TrainingJob.v1alpha1.stoker.dev"]

    def configure(text):
        kube.run("patch", "configmap", "kueue-manager-config", "-n", SYSTEM, "--type=merge", "-p",
                 json.dumps({"data": {key: text}}))
        kube.run("-n", SYSTEM, "rollout", "restart", "deploy/kueue-controller-manager")
        kube.run("-n", SYSTEM, "rollout", "status", "deploy/kueue-controller-manager", "--timeout=600s")
    configure(yaml.safe_dump(config))
    yield
    configure(before)


def plain_job(name):
    container = {"name": "main", "image": jobs.TRAINER_IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["true"]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}


@pytest.fixture
def team(namespace, kueue):  # pylint: disable=unused-argument
    """A namespace with a Dataset and a queue with room for one pod at a time."""
    namespace.apply(jobs.dataset(), made("LocalQueue", "team", spec={"clusterQueue": "gpus"}))
    return namespace


@pytest.mark.own_cluster
def test_a_preempted_job_runs_again_later(team, expected):
    """The trainer exits with 143 on SIGTERM, and its backoffLimit allows no restart."""
    team.apply(queued("first", ["--epochs", 3, "--hold", "1:0"]))
    first = team.pod("first")["metadata"]["name"]
    team.wait_hold(first, "1:0")
    assert holds(team, "first", "Admitted")
    assert team.job("first")["spec"]["runPolicy"]["backoffLimit"] == 0
    wait_until("Kueue's condition PodsReady", lambda: holds(team, "first", "PodsReady"), SETTLED_SECONDS)

    team.apply(queued("second", ["--epochs", 1]))
    wait_queued(team, "second")
    assert team.get("job", "second-a1") is None
    wait_until("the job to quote Kueue",
               lambda: "insufficient" in condition(team.job("second"), "Finished")["message"], SETTLED_SECONDS)
    assert condition(team.job("second"), "CacheAllocated").get("reason") == "Queued"

    team.apply(queued("urgent", ["--epochs", 1, "--hold", "0:0"], level="high"))
    urgent = team.pod("urgent")["metadata"]["name"]
    team.wait_hold(urgent, "0:0")
    wait_queued(team, "first")
    assert team.get("job", "first-a1") is None
    status = team.job("first")["status"]
    assert status["attempt"] == 1 and not status.get("restarts"), "a preemption is no failure"
    assert not holds(team, "second", "QuotaReserved")
    team.go(urgent, "0:0")
    team.wait_complete("urgent")

    again = team.pod_at_hold("first", "1:0")
    assert again != first
    assert not holds(team, "second", "QuotaReserved"), "the first job came before the second"
    team.go(again, "1:0")
    done = team.wait_complete("first")
    assert done["status"]["attempt"] == 1
    assert team.digests(again) == expected
    wait_finished(team, "first")
    team.wait_complete("second")
    wait_finished(team, "second")


@pytest.mark.own_cluster
def test_a_restarted_job_keeps_its_quota_reservation(team):
    team.apply(queued("phoenix", ["--epochs", 2, "--crash-once", 1, "--hold", "0:0"], run_policy={"backoffLimit": 1}))
    first = team.pod_at_hold("phoenix", "0:0")
    reservation = admitted_since(team, "phoenix")
    team.apply(queued("patient", ["--epochs", 1]))
    wait_queued(team, "patient")
    team.go(first, "0:0")

    second = wait_until("the second attempt",
                        lambda: next((name for name in [team.pod_at_hold("phoenix", "0:0")] if name != first), None),
                        SETTLED_SECONDS)
    assert team.job("phoenix")["status"]["attempt"] == 2
    assert admitted_since(team, "phoenix") == reservation
    assert condition(workload(team, "patient"), "Admitted").get("status") != "True"
    assert not team.pods("patient"), "the second job was never admitted"
    team.go(second, "0:0")
    team.wait_complete("phoenix")
    wait_finished(team, "phoenix")
    team.wait_complete("patient")


@pytest.mark.own_cluster
def test_a_suspended_job_leaves_the_queue(team):
    team.apply(queued("parked", ["--epochs", 2, "--hold", "1:0"]))
    team.pod_at_hold("parked", "1:0")
    before = workload(team, "parked")["metadata"]["uid"]
    team.apply(queued("next", ["--epochs", 1]))
    wait_queued(team, "next")
    suspend(team, "parked", True)
    team.wait_complete("next")
    assert state(team, "parked") == "Suspended" and not workload(team, "parked")
    suspend(team, "parked", False)
    pod = team.pod_at_hold("parked", "1:0")
    assert workload(team, "parked")["metadata"]["uid"] != before
    team.go(pod, "1:0")
    assert team.wait_complete("parked")["status"]["attempt"] == 1


@pytest.mark.own_cluster
def test_a_deactivated_job_waits_until_it_is_activated(team):
    team.apply(queued("stopped", ["--epochs", 2, "--hold", "1:0"]))
    team.pod_at_hold("stopped", "1:0")
    patch(team, "workload", "trainingjob-stopped", {"active": False})
    wait_queued(team, "stopped")
    assert "Deactivated" in condition(team.job("stopped"), "Finished")["message"]
    patch(team, "workload", "trainingjob-stopped", {"active": True})
    team.go(team.pod_at_hold("stopped", "1:0"), "1:0")
    assert team.wait_complete("stopped")["status"]["attempt"] == 1


@pytest.mark.own_cluster
def test_kueue_leaves_attempts_alone_when_it_manages_every_job(team, strict):  # pylint: disable=unused-argument
    def suspended():  # the webhook of Kueue's old replica may still answer
        team.apply(plain_job("plain"))
        if team.get("job", "plain")["spec"].get("suspend"):
            return True
        team.kube.delete("job", "plain", team.name)
        return False
    wait_until("Kueue to suspend a Job without a queue", suspended, SETTLED_SECONDS, 1)

    team.apply(queued("child", ["--epochs", 2, "--crash-once", 1], run_policy={"backoffLimit": 1}))
    assert team.wait_complete("child")["status"]["attempt"] == 2
    def owners():
        return {owner["kind"] + "/" + owner["name"] for item in team.kube.list("workloads", team.name)
                for owner in item["metadata"].get("ownerReferences", [])}
    assert owners() == {"Job/plain", "TrainingJob/child"}, "Kueue made a Workload for an attempt's Job"
    team.kube.delete("job", "plain", team.name)
    # Only Kueue removes its finalizer from the Workload.
    wait_until("Kueue to delete the Job's Workload", lambda: owners() == {"TrainingJob/child"}, SETTLED_SECONDS)


@pytest.mark.own_cluster
@pytest.mark.usefixtures("webhook", "photos")
def test_a_plain_job_reads_through_the_cache_after_kueue_has_admitted_it(team, origin, bucket, checkpoints):
    mark = origin.mark()
    for name in ("first", "second"):
        team.apply(job(name, template(team, reader(bucket, checkpoints, *HOLDS)),
                       labels={"kueue.x-k8s.io/queue-name": "team"}))
        if name == "first":
            team.pod_at_hold("job-first", "0:0")
    assert team.get("job", "second")["spec"]["suspend"] and team.job("job-second") is None
    ranks_read_each_sample_once(team, origin, mark, "job-first", 1)
    pod = team.pod_at_hold("job-second", "0:0")
    team.go(pod, "0:0", "1:0", "2:0")
    team.wait_complete("job-second")
    assert origin.since(mark).gets == SAMPLES, "the second job found the first one's samples"
