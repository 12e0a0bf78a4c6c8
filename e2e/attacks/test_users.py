"""Attacks with kubectl by a user with `edit` in one namespace; the admission policies are in force."""

import copy
import json
import time

import pytest

from harness import jobs, views
from harness.installation import SYSTEM
from harness.kube import wait_until
from harness.strangers import NEIGHBOUR, says, user

pytestmark = pytest.mark.own_cluster

GIB = 1 << 30


def controllers_pod(place, uid):
    return {"metadata": {"labels": {"app": "sly"}}, "spec": views.pod(
        "sly", views.view(place.name, uid, "owner"), place.home)["spec"]}


def sly_objects(place, uid):
    """One object of each kind that creates pods; the pods mount a view of a node directory."""
    template = controllers_pod(place, uid)
    once = copy.deepcopy(template)
    once["spec"]["restartPolicy"] = "Never"
    selector = {"matchLabels": {"app": "sly"}}
    job = {"template": once}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": selector, "template": template}},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"selector": selector, "template": template}},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": {"selector": selector, "template": template}},
        {"apiVersion": "apps/v1", "kind": "StatefulSet",
         "spec": {"selector": selector, "template": template, "serviceName": "sly"}},
        {"apiVersion": "v1", "kind": "ReplicationController", "spec": {"selector": {"app": "sly"}, "template": template}},
        {"apiVersion": "batch/v1", "kind": "Job", "spec": job},
        {"apiVersion": "batch/v1", "kind": "Job", "spec": {**job, "suspend": True}},
        {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}},
        {"apiVersion": "v1", "kind": "Pod", "spec": once["spec"]},
    ]


def test_no_controller_makes_a_pod_with_a_view_for_a_user(namespace, neighbour, foreign):
    # threat model, row 15: users cannot create pods with views, directly or through a controller
    who = user(namespace)
    for number, item in enumerate(sly_objects(namespace, foreign)):
        item["metadata"] = {"name": f"sly-{number}", "namespace": namespace.name}
        says(namespace.kube, "create", "-f", "-", *who, stdin=json.dumps(item))
    time.sleep(70)  # a CronJob makes its first Job within a minute
    assert namespace.kube.list("pods", namespace.name) == []
    jobs_made = namespace.kube.list("jobs", namespace.name)
    assert not jobs_made, [item["metadata"]["name"] for item in jobs_made]
    neighbour.goes_on()


def test_a_user_with_edit_writes_no_status_quota_pool_or_secret_of_stoker(namespace, neighbour, neighbour_ns, foreign):
    # threat model, rows 1, 13, 14: a tenant cannot write what the operator trusts: status, quotas, pools, its CA
    who = user(namespace)
    namespace.apply(jobs.dataset(), jobs.training_job("liar", ["--epochs", 1], suspend=True), jobs.quota("1Mi"))
    stolen = json.dumps({"status": {"datasets": [{"name": "train", "uid": foreign}]}})
    tries = [
        ["patch", "tj", "liar", "-n", namespace.name, "--subresource=status", "--type=merge", "-p", stolen],
        ["patch", "dset", "mnist", "-n", namespace.name, "--subresource=status", "--type=merge", "-p", stolen],
        ["patch", "cquota", "quota", "-n", namespace.name, "--type=merge", "-p", '{"spec":{"nominalQuota":"1Ti"}}'],
        ["delete", "cquota", "quota", "-n", namespace.name],
        ["patch", "cpool", jobs.POOL, "--type=merge", "-p", '{"spec":{"capacityPerNode":"1Mi"}}'],
        ["delete", "cpool", jobs.POOL],
        ["get", "secrets", "-n", SYSTEM], ["get", "cm", "-n", SYSTEM], ["get", "lease", "-n", SYSTEM],
        ["get", "tj,dset,cquota", "-n", neighbour_ns.name], ["get", "tj", "-A"], ["delete", "csidriver", views.DRIVER],
        ["create", "token", "stoker-node", "-n", SYSTEM, "--audience=stoker.dev"],
        ["label", "namespace", namespace.name, "team=vision"],
    ]
    got = [words for words in tries if says(namespace.kube, *words, *who)[0] == 0]
    assert not got, f"allowed to a user with edit: {got}"
    # The API server drops a status that is sent together with the spec.
    item = namespace.here(jobs.training_job("liar-too", ["--epochs", 1], suspend=True))
    item["status"] = json.loads(stolen)["status"]
    says(namespace.kube, "create", "-f", "-", *who, stdin=json.dumps(item))
    assert foreign not in json.dumps(namespace.job("liar-too"))
    neighbour.goes_on()


