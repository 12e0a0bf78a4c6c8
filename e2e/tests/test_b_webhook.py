"""The webhook: workloads of other controllers read through the cache with no change but a label, and no pod waits for
the webhook."""

import base64
import json
import subprocess
import time

import pytest

from harness.foreign import (HOLDS, SAMPLES, SLEEP, WEBHOOK, events, hook, is_injected, job,
                             ranks_read_each_sample_once, reader, running, template)
from harness.installation import SYSTEM
from harness.jobs import FULL, SETTLED_SECONDS
from harness.kube import wait_until


def deployment(name, pod):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "plain"}}, "template": pod}}


def app_pods(namespace):
    return namespace.kube.list("pods", namespace.name, "app=plain")


@pytest.mark.usefixtures("webhook", "photos")
def test_an_indexed_job_reads_each_sample_once_with_only_the_label(namespace, origin, bucket, checkpoints):
    mark = origin.mark()
    namespace.apply(job("plain", template(namespace, reader(bucket, checkpoints, *HOLDS)), 2))
    done = ranks_read_each_sample_once(namespace, origin, mark, "job-plain")
    assert done["spec"]["workloadRef"]["name"] == "plain"
    assert not namespace.get("job", "job-plain-a1"), "a TrainingJob with a workloadRef starts no Job"
    assert {"Running", "Complete"} <= {event["reason"] for event in events(namespace, "Job", "plain")}


def files_reader(namespace, *args):
    """A pod template whose program walks a folder: no key, no endpoint, and three lines of metadata."""
    pod = template(namespace, ["python3", "-u", "/trainers/plain_files.py", "--root", "/data/train", *args])
    pod["metadata"]["annotations"] = {"stoker.dev/mount-path": "/data/train", "stoker.dev/cache": json.dumps(FULL)}
    del pod["spec"]["containers"][0]["env"]
    return pod


@pytest.mark.own_cluster
@pytest.mark.usefixtures("webhook", "photos")
def test_an_indexed_job_walks_a_folder_with_only_label_and_annotations(namespace, origin, bucket):
    mark = origin.mark()
    namespace.apply(job("walk", files_reader(namespace, "--hold", "1:0"), 2))
    pods = wait_until("two running pods", lambda: running(namespace, "job-walk", 2), SETTLED_SECONDS)
    for pod in pods:
        namespace.wait_hold(pod, "1:0")
    assert origin.since(mark).gets == SAMPLES, "two pods, one fetch of each file"
    for pod in pods:
        namespace.go(pod, "1:0")
    namespace.wait_complete("job-walk")
    assert origin.since(mark).gets == SAMPLES, "later epochs read nothing from the origin"
    expected = bucket.digests()
    for pod in pods:
        assert [epoch["digests"] for epoch in namespace.epochs(pod)] == [expected] * 3


@pytest.mark.usefixtures("webhook", "photos")
def test_a_deployments_training_job_exists_until_the_deployment_goes(namespace, origin, bucket, checkpoints):
    mark = origin.mark()
    namespace.apply(deployment("web", template(namespace, reader(bucket, checkpoints, "--hold", "1:0", "--hold", "2:0"))))
    namespace.wait_condition("trainingjob", "deployment-web", "Running")
    pod, = namespace.pods("deployment-web")
    namespace.wait_hold(pod["metadata"]["name"], "1:0")
    assert origin.since(mark).gets == SAMPLES
    namespace.go(pod["metadata"]["name"], "1:0")
    namespace.wait_hold(pod["metadata"]["name"], "2:0")
    assert origin.since(mark).gets <= SAMPLES
    namespace.kube.delete("deployment", "web", namespace.name)
    wait_until("its TrainingJob to go", lambda: namespace.job("deployment-web") is None, SETTLED_SECONDS)


@pytest.mark.usefixtures("webhook")
def test_a_label_with_an_unknown_dataset_is_reported_and_stops_no_pod(namespace):
    namespace.apply(deployment("web", template(namespace, SLEEP, "absent")))
    told = wait_until("an event on the Deployment", lambda: [
        event for event in events(namespace, "Deployment", "web") if event["reason"] == "DatasetNotFound"])
    assert "absent" in (told[0].get("message") or told[0].get("note"))
    pod, = wait_until("its pod to run", lambda: [
        pod for pod in app_pods(namespace) if pod["status"].get("phase") == "Running"], SETTLED_SECONDS)
    assert not is_injected(pod) and "absent" in pod["metadata"]["annotations"]["stoker.dev/not-injected"]
    assert namespace.job("deployment-web") is None


