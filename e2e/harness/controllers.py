"""Installs other projects' controllers, built from their modules by e2e/controllers/build.sh."""

import contextlib
import subprocess

import yaml

from . import kube as kubes
from .installation import image, load_images
from .jobs import SETTLED_SECONDS
from .kube import wait_until

BUILD = kubes.ROOT / "e2e" / "controllers" / "build.sh"
MADE_FIRST = ("Namespace", "CustomResourceDefinition")
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def manifests_of(name):
    """The folder of the controller's own manifests."""
    done = subprocess.run([BUILD, name], check=True, capture_output=True, text=True, timeout=1800)
    return f"{done.stdout.strip()}/manifests"


def customized(kube, name, folder):
    """The objects of a kustomization of NAME's manifests, with its manager from our image."""
    found = [item for item in yaml.safe_load_all(kube.run("kustomize", f"{manifests_of(name)}/{folder}")) if item]
    for item in found:
        if item["kind"] == "Deployment":
            container, = item["spec"]["template"]["spec"]["containers"]
            container.update(image=image(name), imagePullPolicy="IfNotPresent")
            container.setdefault("resources", {})["requests"] = {"cpu": "50m"}
    return found


@contextlib.contextmanager
def installed(kube, name, items):
    """Applies ITEMS, waits for their Deployments, and removes everything at the end."""
    subprocess.run([kubes.ROOT / "tools" / "images.sh", name], check=True, timeout=1800)
    load_images([image(name)])
    apply(kube, [item for item in items if item["kind"] in MADE_FIRST])
    apply(kube, [item for item in items if item["kind"] not in MADE_FIRST])
    try:
        for item in of_kinds(items, "Deployment"):
            kube.run("-n", item["metadata"]["namespace"], "rollout", "status", f"deploy/{item['metadata']['name']}",
                     "--timeout=600s")
        yield
    finally:
        kube.wait_left()  # the controller removes its finalizers from the objects of earlier tests
        # Removes the webhooks first: without its controller a webhook would refuse every object that it watches.
        for item in of_kinds(items, *WEBHOOKS):
            kube.delete(item["kind"], item["metadata"]["name"])
        for item in [item for item in items if item["kind"] not in WEBHOOKS]:
            kube.run("delete", item["kind"], item["metadata"]["name"], "-n",
                     item["metadata"].get("namespace", "default"), "--ignore-not-found", "--wait=false", check=False)
        for item in of_kinds(items, "Namespace"):
            system = item["metadata"]["name"]
            wait_until(f"{system} to go", lambda: kube.get("namespace", system) is None, SETTLED_SECONDS)


def of_kinds(items, *kinds):
    return [item for item in items if item["kind"] in kinds]


def apply(kube, items):
    kube.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump_all(items))