def test_a_user_who_rewrites_stokers_jobs_and_pods_gains_nothing(namespace, neighbour, neighbour_ns, foreign):
    # threat model, rows 1, 11: labels, annotations and owner references in a tenant's namespace give no rights
    # elsewhere
    who = user(namespace)
    namespace.apply(jobs.dataset())
    pod, = namespace.start("mine", ["--epochs", 2, "--hold", "1:0"], cache=jobs.FULL)
    namespace.wait_hold(pod, "1:0")
    theirs = {"stoker.dev/training-job": neighbour.name, "stoker.dev/training-job-uid": neighbour_ns.job(
        neighbour.name)["metadata"]["uid"], "stoker.dev/dataset": foreign, "stoker.dev/namespace": neighbour_ns.name}
    changes = json.dumps({"metadata": {"labels": theirs, "annotations": theirs}})
    job = namespace.job("mine")["status"]["jobs"][0]["name"]
    for kind, name in (("pod", pod), ("job", job), ("tj", "mine"), ("dset", "mnist")):
        says(namespace.kube, "patch", kind, name, "-n", namespace.name, "--type=merge", "-p", changes, *who)
    owner = neighbour_ns.job(neighbour.name)["metadata"]
    says(namespace.kube, "patch", "job", job, "-n", namespace.name, "--type=merge", *who, "-p", json.dumps(
        {"metadata": {"ownerReferences": [{"apiVersion": "stoker.dev/v1alpha1", "kind": "TrainingJob", "controller": True,
                                           "name": owner["name"], "uid": owner["uid"]}]}}))
    before = neighbour_ns.job(neighbour.name)["status"]["jobs"]
    says(namespace.kube, "patch", "job", job, "-n", namespace.name, "--type=merge", "-p", '{"spec":{"suspend":true}}', *who)
    time.sleep(15)  # the operator reconciles several times; nothing may change
    assert neighbour_ns.job(neighbour.name)["status"]["jobs"] == before
    assert neighbour_ns.dataset_status().get("jobs") == 1, "nobody else counts as a reader of the neighbour's Dataset"
    neighbour.goes_on()


def test_taken_names_stop_only_that_users_job(namespace, neighbour):
    # not in the threat model: a Job and a Service that a user created earlier stop that user's job, with a message, and
    # no other job
    who = user(namespace)
    for item in ({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "taken-a1"}, "spec": {
            "suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "trainer", "image": jobs.TRAINER_IMAGE}]}}}},
                 {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "taken"}, "spec": {
                     "type": "ExternalName", "externalName": "example.com"}}):
        code, words = says(namespace.kube, "create", "-f", "-", "-n", namespace.name, *who, stdin=json.dumps(item))
        assert code == 0, words
    namespace.apply(jobs.dataset(), jobs.training_job("taken", ["--epochs", 1]))

    def told():
        status = (namespace.job("taken") or {}).get("status") or {}
        return [entry for entry in status.get("conditions", []) if "taken" in entry.get("message", "")]
    words = wait_until("the message about the taken name", told, 120)
    print(words)
    mine = namespace.get("job", "taken-a1")
    assert "ownerReferences" not in mine["metadata"] and mine["spec"]["suspend"]
    neighbour.goes_on()


