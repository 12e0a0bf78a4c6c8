"""TrainingJobs in queues of the real Kueue: admission, preemption and a restart."""

import subprocess

import pytest
import yaml

from harness import jobs, kube as kubes
from harness.installation import image, load_images
from harness.jobs import FULL, SETTLED_SECONDS
from harness.kube import condition, wait_until

SYSTEM = "kueue-system"
MADE_FIRST = ("Namespace", "CustomResourceDefinition")
NAMESPACED = ("ConfigMap", "Deployment", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount")
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
ALONE = [{"name": "cpu", "nominalQuota": "100"}, {"name": "memory", "nominalQuota": "1Ti"},
         {"name": "ephemeral-storage", "nominalQuota": "1Ti"}, {"name": "pods", "nominalQuota": "1"}]


def manifests(kube):
    """What Kueue's own chart installs, without the proxy of its metrics, whose image is not here, and without the API of
    its queues' lengths, which would hold up the deletion of every namespace should it not answer."""
    folder = subprocess.run([kubes.ROOT / "e2e" / "kueue" / "build.sh"], check=True, capture_output=True, text=True,
                            timeout=1800).stdout.strip()
    name, _, tag = image("kueue").rpartition(":")
    text = kube.helm("template", "kueue", f"{folder}/chart", "--namespace", SYSTEM,
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
    """Kueue, a flavor, and a queue in which one pod at a time has room."""
    subprocess.run([kubes.ROOT / "tools" / "images.sh", "kueue"], check=True, timeout=1800)
    load_images([image("kueue")])
    items = manifests(kube)
    server_side = lambda some: kube.run("apply", "--server-side", "--force-conflicts", "-f", "-",
                                        stdin=yaml.safe_dump_all(some))
    server_side([item for item in items if item["kind"] in MADE_FIRST])
    server_side([item for item in items if item["kind"] not in MADE_FIRST])
    try:
        kube.run("-n", SYSTEM, "rollout", "status", "deploy/kueue-controller-manager", "--timeout=600s")
        wait_until("Kueue's webhooks to answer", lambda: applied(kube, flavor(), cluster_queue(),
                                                                 priority("low", 1), priority("high", 1000)), 300, 2)
        yield
    finally:
        # Its webhooks go first: without it they would refuse every Job of the cluster.
        for item in [item for item in items if item["kind"] in WEBHOOKS]:
            kube.delete(item["kind"], item["metadata"]["name"])
        for kind in ("clusterqueue", "resourceflavor", "workloadpriorityclass"):
            kube.run("delete", kind, "--all", "--wait=false", check=False)
        for item in [item for item in items if item["kind"] not in WEBHOOKS]:
            kube.run("delete", item["kind"], item["metadata"]["name"], "-n",
                     item["metadata"].get("namespace", "default"), "--ignore-not-found", "--wait=false", check=False)
        wait_until("Kueue to go", lambda: kube.get("namespace", SYSTEM) is None, SETTLED_SECONDS)


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


def workloads(place):
    """Of each Job that Kueue knows: whether it has quota reserved."""
    return {item["metadata"]["ownerReferences"][0]["name"]: condition(item, "QuotaReserved").get("status") == "True"
            for item in place.kube.list("workloads", place.name)
            if item["metadata"].get("ownerReferences")}


@pytest.mark.own_cluster
def test_kueue_admits_preempts_and_queues_a_restart(namespace, kueue, expected):  # pylint: disable=unused-argument
    namespace.apply(jobs.dataset(), made("LocalQueue", "team", spec={"clusterQueue": "gpus"}),
                    queued("first", ["--epochs", 3, "--hold", "1:0"]))
    first = namespace.pod("first")["metadata"]["name"]
    namespace.wait_hold(first, "1:0")

    namespace.apply(queued("second", ["--epochs", 1]))
    wait_until("the second to wait in the queue",
               lambda: state(namespace, "second") == "Queued" and workloads(namespace).get("second-a1") is False,
               SETTLED_SECONDS)
    assert not namespace.pods("second")
    assert condition(namespace.job("second"), "CacheAllocated").get("reason") == "Queued"

    namespace.apply(queued("urgent", ["--epochs", 1, "--hold", "0:0"], level="high"))
    urgent = namespace.pod("urgent")["metadata"]["name"]
    namespace.wait_hold(urgent, "0:0")
    wait_until("the first to wait again", lambda: state(namespace, "first") == "Queued", SETTLED_SECONDS)
    assert workloads(namespace) == {"first-a1": False, "second-a1": False, "urgent-a1": True}
    assert namespace.job("first")["status"]["attempt"] == 1, "a preemption is no failure"
    namespace.go(urgent, "0:0")
    namespace.wait_complete("urgent")

    again = namespace.pod_at_hold("first", "1:0")
    assert again != first
    namespace.go(again, "1:0")
    done = namespace.wait_complete("first")
    assert done["status"]["attempt"] == 1
    assert namespace.digests(again) == expected
    namespace.wait_complete("second")

    namespace.apply(queued("phoenix", ["--epochs", 2, "--crash-once", 1], run_policy={"backoffLimit": 2}))
    done = namespace.wait_complete("phoenix")
    assert done["status"]["attempt"] == 2
    assert "phoenix-a2" in workloads(namespace), "a restart is a Workload of its own"
