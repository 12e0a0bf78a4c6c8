"""One Dataset for several namespaces: the owner fetches and pays, guests read and never get the origin's key."""

import pytest

from harness import jobs, origin as origins
from harness.jobs import FULL, SETTLED_SECONDS
from harness.kube import condition, wait_until
from harness.nodes import kill
from harness.sharing import FILLER, begin_reading, filler_pods, filling, label, shared_dataset

GRACE_SECONDS = 60  # how long a filler stays after the last guest has ended


def used(place):
    return (place.get("cachequota", "quota") or {}).get("status", {}).get("usedBytes")


def test_one_fetch_serves_two_guests_and_is_charged_to_the_datasets_namespace(namespace, others, origin, expected):
    first, second, stranger = others("first"), others("second"), others("stranger", "no")
    namespace.apply(jobs.quota("1Gi"), shared_dataset())
    assert not filler_pods(namespace), "a filler comes with the first guest"
    mark = origin.mark()
    one = begin_reading(first, "one", namespace, "--epochs", 1, "--hold", "1:0")
    filler = filling(namespace)
    assert filler["spec"]["nodeName"] == first.home
    first.go(one, "0:0")
    first.wait_hold(one, "1:0")
    assert first.digests(one) == expected[:1]
    assert origin.since(mark).gets == origins.SAMPLES

    mark = origin.mark()
    two = begin_reading(second, "two", namespace, "--epochs", 1)
    second.go(two, "0:0")
    second.wait_complete("two")
    assert second.digests(two) == expected[:1]
    assert origin.since(mark).gets == 0, "one fetch serves both guests"
    assert [pod["metadata"]["uid"] for pod in filler_pods(namespace)] == [filler["metadata"]["uid"]]
    wait_until("the charge to the Dataset's namespace", lambda: (used(namespace) or 0) > 0, SETTLED_SECONDS)
    wait_until("the Dataset's status to show its bytes",
               lambda: namespace.dataset_status().get("cachedSamples") == origins.SAMPLES, SETTLED_SECONDS)
    for guest in (first, second):
        assert guest.get("secret", "s3") is None
        for pod in guest.pods("one") + guest.pods("two"):
            views = {volume["csi"]["volumeAttributes"]["view"] for volume in pod["spec"]["volumes"] if "csi" in volume}
            assert views == {"shared", "guest"}

    stranger.apply(jobs.training_job("refused", ["--epochs", 1], datasets=[
        {"name": "train", "datasetRef": {"name": "mnist", "namespace": namespace.name}}]))
    told = stranger.wait_condition("trainingjob", "refused", "DataReady", "False", "NotShared")["message"]
    assert f"Dataset {namespace.name}/mnist is not shared with namespace {stranger.name}" in told
    assert not stranger.pods("refused")

    # After sharing is withdrawn, running guests continue and new ones do not start.
    label(first, "no")
    first.apply(jobs.training_job("too-late", ["--epochs", 1], datasets=[
        {"name": "train", "datasetRef": {"name": "mnist", "namespace": namespace.name}}]))
    first.wait_condition("trainingjob", "too-late", "DataReady", "False", "NotShared")
    first.go(one, "1:0")
    first.wait_complete("one")
    assert filler_pods(namespace), "the filler stays for its grace period"
    wait_until("the filler to go after the last guest", lambda: not filler_pods(namespace), GRACE_SECONDS + 240)
    wait_until("its Job to go", lambda: not namespace.kube.list("jobs", namespace.name, FILLER), SETTLED_SECONDS)


@pytest.mark.own_cluster
def test_a_killed_filler_costs_its_guest_a_pause(namespace, others, kube, expected):
    guest = others("guest")
    namespace.apply(shared_dataset())
    pod = begin_reading(guest, "reader", namespace, "--epochs", 3, "--step-ms", 20, "--hold", "1:50")
    filler = filling(namespace)
    guest.go(pod, "0:0")
    guest.wait_epoch(pod, 0)
    assert kill(kube, filler, "stoker-sidecar")
    guest.wait_hold(pod, "1:50")
    kube.delete("pod", filling(namespace)["metadata"]["name"], namespace.name)
    guest.go(pod, "1:50")
    guest.wait_complete("reader")
    assert guest.digests(pod) == expected


def test_a_guest_reads_on_when_the_datasets_namespace_has_no_job_and_less_quota(namespace, others, expected):
    guest = others("guest")
    namespace.apply(jobs.quota("1Gi", borrowingLimit="0"), shared_dataset())
    own, = namespace.start("own", ["--epochs", 1, "--hold", "1:0"], cache=FULL)
    namespace.wait_hold(own, "1:0")
    pod = begin_reading(guest, "reader", namespace, "--epochs", 3, "--hold", "1:0", "--hold", "2:0")
    wait_until("a filler to stand by", lambda: filler_pods(namespace), SETTLED_SECONDS)
    guest.go(pod, "0:0")
    guest.wait_hold(pod, "1:0")
    namespace.delete_job("own")
    filling(namespace)
    guest.go(pod, "1:0")
    guest.wait_hold(pod, "2:0")
    namespace.apply(jobs.quota("256Ki", borrowingLimit="0"))
    wait_until("the bytes to go back to the quota",
               lambda: 0 < namespace.dataset_status().get("cachedBytes", 0) <= 256 * 1024, SETTLED_SECONDS)
    guest.go(pod, "2:0")
    guest.wait_complete("reader")
    assert guest.digests(pod) == expected


def test_a_guest_of_a_deleted_dataset_gets_a_condition_and_leaves_nothing(namespace, others, kube):
    guest = others("guest")
    namespace.apply(shared_dataset())
    pod = begin_reading(guest, "reader", namespace, "--epochs", 1)
    filling(namespace)
    kube.delete("dataset", "mnist", namespace.name)
    wait_until("the filler to go with its Dataset", lambda: not filler_pods(namespace), SETTLED_SECONDS)
    guest.wait_condition("trainingjob", "reader", "DataReady", "False")
    assert "mnist" in condition(guest.job("reader"), "DataReady")["message"]
    assert kube.get("pod", pod, guest.name)["status"]["phase"] == "Running", "the guest's running pods are left alone"
    guest.delete_job("reader")
