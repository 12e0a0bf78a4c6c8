"""One cluster, one installation of the chart and one counting origin for all tests (tests/, attacks/); a namespace for each
test."""

import itertools
import os
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import jobs, kube as kubes, origin as origins  # noqa: E402
from harness.installation import SYSTEM, helm_install, load_images_for_a_start  # noqa: E402
from harness.sharing import admitted  # noqa: E402

NUMBERS = itertools.count(1)
LINGERING = 8  # namespaces of earlier tests that may still be on their way out when a test ends
KEEP = os.environ.get("STOKER_KEEP_CLUSTER") == "1"


@pytest.fixture(scope="session")
def traces_before():
    """What was on the machine before our cluster was; None when it is to be kept, or is somebody else's."""
    if KEEP or "KUBECONFIG" in os.environ:
        return None
    kubes.take_down()  # one that was kept, or was left by a run that was killed
    return kubes.traces()


@pytest.fixture(scope="session")
def bare_kube(traces_before):  # pylint: disable=unused-argument
    """A cluster with our images, without Stoker. Ours has two nodes unless NODES says otherwise."""
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
    kube.wait_for_images()  # before anything trains
    return found


@pytest.fixture
def namespace(kube, origin, request):
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:47].strip("-")
    name += f"-{next(NUMBERS)}"  # the one before may be on its way out, and may have begun alike
    before = list(kube.leaving)
    place = jobs.Namespace(kube, name).create()
    yield place
    place.delete()
    kube.wait_left(before[:-LINGERING])  # this test's own go while others are on their way


@pytest.fixture
def others(kube, namespace):
    """Makes namespaces beside the test's own one, which is the owner's. They have no Secret."""
    made = []

    def make(role, readers_label="yes"):
        made.append(admitted(kube, f"{namespace.name[:40]}-{role}", readers_label))
        return made[-1]
    yield make
    for place in made:
        place.delete()


@pytest.fixture
def bucket(origin, request):
    """An empty bucket of the test's own."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[-50:].strip("-")
    made = origin.bucket(name).create()
    yield made
    made.destroy()


@pytest.fixture(scope="session")
def expected(kube, origin):
    """The digests of three epochs that every job with the trainers' seed must show, from a run without any cache."""
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
    """Skips what the cluster at hand cannot do, and says why."""
    if request.node.get_closest_marker("own_cluster") and "KUBECONFIG" in os.environ:
        pytest.skip("it breaks nodes and the API server: only on the cluster that our own scripts made")
    if request.node.get_closest_marker("two_nodes") and len(request.getfixturevalue("bare_kube").nodes()) < 2:
        pytest.skip("the cluster has one node")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """What happened in the cluster belongs to a failure's report, while it is still there to be seen."""
    report = (yield).get_result()
    kube = item.funcargs.get("kube") or item.funcargs.get("bare_kube")
    if report.failed and kube is not None:
        place = item.funcargs.get("namespace")
        try:
            report.sections.append(("the cluster at the failure", dump(kube, place.name if place else None)))
        except Exception as error:  # pylint: disable=broad-except
            report.sections.append(("the cluster at the failure", f"it cannot be asked: {error!r}"))


LINES = 200
ABOUT_A_TEST = (
    ["get", "tj,dset,cachequota,cachepool,jobs,pods", "-o", "wide"],
    ["get", "tj,dset", "-o", "yaml"],
    ["describe", "tj,dset"],
    ["describe", "pods"],
    ["get", "events", "--sort-by=.lastTimestamp"],
)


def tail(text):
    lines = text.splitlines()
    return "\n".join(([f"... {len(lines) - LINES} lines before"] if len(lines) > LINES else []) + lines[-LINES:])


def dump(kube, namespace):
    """What a person would look at after a failure: the last lines of each."""
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
