"""Fixtures: one cluster, one installation of the chart and one counting origin for all tests (tests/, attacks/), and
one namespace per test."""

import itertools
import os
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import jobs, kube as kubes, origin as origins  # noqa: E402
from harness.foreign import SAMPLES, hook  # noqa: E402
from harness.installation import SYSTEM, helm_install, load_images_for_a_start  # noqa: E402
from harness.kube import wait_until  # noqa: E402
from harness.sharing import admitted  # noqa: E402

NUMBERS = itertools.count(1)
LINGERING = 8  # how many namespaces of earlier tests may still be terminating when a test ends
KEEP = os.environ.get("STOKER_KEEP_CLUSTER") == "1"


@pytest.fixture(scope="session")
def traces_before():
    """State of the machine before our cluster started; None if the cluster stays after the tests, or was not made by
    them."""
    if KEEP or "KUBECONFIG" in os.environ:
        return None
    kubes.take_down()  # removes a cluster that an earlier run kept or, if killed, left behind
    return kubes.traces()


@pytest.fixture(scope="session")
def bare_kube(traces_before):  # pylint: disable=unused-argument
    """A cluster with our images but without Stoker. If it is made here, it has two nodes, or $NODES."""
    if "KUBECONFIG" in os.environ:
        kube = kubes.users_cluster()
        yield kube
        kube.close()
        return
    kube = kubes.own_cluster(int(os.environ.get("NODES", "2")))
    kube.wait_for_images = load_images_for_a_start()
    yield kube
    kube.wait_for_images()
    kube.close()
    if not KEEP:
        kubes.take_down()


@pytest.fixture(scope="session")
def kube(bare_kube):
    helm_install(bare_kube)
    bare_kube.apply(jobs.pool())
    yield bare_kube
    bare_kube.wait_left()


@pytest.fixture(scope="session")
def origin(kube):
    found = origins.Origin(kube)
    found.deploy()
    kube.wait_for_images()  # before any test starts a trainer
    return found


@pytest.fixture
def namespace(kube, origin, request):
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:47].strip("-")
    name += f"-{next(NUMBERS)}"  # a terminating namespace may have the same prefix
    before = list(kube.leaving)
    place = jobs.Namespace(kube, name).create()
    yield place
    place.delete()
    kube.wait_left(before[:-LINGERING])  # this test's namespaces are deleted while the next tests run


@pytest.fixture
def others(kube, namespace):
    """Creates further namespaces without Secrets; the test's own namespace owns the Dataset."""
    made = []

    def make(role, readers_label="yes"):
        made.append(admitted(kube, f"{namespace.name[:40]}-{role}", readers_label))
        return made[-1]
    yield make
    for place in made:
        place.delete()


@pytest.fixture
def bucket(origin, request):
    """An empty bucket for this test."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[-50:].strip("-")
    made = origin.bucket(name).create()
    yield made
    made.destroy()


@pytest.fixture
def checkpoints(origin, bucket):
    """An empty bucket in addition to the data's bucket."""
    made = origin.bucket(f"{bucket.name}-out").create()
    yield made
    made.destroy()


@pytest.fixture(scope="module")
def webhook(kube):
    helm_install(kube, "webhook.enabled=true")
    wait_until("the caBundle", lambda: hook(kube)["clientConfig"].get("caBundle"))
    yield
    helm_install(kube)


@pytest.fixture
def photos(namespace, bucket):
    """A Dataset "photos" of the test's bucket."""
    bucket.put_random(SAMPLES, 2000)
    namespace.apply(jobs.dataset("photos", f"s3://{bucket.name}"))


@pytest.fixture(scope="session")
def expected(kube, origin):
    """The digests of three epochs with the trainers' seed, from a run without any cache. Every job must match them."""
    place = jobs.Namespace(kube, "reference").create()
    place.apply(jobs.dataset(endpoint=origins.UNPACED))
    pod, = place.start("reference", ["--epochs", 3], cache=jobs.OFF)
    place.wait_complete("reference")
    found = place.digests(pod)
    assert len(set(found)) == 3
    place.delete()
    return found


@pytest.fixture(autouse=True)
def able(request):
    """Skips tests that this cluster cannot run, with the reason."""
    if request.node.get_closest_marker("own_cluster") and "KUBECONFIG" in os.environ:
        pytest.skip("breaks nodes and the API server: runs only on a cluster made by e2e/cluster")
    if request.node.get_closest_marker("two_nodes") and len(request.getfixturevalue("bare_kube").nodes()) < 2:
        pytest.skip("the cluster has one node")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds the state of the cluster to a failure's report, before the test's namespace is deleted."""
    report = (yield).get_result()
    kube = item.funcargs.get("kube") or item.funcargs.get("bare_kube")
    if report.failed and kube is not None:
        place = item.funcargs.get("namespace")
        try:
            report.sections.append(("the cluster at the failure", dump(kube, place.name if place else None)))
        except Exception as error:  # pylint: disable=broad-except
            report.sections.append(("the cluster at the failure", f"the cluster does not answer: {error!r}"))


LINES = 200
ABOUT_A_TEST = (
    ["get", "tj,dset,dwarm,cachequota,cachepool,jobs,pods", "-o", "wide"],
    ["get", "tj,dset,dwarm", "-o", "yaml"],
    ["describe", "tj,dset"],
    ["describe", "pods"],
    ["get", "events", "--sort-by=.lastTimestamp"],
)


def tail(text):
    lines = text.splitlines()
    return "\n".join(([f"... {len(lines) - LINES} lines before"] if len(lines) > LINES else []) + lines[-LINES:])


def dump(kube, namespace):
    """Logs, events and objects for a failure's report; the last lines of each."""
    said = []

    def ask(*args):
        said.extend([f"$ kubectl {' '.join(args)}", tail(kube.run(*args, check=False))])

    def ask_pods(where):
        for pod in kube.list("pods", where):
            status = pod.get("status", {})
            for state in status.get("initContainerStatuses", []) + status.get("containerStatuses", []):
                args = ["logs", pod["metadata"]["name"], "-n", where, "-c", state["name"], f"--tail={LINES}"]
                ask(*args)
                if state.get("restartCount", 0) > 0:
                    ask(*args, "--previous")
    for args in ABOUT_A_TEST if namespace else []:
        ask("-n", namespace, *args)
    if namespace:
        ask_pods(namespace)
    ask("get", "nodes,pods", "-A", "-o", "wide")
    ask("-n", SYSTEM, "describe", "pods")
    ask_pods(SYSTEM)
    return "\n".join(said)
