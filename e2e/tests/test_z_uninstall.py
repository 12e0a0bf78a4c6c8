"""Deleting in any order leaves nothing and hangs nothing. Runs last: it takes the installation away and puts it back."""

import pytest

from harness import jobs
from harness.installation import RELEASE, SYSTEM, helm_install
from harness.kube import wait_until

KINDS = ["trainingjob", "dataset", "cachequota", "cachepool"]


def busy(namespace):
    namespace.apply(jobs.dataset(), jobs.quota("1Gi"), jobs.training_job("busy", ["--epochs", 50], cache=jobs.FULL))
    namespace.pod("busy")


def leftovers(kube, namespace):
    return [f"{item['kind']}/{item['metadata']['name']}"
            for kind in ("jobs", "pods", "services", "trainingjobs", "datasets", "cachequotas")
            for item in kube.list(kind, namespace)]


@pytest.mark.parametrize("order", [KINDS, KINDS[::-1], ["dataset", "trainingjob", "cachepool", "cachequota"]],
                         ids=lambda order: "-".join(order))
def test_every_kind_can_be_deleted_in_any_order(namespace, kube, order):
    busy(namespace)
    for kind in order:
        where = [] if kind == "cachepool" else ["-n", namespace.name]
        kube.run("delete", kind, "--all", *where, "--timeout=600s")
    wait_until("everything to go", lambda: not leftovers(kube, namespace.name), 600)
    kube.apply(jobs.pool())


def test_a_namespace_goes_with_everything_in_it(namespace, kube):
    busy(namespace)
    kube.delete("namespace", namespace.name, seconds=600)
    assert kube.get("namespace", namespace.name) is None


def test_helm_uninstall_before_the_jobs_hangs_nothing(namespace, kube):
    busy(namespace)
    kube.helm("uninstall", RELEASE, "--namespace", SYSTEM, "--wait", "--timeout", "600s")
    wait_until("the operator's pods to go", lambda: not kube.list("pods", SYSTEM), 600)
    kube.run("delete", "trainingjob", "--all", "-n", namespace.name, "--timeout=600s")
    wait_until("the job's objects to go by garbage collection", lambda: not kube.list("pods", namespace.name), 600)
    kube.delete("namespace", namespace.name, seconds=600)
    ours = [item["metadata"]["name"] for kind in ("clusterroles", "clusterrolebindings",
                                                  "mutatingwebhookconfigurations", "validatingwebhookconfigurations")
            for item in kube.list(kind) if "stoker" in item["metadata"]["name"]]
    assert not ours
    helm_install(kube)


def test_the_chart_can_test_itself(kube):
    kube.helm("test", RELEASE, "--namespace", SYSTEM, "--timeout", "600s")
