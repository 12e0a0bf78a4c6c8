"""Access to the nodes of a cluster made by e2e/cluster: shells, processes, pool directories."""

import subprocess

from . import jobs
from .installation import SYSTEM
from .kube import CLUSTER


def on_node(kube, node, script):
    """Runs a shell script inside a node of the tests' own cluster; returns its output."""
    number = node.rsplit("-", 1)[-1]
    done = subprocess.run([CLUSTER, "shell", number, "bash", "-c", script], capture_output=True, text=True, check=True,
                          env=kube.environment, timeout=600)
    return done.stdout


def kill(kube, pod, program):
    """Sends SIGKILL to a program of a pod from its node, so the container cannot catch it. True if the program ran."""
    uid = pod["metadata"]["uid"]
    script = ("for d in /proc/[0-9]*; do p=${d#/proc/}; "
              f"grep -q '^{program[:15]}' $d/comm 2>/dev/null && "
              f"grep -q 'pod{uid}\\|{uid.replace('-', '_')}' $d/cgroup 2>/dev/null && "
              "kill -9 $p && echo killed $p; done; true")
    return "killed" in on_node(kube, pod["spec"]["nodeName"], script)


def below_pool(place, script):
    """Runs a shell script as root in the pool's directory, on the node of the namespace's jobs."""
    return on_node(place.kube, place.home, f"cd {jobs.POOL_PATH} && {script}")


def node_program(kube, node):
    """Name and address of the node program's pod on a node; None while there is none."""
    for pod in kube.list("pods", SYSTEM, "stoker.dev/component=node"):
        if pod["spec"].get("nodeName") == node and pod["status"].get("phase") == "Running" and (
                "deletionTimestamp" not in pod["metadata"]):
            return pod["metadata"]["name"], pod["status"].get("podIP")
    return None
