"""A real kube-apiserver and etcd on loopback, for contract tests of the CRDs.

The programs are those that `e2e/cluster` builds (in `~/.cache/stoker/programs`), or those in the folder named by
STOKER_KUBE_BIN. All files are in one temporary folder; close() ends the processes.
"""

import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRD_DIR = ROOT / "crds"
GROUP_PATH = "/apis/stoker.dev/v1alpha1"
TOKEN = "contract-test"
START_SECONDS_MAX = 120


def crd_files():
    return sorted(CRD_DIR.glob("stoker.dev_*.yaml"))


def load_documents(path):
    return [doc for doc in yaml.safe_load_all(path.read_text()) if doc]


def find_program(name):
    """Path of the newest built program of that name, or None."""
    folder = os.environ.get("STOKER_KUBE_BIN")
    if folder:
        found = pathlib.Path(folder) / name
        return found if found.exists() else None
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    built = sorted((cache / "stoker" / "programs").glob(f"k8s-*/{name}"), key=os.path.getmtime)
    return built[-1] if built else None


def missing_programs():
    """Names of programs missing on this machine; empty: the server can start."""
    missing = [name for name in ("kube-apiserver", "kubectl") if find_program(name) is None]
    return missing + [name for name in ("etcd", "openssl") if shutil.which(name) is None]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ApiServer:
    """The servers start at construction and stop at close()."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self._processes = []
        self.port = free_port()
        try:
            self._start_etcd()
            self._start_api_server()
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    def _spawn(self, name, command):
        log = open(self._folder / f"{name}.log", "wb")
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=self._folder)
        log.close()
        self._processes.append(process)

    def _start_etcd(self):
        self._etcd_url = f"http://127.0.0.1:{free_port()}"
        peer_url = f"http://127.0.0.1:{free_port()}"
        self._spawn(
            "etcd",
            ["etcd", "--data-dir", "etcd", "--unsafe-no-fsync",
             "--listen-client-urls", self._etcd_url, "--advertise-client-urls", self._etcd_url,
             "--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url,
             "--initial-cluster", f"default={peer_url}"])

    def _start_api_server(self):
        subprocess.run(
            ["openssl", "genrsa", "-out", "sa.key", "2048"],
            cwd=self._folder, check=True, capture_output=True)
        (self._folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
        self._spawn(
            "kube-apiserver",
            [find_program("kube-apiserver"), "--etcd-servers", self._etcd_url,
             "--bind-address=127.0.0.1", f"--secure-port={self.port}", "--cert-dir=certs",
             "--token-auth-file=tokens.csv", "--authorization-mode=RBAC",
             "--service-account-issuer=https://contract-test", "--service-account-key-file=sa.key",
             "--service-account-signing-key-file=sa.key", "--service-cluster-ip-range=10.96.0.0/16",
             "--feature-gates=SizeBasedListCostEstimate=false",
             "--disable-admission-plugins=ServiceAccount"])

    def _wait_until_ready(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            for process in self._processes:
                if process.poll() is not None:
                    raise RuntimeError(f"ended early; see the logs in {self._folder}")
            try:
                if self.request("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"not ready after {START_SECONDS_MAX} s; see the logs in {self._folder}")

    def request(self, method, path, body=None, content_type="application/json", accept=None):
        """Returns (status, parsed answer). Text answers are returned unparsed."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=30)
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type}
        if accept:
            headers["Accept"] = accept
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        is_json = answer.getheader("Content-Type", "").startswith("application/json")
        return answer.status, json.loads(text) if is_json else text

    def kubectl(self, *arguments, stdin=None):
        return subprocess.run(
            [find_program("kubectl"), "--kubeconfig=/dev/null", f"--server=https://127.0.0.1:{self.port}",
             f"--token={TOKEN}", "--insecure-skip-tls-verify", *arguments],
            input=stdin, capture_output=True, text=True, timeout=60, check=False,
            env={**os.environ, "HOME": str(self._folder)})

    def close(self):
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
