"""One cluster, one installation of the chart and one counting origin for all tests; a namespace for each test."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from harness import jobs, kube as kubes, origin as origins  # noqa: E402

SYSTEM = "stoker-system"
RELEASE = "stoker"
IMAGES = ["localhost/stoker-operator:dev", "localhost/stoker-sidecar:dev", "localhost/stoker-trainer:dev",
          "localhost/stoker-e2e-s3:dev"]
VALUES = ["--set", "image.registry=localhost", "--set", "image.tag=dev", "--set", "sidecar.image.registry=localhost",
          "--set", "sidecar.image.tag=dev"]


def helm_install(kube):
    kube.helm("upgrade", "--install", RELEASE, str(kubes.ROOT / "charts" / "stoker"), "--namespace", SYSTEM,
              "--create-namespace", "--wait", "--timeout", "180s", *VALUES)


@pytest.fixture(scope="session")
def bare_kube():
    """A cluster with our images, without Stoker."""
    if "KUBECONFIG" in os.environ:
        yield kubes.users_cluster()
        return
    kube = kubes.own_cluster(int(os.environ.get("NODES", "1")))
    subprocess.run([kubes.CLUSTER, "load-image", *IMAGES], check=True, timeout=1800)
    yield kube
    if os.environ.get("STOKER_KEEP_CLUSTER") != "1":
        subprocess.run([kubes.CLUSTER, "down"], check=True, timeout=300)


@pytest.fixture(scope="session")
def kube(bare_kube):
    helm_install(bare_kube)
    bare_kube.apply(jobs.pool())
    return bare_kube


@pytest.fixture(scope="session")
def origin(kube):
    found = origins.Origin(kube)
    found.deploy()
    return found


@pytest.fixture
def namespace(kube, origin, request):
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:50].strip("-")
    place = jobs.Namespace(kube, name).create()
    yield place
    if request.node.stash.get(FAILED, False):
        dump(kube, place.name)
    place.delete()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True


def dump(kube, namespace):
    """What a person would look at after a failure."""
    for args in (["get", "tj,dset,cachequota,jobs,pods", "-o", "wide"], ["describe", "tj"], ["describe", "pods"],
                 ["get", "events", "--sort-by=.lastTimestamp"]):
        print("$ kubectl", *args)
        print(kube.run("-n", namespace, *args, check=False))
    for pod in kube.list("pods", namespace):
        for container in ("stoker-sidecar", "trainer"):
            print(f"--- {pod['metadata']['name']} {container}")
            print(kube.run("logs", pod["metadata"]["name"], "-n", namespace, "-c", container, "--tail=60", check=False))
    print("--- operator")
    print(kube.run("logs", "-n", SYSTEM, "-l", "app.kubernetes.io/component=operator", "--tail=80", "--prefix",
                   check=False))