TEMPLATES = {
    "a secret of another namespace by path": {"datasets": [{"name": "train", "storageUri": "s3://mnist", "secretRef": {
        "name": f"../{NEIGHBOUR}/s3"}}]},
    "a secret of another namespace by slash": {"datasets": [{"name": "train", "storageUri": "s3://mnist", "secretRef": {
        "name": f"{NEIGHBOUR}/s3"}}]},
    "a secret with a namespace field": {"datasets": [{"name": "train", "storageUri": "s3://mnist", "secretRef": {
        "name": "s3", "namespace": NEIGHBOUR}}]},
    "a CA bundle of another namespace": {"datasets": [{"name": "train", "storageUri": "s3://mnist", "caBundle": {
        "kind": "Secret", "name": f"../{NEIGHBOUR}/s3"}}]},
    "a directory as an origin": {"datasets": [{"name": "train", "storageUri": "file:///var/lib/stoker"}]},
    "an origin with two dots": {"datasets": [{"name": "train", "storageUri": "s3://mnist/../other"}]},
    "a dataset of another namespace by name": {"datasets": [{"name": "train", "datasetRef": {
        "name": f"../{NEIGHBOUR}/mnist"}}]},
    "a dataset's name as a path": {"datasets": [{"name": "../../data", "datasetRef": {"name": "mnist"}}]},
    "a namespace as a path": {"datasets": [{"name": "train", "datasetRef": {"name": "mnist", "namespace": "../data"}}]},
}
PODS = {
    "our driver": {"volumes": [{"name": "v", "csi": {"driver": "csi.stoker.dev"}}]},
    "our driver in an upper-case name": {"volumes": [{"name": "v", "csi": {"driver": "CSI.stoker.dev"}}], "containers": [
        {"name": "trainer", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]},
    "our volumes' names": {"volumes": [{"name": "stoker-node-train", "emptyDir": {}}]},
    "our folder": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [
        {"name": "trainer", "volumeMounts": [{"name": "v", "mountPath": "/stoker/run"}]}]},
    "our folder by a path with ..": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [
        {"name": "trainer", "volumeMounts": [{"name": "v", "mountPath": "/tmp/../stoker/run"}]}]},
    "our folder with two slashes": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [
        {"name": "trainer", "volumeMounts": [{"name": "v", "mountPath": "//stoker"}]}]},
    "our volume in an init container": {"initContainers": [{"name": "i", "image": "x", "volumeMounts": [
        {"name": "stoker-node-train", "mountPath": "/v"}]}]},
    "our sidecar": {"initContainers": [{"name": "stoker-sidecar", "image": "x"}]},
    "a container beside": {"containers": [{"name": "beside", "image": "x"}]},
    "processes of the pod": {"shareProcessNamespace": True},
    "the node's network": {"hostNetwork": True},
}


def test_a_pod_template_reaches_nothing_of_stoker_or_of_others(namespace, neighbour):
    # threat model, rows 14, 16: for every change, validation names the field, or no container of the pod starts
    namespace.apply(jobs.dataset())
    plain = jobs.training_job("trick", ["--epochs", 1], run_policy={"backoffLimit": 0})
    changes = {**TEMPLATES, **{title: {"podTemplate": {"spec": spec}} for title, spec in PODS.items()}}
    accepted = {}
    for number, (title, change) in enumerate(changes.items()):
        item = copy.deepcopy(plain)
        item["metadata"]["name"] = f"trick-{number}"
        item["spec"].update(change)
        code, words = says(namespace.kube, "apply", "-f", "-", stdin=json.dumps(namespace.here(item)))
        print(f"{title}: {words.strip()[:200]}")
        if code == 0:
            accepted[title] = f"trick-{number}"
    time.sleep(40)  # long enough for a container to start
    begun = {}
    for title, name in accepted.items():
        job = namespace.job(name)
        print(f"{title}: accepted;", [f"{entry['reason']}: {entry['message']}" for entry in job["status"]["conditions"]
                                      if entry["type"] in ("Finished", "DataReady")])
        for pod in namespace.pods(name):
            states = pod["status"].get("initContainerStatuses", []) + pod["status"].get("containerStatuses", [])
            if any("waiting" not in state["state"] for state in states):
                begun[title] = [(mount["name"], mount["mountPath"]) for mount in pod["spec"]["containers"][0]["volumeMounts"]]
    namespace.kube.run("delete", "trainingjob", "--all", "-n", namespace.name, "--wait=false")
    neighbour.goes_on()
    assert not begun, "containers of these started"


