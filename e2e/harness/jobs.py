"""Training jobs for tests: builders, start and wait functions, and their output."""

import json
import pathlib

from .kube import KubeError, condition, wait_until
from . import origin
from .installation import TAG

SIDECAR_PORT = 9455
HOME = object()
FULL = {"mode": "Fixed", "maxBytes": "1Gi"}
OFF = {"mode": "Off"}
TRAINERS = pathlib.Path(__file__).resolve().parent.parent / "trainers"
TRAINER_IMAGE = f"localhost/stoker-trainer:{TAG}"
POOL = "e2e"
POOL_PATH = "/var/lib/stoker"
SETTLED_SECONDS = 600  # a hang guard; the machine may be slow


def pool(capacity="20Gi", name=POOL, path=POOL_PATH, **spec):
    return {"apiVersion": "stoker.dev/v1alpha1", "kind": "CachePool", "metadata": {"name": name},
            "spec": {"capacityPerNode": capacity, "volume": {"hostPath": {"path": path}}, **spec}}


def dataset(name="mnist", uri=f"s3://{origin.BUCKET}", endpoint=origin.PACED, **spec):
    source = {"storageUri": uri, "endpoint": endpoint, "region": "us-east-1", "secretRef": {"name": "s3"}}
    return {"apiVersion": "stoker.dev/v1alpha1", "kind": "Dataset", "metadata": {"name": name},
            "spec": {"sources": [source], **spec}}


def quota(nominal, name="quota", pool_name=POOL, **spec):
    return {"apiVersion": "stoker.dev/v1alpha1", "kind": "CacheQuota", "metadata": {"name": name},
            "spec": {"poolRef": {"name": pool_name}, "nominalQuota": str(nominal), **spec}}


def warmup(name, dataset_name="mnist", **spec):
    return {"apiVersion": "stoker.dev/v1alpha1", "kind": "DatasetWarmup", "metadata": {"name": name},
            "spec": {"datasetRef": {"name": dataset_name}, **spec}}


