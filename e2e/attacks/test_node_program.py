"""The node program is flooded or deleted, or a node loses power: jobs keep training."""

import contextlib
import subprocess
import time

import pytest

from harness import jobs, views
from harness.installation import SYSTEM
from harness.kube import CLUSTER, KubeError, wait_until
from harness.nodes import node_program, on_node
from harness.strangers import FLOOD, ROOT_USER

pytestmark = pytest.mark.own_cluster


def test_half_open_connections_to_the_drivers_socket_stop_no_mount(namespace, neighbour, intruder):
    # threat model, row 9: only root reaches the driver's socket; even a misbehaving client there must not stop the
    # node's pods
    kube = namespace.kube
    socket = on_node(kube, namespace.home, "ls /var/lib/kubelet/plugins/csi.stoker.dev/*.sock").split()[0]
    mode = on_node(kube, namespace.home, f"stat -c '%a %u' {socket} $(dirname {socket})")
    number = namespace.home.rsplit("-", 1)[-1]
    flood = subprocess.Popen([CLUSTER, "shell", number, "python3", "-c", FLOOD, socket, "1000", "600"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, env=kube.environment)
    told = flood.stdout.readline()
    begun = time.monotonic()
    try:
        neighbour.goes_on()
    finally:
        rest, _ = flood.communicate("\n", timeout=60)
    print(mode, told, rest, f"two jobs in {time.monotonic() - begun:.0f} s")
    assert not any(int(line.split()[0][-2:-1]) & 2 or int(line.split()[0][-1]) & 2 for line in mode.splitlines()), mode


def test_pods_start_after_the_node_program_is_deleted_during_mounts(namespace, neighbour, no_policies):
    # threat model, row 9: running jobs continue without the node program; new pods wait and start when it is back
    kube = namespace.kube
    mounts = "grep -c csi.stoker.dev /proc/self/mountinfo || true"
    names = [f"many-{number}" for number in range(12)]
    namespace.apply(*[jobs.dataset(name) for name in names])
    uids = {name: namespace.get("dataset", name)["metadata"]["uid"] for name in names}
    before = int(on_node(kube, namespace.home, mounts))
    program, _ = node_program(kube, namespace.home)
    namespace.apply(*[views.pod(name, views.view(namespace.name, uids[name], "owner"), namespace.home, securityContext=ROOT_USER) for name in names[:6]])
    kube.run("delete", "pod", program, "-n", SYSTEM, "--wait=false")
    namespace.apply(*[views.pod(name, views.view(namespace.name, uids[name], "owner"), namespace.home, securityContext=ROOT_USER) for name in names[6:]])
    for name in names:
        views.running(namespace, name)
        assert "refused" not in views.attempt(namespace, name, "touch /view/data/mine || echo refused")
    kube.run("delete", "pod", *names, "-n", namespace.name, "--wait=false")
    kube.run("delete", "pod", node_program(kube, namespace.home)[0], "-n", SYSTEM, "--wait=false")
    wait_until("the pods to go", lambda: not [pod for pod in kube.list("pods", namespace.name)], 300)
    wait_until("their mounts to go", lambda: int(on_node(kube, namespace.home, mounts)) <= before, 120)
    wait_until("a node program", lambda: node_program(kube, namespace.home), 120)
    neighbour.goes_on(shaken=True)


@pytest.mark.two_nodes
def test_jobs_restart_after_a_node_loses_power(kube, namespace, neighbour, expected):
    # threat model, rows 9, 22: a power loss removes all mounts; the node's jobs restart and read the right bytes
    node = next(name for name in kube.nodes() if name != neighbour.place.home)  # where the origin is
    number = node.rsplit("-", 1)[-1]
    namespace.apply(jobs.dataset(), jobs.training_job("phoenix", ["--epochs", 2, "--hold", "1:50"], on=node, cache=jobs.FULL,
                                                      run_policy={"backoffLimit": 3}))
    pod = namespace.pod("phoenix")["metadata"]["name"]
    namespace.wait_hold(pod, "1:50")
    uid = namespace.get("dataset", "mnist")["metadata"]["uid"]
    kept = on_node(kube, node, f"ls {jobs.POOL_PATH}/{namespace.name}/{uid}/data/segments | wc -l")
    subprocess.run([CLUSTER, "node-kill", number], check=True, timeout=120)
    time.sleep(5)  # the time that the machine is off
    subprocess.run([CLUSTER, "node-start", number], check=True, timeout=300)
    print("segments before:", kept, "after:", on_node(kube, node, f"ls {jobs.POOL_PATH}/{namespace.name}/{uid}/data/segments | wc -l"))

    def again():
        found = [name for name in (item["metadata"]["name"] for item in namespace.pods("phoenix")) if name != pod]
        with contextlib.suppress(KubeError):
            for name in found:
                if any(line["event"] == "hold" for line in namespace.lines(name)):
                    return name
        return None
    second = wait_until("the job to hold again", again, 420)
    namespace.go(second, "1:50")
    namespace.wait_complete("phoenix")
    assert namespace.digests(second) == expected[:2]
    neighbour.goes_on(shaken=True)
