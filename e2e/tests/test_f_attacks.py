"""Attacks by a hostile neighbour, a user with `edit` and a careless administrator: none reaches others' data."""

import json
import re
import subprocess

import pytest

from harness import jobs, views
from harness.installation import SYSTEM, helm_install
from harness.jobs import FULL
from harness.kube import CLUSTER, KubeError, condition, wait_until
from harness.nodes import on_node

NODE_PODS = "stoker.dev/component=node"


@pytest.fixture(scope="module")
def no_policy(kube):
    """Removes the admission policies, which refuse most of these pods, to test the node program's own checks."""
    helm_install(kube, "admissionPolicy.enabled=false")
    wait_until("the policies to go", lambda: not policies(kube), 120)
    yield
    helm_install(kube)


def policies(kube):
    return [item["metadata"]["name"] for item in kube.list("validatingadmissionpolicies")
            if item["metadata"]["name"].startswith("stoker-")]


@pytest.fixture
def stranger(kube, namespace):
    """A namespace that no Dataset is shared with."""
    place = jobs.Namespace(kube, f"{namespace.name[:50]}-s").create()
    yield place
    place.delete()


@pytest.fixture
def victim(namespace):
    """A job that has cached its dataset and waits between two epochs. Returns its pod and the dataset's uid."""
    namespace.apply(jobs.dataset())
    pod, = namespace.start("victim", ["--epochs", 3, "--hold", "1:0"], cache=FULL)
    namespace.wait_hold(pod, "1:0")
    return pod, namespace.get("dataset", "mnist")["metadata"]["uid"]


def finish(namespace, pod, expected):
    """Lets the victim continue and checks that it got every byte right."""
    namespace.go(pod, "1:0")
    namespace.wait_complete("victim")
    assert namespace.digests(pod) == expected


@pytest.mark.usefixtures("no_policy")
@pytest.mark.parametrize("kind", ["data", "owner", "shared", "guest"])
def test_a_pod_of_another_namespace_gets_no_view(namespace, stranger, victim, expected, kind):
    pod, uid = victim
    stranger.apply(views.pod("thief", views.view(namespace.name, uid, kind, dataset="mnist"), namespace.home))
    words = ("the owner view is for pods of the dataset's own namespace" if kind == "owner" else
             f"is not shared with namespace {stranger.name}")
    assert words in views.refusal(stranger, "thief")
    finish(namespace, pod, expected)


def test_a_trainer_can_neither_write_nor_lock_what_it_reads(namespace, victim, expected):
    pod, _ = victim
    data = "/stoker/node/train/data"
    assert "manifest." in views.attempt(namespace, pod, f"ls {data}", "trainer")
    for script in (f"touch {data}/x", f"mkdir {data}/segments/x", f"rm {data}/residency.*",
                   f"truncate -s 0 {data}/segments/*", f"chmod 777 {data}"):
        said = views.attempt(namespace, pod, script, "trainer")
        assert "Read-only file system" in said, said
    above = views.attempt(namespace, pod, "ls -a /stoker/node/train", "trainer").split()
    assert set(above) == {".", "..", "data"}, "the trainer sees neither the lock nor sockets"
    finish(namespace, pod, expected)


@pytest.mark.usefixtures("no_policy")
def test_an_ephemeral_container_cannot_make_the_data_view_writable(namespace, victim, expected):
    pod, _ = victim
    mount = {"name": "stoker-data-0", "mountPath": "/loot", "readOnly": False}
    # Run as the sidecar's user, so that only the read-only mount prevents writing.
    views.add_ephemeral(namespace, pod, volumeMounts=[mount], securityContext={**views.RESTRICTED, "runAsUser": 65532})
    assert "manifest." in views.attempt(namespace, pod, "ls /loot", "intruder")
    for script in ("touch /loot/x", "rm /loot/residency.*", "truncate -s 0 /loot/segments/*"):
        assert "Read-only file system" in views.attempt(namespace, pod, script, "intruder")
    finish(namespace, pod, expected)


@pytest.mark.usefixtures("no_policy")
def test_a_volume_that_is_not_read_only_gets_no_read_only_view(namespace, victim, expected):
    pod, uid = victim
    source = views.view(namespace.name, uid, read_only=False)
    namespace.apply(views.pod("sly", source, namespace.home))
    assert "csi.readOnly: true" in views.refusal(namespace, "sly")
    finish(namespace, pod, expected)


