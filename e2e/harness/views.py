"""Hand-written pods that mount views of node directories or attack with them."""

import http.client
import json

from .jobs import POOL, TRAINER_IMAGE
from .kube import wait_until

DRIVER = "csi.stoker.dev"
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True,
              "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
FOREVER = ["sleep", "100000"]


def view(namespace, uid, kind="data", pool=POOL, read_only=None, **attributes):
    """An inline volume's source; by default as the operator writes it."""
    return {"driver": DRIVER, "readOnly": kind != "owner" if read_only is None else read_only,
            "volumeAttributes": {"pool": pool, "namespace": namespace, "uid": uid, "view": kind, **attributes}}


def pod(name, source, on, command=None, **container):
    """A pod on a node; its one container mounts the volume at /view."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "nodeName": on, "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
        "volumes": [{"name": "view", "csi": source}],
        "containers": [{"name": "main", "image": TRAINER_IMAGE, "command": command or FOREVER,
                        "securityContext": RESTRICTED,
                        "volumeMounts": [{"name": "view", "mountPath": "/view"}], **container}]}}


def running(place, name, seconds=300):
    def state():
        return (place.get("pod", name) or {}).get("status", {}).get("phase") == "Running"
    wait_until(f"pod {name} to run", state, seconds)
    return name


def refusal(place, name, seconds=300):
    """Waits for the kubelet's message that a pod's volume cannot be mounted; returns it."""
    def told():
        for event in place.kube.list("events", place.name):
            if event.get("reason") == "FailedMount" and event["involvedObject"]["name"] == name and (
                    "rpc error" in event.get("message", "")):
                return event["message"]
        return None
    return wait_until(f"the refusal of pod {name}", told, seconds)


def attempt(place, name, script, container="main"):
    """Runs a shell script in a pod; returns its output and errors, even if it fails."""
    return place.kube.run("exec", name, "-n", place.name, "-c", container, "--", "sh", "-c",
                          f"{{ {script}; }} 2>&1; true")


def add_ephemeral(place, name, image_pull="IfNotPresent", **container):
    """Adds an ephemeral container to a pod, as `kubectl debug` does, and waits until it runs."""
    wanted = {"name": "intruder", "image": TRAINER_IMAGE, "imagePullPolicy": image_pull, "command": FOREVER,
              "securityContext": RESTRICTED, **container}
    body = json.dumps({"spec": {"ephemeralContainers": [wanted]}})
    path = place.kube.api.path("pods", place.name, name) + "/ephemeralcontainers"
    connection = http.client.HTTPConnection("127.0.0.1", place.kube.api.port, timeout=60)
    connection.request("PATCH", path, body, {"Content-Type": "application/strategic-merge-patch+json"})
    answer = connection.getresponse()
    words = answer.read().decode()
    connection.close()
    assert answer.status == 200, words

    def started():
        states = (place.get("pod", name) or {}).get("status", {}).get("ephemeralContainerStatuses", [])
        return any("running" in state.get("state", {}) for state in states)
    wait_until(f"the ephemeral container in {name}", started, 300)
