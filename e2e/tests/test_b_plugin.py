"""`kubectl stoker` on a real cluster: it asks the leading operator through the API server's proxy, with RBAC."""

import json
import os
import pathlib
import subprocess

import pytest

from harness import jobs
from harness.installation import SYSTEM
from harness.jobs import FULL
from harness.kube import condition, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("STOKER_BUILD", ROOT / "build" / "release"))


@pytest.fixture
def stoker(kube):
    """Runs `kubectl stoker WORDS`; kubectl finds the plugin on $PATH."""
    environment = {**kube.environment, "PATH": f"{BUILD / 'bin'}:{kube.environment['PATH']}"}

    def run(*words):
        done = subprocess.run([kube.kubectl, "stoker", *words], capture_output=True, text=True, env=environment,
                              check=False, timeout=120)
        print(f"$ kubectl stoker {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done

    return run


def user_of(namespace):
    """A user with view rights in this namespace only."""
    user = f"system:serviceaccount:{namespace.name}:default"
    namespace.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "looks"},
                     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                     "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace.name}]})
    return user


def let_explain(kube, namespace):
    """Gives the rights that the chart gives to `rbac.explain.subjects`."""
    kube.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": f"explain-{namespace.name}", "namespace": SYSTEM},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "stoker-explain"},
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace.name}]})


def test_the_plugin_explains_a_running_job(namespace, kube, stoker):
    namespace.apply(jobs.dataset(), jobs.quota("1Gi"))
    pod, = namespace.start("explained", ["--epochs", 2, "--hold", "1:0"], cache=FULL)
    namespace.wait_hold(pod, "1:0")
    here = ("-n", namespace.name)

    def agrees():
        answer = json.loads(stoker("why", "tj/explained", *here, "-o", "json").stdout)
        job = namespace.job("explained")
        found = condition(job, "CacheAllocated")
        return answer["source"] == "operator" and (
            answer["allocation"]["grantedBytes"], answer["allocation"]["reason"], answer["allocation"]["message"]) == (
            job["status"]["cache"]["allocatedBytes"], found["reason"], found["message"])

    wait_until("the explanation and the status to show the same decision", agrees, 300)
    why = stoker("why", "tj/explained", *here)
    assert why.returncode == 0 and why.stderr == ""
    assert "What would change it" in why.stdout
    assert "explained" in stoker("top", *here).stdout
    assert "explained" in stoker("top", "-A", "--json").stdout
    quota = stoker("quota", *here).stdout
    assert namespace.name in quota and "1Gi" in quota and "tj/explained" in quota
    gone = json.loads(stoker("what-if", "--delete", "tj/explained", *here, "--json").stdout)
    assert [job["after"] for job in gone["jobs"] if job["namespace"] == namespace.name] == [None]
    more = stoker("what-if", "--add", "1Gi", "--pool", jobs.POOL)
    assert more.returncode == 0 and f"{namespace.name}/explained" in more.stdout
    namespace.go(pod, "1:0")
    namespace.wait_complete("explained")


def test_the_plugin_needs_its_rights(namespace, kube, stoker):
    namespace.apply(jobs.dataset())
    pod, = namespace.start("asked", ["--epochs", 1, "--hold", "1:0"], cache=FULL)
    namespace.wait_hold(pod, "1:0")
    as_user = ("--as", user_of(namespace), "-n", namespace.name)
    why = stoker("why", "tj/asked", *as_user)
    assert why.returncode == 0
    assert "Reason: " in why.stdout and "What would change it" not in why.stdout
    assert "what the job's status says" in why.stderr
    refused = stoker("what-if", "--delete", "tj/asked", *as_user)
    assert refused.returncode == 1 and refused.stdout == "" and "rbac.explain.subjects" in refused.stderr
    assert stoker("top", *as_user).returncode == 0
    assert stoker("quota", *as_user).returncode == 0
    assert stoker("top", "-A", *as_user).returncode == 1
    let_explain(kube, namespace)
    wait_until("the right to reach the API server's authorizer",
               lambda: stoker("what-if", "--delete", "tj/asked", *as_user).returncode == 0, 120)
    kube.delete("rolebinding", f"explain-{namespace.name}", SYSTEM)
    namespace.go(pod, "1:0")
    namespace.wait_complete("asked")
