"""Tools for attack tests: connections from a pod's network, calls with stolen tokens, a user with `edit`, and a
neighbour's job that trains meanwhile. They need a cluster made by e2e/cluster, whose processes run on this machine."""

import base64
import contextlib
import itertools
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile

from . import jobs, views
from .installation import SYSTEM
from .kube import wait_until

CONTROL_NAME = f"stoker-control.{SYSTEM}.svc"
CONTROL_PORT, METRICS_PORT, PROBES_PORT, DEBUG_PORT, NODE_PORT = 9443, 8080, 8081, 8443, 9456
ATTACH = "/stoker.control.v1.Control/Attach"
NODE_REPORT = "/stoker.node.v1.Nodes/Report"
OK, PERMISSION_DENIED, UNAUTHENTICATED = 0, 7, 16
REFUSED = (PERMISSION_DENIED, UNAUTHENTICATED)
ROOT_USER = {"runAsUser": 0}
NEIGHBOUR = "strangers-neighbour" + os.environ.get("STOKER_E2E_NEIGHBOUR", "")  # the suffix distinguishes two runs on one cluster
NUMBERS = itertools.count(1)


# --- people -----------------------------------------------------------------------------------------------------------

def user(place, role="edit"):
    """kubectl arguments for a user who has this ClusterRole in this namespace and no other right."""
    place.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": role},
                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                 "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": place.name}]})
    who = ["--as", f"system:serviceaccount:{place.name}:default"]

    def may_edit():
        return "yes" in place.kube.run("auth", "can-i", "create", "trainingjobs.stoker.dev", "-n", place.name, *who,
                                       check=False)
    wait_until(f"the rights of the user of {place.name}", may_edit)
    return who


