"""kubectl as a Python object. Changes go through the real command, as a user's would; reads for polling go through one
`kubectl proxy`."""

import contextlib
import json
import os
import pathlib
import subprocess
import time

from .api import Api, ApiError

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLUSTER = ROOT / "e2e" / "cluster" / "cluster.sh"


class KubeError(Exception):
    """kubectl failed; the text is its message."""


def wait_until(what, condition, seconds=60, interval=0.2, seen=None):
    """Polls `condition` until it is true and returns its value. The limit only ends tests that hang. Retries
    when `condition` raises KubeError (the container has not started, the API server restarts). `seen` returns a text
    that the error shows in addition to `what`."""
    end = time.monotonic() + seconds
    while True:
        try:
            value, trouble = condition(), ""
        except KubeError as error:
            value, trouble = None, f"; the last answer: {error}"
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}{trouble}" + (f"; seen: {seen()}" if seen else ""))
        time.sleep(interval)


class Kube:
    """One cluster, with administrator rights, in all namespaces."""

    def __init__(self, kubectl, helm, environment):
        self.kubectl = kubectl
        self.helm_program = helm
        self.environment = environment
        self._nodes = None
        self._api = None
        self.wait_for_images = lambda: None  # replaced by a function that waits, while images load in the background
        self.leaving = []  # names of namespaces that are being deleted

    @property
    def api(self):
        """The API client; starts on first use."""
        if self._api is None:
            self._api = Api(self.kubectl, self.environment)
        return self._api

    def close(self):
        if self._api is not None:
            self._api.close()
            self._api = None

    def run(self, *args, stdin=None, check=True):
        """Runs kubectl ARGS. Returns its standard output, or raises KubeError with its message."""
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
        """Applies objects, given as dicts or YAML texts."""
        texts = [item if isinstance(item, str) else json.dumps(item) for item in objects]
        self.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin="\n---\n".join(texts))

    def apply_fails(self, item):
        """The message with which the API server refuses an object."""
        try:
            self.run("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(item))
        except KubeError as error:
            return str(error)
        raise AssertionError(f"accepted: {item}")

    def get(self, kind, name, namespace=None):
        """The object as a dict, or None if it does not exist."""
        with answered():
            path = self.api.path(kind, namespace, name)
            try:
                return self.api.json(path)
            except ApiError as error:
                if error.status == 404 and '"NotFound"' in str(error):  # the object is missing; a missing kind gives no reason
                    return None
                raise

    def list(self, kind, namespace=None, selector=None):
        with answered():
            return self.api.json(self.api.path(kind, namespace), labelSelector=selector)["items"]

    def nodes(self):
        """Names of the schedulable nodes, sorted."""
        if self._nodes is None:
            self._nodes = sorted(
                node["metadata"]["name"] for node in self.list("nodes")
                if not any(taint["effect"] == "NoSchedule" for taint in node["spec"].get("taints", [])))
        return self._nodes

    def delete(self, kind, name, namespace=None, wait=True, seconds=300):
        where = ["-n", namespace] if namespace else []
        self.run("delete", kind, name, *where, "--ignore-not-found", f"--wait={str(wait).lower()}",
                 f"--timeout={seconds}s")

    def logs(self, pod, namespace, container=None):
        with answered():
            return self.api.text(self.api.path("pods", namespace, pod) + "/log", container=container)

    def raw(self, path):
        """The answer to a GET at the API server, as text."""
        with answered():
            return self.api.text(path)

    def leave_namespace(self, name):
        """Deletes a namespace without waiting, because Kubernetes begins to empty it only after five seconds.
        wait_left() waits for it."""
        self.delete("namespace", name, wait=False)
        self.leaving.append(name)

    def wait_left(self, names=None, seconds=600):
        """Waits until these deleted namespaces are gone; by default all."""
        for name in list(self.leaving if names is None else names):
            self.leaving.remove(name)
            wait_until(f"namespace {name} to go", lambda: self.get("namespace", name) is None, seconds)

    def exec(self, pod, namespace, container, *command):
        return self.run("exec", pod, "-n", namespace, "-c", container, "--", *command)


@contextlib.contextmanager
def answered():
    """Turns an ApiError into the KubeError that kubectl would give."""
    try:
        yield
    except (ApiError, ValueError) as error:
        raise KubeError(str(error)) from None


def condition(item, kind):
    """The object's condition of this type, {} while it has none."""
    for entry in ((item or {}).get("status") or {}).get("conditions", []):
        if entry["type"] == kind:
            return entry
    return {}


def own_cluster(nodes):
    """Starts or repairs the cluster of e2e/cluster; returns its programs and environment."""
    subprocess.run([CLUSTER, "up", str(nodes)], check=True, timeout=3000)
    exports = subprocess.run([CLUSTER, "env"], check=True, capture_output=True, text=True).stdout
    probe = subprocess.run(["bash", "-c", f"{exports}\nenv -0"], check=True, capture_output=True, text=True).stdout
    environment = dict(entry.split("=", 1) for entry in probe.split("\0") if "=" in entry)
    find = lambda name: subprocess.run(["bash", "-c", f"command -v {name}"], env=environment, check=True,
                                       capture_output=True, text=True).stdout.strip()
    return Kube(find("kubectl"), find("helm"), environment)


def take_down():
    """Removes the cluster of e2e/cluster, whether it runs or not."""
    subprocess.run([CLUSTER, "down"], check=True, timeout=300)


def traces():
    """Remains of a cluster on this machine, one line each."""
    return set(subprocess.run([CLUSTER, "traces"], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines())


def users_cluster():
    """The cluster of $KUBECONFIG."""
    return Kube("kubectl", "helm", dict(os.environ))
