#!/usr/bin/env python3
"""The demo: MNIST trains on a real Kubernetes, once through Stoker's cache and once without, side by side.

usage: demo.py up | down     (`make demo` and `make demo-down` call it, after installing and building what it needs)
With KUBECONFIG set it uses that cluster; otherwise it makes one of its own on this machine.
"""

import copy
import json
import os
import pathlib
import subprocess
import sys
import time

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from harness import installation, kube as kubes, origin as origins  # noqa: E402
from harness.kube import condition, wait_until  # noqa: E402

EXAMPLE = kubes.ROOT / "docs" / "examples" / "mnist.yaml"
MARK = "stoker.dev/demo"  # label of the namespace that the demo installs into
STARTED = time.time()
os.environ["STOKER_STARTED"] = str(STARTED)  # the cluster's scripts print seconds since this time


def say(text):
    print(f"[{time.time() - STARTED:5.0f} s] {text}", flush=True)


def connect():
    if "KUBECONFIG" in os.environ:
        say("using the cluster of KUBECONFIG")
        return kubes.users_cluster()
    say("starting a real one-node Kubernetes on this machine")
    kube = kubes.own_cluster(1)
    say("loading the images into it")
    installation.load_images()
    return kube


def example():
    """All objects of the example, and its TrainingJob separately."""
    items = list(yaml.safe_load_all(EXAMPLE.read_text()))
    job = next(item for item in items if item["kind"] == "TrainingJob")
    return items, job


def without_cache(job):
    twin = copy.deepcopy(job)
    twin["metadata"]["name"] = job["metadata"]["name"] + "-off"
    twin["spec"]["cache"] = {"mode": "Off"}
    return twin


def printed(kube, namespace, job_name):
    """The JSON lines that the newest pod of a job has printed."""
    pods = kube.list("pods", namespace, f"stoker.dev/training-job={job_name}")
    if not pods:
        return []
    newest = max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])["metadata"]["name"]
    text = kube.run("logs", newest, "-n", namespace, "-c", "trainer", check=False)
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def news(item, told):
    """Messages of the job's state and cache conditions that have changed."""
    for kind in ("Finished", "CacheAllocated"):
        found = condition(item, kind)
        if found.get("status") != "Unknown" and found.get("reason") not in (None, told.get(kind)):
            told[kind] = found["reason"]
            yield found["message"]


def follow(kube, namespace, name):
    """Prints a job's progress, each epoch as it ends; returns all epochs when the job is complete."""
    shown, told = 0, {}

    def ended():
        nonlocal shown
        item = kube.get("trainingjob", name, namespace)
        epochs = [line for line in printed(kube, namespace, name) if line.get("event") == "epoch"]
        for line in epochs[shown:]:
            say(f"{name}: epoch {line['epoch']} took {line['seconds']:.1f} s, test accuracy {line['test_accuracy']:.3f}")
        shown = len(epochs)
        for words in news(item, told):
            say(f"{name}: {words}")
        if condition(item, "Failed").get("status") == "True":
            sys.exit(f"{name} failed; look at it: kubectl -n {namespace} describe tj {name}")
        return epochs if condition(item, "Complete").get("status") == "True" else None

    return wait_until(f"{name} to complete", ended, seconds=1800, interval=1)


def origin_per_epoch(origin, epochs):
    times = [line["began_ms"] for line in epochs]
    times.append(epochs[-1]["began_ms"] + epochs[-1]["seconds"] * 1000 + 1000)
    return origin.between(times)


ROW = "{:>5}  |{:>7}  {:>6}  {:>8}  {:>9}  |{:>7}  {:>6}  {:>8}  {:>9}"


def measures(epoch, asked):
    return [asked.gets, f"{asked.bytes / 1e6:.2f}", f"{epoch['seconds']:.1f}", f"{epoch['test_accuracy']:.3f}"]