def says(kube, *words, stdin=None):
    """kubectl's return code and message; never raises."""
    done = subprocess.run([kube.kubectl, *words], input=stdin, capture_output=True, text=True, env=kube.environment,
                          check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


# --- the neighbour ----------------------------------------------------------------------------------------------------

def restarts(kube):
    """Restart count of each container of the installation."""
    return {(pod["metadata"]["name"], state["name"]): state["restartCount"]
            for pod in kube.list("pods", SYSTEM) for state in pod["status"].get("containerStatuses", [])}


class Neighbour:
    """The victim: one job in another namespace that trains during the attack, and one that starts after it."""

    def __init__(self, place, expected):
        self.place = place
        self.expected = expected
        self.name = f"neighbour-{next(NUMBERS)}"
        self.pod = None
        self.before = restarts(place.kube)

    def begin(self):
        self.pod, = self.place.start(self.name, ["--epochs", 2, "--hold", "1:0"], cache=jobs.FULL)
        self.place.wait_hold(self.pod, "1:0")
        return self

    def goes_on(self, shaken=False):
        """Checks that the job from before the attack and a new one read the right bytes. `shaken`: programs of the
        installation may have restarted."""
        later = f"{self.name}-later"
        self.place.apply(jobs.training_job(later, ["--epochs", 1], on=self.place.home, cache=jobs.FULL))
        self.place.go(self.pod, "1:0")
        self.place.wait_complete(self.name)
        assert self.place.digests(self.pod) == self.expected[:2]
        self.place.wait_complete(later)
        told, = [self.place.digests(pod["metadata"]["name"]) for pod in self.place.pods(later)]
        assert told == self.expected[:1]
        if not shaken:
            assert restarts(self.place.kube) == self.before, "a program of the installation has restarted"
        self.end()

    def end(self):
        self.place.kube.run("delete", "trainingjob", "--all", "-n", self.place.name, "--wait=false")


# --- networks ---------------------------------------------------------------------------------------------------------

def process_in(pod):
    """A process on this machine that runs in the pod's network namespace."""
    uid = pod["metadata"]["uid"]
    for found in pathlib.Path("/proc").glob("[0-9]*/cgroup"):
        with contextlib.suppress(OSError):
            text = found.read_text()
            if f"pod{uid}" in text or uid.replace("-", "_") in text:
                return found.parent.name
    return None


def from_pod(place, name, *command, stdin=None, seconds=300):
    """Runs a program of this machine in a pod's network namespace; returns its output."""
    process = wait_until(f"a process of {name}", lambda: process_in(place.get("pod", name)))
    done = subprocess.run(["nsenter", "--target", process, "--net", *command], input=stdin, capture_output=True,
                          check=False, timeout=seconds)
    return done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")


def begin_from_pod(place, name, *command):
    """Like from_pod(), in the background; returns the process."""
    process = wait_until(f"a process of {name}", lambda: process_in(place.get("pod", name)))
    return subprocess.Popen(["nsenter", "--target", process, "--net", *command], stdout=subprocess.PIPE,
                            stdin=subprocess.PIPE, text=True)


def http(place, pod, url, *words, seconds=10):
    """(code, body) of a request from a pod's network; code 0: no answer."""
    said = from_pod(place, pod, "curl", "-sk", "--max-time", str(seconds), "-w", "\n%{http_code}", *words, url)
    body, _, code = said.rpartition("\n")
    return int(code.strip() or 0), body


FLOOD = r"""
import json, os, resource, select, socket, sys, time
where, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
say = sys.argv[4].encode().decode("unicode_escape").encode("latin-1") if len(sys.argv) > 4 else b""
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
host, _, port = where.rpartition(":")
address = socket.getaddrinfo(host, int(port))[0] if port.isdigit() else (socket.AF_UNIX, 0, 0, 0, where)
held, failed = [], 0
begin = time.monotonic()
for _ in range(count):
    one = socket.socket(address[0], socket.SOCK_STREAM)
    one.settimeout(2)
    try:
        one.connect(address[4])
        if say:
            one.send(say)
        one.setblocking(False)
        held.append(one)
    except OSError:
        failed += 1
        one.close()
        if failed > 200 and failed > len(held):
            break
print(json.dumps({"held": len(held), "failed": failed, "seconds": time.monotonic() - begin}), flush=True)
select.select([sys.stdin], [], [], seconds)
closed = 0
for one in held:
    try:
        while True:
            if not one.recv(65536):
                closed += 1
                break
    except BlockingIOError:
        pass
    except OSError:
        closed += 1
print(json.dumps({"closed": closed}), flush=True)
"""


class Flood:
    """Connections from a pod that send nothing, or an unfinished request (`say`), and stay open for `seconds` or until
    end()."""

    def __init__(self, place, pod, where, count, seconds=600, say=""):
        self.process = begin_from_pod(place, pod, sys.executable, "-c", FLOOD, where, str(count), str(seconds), say)
        self.told = json.loads(self.process.stdout.readline() or "{}")

    def end(self):
        """Ends the flood; returns how many connections were opened, and how many of them the server has closed."""
        rest, _ = self.process.communicate("\n", timeout=120)
        return {**self.told, **json.loads(rest.splitlines()[-1])}


# --- gRPC by curl -----------------------------------------------------------------------------------------------------

def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def message(fields):
    """A protobuf message: {number: int, str, bytes, bool, or a list of these}."""
    out = b""
    for number, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, (bool, int)):
                out += varint(number << 3) + varint(int(value))
            else:
                data = value.encode() if isinstance(value, str) else value
                out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def hello(place, pod, job, uid, datasets, rank=0, node="", namespace=None):
    """SidecarMessage{hello}; `datasets` is {name: uid}."""
    mounts = [message({1: name, 2: dataset}) for name, dataset in datasets.items()]
    return message({1: message({1: namespace or place.name, 2: pod, 3: node, 4: job, 5: uid, 6: rank, 7: "0.2.0",
                                8: mounts})})


def leader_report(uid, sequence=1, **numbers):
    """SidecarMessage{report}: claims these numbers for a dataset, as its leader."""
    names = {"samples": 8, "total_bytes": 9, "resident_bytes": 10, "resident_samples": 11, "granted_bytes": 13}
    told = {1: "train", 2: uid, 3: True, 4: 2, 7: "0123456789abcdef",
            **{names[name]: value for name, value in numbers.items()}}
    return message({2: message({1: sequence, 2: message(told)})})


class Answer:
    """A gRPC server's answer: `status` (None: the connection was cut or stayed open), message, and payload bytes."""

    def __init__(self, headers, body, words):
        found = re.findall(r"(?im)^grpc-status: *(\d+)", headers)
        self.status = int(found[-1]) if found else None
        self.words = headers + words
        self.body = body