@pytest.mark.usefixtures("no_policy")
@pytest.mark.parametrize("attributes", [
    {"uid": ".."}, {"uid": "../../other/uid"}, {"namespace": ".."}, {"namespace": "a/b"}, {"pool": "../e2e"},
    {"view": "everything"}], ids=lambda it: "-".join(it.values()).replace("/", "_"))
def test_invalid_view_attributes_are_refused(namespace, attributes):
    source = views.view(namespace.name, "d1")
    source["volumeAttributes"].update(attributes)
    namespace.apply(views.pod("sly", source, namespace.home))
    assert "volume attribute" in views.refusal(namespace, "sly")


@pytest.mark.usefixtures("no_policy")
def test_planted_links_are_not_followed(namespace, kube):
    """Links planted in an owner view lead neither the driver nor its sweep out of the directory."""
    owner = views.view(namespace.name, "mine", "owner")
    namespace.apply(views.pod("planter", owner, namespace.home, securityContext={**views.RESTRICTED, "runAsUser": 65532}))
    views.running(namespace, "planter")
    said = views.attempt(namespace, "planter", "ls -ld /view/data /view/control; rm -rf /view/data; mv /view/data /view/x; "
                         "ln -s / /view/data/up; ln /view/control /view/data/hard; mknod /view/data/null c 1 3")
    assert "Permission denied" in said and "Operation not permitted" in said
    namespace.apply(views.pod("reader", views.view(namespace.name, "mine"), namespace.home))
    views.running(namespace, "reader")
    # The reader's own file system resolves the link, so / is the container's root.
    assert views.attempt(namespace, "reader", "cat /view/up/etc/hostname").strip() == "reader"
    assert "No such file" in views.attempt(namespace, "reader", "ls /view/null /view/hard")
    path = f"{jobs.POOL_PATH}/{namespace.name}/mine"
    modes = on_node(kube, namespace.home, f"stat -c '%U %a' {path} {path}/..").split()
    assert modes == ["root", "755", "root", "755"]


@pytest.mark.usefixtures("no_policy")
def test_a_pool_on_a_populated_directory_touches_nothing(kube, namespace):
    """Row 1 of the threat model: a typo in a CachePool."""
    path = "/srv/precious"
    look = f"stat -c '%n %U %G %a' {path} {path}/a {path}/a/b; ls -A {path}"
    fill = f"mkdir -p {path}/a && echo diary > {path}/a/b && chmod 700 {path}/a && chmod 604 {path}/a/b; {look}"
    before = {node: on_node(kube, node, fill) for node in kube.nodes()}
    try:
        kube.apply(jobs.pool(name="typo", path=path))

        def told():
            found = condition(kube.get("cachepool", "typo"), "Ready")
            return found if found.get("reason") == "NotEmpty" else None
        message = wait_until("the pool to say NotEmpty", told, 120)["message"]
        assert path in message and any(node in message for node in kube.nodes())
        namespace.apply(views.pod("user", views.view(namespace.name, "d1", pool="typo"), namespace.home))
        assert "not Stoker's" in views.refusal(namespace, "user")
        assert {node: on_node(kube, node, look) for node in kube.nodes()} == before
    finally:
        kube.delete("cachepool", "typo")
        for node in kube.nodes():
            on_node(kube, node, f"rm -rf {path}")


