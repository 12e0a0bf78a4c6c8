"""kubectl as a Python object. Everything goes through the real command, as a user's would."""

import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLUSTER = ROOT / "e2e" / "cluster" / "cluster.sh"


class KubeError(Exception):
    """kubectl said no; the text is what it said."""


def wait_until(what, condition, seconds=60, interval=0.2):
    """Polls `condition` until it is true and returns its value. The limit is a hang guard, not an expectation. A
    question that cannot be answered at the moment (a container that has not started, an API server that restarts) is
    asked again."""
    end = time.monotonic() + seconds
    while True:
        try:
            value, trouble = condition(), ""
        except KubeError as error:
            value, trouble = None, f"; the last answer: {error}"
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}{trouble}")
        time.sleep(interval)


class Kube:
    """One cluster, as its administrator. Not tied to a namespace."""

    def __init__(self, kubectl, helm, environment):
        self.kubectl = kubectl
        self.helm_program = helm
        self.environment = environment
        self._nodes = None

    def run(self, *args, stdin=None, check=True):
        """kubectl ARGS; returns its standard output, or raises KubeError with its words."""
        done = subprocess.run([self.kubectl, *args], input=stdin, capture_output=True, text=True,
                              env=self.environment, check=False, timeout=900)
        if check and done.returncode != 0:
            raise KubeError(done.stderr.strip())
        return done.stdout

    def helm(self, *args):
        done = subprocess.run([self.helm_program, *args], capture_output=True, text=True, env=self.environment,
                              check=False, timeout=900)
        if done.returncode != 0:
            raise KubeError(done.stderr.strip())
        return done.stdout

    def apply(self, *objects):
        """Objects as dicts, or YAML texts."""
        for item in objects:
            text = item if isinstance(item, str) else json.dumps(item)
            self.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def apply_fails(self, item):
        """The words with which the API server refuses an object."""
        try:
            self.run("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(item))
        except KubeError as error:
            return str(error)
        raise AssertionError(f"accepted: {item}")

    def get(self, kind, name, namespace=None):
        """The object as a dict, or None when there is none."""
        where = ["-n", namespace] if namespace else []
        try:
            return json.loads(self.run("get", kind, name, *where, "-o", "json"))
        except KubeError as error:
            if "NotFound" in str(error) or "not found" in str(error):
                return None
            raise

    def list(self, kind, namespace=None, selector=None):
        where = ["-n", namespace] if namespace else ["-A"]
        where += ["-l", selector] if selector else []
        return json.loads(self.run("get", kind, *where, "-o", "json"))["items"]

    def nodes(self):
        """Names of the nodes that take pods, sorted."""
        if self._nodes is None:
            self._nodes = sorted(
                node["metadata"]["name"] for node in json.loads(self.run("get", "nodes", "-o", "json"))["items"]
                if not any(taint["effect"] == "NoSchedule" for taint in node["spec"].get("taints", [])))
        return self._nodes

    def delete(self, kind, name, namespace=None, wait=True, seconds=300):
        where = ["-n", namespace] if namespace else []
        self.run("delete", kind, name, *where, "--ignore-not-found", f"--wait={str(wait).lower()}",
                 f"--timeout={seconds}s")

    def logs(self, pod, namespace, container=None, previous=False):
        args = ["logs", pod, "-n", namespace] + (["-c", container] if container else [])
        return self.run(*args, *(["--previous"] if previous else []))

    def exec(self, pod, namespace, container, *command):
        return self.run("exec", pod, "-n", namespace, "-c", container, "--", *command)


def condition(item, kind):
    """The condition of a type, {} while there is none."""
    for entry in ((item or {}).get("status") or {}).get("conditions", []):
        if entry["type"] == kind:
            return entry
    return {}


def own_cluster(nodes):
    """A cluster made by our scripts (or repaired, when it is there); its programs and environment."""
    subprocess.run([CLUSTER, "up", str(nodes)], check=True, timeout=3000)
    exports = subprocess.run([CLUSTER, "env"], check=True, capture_output=True, text=True).stdout
    probe = subprocess.run(["bash", "-c", f"{exports}\nenv -0"], check=True, capture_output=True, text=True).stdout
    environment = dict(entry.split("=", 1) for entry in probe.split("\0") if "=" in entry)
    find = lambda name: subprocess.run(["bash", "-c", f"command -v {name}"], env=environment, check=True,
                                       capture_output=True, text=True).stdout.strip()
    return Kube(find("kubectl"), find("helm"), environment)


def take_down():
    """The cluster made by our scripts, whether it runs or not."""
    subprocess.run([CLUSTER, "down"], check=True, timeout=300)


def traces():
    """What is on this machine that a cluster may have left: lines that say what each is."""
    return set(subprocess.run([CLUSTER, "traces"], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines())


def users_cluster():
    """The cluster of $KUBECONFIG."""
    return Kube("kubectl", "helm", dict(os.environ))