def compare(origin, cached, plain):
    """The table of both runs, epoch by epoch."""
    titles = ["GETs", "MB", "seconds", "accuracy"]
    lines = [f"       |{'with Stoker':^39}|{'cache.mode: Off':^39}", ROW.format("epoch", *titles, *titles)]
    pairs = zip(cached, origin_per_epoch(origin, cached), plain, origin_per_epoch(origin, plain))
    for number, (with_, asked, off, asked_off) in enumerate(pairs):
        lines.append(ROW.format(number, *measures(with_, asked), *measures(off, asked_off)))
    return "\n".join(line.rstrip() for line in lines)


def is_foreign(kube):
    """Whether the cluster has a Stoker that the demo has not installed."""
    found = kube.helm("list", "--namespace", installation.SYSTEM, "--filter", f"^{installation.RELEASE}$", "--short")
    marked = kube.run("get", "namespace", installation.SYSTEM, "-o", "jsonpath={.metadata.labels}", check=False)
    return bool(found.strip()) and MARK not in marked


def refuse(kube):
    """Ends the demo if it would replace or remove an installation of somebody else."""
    if is_foreign(kube):
        sys.exit(f"this cluster has a Stoker in namespace {installation.SYSTEM} that the demo did not install, and the demo would "
                 "replace it; unset KUBECONFIG for a cluster on this machine")


def up():
    kube = connect()
    refuse(kube)
    say("helm install stoker charts/stoker --wait")
    installation.helm_install(kube)
    kube.run("label", "namespace", installation.SYSTEM, f"{MARK}=true", "--overwrite")
    say("starting an S3 server in the cluster with the 5,000 MNIST images, one object each")
    origin = origins.Origin(kube)
    origin.deploy()
    say("a proxy paces it like a remote bucket: 20 ms to the first byte, 200 MB/s in all")
    items, job = example()
    namespace, name = job["metadata"].get("namespace", "default"), job["metadata"]["name"]
    for item in (job, without_cache(job)):
        kube.delete("trainingjob", item["metadata"]["name"], namespace)
    for item in items:
        if item["kind"] == "Dataset":  # a new Dataset starts cold, so that the first epoch shows the origin's speed
            kube.delete("dataset", item["metadata"]["name"], namespace)
    say(f"kubectl apply -f {EXAMPLE.relative_to(kubes.ROOT)}")
    for item in items:
        kube.apply(item)
    cached = follow(kube, namespace, name)
    say("the same job with cache.mode: Off")
    kube.apply(without_cache(job))
    plain = follow(kube, namespace, name + "-off")

    print("\n$ kubectl get tj,dset -A")
    print(kube.run("get", "tj,dset", "-A"))
    print("Requests to the origin, counted at the S3 server (paced: 20 ms to the first byte, 200 MB/s):\n")
    print(compare(origin, cached, plain))
    print(f"""
What next:
  {'' if 'KUBECONFIG' in os.environ else 'eval "$(e2e/cluster/cluster.sh env)"'}
  kubectl -n {namespace} describe tj {name}    what happened, and why it got these cache bytes
  kubectl explain tj.spec.cache               what can be set
  make demo-down                              leave nothing behind""")


def down():
    if "KUBECONFIG" not in os.environ:
        subprocess.run([kubes.CLUSTER, "down"], check=True)
        return
    kube = kubes.users_cluster()
    refuse(kube)
    items, job = example()
    for item in [without_cache(job), *reversed(items)]:
        if item["kind"] != "Namespace":
            kube.delete(item["kind"].lower(), item["metadata"]["name"], item["metadata"].get("namespace"))
    kube.run("delete", "-f", str(origins.MANIFEST), "--ignore-not-found")
    kube.helm("uninstall", "stoker", "--namespace", installation.SYSTEM, "--wait", "--ignore-not-found")
    kube.delete("namespace", installation.SYSTEM)


if __name__ == "__main__":
    {"up": up, "down": down}.get(sys.argv[1] if len(sys.argv) == 2 else "", lambda: sys.exit(__doc__))()
