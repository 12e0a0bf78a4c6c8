"""The webhook: workloads of other controllers read through the cache with nothing but a label, and none waits for it."""

import base64
import json
import subprocess
import time

import pytest

from harness import origin as origins
from harness.installation import SYSTEM, helm_install
from harness.jobs import SETTLED_SECONDS, TRAINER_IMAGE
from harness.kube import wait_until

SAMPLES = 200
CONFIGURATION = "stoker-webhook"
BOTH = ["--hold", "0:0", "--hold", "1:0", "--hold", "2:0"]
SLEEP = ["python3", "-c", "import time; time.sleep(3600)"]


@pytest.fixture(scope="module")
def webhook(kube):
    helm_install(kube, "webhook.enabled=true")
    wait_until("the caBundle", lambda: hook(kube)["clientConfig"].get("caBundle"))
    yield
    helm_install(kube)


def hook(kube):
    return kube.get("mutatingwebhookconfiguration", CONFIGURATION)["webhooks"][0]


@pytest.fixture
def checkpoints(origin, bucket):
    made = origin.bucket(f"{bucket.name}-out").create()
    yield made
    made.destroy()


@pytest.fixture
def photos(namespace, bucket):
    bucket.put_random(SAMPLES, 2000)
    source = {"storageUri": f"s3://{bucket.name}", "endpoint": origins.PACED, "region": "us-east-1",
              "secretRef": {"name": "s3"}}
    namespace.apply({"apiVersion": "stoker.dev/v1alpha1", "kind": "Dataset", "metadata": {"name": "photos"},
                     "spec": {"sources": [source]}})


def template(namespace, command, dataset="photos"):
    """A pod template of somebody who reads S3 with keys of their own, and the label."""
    def key(name):
        return {"name": name, "valueFrom": {"secretKeyRef": {"name": "s3", "key": name}}}
    return {
        "metadata": {"labels": {"app": "plain", "stoker.dev/dataset": dataset}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": namespace.home},
            "terminationGracePeriodSeconds": 1,
            "volumes": [{"name": "trainers", "configMap": {"name": "trainers"}}],
            "containers": [{
                "name": "trainer", "image": TRAINER_IMAGE, "imagePullPolicy": "IfNotPresent", "command": command,
                "env": [key("AWS_ACCESS_KEY_ID"), key("AWS_SECRET_ACCESS_KEY"),
                        {"name": "AWS_ENDPOINT_URL", "value": origins.PACED},
                        {"name": "AWS_DEFAULT_REGION", "value": "us-east-1"}],
                "volumeMounts": [{"name": "trainers", "mountPath": "/trainers"}]}]}}


def job(name, pod, completions=1):
    spec = {"completionMode": "Indexed", "completions": completions, "parallelism": completions, "backoffLimit": 0,
            "template": {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def deployment(name, pod):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "plain"}}, "template": pod}}


def reader(bucket, checkpoints, *args):
    return ["python3", "-u", "/trainers/plain_boto3.py", "--bucket", bucket.name, "--checkpoints", checkpoints.name, *args]


def events(namespace, kind, name):
    return [event for event in namespace.kube.list("events", namespace.name)
            if (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (kind, name)]


def app_pods(namespace):
    return namespace.kube.list("pods", namespace.name, "app=plain")


def is_injected(pod):
    return "stoker-sidecar" in [container["name"] for container in pod["spec"].get("initContainers", [])]


@pytest.mark.usefixtures("webhook", "photos")
def test_an_indexed_job_reads_each_sample_once_with_only_the_label(namespace, origin, bucket, checkpoints):
    mark = origin.mark()
    namespace.apply(job("plain", template(namespace, reader(bucket, checkpoints, *BOTH)), 2))
    pods = [namespace.pod("job-plain", rank)["metadata"]["name"] for rank in range(2)]
    for pod in pods:
        namespace.wait_hold(pod, "0:0")
    namespace.wait_granted(pods, lambda size: size > 0)
    for pod in pods:
        namespace.go(pod, "0:0")
    for pod in pods:
        namespace.wait_hold(pod, "1:0")
    assert origin.since(mark).gets == SAMPLES, "the two ranks read in step"
    described = namespace.job("job-plain")
    assert described["spec"]["workloadRef"]["name"] == "plain" and described["spec"]["trainer"]["numNodes"] == 2
    for pod in pods:
        namespace.go(pod, "1:0", "2:0")
    done = namespace.wait_complete("job-plain")
    assert origin.since(mark).gets == SAMPLES, "later epochs read nothing from the origin"
    assert int(done["status"]["columns"]["hit"].rstrip("%")) > 50
    assert not namespace.get("job", "job-plain-a1"), "it starts nothing"
    for pod in pods:
        assert [epoch["retries"] for epoch in namespace.epochs(pod)] == [0, 0, 0]
    assert {"Running", "Complete"} <= {event["reason"] for event in events(namespace, "Job", "plain")}


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
    kube.run("patch", "mutatingwebhookconfiguration", CONFIGURATION, "--type=json", "-p", json.dumps(patch))


def certificate(folder, host, days):
    """A self-signed certificate; 0 days: it has expired."""
    key, request, made, names = (str(folder / name) for name in (f"{days}.key", f"{days}.csr", f"{days}.crt", f"{days}.ext"))
    (folder / f"{days}.ext").write_text(f"subjectAltName=DNS:{host}\n")
    for command in (["req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=stand-in", "-keyout", key, "-out", request],
                    ["x509", "-req", "-in", request, "-signkey", key, "-days", str(days), "-extfile", names, "-out", made]):
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    return (folder / f"{days}.crt").read_text(), (folder / f"{days}.key").read_text()


def stand_in(namespace, name, pair):
    """A server in the webhook's place, with this certificate."""
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


TIMEOUT_S = 5  # of the webhook's configuration
REFUSED_S = 10  # on a busy machine; kubectl alone takes a second or two there


def seconds_to_a_pod(namespace, name):
    """Creates a pod with the label; how long the API server took, and the pod."""
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
    assert [line["event"] for line in namespace.lines("expired")][-1] == "refused", "the API server came, and went"

    valid = certificate(tmp_path, f"slow.{namespace.name}.svc", 1)
    stand_in(namespace, "slow", valid)
    took, pod = seconds_to_a_pod(namespace, "with-slow")
    assert TIMEOUT_S <= took < TIMEOUT_S + REFUSED_S and not is_injected(pod)
    assert "request" in [line["event"] for line in namespace.lines("slow")]
