"""Training jobs for tests, their builders and what they print."""

import json
import pathlib

from .kube import condition, wait_until
from . import origin

TRAINERS = pathlib.Path(__file__).resolve().parent.parent / "trainers"
TRAINER_IMAGE = "localhost/stoker-trainer:dev"
POOL = "e2e"
POOL_PATH = "/var/lib/stoker"
SETTLED_SECONDS = 300


def pool(capacity="20Gi", **spec):
    return {"apiVersion": "stoker.dev/v1alpha1", "kind": "CachePool", "metadata": {"name": POOL},
            "spec": {"capacityPerNode": capacity, "volume": {"hostPath": {"path": POOL_PATH}}, **spec}}


def dataset(name="mnist", uri=f"s3://{origin.BUCKET}", endpoint=origin.PACED, **spec):
    source = {"storageUri": uri, "endpoint": endpoint, "region": "us-east-1", "secretRef": {"name": "s3"}}
    return {"apiVersion": "stoker.dev/v1alpha1", "kind": "Dataset", "metadata": {"name": name},
            "spec": {"sources": [source], **spec}}


def quota(nominal, name="quota"):
    return {"apiVersion": "stoker.dev/v1alpha1", "kind": "CacheQuota", "metadata": {"name": name},
            "spec": {"poolRef": {"name": POOL}, "nominalQuota": nominal}}


def training_job(name, args, nodes=1, dataset_name="mnist", cache=None, run_policy=None, **spec):
    """A job that runs e2e/trainers/read_epochs.py with ARGS."""
    return {
        "apiVersion": "stoker.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
        "spec": {
            "trainer": {
                "image": TRAINER_IMAGE, "numNodes": nodes,
                "command": ["python3", "-u", "/trainers/read_epochs.py", *[str(arg) for arg in args]],
                "resourcesPerNode": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "50m", "memory": "128Mi"}},
            },
            "podTemplate": {"spec": {
                "volumes": [{"name": "trainers", "configMap": {"name": "trainers"}}],
                "containers": [{"name": "trainer", "imagePullPolicy": "IfNotPresent",
                                "volumeMounts": [{"name": "trainers", "mountPath": "/trainers"}]}]}},
            "runPolicy": {"backoffLimit": 0, **(run_policy or {})},
            "datasets": [{"name": "train", "datasetRef": {"name": dataset_name}}],
            **({"cache": cache} if cache else {}),
            **spec,
        },
    }


class Namespace:
    """A namespace of one test, with the trainers and the origin's credentials in it."""

    def __init__(self, kube, name):
        self.kube = kube
        self.name = name

    def create(self):
        self.kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": self.name, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}})
        scripts = {path.name: path.read_text() for path in TRAINERS.glob("*.py")}
        self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trainers"}, "data": scripts},
                   {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"},
                    "stringData": origin.CREDENTIALS})
        return self

    def apply(self, *objects):
        for item in objects:
            self.kube.apply({**item, "metadata": {**item["metadata"], "namespace": self.name}})

    def refused(self, item):
        return self.kube.apply_fails({**item, "metadata": {**item["metadata"], "namespace": self.name}})

    def get(self, kind, name):
        return self.kube.get(kind, name, self.name)

    def job(self, name):
        return self.get("trainingjob", name)

    def delete(self):
        self.kube.delete("namespace", self.name, seconds=180)

    def wait_condition(self, kind, name, type_, status="True", reason=None, seconds=SETTLED_SECONDS):
        """Waits for a condition; when it does not come, says which ones there are."""
        def holds():
            found = condition(self.get(kind, name), type_)
            return found if found.get("status") == status and reason in (None, found.get("reason")) else None
        try:
            return wait_until(f"{kind}/{name} {type_}={status} {reason or ''}", holds, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; it has {json.dumps((self.get(kind, name) or {}).get('status'))}") from None

    def wait_complete(self, name, seconds=SETTLED_SECONDS):
        def ended():
            item = self.job(name)
            for type_ in ("Complete", "Failed"):
                if condition(item, type_).get("status") == "True":
                    return type_, condition(item, type_)
            return None
        try:
            type_, found = wait_until(f"trainingjob/{name} to end", ended, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; status {json.dumps((self.job(name) or {}).get('status'))}") from None
        assert type_ == "Complete", f"trainingjob/{name} failed: {found['reason']}: {found['message']}"
        return self.job(name)

    def pods(self, job):
        items = self.kube.list("pods", self.name, f"stoker.dev/training-job={job}")
        return sorted(items, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def pod(self, job, rank=0, seconds=SETTLED_SECONDS):
        """The running pod of a rank, waited for."""
        def running():
            for pod in self.pods(job):
                index = pod["metadata"]["labels"].get("batch.kubernetes.io/job-completion-index")
                if index == str(rank) and pod["status"].get("phase") == "Running" and (
                        "deletionTimestamp" not in pod["metadata"]):
                    return pod
            return None
        return wait_until(f"a running pod of {job} rank {rank}", running, seconds)

    def lines(self, pod_name):
        """What read_epochs.py printed so far: one dict a line."""
        found = []
        for line in self.kube.logs(pod_name, self.name, "trainer").splitlines():
            if line.startswith("{"):
                found.append(json.loads(line))
        return found

    def epochs(self, pod_name):
        return [line for line in self.lines(pod_name) if line["event"] == "epoch"]

    def wait_epoch(self, pod_name, epoch, seconds=SETTLED_SECONDS):
        """Until the trainer has begun this epoch and read a part of it."""
        def begun():
            return any(line["event"] == "progress" and line["epoch"] >= epoch for line in self.lines(pod_name))
        wait_until(f"{pod_name} to be inside epoch {epoch}", begun, seconds)
