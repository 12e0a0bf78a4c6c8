"""Deleting in any order leaves nothing behind and never hangs. Runs last: it removes and restores the installation."""

import itertools
import os

import pytest

from harness import jobs
from harness.installation import RELEASE, SYSTEM, helm_install
from harness.kube import KubeError, wait_until
from harness.nodes import on_node

KINDS = ["trainingjob", "dataset", "cachequota", "cachepool"]
DEFINITIONS = {f"{kind}s.stoker.dev" for kind in [*KINDS, "datasetwarmup"]}
# Six of the 24 orders that contain every order of every three kinds. Each kind is first and last at least once.
ORDERS = [
    ["trainingjob", "dataset", "cachequota", "cachepool"],
    ["trainingjob", "cachepool", "cachequota", "dataset"],
    ["dataset", "cachepool", "trainingjob", "cachequota"],
    ["cachequota", "dataset", "trainingjob", "cachepool"],
    ["cachequota", "cachepool", "trainingjob", "dataset"],
    ["cachepool", "dataset", "cachequota", "trainingjob"],
]
IN_NAMESPACE = ("jobs", "pods", "services", "trainingjobs", "datasets", "cachequotas")
OF_OUR_NAMESPACE = ("deployments", "replicasets", "pods", "services", "endpointslices", "configmaps", "secrets",
                    "serviceaccounts", "roles", "rolebindings", "leases", "poddisruptionbudgets", "networkpolicies")
OF_THE_CLUSTER = ("clusterroles", "clusterrolebindings", "csidrivers", "mutatingwebhookconfigurations",
                  "validatingwebhookconfigurations")
# Objects that stay in the namespace: those that Kubernetes creates in each one, and the Lease and the CA that the
# replicas create. The chart cannot remove them; they go with the namespace.
STAYS = {"configmaps/kube-root-ca.crt", "serviceaccounts/default", "leases/stoker-operator",
         "secrets/stoker-control-ca", "secrets/stoker-webhook-ca", "configmaps/stoker-control-trust"}


def busy(namespace):
    """A namespace with an object of each kind and a running job. (Kubernetes rechecks a terminating namespace only
    after half of its pods' grace period, however soon they end.)"""
    namespace.apply(jobs.dataset(), jobs.quota("1Gi"),
                    jobs.training_job("busy", ["--epochs", 50], cache=jobs.FULL, grace=5))
    namespace.pod("busy")


def names(kube, kinds, namespace=None):
    return {f"{kind}/{item['metadata']['name']}" for kind in kinds for item in kube.list(kind, namespace)}


def leftovers(kube, namespace):
    """Names of our objects and of those made from them, in their namespace and in the installation's."""
    return names(kube, IN_NAMESPACE, namespace) | names(kube, ["cachepools"])


def wait_gone(kube, namespace):
    wait_until("everything to go", lambda: not leftovers(kube, namespace), 600)


def delete_all(kube, kind, namespace):
    where = [] if kind == "cachepool" else ["-n", namespace]
    kube.run("delete", kind, "--all", *where, "--timeout=600s")


def uninstall(kube):
    kube.helm("uninstall", RELEASE, "--namespace", SYSTEM)


def node_programs(kube):
    return {f"pods/{pod['metadata']['name']}" for pod in kube.list("pods", SYSTEM, "stoker.dev/component=node")}


def wait_uninstalled(kube, jobs_run=False):
    """Waits until the installation's namespace is empty; its cluster-wide objects are gone at once. Node programs stay
    while jobs run, because they must unmount the pods' views."""
    def rest():
        staying = node_programs(kube) if jobs_run else set()
        return names(kube, OF_OUR_NAMESPACE, SYSTEM) - STAYS - staying
    wait_until("the installation to go", lambda: not rest(), 300)
    assert not {name for name in names(kube, OF_THE_CLUSTER) if "stoker" in name}
    assert not jobs_run or node_programs(kube)


