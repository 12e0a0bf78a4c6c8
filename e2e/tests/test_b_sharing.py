"""One Dataset for several namespaces: who may read it, where its bytes are, and who pays for them."""

import pytest

from harness import jobs, origin as origins
from harness.jobs import FULL, SETTLED_SECONDS
from harness.kube import wait_until

GIB = 1 << 30
LABEL = "stoker-e2e/reader"


@pytest.fixture
def others(kube, namespace):
    """Makes namespaces beside the test's own one, which is the owner's."""
    made = []

    def make(role, readers_label):
        place = jobs.Namespace(kube, f"{namespace.name[:40]}-{role}").create()
        made.append(place)
        label(place, readers_label)
        return place
    yield make
    for place in made:
        place.delete()


def label(place, value):
    place.kube.run("label", "namespace", place.name, "--overwrite", f"{LABEL}={value}")


def shared_dataset():
    return jobs.dataset(sharing={"namespaceSelector": {"matchLabels": {LABEL: "yes"}}})


def reading(owner):
    """spec.datasets of a job that reads the owner's Dataset."""
    return [{"name": "train", "datasetRef": {"name": "mnist", "namespace": owner.name}}]


def used(place):
    return place.get("cachequota", "quota").get("status", {}).get("usedBytes")


def start_beside(place, name, owner):
    """A job whose sidecar follows the one that leads on the node; returns its pod, which waits after its epoch."""
    place.apply(jobs.training_job(name, ["--epochs", 1, "--hold", "0:0", "--hold", "1:0"], on=place.home, cache=FULL,
                                  datasets=reading(owner)))
    pod = place.pod(name)["metadata"]["name"]
    place.wait_hold(pod, "0:0")
    wait_until(f"the sidecar of {pod} to follow", lambda: place.sidecar(pod).get("role") == "following", SETTLED_SECONDS)
    place.go(pod, "0:0")
    place.wait_hold(pod, "1:0")
    return pod


def test_a_job_of_another_namespace_starts_warm_and_the_owner_pays(namespace, others, origin):
    reader, stranger = others("reader", "yes"), others("stranger", "no")
    namespace.apply(jobs.quota("1Gi"), shared_dataset())
    reader.apply(jobs.quota("1Gi"))
    first, = namespace.start("first", ["--epochs", 1, "--hold", "1:0"], cache=FULL)
    namespace.wait_hold(first, "1:0")
    wait_until("the owner to pay", lambda: (used(namespace), used(reader)) == (GIB, 0), SETTLED_SECONDS)

    mark = origin.mark()
    second = start_beside(reader, "second", namespace)
    assert reader.epochs(second)[0]["distinct"] == origins.SAMPLES
    assert origin.since(mark).gets == 0, "the directory on the node is one and the same"
    wait_until("the Dataset to count both", lambda: namespace.dataset_status().get("jobs") == 2, SETTLED_SECONDS)
    assert (used(namespace), used(reader)) == (GIB, 0)

    stranger.apply(jobs.training_job("refused", ["--epochs", 1], datasets=reading(namespace)))
    told = stranger.wait_condition("trainingjob", "refused", "DataReady", "False", "NotShared")["message"]
    assert f"Dataset {namespace.name}/mnist is not shared with namespace {stranger.name}" in told
    assert not stranger.pods("refused")

    label(reader, "no")
    reader.apply(jobs.training_job("too-late", ["--epochs", 1], datasets=reading(namespace)))
    reader.wait_condition("trainingjob", "too-late", "DataReady", "False", "NotShared")
    reader.go(second, "1:0")
    reader.wait_complete("second")
    namespace.go(first, "1:0")
    namespace.wait_complete("first")


def test_a_reader_needs_a_secret_of_its_own_and_is_told_which(namespace, others):
    reader = others("reader", "yes")
    namespace.apply(shared_dataset())
    reader.kube.delete("secret", "s3", reader.name)
    reader.apply(jobs.training_job("locked-out", ["--epochs", 1], datasets=reading(namespace)))
    told = reader.wait_condition("trainingjob", "locked-out", "DataReady", "False", "OriginFailed")["message"]
    assert f"use Secret s3 of namespace {reader.name}" in told
    assert not (namespace.get("secret", "s3") or {})["metadata"].get("ownerReferences"), "it stays where it is"
    assert reader.get("secret", "s3") is None
