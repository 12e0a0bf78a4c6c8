"""A Dataset shared by namespace label, the guests that read it, and the fillers that serve them."""

from . import jobs
from .kube import wait_until

LABEL = "stoker-e2e/reader"
FILLER = "stoker.dev/filler"


def admitted(kube, name, value="yes"):
    """A new namespace without Secrets. shared_dataset() selects it if its label has the default `value`."""
    place = jobs.Namespace(kube, name).create()
    kube.delete("secret", "s3", name)
    label(place, value)
    return place


def label(place, value):
    place.kube.run("label", "namespace", place.name, "--overwrite", f"{LABEL}={value}")


def shared_dataset():
    return jobs.dataset(sharing={"namespaceSelector": {"matchLabels": {LABEL: "yes"}}})


def begin_reading(place, name, owner, *args, **spec):
    """Starts a guest's job that waits before its first batch; returns its pod's name."""
    place.apply(jobs.training_job(name, [*args, "--hold", "0:0"], on=place.home, cache=jobs.FULL,
                                  datasets=[{"name": "train", "datasetRef": {"name": "mnist", "namespace": owner.name}}],
                                  **spec))
    pod = place.pod(name)["metadata"]["name"]
    place.wait_hold(pod, "0:0")
    return pod


def filler_pods(owner):
    """The fillers' pods that have not ended."""
    return [pod for pod in owner.kube.list("pods", owner.name, FILLER)
            if pod["status"].get("phase") in ("Pending", "Running") and "deletionTimestamp" not in pod["metadata"]]


def filling(owner):
    """Waits until the only filler leads with a grant; returns its pod."""
    def leads():
        pods = filler_pods(owner)
        told = owner.sidecar(pods[0]["metadata"]["name"]) if len(pods) == 1 else {}
        leader = told.get("leader", {})
        granted = leader.get("grantedBytes", "unlimited")
        return pods[0] if leader.get("state") == "serving" and granted != "unlimited" and int(granted) > 0 else None
    return wait_until("a filler to lead with a grant", leads, jobs.SETTLED_SECONDS)
