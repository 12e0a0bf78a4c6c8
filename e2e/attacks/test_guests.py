"""A guest of a shared Dataset replaces its sidecar with a hostile program."""

import json
import pathlib
import statistics
import subprocess
import threading

import pytest

from harness import jobs, origin as origins, views
from harness.jobs import TRAINER_IMAGE
from harness.kube import wait_until
from harness.nodes import below_pool
from harness.sharing import begin_reading, filling, shared_dataset
from harness.strangers import ATTACH, call, hello, leader_report, says, token, user

pytestmark = pytest.mark.own_cluster

PROGRAM = (pathlib.Path(__file__).parent / "hostile_sidecar.py").read_text()
SECONDS = 600  # the flood ends by itself after this long


def in_its_place(place, name):
    """A pod in the guest's namespace with every volume of the sidecar in pod `name`; runs the hostile program as root."""
    spec = place.get("pod", name)["spec"]
    sidecar, = [it for it in spec["initContainers"] if it["name"] == "stoker-sidecar"]
    volumes = [it for it in spec["volumes"] if it["name"] in {mount["name"] for mount in sidecar["volumeMounts"]}]
    wanted = views.pod("hostile", None, place.home, securityContext={"runAsUser": 0}, volumeMounts=[
        {"name": "stoker-data-0", "mountPath": "/view"}, {"name": "stoker-guest-0", "mountPath": "/door"},
        *[mount for mount in sidecar["volumeMounts"] if mount["name"] not in ("stoker-data-0", "stoker-guest-0")]])
    wanted["spec"]["volumes"] = volumes
    return wanted


def test_a_guest_cannot_run_another_program_in_place_of_its_sidecar(namespace, others):
    # threat model, row 15: every right in a guest's namespace gives neither a pod with views nor access to a sidecar's
    # container
    namespace.apply(shared_dataset())
    guest = others("guest")
    who = user(guest, "admin")
    pod = begin_reading(guest, "reader", namespace, "--epochs", 1)
    wanted = guest.here(in_its_place(guest, pod))
    template = {"metadata": {"labels": {"stoker.dev/training-job": "reader"}},
                "spec": {**wanted["spec"], "restartPolicy": "Never"}}
    job = guest.here({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "hostile"},
                      "spec": {"template": template}})
    image = {"spec": {"initContainers": [{"name": "stoker-sidecar", "image": TRAINER_IMAGE}]}}
    in_namespace = ["-n", guest.name, *who]
    for words, stdin, refusal in (
            (["create", "-f", "-"], wanted, "may be created by the Job controller and by Stoker only"),
            (["create", "-f", "-"], job, "only Stoker's operator may create a Job with volumes of csi.stoker.dev"),
            (["patch", "pod", pod, "-p", json.dumps(image)], None, "the images of stoker-sidecar and stoker-s3 cannot change"),
            (["exec", pod, "-c", "stoker-sidecar", "--", "true"], None, "nobody may run commands in stoker-sidecar")):
        code, said = says(guest.kube, *in_namespace, *words, stdin=stdin and json.dumps(stdin))
        assert code and refusal in said, said
    guest.go(pod, "0:0")
    guest.wait_complete("reader")