def training_job(name, args, nodes=1, dataset_name="mnist", cache=None, run_policy=None, on=None,
                 script="read_epochs.py", spread=False, grace=None, epochs=None, **spec):
    """A job that runs a script of e2e/trainers with ARGS. `on`: the only node that it may use; `spread`: one pod per
    node; `grace`: termination grace period of its pods in seconds; `epochs`: spec.trainer.epochs."""
    constraint = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
                  "labelSelector": {"matchLabels": {"stoker.dev/training-job": name}}}
    return {
        "apiVersion": "stoker.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
        "spec": {
            "trainer": {
                "image": TRAINER_IMAGE, "numNodes": nodes, **({"epochs": epochs} if epochs else {}),
                "command": ["python3", "-u", f"/trainers/{script}", *[str(arg) for arg in args]],
                "resourcesPerNode": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "50m", "memory": "128Mi"}},
            },
            "podTemplate": {"spec": {
                **({"nodeSelector": {"kubernetes.io/hostname": on}} if on else {}),
                **({"topologySpreadConstraints": [constraint]} if spread else {}),
                **({"terminationGracePeriodSeconds": grace} if grace else {}),
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
    """A namespace for one test, with the trainer scripts and the origin's credentials."""

    def __init__(self, kube, name, security="baseline"):
        self.kube = kube
        self.name = name
        self.security = security  # the Pod Security level that the namespace enforces
        self.container = "trainer"  # name of the container that reads, in every pod
        self.home = kube.nodes()[0]  # where start() puts jobs, so that they share a node directory

    def create(self, trainers=TRAINERS):
        """`trainers`: folder with the scripts that the namespace's jobs run."""
        scripts = {path.name: path.read_text() for path in trainers.glob("*.py")}
        self.kube.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": self.name, "labels": {"pod-security.kubernetes.io/enforce": self.security}}},
            self.here({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "trainers"}, "data": scripts}),
            self.here({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"},
                       "stringData": origin.CREDENTIALS}))
        return self

    def here(self, item):
        return {**item, "metadata": {**item["metadata"], "namespace": self.name}}

    def apply(self, *objects):
        self.kube.apply(*[self.here(item) for item in objects])

    def refused(self, item):
        return self.kube.apply_fails(self.here(item))

    def get(self, kind, name):
        return self.kube.get(kind, name, self.name)

    def job(self, name):
        return self.get("trainingjob", name)

    def dataset_status(self, name="mnist"):
        return self.get("dataset", name).get("status") or {}

    def delete(self):
        """Deletes the namespace and returns when its pods have ended; Kube.wait_left() waits until it is gone."""
        def running():
            return [pod for pod in self.kube.list("pods", self.name)
                    if pod["status"].get("phase") not in ("Succeeded", "Failed")]
        if running():
            self.kube.run("delete", "trainingjob", "--all", "-n", self.name, "--wait=false")
        self.kube.leave_namespace(self.name)
        wait_until(f"the pods of {self.name} to end", lambda: not running(), SETTLED_SECONDS)

    def delete_job(self, name):
        """Deletes a job and waits until its pods, and so their sidecars, are gone."""
        self.kube.delete("trainingjob", name, self.name, seconds=SETTLED_SECONDS)
        wait_until(f"the pods of {name} to go", lambda: not self.pods(name), SETTLED_SECONDS)

    # --- running jobs ------------------------------------------------------------------------------------------------

    def start(self, name, args, ranks=1, on=HOME, granted=None, **spec):
        """Applies a job whose trainers wait before their first batch until their sidecar has its grant, so that later
        counts do not depend on timing. Returns the names of its pods, by rank.

        granted: predicate on the grant's bytes; by default any grant.
        """
        self.begin(name, args, ranks, on, **spec)
        return self.let_begin(name, ranks, granted, cached=spec.get("cache") != OFF)

    def begin(self, name, args, ranks=1, on=HOME, **spec):
        """The first half of start(), to bring up several jobs at the same time."""
        on = self.home if on is HOME else on
        self.apply(training_job(name, [*args, "--hold", "0:0"], nodes=ranks, on=on, **spec))

    def let_begin(self, name, ranks=1, granted=None, cached=True):
        """The second half of start()."""
        pods = [self.pod(name, rank)["metadata"]["name"] for rank in range(ranks)]
        for pod in pods:
            self.wait_hold(pod, "0:0")
        if cached:
            self.wait_granted(pods, granted or (lambda size: size > 0))
        for pod in pods:
            self.go(pod, "0:0")
        return pods

    def sidecar(self, pod_name):
        """The first dataset in the /status of the pod's sidecar; {} while the sidecar does not answer."""
        path = f"/api/v1/namespaces/{self.name}/pods/{pod_name}:{SIDECAR_PORT}/proxy/status"
        try:
            return json.loads(self.kube.raw(path))["datasets"][0]
        except (KubeError, ValueError, IndexError):
            return {}

    def leader(self, pods):
        """Waits until one of these pods' sidecars leads its node directory; returns the pod."""
        return wait_until(f"one of {pods} to lead",
                          lambda: next((pod for pod in pods if "leader" in self.sidecar(pod)), None), SETTLED_SECONDS)

    def wait_granted(self, pods, granted):
        """Waits until every leader among these pods (at least one) has its grant and the listing."""
        def holds():
            found = [self.sidecar(pod) for pod in pods]
            leaders = [told["leader"] for told in found if "leader" in told]
            return leaders and all(told.get("role") in ("leading", "following") for told in found) and all(
                leader["state"] == "serving" and leader["grantedBytes"] != "unlimited" and
                granted(int(leader["grantedBytes"])) for leader in leaders)
        wait_until(f"the grant of {pods}", holds, SETTLED_SECONDS, 0.5)

    def wait_hold(self, pod_name, place):
        """Waits until the trainer waits at this place (--hold EPOCH:BATCH)."""
        def holds():
            return any(line["event"] == "hold" and line["at"] == place for line in self.lines(pod_name))
        wait_until(f"{pod_name} to wait at {place}", holds, SETTLED_SECONDS)

    def pod_at_hold(self, job, place):
        """Waits until the trainer of a pod of any attempt waits at this place; returns the pod's name."""
        def waiting():
            for pod in self.pods(job):
                name = pod["metadata"]["name"]
                if pod["status"].get("phase") == "Running" and any(
                        line["event"] == "hold" and line["at"] == place for line in self.lines(name)):
                    return name
            return None
        return wait_until(f"a pod of {job} to wait at {place}", waiting, SETTLED_SECONDS)

    def go(self, pod_name, *places):
        """Releases the trainer at these places, now or when it arrives there."""
        self.kube.exec(pod_name, self.name, self.container, "touch", *[f"/tmp/go-{place}" for place in places])

    def resident(self, pods):
        """Bytes and samples in the node directories that these pods' sidecars lead; None while a count changes."""
        leaders = [told["leader"] for told in (self.sidecar(pod) for pod in pods) if "leader" in told]
        if not leaders or any(leader["inFlightBytes"] for leader in leaders):
            return None
        return tuple(sum(leader[key] for leader in leaders) for key in ("residentBytes", "residentSamples"))

    def settled_dataset(self, *pods, name="mnist"):
        """The Dataset's status, once it equals the bytes that these pods' sidecars hold and these no longer change."""
        def settled():
            before = self.resident(pods)
            status = self.dataset_status(name)
            told = (status.get("cachedBytes"), status.get("cachedSamples"))
            return status if before is not None and before == told == self.resident(pods) else None
        return wait_until(f"the status of dataset {name} to settle", settled, SETTLED_SECONDS, 1)

    # --- waiting -----------------------------------------------------------------------------------------------------

    def wait_condition(self, kind, name, type_, status="True", reason=None, seconds=SETTLED_SECONDS):
        """Waits for a condition. On timeout the error shows the object's status."""
        def holds():
            found = condition(self.get(kind, name), type_)
            return found if found.get("status") == status and reason in (None, found.get("reason")) else None
        return wait_until(f"{kind}/{name} {type_}={status} {reason or ''}", holds, seconds,
                          seen=lambda: json.dumps((self.get(kind, name) or {}).get("status")))

    def wait_complete(self, name, seconds=SETTLED_SECONDS):
        def ended():
            item = self.job(name)
            for type_ in ("Complete", "Failed"):
                if condition(item, type_).get("status") == "True":
                    return type_, condition(item, type_)
            return None
        type_, found = wait_until(f"trainingjob/{name} to end", ended, seconds,
                                  seen=lambda: json.dumps((self.job(name) or {}).get("status")))
        assert type_ == "Complete", f"trainingjob/{name} failed: {found['reason']}: {found['message']}"
        return self.job(name)

    def pods(self, job):
        items = self.kube.list("pods", self.name, f"stoker.dev/training-job={job}")
        return sorted(items, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def pod(self, job, rank=0, seconds=SETTLED_SECONDS):
        """Waits until the pod of a rank runs; returns it."""
        def running():
            for pod in self.pods(job):
                index = pod["metadata"]["labels"].get("batch.kubernetes.io/job-completion-index")
                if index == str(rank) and pod["status"].get("phase") == "Running" and (
                        "deletionTimestamp" not in pod["metadata"]):
                    return pod
            return None
        return wait_until(f"a running pod of {job} rank {rank}", running, seconds)

    def lines(self, pod_name):
        """The output of read_epochs.py so far: one dict per line."""
        found = []
        for line in self.kube.logs(pod_name, self.name, self.container).splitlines():
            if line.startswith("{"):
                found.append(json.loads(line))
        return found

    def epochs(self, pod_name):
        return [line for line in self.lines(pod_name) if line["event"] == "epoch"]

    def digests(self, pod_name):
        return [epoch["digest"] for epoch in self.epochs(pod_name)]

    def wait_epoch(self, pod_name, epoch, seconds=SETTLED_SECONDS):
        """Waits until the trainer has read a part of this epoch."""
        def begun():
            return any(line["event"] == "progress" and line["epoch"] >= epoch for line in self.lines(pod_name))
        wait_until(f"{pod_name} to be inside epoch {epoch}", begun, seconds)