def wait_unmounted(kube):
    """Waits until the last node program is gone and no node of our own cluster has a mounted view."""
    wait_until("the node programs to go", lambda: not node_programs(kube), 300)
    if "KUBECONFIG" not in os.environ:
        for node in kube.nodes():
            assert on_node(kube, node, "grep -c kubernetes.io~csi /proc/self/mountinfo; true").strip() == "0"


def forget_who_led(kube):
    """Deletes the Lease; otherwise the next installation waits until it expires, as after the first test here."""
    kube.delete("lease", "stoker-operator", SYSTEM)


def definitions(kube):
    return {item["metadata"]["name"] for item in kube.list("customresourcedefinitions")} & DEFINITIONS


@pytest.fixture
def installed(kube):
    """Restores the installation and the pool after the test."""
    yield
    helm_install(kube)
    kube.apply(jobs.pool())


def test_the_orders_cover_every_three_kinds():
    covered = {three for order in ORDERS for three in itertools.combinations(order, 3)}
    assert covered == set(itertools.permutations(KINDS, 3))


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_every_kind_can_be_deleted_in_any_order(namespace, kube, order):
    busy(namespace)
    held = {kind: item["metadata"].get("finalizers") for kind in KINDS for item in kube.list(kind)}
    assert held == dict.fromkeys(KINDS), "an object has a finalizer, which could hang its namespace"
    for kind in order:
        delete_all(kube, kind, namespace.name)
    wait_gone(kube, namespace.name)
    kube.apply(jobs.pool())


def test_helm_uninstall_before_the_jobs_hangs_nothing(namespace, kube, installed):
    busy(namespace)
    uninstall(kube)
    wait_uninstalled(kube, jobs_run=True)
    assert definitions(kube) == DEFINITIONS and namespace.job("busy"), "the objects that users wrote are kept"
    delete_all(kube, "trainingjob", namespace.name)
    wait_until("the job's objects to go by garbage collection", lambda: not kube.list("pods", namespace.name), 600)
    kube.delete("namespace", namespace.name, seconds=600)
    wait_unmounted(kube)


def test_a_namespace_goes_with_everything_in_it_and_helm_uninstall_with_the_rest(namespace, kube, installed):
    busy(namespace)
    kube.delete("namespace", namespace.name, seconds=600)
    assert kube.get("namespace", namespace.name) is None
    delete_all(kube, "cachepool", None)
    wait_gone(kube, namespace.name)
    uninstall(kube)
    wait_uninstalled(kube)
    forget_who_led(kube)


def test_helm_uninstall_that_removes_the_crds_removes_every_object(namespace, kube, installed):
    """With `crds.keep=false`, while a job runs."""
    helm_install(kube, "crds.keep=false")
    busy(namespace)
    uninstall(kube)
    wait_until("the definitions to go", lambda: not definitions(kube), 600)
    wait_until("the job's objects to go by garbage collection",
               lambda: not names(kube, ["jobs", "pods", "services"], namespace.name), 600)
    kube.delete("namespace", namespace.name, seconds=600)
    wait_uninstalled(kube)
    wait_unmounted(kube)
    forget_who_led(kube)


@pytest.mark.slow  # Kubernetes rechecks a terminating namespace after up to five minutes
def test_the_operators_namespace_may_go_first(namespace, kube, installed):
    """Uninstalls without helm. Cluster-wide objects stay, block nothing, and the next installation adopts them."""
    busy(namespace)
    kube.delete("namespace", SYSTEM, wait=False)  # the namespace waits for the node programs, which wait for the job
    wait_until("the operator to go", lambda: not kube.list("deployments", SYSTEM), 600)
    delete_all(kube, "trainingjob", namespace.name)
    wait_until("the job's objects to go by garbage collection", lambda: not kube.list("pods", namespace.name), 600)
    kube.delete("namespace", namespace.name, seconds=600)
    kube.delete("namespace", SYSTEM, seconds=600)
    with pytest.raises(KubeError, match="not found"):
        uninstall(kube)
    wait_unmounted(kube)


def test_the_chart_can_test_itself(kube):
    kube.helm("test", RELEASE, "--namespace", SYSTEM, "--timeout", "600s")