def test_a_pod_cannot_use_another_namespaces_secret(namespace, neighbour, neighbour_ns):
    # threat model, row 14: a pod gets Secrets of its own namespace only, whatever names its spec contains
    neighbour_ns.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "treasure"},
                  "stringData": {"TREASURE": "the-neighbours-treasure"}})
    namespace.apply(jobs.dataset())
    item = jobs.training_job("thief", ["--epochs", 1])
    container = item["spec"]["podTemplate"]["spec"]["containers"][0]
    container["envFrom"] = [{"secretRef": {"name": "treasure", "optional": True}}]
    item["spec"]["podTemplate"]["spec"]["volumes"].append({"name": "loot", "projected": {"sources": [
        {"secret": {"name": "treasure", "optional": True}}]}})
    container["volumeMounts"].append({"name": "loot", "mountPath": "/loot"})
    item["spec"]["trainer"]["command"] = ["sh", "-c", "env; ls -R /loot; cat /loot/*; sleep 20; true"]
    namespace.apply(item)
    namespace.wait_complete("thief")
    for pod in namespace.pods("thief"):
        assert "the-neighbours-treasure" not in namespace.kube.logs(pod["metadata"]["name"], namespace.name, "trainer")
    neighbour.goes_on()


def test_extreme_cache_sizes_and_weights_do_not_reduce_another_namespaces_grant(namespace, neighbour, neighbour_ns):
    # threat model, row 17: every number is taken literally or refused
    grant = neighbour_ns.job(neighbour.name)["status"]["cache"]["allocatedBytes"]
    namespace.apply(jobs.dataset())
    refused = []
    for number, cache in enumerate(({"maxBytes": "7.99Ei"}, {"minBytes": "7Ei", "maxBytes": "7Ei"},
                                    {"mode": "Fixed", "maxBytes": "8E"}, {"maxBytes": "1e18", "weight": 1000},
                                    {"maxBytes": "9223372036854775807"}, {"maxBytes": "-1"}, {"maxBytes": "0x10"},
                                    {"maxBytes": "1e400"}, {"weight": 2**31}, {"maxBytes": "1n"})):
        item = jobs.training_job(f"big-{number}", ["--epochs", 1, "--hold", "0:0"], on=namespace.home, cache=cache)
        item["spec"]["trainer"]["resourcesPerNode"] = {"requests": {"cpu": "1m", "memory": "64Mi"}}
        code, words = says(namespace.kube, "apply", "-f", "-", stdin=json.dumps(namespace.here(item)))
        if code:
            refused.append((cache, words.strip()[:160]))
    print("refused:", *refused, sep="\n  ")
    wide = jobs.training_job("wide", ["--epochs", 1], nodes=10000, cache={"minBytes": "7Ei", "maxBytes": "7.9Ei"}, suspend=True)
    wide["spec"]["trainer"]["epochs"] = 1000000
    namespace.apply(wide)
    time.sleep(30)  # the operator plans several times; the grant must not fall
    assert neighbour_ns.job(neighbour.name)["status"]["cache"]["allocatedBytes"] >= min(grant, 2 * GIB)
    namespace.kube.run("delete", "trainingjob", "--all", "-n", namespace.name)
    neighbour.goes_on()
