"""Workloads of other controllers: pods that read S3 with their own keys and use Stoker only through its label."""

from . import origin as origins
from .jobs import SETTLED_SECONDS, TRAINER_IMAGE
from .kube import wait_until

SAMPLES = 200  # number of samples in the Dataset "photos"
WEBHOOK = "stoker-webhook"
HOLDS = ["--hold", "0:0", "--hold", "1:0", "--hold", "2:0"]
SLEEP = ["python3", "-c", "import time; time.sleep(3600)"]


def hook(kube):
    return kube.get("mutatingwebhookconfiguration", WEBHOOK)["webhooks"][0]


def template(namespace, command, dataset="photos"):
    """A pod template with Stoker's label whose program reads S3 with its user's own keys."""
    def key(name):
        return {"name": name, "valueFrom": {"secretKeyRef": {"name": "s3", "key": name}}}
    return {
        "metadata": {"labels": {"app": "plain", "stoker.dev/dataset": dataset}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": namespace.home},
            "terminationGracePeriodSeconds": 1,
            "volumes": [{"name": "trainers", "configMap": {"name": "trainers"}}],
            "containers": [{
                "name": namespace.container, "image": TRAINER_IMAGE, "imagePullPolicy": "IfNotPresent", "command": command,
                "env": [key("AWS_ACCESS_KEY_ID"), key("AWS_SECRET_ACCESS_KEY"),
                        {"name": "AWS_ENDPOINT_URL", "value": origins.PACED},
                        {"name": "AWS_DEFAULT_REGION", "value": "us-east-1"}],
                "volumeMounts": [{"name": "trainers", "mountPath": "/trainers"}]}]}}


def job(name, pod, completions=1, **metadata):
    spec = {"completionMode": "Indexed", "completions": completions, "parallelism": completions, "backoffLimit": 0,
            "template": {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, **metadata}, "spec": spec}


def reader(bucket, checkpoints, *args):
    """The command of a program that knows nothing of Stoker."""
    return ["python3", "-u", "/trainers/plain_boto3.py", "--bucket", bucket.name, "--checkpoints", checkpoints.name, *args]


def events(namespace, kind, name):
    return [event for event in namespace.kube.list("events", namespace.name)
            if (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (kind, name)]


def is_injected(pod):
    return "stoker-sidecar" in [container["name"] for container in pod["spec"].get("initContainers", [])]


def running(namespace, name, ranks):
    found = [pod["metadata"]["name"] for pod in namespace.pods(name) if pod["status"].get("phase") == "Running"]
    return found if len(found) == ranks else None


def ranks_read_each_sample_once(namespace, origin, mark, name, ranks=2):
    """Leads the pods of the TrainingJob NAME, readers with HOLDS, through their epochs. Returns the TrainingJob's end.

    mark: a mark of the origin's log (Origin.mark()), made before the workload was applied.
    """
    pods = wait_until(f"{ranks} running pods of {name}", lambda: running(namespace, name, ranks), SETTLED_SECONDS)
    for pod in pods:
        namespace.wait_hold(pod, "0:0")
    namespace.wait_granted(pods, lambda size: size > 0)
    for pod in pods:
        namespace.go(pod, "0:0")
    for pod in pods:
        namespace.wait_hold(pod, "1:0")
    assert origin.since(mark).gets == SAMPLES, "the ranks read in step"
    assert namespace.job(name)["spec"]["trainer"]["numNodes"] == ranks
    for pod in pods:
        namespace.go(pod, "1:0", "2:0")
    done = namespace.wait_complete(name)
    assert origin.since(mark).gets == SAMPLES, "later epochs read nothing from the origin"
    assert int(done["status"]["columns"]["hit"].rstrip("%")) > 50
    for pod in pods:
        assert [epoch["retries"] for epoch in namespace.epochs(pod)] == [0, 0, 0]
    return done