def trust(kube):
    return kube.get("configmap", "stoker-control-trust", SYSTEM)["data"]["ca.crt"]


def operators(kube):
    """Addresses of the operator's pods."""
    return [pod["status"]["podIP"] for pod in kube.list("pods", SYSTEM, "app.kubernetes.io/component=operator")
            if pod["status"].get("phase") == "Running"]


def leader(kube):
    """Address of the leading operator, the only one whose control port is open."""
    def listens():
        for address in operators(kube):
            with contextlib.suppress(OSError), socket.create_connection((address, CONTROL_PORT), timeout=5):
                return address
        return None
    return wait_until("an operator that listens", listens)


def call(kube, method, token, *messages, via=None, seconds=8):
    """A gRPC call to the leading operator: sends all messages, then closes. `via`: (namespace, pod) whose network it
    uses. Retries on curl error 92: a server that refuses may reset the stream before curl has read the reason."""
    for _ in range(8):
        answer = call_once(kube, method, token, *messages, via=via, seconds=seconds)
        if answer.status is not None or "(92)" not in answer.words:
            break
    return answer


def call_once(kube, method, token, *messages, via, seconds):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "ca").write_text(trust(kube))
        (path / "frames").write_bytes(b"".join(b"\0" + struct.pack(">I", len(item)) + item for item in messages))
        (path / "token").write_text(f"header = \"authorization: Bearer {token}\"\n" if token is not None else "")
        words = ["curl", "-sS", "--http2", "--no-buffer", "-K", str(path / "token"), "--cacert", str(path / "ca"),
                 "--connect-to", f"::{leader(kube)}:{CONTROL_PORT}", "-H", "content-type: application/grpc", "-H", "te: trailers",
                 "--data-binary", f"@{path / 'frames'}", "-D", str(path / "headers"), "-o", str(path / "body"),
                 "--max-time", str(seconds), f"https://{CONTROL_NAME}:{CONTROL_PORT}{method}"]
        if via:
            place, pod = via
            said = from_pod(place, pod, *words)
        else:
            said = subprocess.run(words, capture_output=True, check=False, timeout=60).stderr.decode(errors="replace")
        read = lambda name: (path / name).read_bytes() if (path / name).exists() else b""
        return Answer(read("headers").decode(errors="replace"), read("body"), said)


def token(place, audience="stoker.dev", pod=None, account="default", who=()):
    """A ServiceAccount token as `kubectl create token` makes it; bound to `pod` if given."""
    bound = ["--bound-object-kind", "Pod", "--bound-object-name", pod] if pod else []
    audiences = ["--audience", audience] if audience else []
    return place.kube.run("create", "token", account, "-n", place.name, *audiences, *bound, *who).strip()


def unsigned(real, **claims):
    """The token with changed claims and no signature (`alg` none)."""
    encode = lambda item: base64.urlsafe_b64encode(json.dumps(item).encode()).decode().rstrip("=")
    body = real.split(".")[1]
    found = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return f"{encode({'alg': 'none', 'typ': 'JWT'})}.{encode({**found, **claims})}."


# --- pods of attackers ------------------------------------------------------------------------------------------------

def plain_pod(name, on, command=None, **spec):
    """A pod that mounts no view."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "nodeName": on, "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": jobs.TRAINER_IMAGE, "command": command or ["sleep", "100000"]}], **spec}}


def own_directory(place, name="own", **dataset):
    """Creates the attacker's Dataset and a pod with its `owner` view, as root. Returns the Dataset's uid."""
    place.apply(jobs.dataset(name, **dataset))
    uid = place.get("dataset", name)["metadata"]["uid"]
    place.apply(views.pod(name, views.view(place.name, uid, "owner"), place.home, securityContext=ROOT_USER))
    views.running(place, name)
    return uid


def in_view(place, name, program, *arguments, container="main"):
    """Runs a Python program in a pod's container; returns its output and errors."""
    _, words = says(place.kube, "exec", "-i", name, "-n", place.name, "-c", container, "--", "python3", "-", *arguments,
                    stdin=program)
    return words