@pytest.fixture
def no_operator(kube, webhook):  # pylint: disable=unused-argument
    """Stops the operator, so that it does not write its caBundle again. Restores everything."""
    before = hook(kube)["clientConfig"]
    kube.run("scale", "deployment/stoker-operator", "-n", SYSTEM, "--replicas=0")
    selector = "app.kubernetes.io/component=operator"
    wait_until("the operator to end", lambda: not kube.list("pods", SYSTEM, selector), SETTLED_SECONDS)
    yield
    point_to(kube, before)
    kube.run("scale", "deployment/stoker-operator", "-n", SYSTEM, "--replicas=2")
    kube.run("rollout", "status", "deployment/stoker-operator", "-n", SYSTEM, "--timeout=300s")


def point_to(kube, client):
    patch = [{"op": "replace", "path": "/webhooks/0/clientConfig", "value": client}]
    kube.run("patch", "mutatingwebhookconfiguration", WEBHOOK, "--type=json", "-p", json.dumps(patch))


def certificate(folder, host, days):
    """A self-signed certificate; 0 days: it has expired."""
    key, request, made, names = (str(folder / name) for name in (f"{days}.key", f"{days}.csr", f"{days}.crt", f"{days}.ext"))
    (folder / f"{days}.ext").write_text(f"subjectAltName=DNS:{host}\n")
    for command in (["req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=stand-in", "-keyout", key, "-out", request],
                    ["x509", "-req", "-in", request, "-signkey", key, "-days", str(days), "-extfile", names, "-out", made]):
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    return (folder / f"{days}.crt").read_text(), (folder / f"{days}.key").read_text()


def stand_in(namespace, name, pair):
    """Puts a server with this certificate in the webhook's place."""
    script = ["python3", "-u", "/trainers/stand_in_webhook.py"]
    pod = template(namespace, script)
    pod["metadata"]["labels"] = {"stand-in": name}
    pod["spec"]["volumes"].append({"name": "certificate", "secret": {"secretName": name}})
    pod["spec"]["containers"][0]["volumeMounts"].append({"name": "certificate", "mountPath": "/certificate"})
    namespace.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
         "stringData": {"tls.crt": pair[0], "tls.key": pair[1]}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
         "spec": {"selector": {"stand-in": name}, "ports": [{"port": 9444}]}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **pod["metadata"]}, "spec": pod["spec"]})
    wait_until(f"{name} to listen", lambda: any(line["event"] == "start" for line in namespace.lines(name)), SETTLED_SECONDS)
    point_to(namespace.kube, {
        "service": {"name": name, "namespace": namespace.name, "path": "/inject", "port": 9444},
        "caBundle": base64.b64encode(pair[0].encode()).decode()})


TIMEOUT_S = 5  # timeoutSeconds in the webhook's configuration
REFUSED_S = 10  # limit for a refused call on a busy machine, where kubectl alone takes a second or two


def seconds_to_a_pod(namespace, name):
    """Creates a pod with the label; returns the seconds that the API server took, and the pod."""
    pod = template(namespace, SLEEP)
    begin = time.monotonic()
    namespace.kube.run("create", "-n", namespace.name, "-f", "-", stdin=json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **pod["metadata"]}, "spec": pod["spec"]}))
    return time.monotonic() - begin, namespace.get("pod", name)


@pytest.mark.own_cluster
@pytest.mark.usefixtures("photos", "no_operator")
def test_pods_start_without_a_cache_while_the_webhook_is_down_slow_or_has_an_expired_certificate(namespace, tmp_path):
    took, pod = seconds_to_a_pod(namespace, "down")
    assert took < REFUSED_S and not is_injected(pod)

    expired = certificate(tmp_path, f"expired.{namespace.name}.svc", 0)
    stand_in(namespace, "expired", expired)
    took, pod = seconds_to_a_pod(namespace, "with-expired")
    assert took < REFUSED_S and not is_injected(pod)
    assert [line["event"] for line in namespace.lines("expired")][-1] == "refused", "the API server connected and rejected the certificate"

    valid = certificate(tmp_path, f"slow.{namespace.name}.svc", 1)
    stand_in(namespace, "slow", valid)
    took, pod = seconds_to_a_pod(namespace, "with-slow")
    assert TIMEOUT_S <= took < TIMEOUT_S + REFUSED_S and not is_injected(pod)
    assert "request" in [line["event"] for line in namespace.lines("slow")]