def test_users_make_no_pods_with_views_and_reach_no_sidecar(namespace, kube, victim, expected):
    """The admission policies refuse these requests first; later checks would refuse them too or limit them to the
    namespace."""
    helm_install(kube)
    wait_until("the policies", lambda: len(policies(kube)) >= 4, 120)
    pod, uid = victim

    def refused(attempt, words):
        def stopped():
            try:
                attempt()
            except (KubeError, AssertionError) as error:
                return words in str(error)
            return False
        wait_until(f"a refusal with '{words}'", stopped, 60, 1)  # a new policy takes a moment to apply

    by_hand = views.pod("by-hand", views.view(namespace.name, uid, "owner"), namespace.home)
    refused(lambda: namespace.kube.run("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(namespace.here(by_hand))),
            "may be created by the Job controller and by Stoker only")
    refused(lambda: kube.exec(pod, namespace.name, "stoker-sidecar", "true"), "nobody may run commands in stoker-sidecar")
    mount = {"name": "stoker-node-0", "mountPath": "/loot"}
    refused(lambda: views.add_ephemeral(namespace, pod, volumeMounts=[mount]), "an ephemeral container may neither mount")
    finish(namespace, pod, expected)


def node_pods(kube):
    return [pod for pod in kube.list("pods", SYSTEM, NODE_PODS) if pod["status"].get("phase") == "Running"]


@pytest.mark.own_cluster
def test_jobs_go_on_while_the_node_program_is_away(namespace, kube, victim, expected):
    pod, _ = victim
    patch = '{"spec":{"template":{"spec":{"nodeSelector":{"stoker-e2e/nowhere":"%s"}}}}}'
    away = "yes"
    try:
        kube.run("patch", "daemonset", "stoker-node", "-n", SYSTEM, "-p", patch % away)
        wait_until("the node programs to go", lambda: not node_pods(kube), 300)
        namespace.apply(jobs.training_job("waits", ["--epochs", 1], on=namespace.home, cache=FULL))
        finish(namespace, pod, expected)

        def told():
            return "for its volumes: the node program" in condition(namespace.job("waits"), "Running").get("message", "")
        wait_until("the waiting job to say why", told, 300)
        assert not any(state["status"].get("phase") == "Running" for state in namespace.pods("waits"))
    finally:
        kube.run("patch", "daemonset", "stoker-node", "-n", SYSTEM, "--type=json", "-p",
                 '[{"op":"remove","path":"/spec/template/spec/nodeSelector"}]')
    namespace.wait_complete("waits")


def test_jobs_go_on_while_the_node_program_is_upgraded(namespace, kube, victim, expected):
    pod, _ = victim
    before = {item["metadata"]["uid"] for item in node_pods(kube)}
    helm_install(kube, "node.podAnnotations.upgraded=yes")
    wait_until("new node programs everywhere",
               lambda: len(node_pods(kube)) == len(before) and not before & {item["metadata"]["uid"] for item in node_pods(kube)},
               300)
    namespace.apply(jobs.training_job("next", ["--epochs", 1], on=namespace.home, cache=FULL))
    namespace.wait_complete("next")
    finish(namespace, pod, expected)


@pytest.mark.own_cluster
def test_a_killed_node_program_comes_back_and_unmounts(namespace, kube, victim, expected):
    pod, _ = victim
    kube_pod = kube.get("pod", pod, namespace.name)
    before = {item["metadata"]["name"]: item["status"]["containerStatuses"][0]["restartCount"] for item in node_pods(kube)}
    on_node(kube, namespace.home, "pkill -9 -x stoker-node; true")
    finish(namespace, pod, expected)
    namespace.delete_job("victim")

    def back():
        now = {item["metadata"]["name"]: item["status"]["containerStatuses"][0]["restartCount"] for item in node_pods(kube)}
        return any(now.get(name, 0) > count for name, count in before.items())
    wait_until("the node program to be back", back, 300)
    uid = kube_pod["metadata"]["uid"]
    assert on_node(kube, namespace.home, f"grep -c '{uid}/volumes/kubernetes.io~csi' /proc/self/mountinfo; true").strip() == "0"


def test_a_restricted_namespace_trains_from_its_cache(kube, origin, expected):
    place = jobs.Namespace(kube, "attacks-restricted", security="restricted").create()
    try:
        place.apply(jobs.dataset())
        wanted = jobs.training_job("locked-in", ["--epochs", 3], cache=FULL)
        template = wanted["spec"]["podTemplate"]["spec"]
        template["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        template["containers"][0]["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        place.apply(wanted)
        pod = place.pod("locked-in")["metadata"]["name"]
        place.wait_complete("locked-in")
        assert place.digests(pod) == expected
        assert condition(place.job("locked-in"), "Complete")["status"] == "True"
        assert not [volume for volume in kube.get("pod", pod, place.name)["spec"]["volumes"] if "hostPath" in volume]
    finally:
        place.delete()
        kube.wait_left([place.name])


@pytest.mark.own_cluster
def test_the_driver_passes_the_test_suite_of_csi(kube):
    """The public csi-sanity suite, without its controller tests: an inline driver has no controller."""
    script = f". {CLUSTER.parent}/lib/programs.sh; program_dir {CLUSTER.parent}/sanity"
    folder = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    socket = f"/var/lib/kubelet/plugins/{views.DRIVER}/csi.sock"
    said = on_node(kube, kube.nodes()[0],
                   f"{folder}/csi-sanity -ginkgo.no-color -ginkgo.skip 'Controller Server|should remove target path' "
                   f"-csi.endpoint {socket} -csi.mountdir /tmp/sanity -csi.stagingdir /tmp/sanity-stage 2>&1; true")
    assert "SUCCESS!" in said and " 0 Failed" in said, said[-4000:]
    passed = int(re.search(r"(\d+) Passed", said)[1])
    assert passed >= 10, said[-4000:]