class Attack:
    """Runs the hostile program in the guest's pod until end()."""

    def __init__(self, place, job):
        self.lines = []
        self.process = subprocess.Popen(
            [place.kube.kubectl, "exec", "-i", "hostile", "-n", place.name, "--",
             "python3", "-u", "-c", PROGRAM, job, str(SECONDS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=place.kube.environment)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        wait_until("the flood to begin", lambda: "flooding" in self.lines or self.process.poll() is not None, 300)

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def goes_on(self):
        return self.process.poll() is None

    def end(self):
        """The program's output so far."""
        if self.goes_on():
            self.process.stdin.close()
        self.process.wait(timeout=120)
        self.reader.join()
        return self.lines


def sidecar_restarts(place):
    """{pod: restart count of its sidecar} in the namespace."""
    return {pod["metadata"]["name"]: state["restartCount"] for pod in place.kube.list("pods", place.name)
            for kind in ("initContainerStatuses", "containerStatuses") for state in pod["status"].get(kind, [])
            if state["name"] == "stoker-sidecar"}


def files_of(place):
    """{name: SHA-256} of the Dataset's data on the node."""
    uid = place.get("dataset", "mnist")["metadata"]["uid"]
    lines = below_pool(place, f"cd {place.name}/{uid}/data && find . -type f -exec sha256sum {{}} +").splitlines()
    return {line.split(maxsplit=1)[1]: line.split()[0] for line in lines}


def claim_to_lead(guest, pod, dataset):
    """The operator's answers to the guest's pods that claim, with their own tokens, to lead the owner's directory."""
    job = guest.job("reader")["metadata"]["uid"]
    lie = leader_report(dataset, resident_bytes=1 << 50, resident_samples=1 << 40, total_bytes=1 << 50, samples=1)

    def claim(name):
        words = hello(guest, name, "reader", job, {"train": dataset}, node=guest.home)
        return call(guest.kube, ATTACH, token(guest, pod=name), words, lie, lie, via=(guest, "hostile"))
    return [claim(name) for name in (pod, "hostile")]


@pytest.mark.usefixtures("no_policies")
def test_a_hostile_guests_sidecar_harms_neither_the_datasets_namespace_nor_another_guest(namespace, others, expected):
    # threat model, rows 19, 23, 24, 26, 27: a guest cannot write or lead, controls its own jobs only, and disturbs no
    # other job
    namespace.apply(jobs.quota("1Gi"), shared_dataset())
    dataset = namespace.get("dataset", "mnist")["metadata"]["uid"]
    own, = namespace.start("own", ["--epochs", 60, "--hold", "20:0", "--hold", "60:0"], script="read_contract.py",
                           cache=jobs.FULL, datasets=[
                               {"name": "train", "datasetRef": {"name": "mnist"}, "contract": "Windowed"}])
    namespace.wait_hold(own, "20:0")
    bad, good = others("bad"), others("good")
    reader = begin_reading(bad, "reader", namespace, "--epochs", 1)
    honest = begin_reading(good, "honest", namespace, "--epochs", 3, "--hold", "2:0")
    bad.apply(in_its_place(bad, reader))
    views.running(bad, "hostile")
    said = namespace.kube.exec(own, namespace.name, "trainer", "python3", "-c",
                               "from stoker.settings import job_name; print(job_name())").strip()
    before, leader, told = files_of(namespace), namespace.leader([own]), namespace.dataset_status()
    attack = Attack(bad, f"{namespace.job('own')['metadata']['uid']}/{said}/train/0")
    try:
        answers = claim_to_lead(bad, reader, dataset)
        good.go(honest, "0:0")
        namespace.go(own, "20:0")
        good.wait_hold(honest, "2:0")
        namespace.wait_hold(own, "60:0")
        assert attack.goes_on(), "the flood has lasted"
        assert files_of(namespace) == before
        assert namespace.leader([own]) == leader
        assert set(sidecar_restarts(namespace).values()) == {0}
        after = namespace.dataset_status()
        # The job of the Dataset's namespace ends: a filler takes over and leads under the same flood.
        namespace.go(own, "60:0")
        namespace.wait_complete("own")
        filling(namespace)
        good.go(honest, "2:0")
        good.wait_complete("honest")
        assert attack.goes_on(), "the flood has lasted"
        assert set(sidecar_restarts(namespace).values()) == {0}
    finally:
        lines = attack.end()
        print(*lines, sep="\n")
    assert not [line for line in lines if line.startswith("DONE")]
    heard = [line for line in lines if line.startswith("said ")]
    assert len(heard) > 30 and all(line.endswith("hung up") or ": error: " in line for line in heard[:-2])
    assert all(line.endswith(": answer 12") for line in heard[-2:]), "the guest's own samplers are accepted under any name"
    assert "holds 1000 connections" in lines and lines[-1].startswith("flooded"), lines[-1]
    assert not [answer.body for answer in answers if dataset.encode() in answer.body], "a guest gets no grant"
    assert [after[key] for key in ("totalBytes", "samples")] == [told[key] for key in ("totalBytes", "samples")]
    assert after["cachedBytes"] < 1 << 40
    epochs = [line for line in namespace.lines(own) if line["event"] == "epoch"]
    assert [(epoch["once"], epoch["wrong"], epoch["alone"]) for epoch in epochs] == [(origins.SAMPLES, 0, 0)] * 60
    assert good.digests(honest) == expected
    print("seconds of the owner's epochs, alone and under the flood:",
          *[statistics.median(epoch["seconds"] for epoch in some) for some in (epochs[1:20], epochs[20:])])
    namespace.apply(jobs.training_job("later", ["--epochs", 1], on=namespace.home, cache=jobs.FULL))
    namespace.wait_complete("later")
    assert namespace.digests(namespace.pods("later")[0]["metadata"]["name"]) == expected[:1]
