"""Pods that request views by hand, without the admission policies in front of the node program."""

import json

import pytest

from harness import views
from harness.nodes import below_pool
from harness.strangers import ROOT_USER, says

pytestmark = pytest.mark.own_cluster

VIEWS = ["data", "owner", "shared", "", "DATA", "Owner", "admin", "../data", "data/../control", "control", "da\u0430ta", "data\n"]


def refusals(place, pods):
    """Creates all pods at once; none of them may run. Returns {name: refusal message}."""
    for name, source in pods.items():
        code, words = says(place.kube, "apply", "-f", "-", stdin=json.dumps(place.here(views.pod(name, source, place.home))))
        pods[name] = None if code == 0 else words
    found = {}
    for name, words in pods.items():
        try:
            found[name] = words or views.refusal(place, name, 90)
        except AssertionError:
            phase = (place.get("pod", name) or {}).get("status", {}).get("phase")
            found[name] = f"NOT REFUSED: {phase}: " + (views.attempt(place, name, "ls -laR /view | head -20")
                                                       if phase == "Running" else "")
    return found


def shown(found):
    print(*[f"{name}: {words[:230]}" for name, words in found.items()], sep="\n")
    return {name: words for name, words in found.items() if "NOT REFUSED" in words}


def test_no_view_name_shows_a_foreign_directory(namespace, neighbour, neighbour_ns, foreign, no_policies):
    # threat model, row 1: a pod cannot see a node directory of a namespace that does not share it
    found = refusals(namespace, {f"view-{number}": views.view(neighbour_ns.name, foreign, kind, read_only=read_only)
                                 for number, (kind, read_only) in enumerate(
                                     [(kind, read_only) for kind in VIEWS for read_only in (True, False)])})
    assert not shown(found)
    assert all(neighbour_ns.name not in words or "not" in words for words in found.values())
    neighbour.goes_on()


def tricky(neighbour_ns, namespace, foreign):
    own, theirs = namespace.name, neighbour_ns.name
    return {
        "dots": views.view(own, ".."), "dot": views.view(own, "."), "path": views.view(own, "a/b"),
        "absolute": views.view(own, "/etc"), "up": views.view(own, f"../{theirs}/{foreign}"),
        "empty": views.view(own, ""), "upper": views.view(own, foreign.upper()), "long": views.view(own, "a" * 5000),
        "unicode": views.view(own, "ünï"), "newline": views.view(own, f"{foreign}\n"), "nul": views.view(own, f"{foreign}\0x"),
        "space": views.view(own, f" {foreign}"),
        "ns-dots": views.view("..", foreign), "ns-empty": views.view("", foreign), "ns-path": views.view(f"{own}/../{theirs}", foreign),
        "ns-upper": views.view(theirs.upper(), foreign), "pool-up": views.view(own, foreign, pool="../e2e"),
        "pool-none": views.view(own, foreign, pool="nowhere"), "pool-empty": views.view(own, foreign, pool=""),
        "says-namespace": views.view(theirs, foreign, **{"csi.storage.k8s.io/pod.namespace": theirs}),
        "says-pod": views.view(theirs, foreign, "owner", read_only=False, **{
            "csi.storage.k8s.io/pod.namespace": theirs, "csi.storage.k8s.io/pod.name": "x",
            "csi.storage.k8s.io/ephemeral": "false", "csi.storage.k8s.io/serviceAccount.name": "stoker-node"}),
        "extra": views.view(theirs, foreign, path="/etc", directory="/", readOnly="false", namespaceOverride=theirs),
        "not-read-only": views.view(theirs, foreign, read_only=False),
        "own-not-read-only": views.view(own, "11111111-2222-3333-4444-555555555555", read_only=False),
    }


def test_tricky_attributes_of_a_view_are_refused(namespace, neighbour, neighbour_ns, foreign, no_policies):
    # threat model, rows 1, 3, 4: a volume's attributes give no right, and names are single path components
    found = refusals(namespace, tricky(neighbour_ns, namespace, foreign))
    got = shown(found)
    assert not got
    neighbour.goes_on()


def test_a_view_with_a_foreign_uid_shows_an_empty_directory(namespace, neighbour, neighbour_ns, foreign, no_policies):
    # threat model, row 1: the same uid under another namespace is a different directory
    namespace.apply(views.pod("twin", views.view(namespace.name, foreign, "owner"), namespace.home, securityContext=ROOT_USER))
    views.running(namespace, "twin")
    seen = views.attempt(namespace, "twin", "find /view -type f; echo poison >/view/data/current.json")
    assert ".seg" not in seen and "manifest" not in seen, seen
    assert "poison" not in below_pool(namespace, f"cat {neighbour_ns.name}/{foreign}/data/current.json")
    assert neighbour_ns.dataset_status().get("jobs") == 1
    neighbour.goes_on()
