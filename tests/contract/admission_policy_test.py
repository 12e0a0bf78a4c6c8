"""The chart's ValidatingAdmissionPolicies in a real API server: what they reject, and what they admit."""

import copy
import json
import time

import pytest
import yaml

import crd_server
from chart_test import HELM, ROOT, render

OPERATOR = "system:serviceaccount:stoker-system:stoker-operator"
JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
PODS = "/api/v1/namespaces/default/pods"
POLICY_KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")

VIEW = {"name": "stoker-data-0", "csi": {"driver": "csi.stoker.dev", "readOnly": True}}
OURS = ["stoker-sidecar", "stoker-s3", "stoker-files"]
POD_SPEC = {
    "restartPolicy": "Never",
    "initContainers": [{"name": name, "image": "sidecar:1", "restartPolicy": "Always"} for name in OURS],
    "containers": [{"name": "trainer", "image": "train:1"}],
    "volumes": [VIEW],
}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "rank", "namespace": "default"}, "spec": POD_SPEC}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job", "namespace": "default"},
       "spec": {"template": {"spec": POD_SPEC}}}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    missing = crd_server.missing_programs() + ([] if HELM else ["helm"])
    if missing:
        pytest.skip(f"needs {', '.join(missing)}; `make cluster-build` installs them")
    running = crd_server.ApiServer(tmp_path_factory.mktemp("api-server"))
    try:
        policies = [item for item in render() if item["kind"] in POLICY_KINDS]
        applied = running.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(policies))
        assert applied.returncode == 0, applied.stderr
        for _ in range(300):
            if create(running, POD, "stranger").returncode != 0:
                break
            time.sleep(0.1)
        yield running
    finally:
        running.close()


def create(server, document, user):
    return server.kubectl("create", f"--as={user}", "--as-group=system:masters", "--dry-run=server", "-f", "-",
                          stdin=json.dumps(document))


@pytest.mark.parametrize("user", [JOB_CONTROLLER, "system:kube-controller-manager", OPERATOR])
def test_job_controller_and_operator_may_create_pods_with_volumes_of_the_node_driver(server, user):
    assert create(server, POD, user).returncode == 0


def test_others_may_not_create_pods_with_volumes_of_the_node_driver(server):
    refused = create(server, POD, "stranger")
    assert refused.returncode != 0
    assert "not by stranger" in refused.stderr and "admissionPolicy.podCreators" in refused.stderr


def test_only_the_operator_may_create_jobs_with_volumes_of_the_node_driver(server):
    assert create(server, JOB, OPERATOR).returncode == 0
    for user in ("stranger", "system:serviceaccount:kube-system:cronjob-controller"):
        assert "only Stoker's operator may create" in create(server, JOB, user).stderr


def test_only_the_operator_may_create_fillers(server):
    for document, creator in ((JOB, OPERATOR), (POD, JOB_CONTROLLER)):
        filler = copy.deepcopy(document)
        filler["metadata"]["labels"] = {"stoker.dev/filler": "uid"}
        spec = filler["spec"] if filler["kind"] == "Pod" else filler["spec"]["template"]["spec"]
        del spec["volumes"]
        assert create(server, filler, creator).returncode == 0
        assert "stoker.dev/filler" in create(server, filler, "stranger").stderr


def test_anybody_may_create_pods_and_jobs_without_volumes_of_the_node_driver(server):
    for document in (POD, JOB):
        plain = copy.deepcopy(document)
        spec = plain["spec"] if plain["kind"] == "Pod" else plain["spec"]["template"]["spec"]
        spec["volumes"] = [{"name": "data", "csi": {"driver": "other.example.com"}}]
        assert create(server, plain, "stranger").returncode == 0
        del spec["volumes"]
        assert create(server, plain, "stranger").returncode == 0


def injected(name):
    """A golden pod as the webhook leaves it."""
    pod_of_webhook = json.loads((ROOT / f"tests/contract/golden/{name}.json").read_text())
    # this server lacks the ServiceAccount admission, which would set it
    pod_of_webhook["spec"]["serviceAccountName"] = "default"
    return pod_of_webhook


FOREIGN = injected("foreign-pod")
FILES = injected("foreign-files-pod")


def with_s3_and_files():
    """A pod of two datasets, one by S3 and one as files: it has all three containers."""
    pod_object = copy.deepcopy(FILES)
    s3, = [container for container in FOREIGN["spec"]["initContainers"] if container["name"] == "stoker-s3"]
    pod_object["spec"]["initContainers"].append(copy.deepcopy(s3))
    return pod_object


EVERYTHING = with_s3_and_files()
REPLICA_SETS = "system:serviceaccount:kube-system:replicaset-controller"


@pytest.fixture(scope="module")
def with_webhook(server):
    """The policies of a chart with the webhook, whose pods any controller creates."""
    image = FOREIGN["spec"]["initContainers"][0]["image"]
    registry, _, rest = image.rpartition("/")
    settings = f"webhook.enabled=true,sidecar.image.registry={registry},sidecar.image.tag={rest.rpartition(':')[2]}"

    def apply(*args):
        policies = [item for item in render(*args) if item["kind"] in POLICY_KINDS]
        applied = server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(policies))
        assert applied.returncode == 0, applied.stderr
    apply("--set", settings)
    for _ in range(300):
        last = create(server, FOREIGN, REPLICA_SETS)
        if last.returncode == 0:
            break
        time.sleep(0.1)
    assert last.returncode == 0, last.stderr
    yield server
    apply()


def foreign(change, base=None):
    item = copy.deepcopy(base or FOREIGN)
    change(item, containers_of(item))
    return item


def containers_of(pod_object):
    return {container["name"]: container for container in pod_object["spec"].get("initContainers", [])}


def test_pods_that_the_webhook_changed_need_the_webhook(server):
    assert "may be created by the Job controller" in create(server, FOREIGN, REPLICA_SETS).stderr


@pytest.mark.parametrize("change", [
    lambda pod, ours: ours["stoker-sidecar"].update(image="evil:1"),
    lambda pod, ours: ours["stoker-sidecar"].update(command=["sh"]),
    lambda pod, ours: ours["stoker-sidecar"].update(args=["--config=/stoker/run/mine"]),
    lambda pod, ours: ours["stoker-s3"].update(command=["sh"]),
    lambda pod, ours: ours["stoker-sidecar"].update(lifecycle={"postStart": {"exec": {"command": ["sh"]}}}),
    lambda pod, ours: ours["stoker-sidecar"].update(envFrom=[{"configMapRef": {"name": "mine"}}]),
    lambda pod, ours: ours["stoker-sidecar"]["env"].append({"name": "LD_PRELOAD", "value": "/stoker/node/imagenet/x"}),
    lambda pod, ours: ours["stoker-s3"]["env"].append({"name": "BASH_ENV", "value": "/stoker/run/x"}),
    lambda pod, ours: ours["stoker-sidecar"]["volumeMounts"].append({"name": "mine", "mountPath": "/usr/bin"}),
    lambda pod, ours: pod["spec"]["containers"][0]["volumeMounts"].append({"name": "stoker-node-0", "mountPath": "/x"}),
    lambda pod, ours: pod["spec"]["containers"][0]["volumeMounts"].append({"name": "stoker-run", "mountPath": "/x"}),
    lambda pod, ours: pod["spec"]["initContainers"].append(
        {"name": "mine", "image": "i", "volumeMounts": [{"name": "stoker-node-0", "mountPath": "/x"}]}),
    lambda pod, ours: pod["spec"]["volumes"].append(
        {"name": "mine", "csi": {"driver": "csi.stoker.dev", "volumeAttributes": {"view": "owner"}}}),
    lambda pod, ours: pod["spec"]["volumes"].append({"name": "mine", "csi": {"driver": "csi.stoker.dev"}}),
    lambda pod, ours: pod["spec"]["volumes"].append(
        {"name": "stoker-data-9", "csi": {"driver": "csi.stoker.dev", "volumeAttributes": {"view": "files"}}}),
    lambda pod, ours: pod["spec"]["initContainers"].pop(0),
    lambda pod, ours: pod["metadata"].pop("annotations"),
    lambda pod, ours: pod["metadata"]["labels"].pop("stoker.dev/dataset"),
    lambda pod, ours: pod["metadata"]["labels"].update({"stoker.dev/filler": "uid"}),
])
def test_pods_that_only_look_injected_are_refused(with_webhook, change):
    refuses(with_webhook, foreign(change))


@pytest.mark.parametrize("change", [
    lambda pod, ours: ours["stoker-files"].update(image="evil:1"),
    lambda pod, ours: ours["stoker-files"].update(command=["sh"]),
    lambda pod, ours: ours["stoker-files"].pop("command"),
    lambda pod, ours: ours["stoker-files"].update(args=["--config=/stoker/run/mine"]),
    lambda pod, ours: ours["stoker-files"]["env"].append({"name": "LD_PRELOAD", "value": "/stoker/node/imagenet/x"}),
    lambda pod, ours: ours["stoker-files"]["volumeMounts"].append({"name": "mine", "mountPath": "/usr/bin"}),
    lambda pod, ours: pod["spec"]["containers"][0]["volumeMounts"].append(
        {"name": "stoker-files-server-0", "mountPath": "/x"}),
    lambda pod, ours: pod["spec"]["initContainers"].append(
        {"name": "mine", "image": "i", "volumeMounts": [{"name": "stoker-files-server-0", "mountPath": "/x"}]}),
    lambda pod, ours: pod["spec"]["volumes"].append(view("stoker-files-9", "files-server")),
    lambda pod, ours: pod["spec"]["volumes"].append(view("stoker-files-server-9", "files")),
    lambda pod, ours: pod["spec"]["volumes"].append(view("mine", "files")),
    lambda pod, ours: pod["spec"]["volumes"].append(view("stoker-data-9", "files-server")),
])
def test_pods_with_files_that_only_look_injected_are_refused(with_webhook, change):
    refuses(with_webhook, foreign(change, FILES))


def view(volume, name):
    return {"name": volume, "csi": {"driver": "csi.stoker.dev", "volumeAttributes": {"view": name}}}


def mount(container, path, volume="stoker-credentials-9", **more):
    """Mounts a volume of the user's into a container of Stoker. Its name and kind are those of the webhook."""
    def change(pod_object, ours):
        pod_object["spec"]["volumes"].append({"name": volume, "secret": {"secretName": "mine", "defaultMode": 0o555}})
        ours[container]["volumeMounts"].append({"name": volume, "mountPath": path, **more})
    return change


def set_in(container, **fields):
    return lambda pod_object, ours: ours[container].update(fields)


def add_variable(container, name):
    return lambda pod_object, ours: ours[container]["env"].append({"name": name, "value": "/stoker/run"})


def set_in_pod(**fields):
    return lambda pod_object, ours: pod_object["spec"].update(fields)


SHELL = {"exec": {"command": ["bash", "-c", "id"]}}
HTTP = {"httpGet": {"path": "/readyz", "port": 9455}}


@pytest.mark.parametrize("change, fault", [
    # Users' code in a probe.
    *[(set_in(container, **{probe: SHELL}), "image, command, probe or hook differs in " + container)
      for container in OURS for probe in ("livenessProbe", "readinessProbe", "startupProbe")],
    (set_in("stoker-files", livenessProbe=HTTP), "probe or hook differs in stoker-files"),
    (set_in("stoker-s3", startupProbe={"exec": {"command": ["bash", "-c", ": </dev/tcp/127.0.0.1/9711; id"]}}),
     "probe or hook differs in stoker-s3"),
    (set_in("stoker-files", lifecycle={"preStop": SHELL}), "probe or hook differs in stoker-files"),
    (set_in("stoker-files", workingDir="/stoker/run"), "hook differs in stoker-files"),
    # Users' code through a variable.
    *[(add_variable(container, name), f"variables in containers of Stoker: {name}")
      for container in OURS for name in ("PATH", "LD_PRELOAD", "PYTHONPATH")],
    *[(add_variable("stoker-s3", name), f"variables in containers of Stoker: {name}")
      for name in ("BASH_FUNC_x%%", "path", "XAWS_REGION", "GRPC_TRACE", "GLIBC_TUNABLES", "OPENSSL_CONF")],
    (set_in("stoker-files", envFrom=[{"secretRef": {"name": "mine"}}]), "variables in containers of Stoker: envFrom"),
    # Users' code through a mount.
    *[(mount("stoker-files", path), f"mounts in containers of Stoker: stoker-credentials-9 at {path}")
      for path in ("/usr/local/bin", "/usr/bin", "/lib/x86_64-linux-gnu", "/etc", "/bin", "/usr/local/bin/stoker-files",
                   "/stoker/../usr/bin", "/stoker/credentials/../../bin", "/stoker/credentials/..", "//usr/bin",
                   "/var/run/secrets/x", "/stoker/credentials", "/stoker/origin/imagenet/link",
                   "/stoker/node/imagenet/link", "/stoker/run/link")],
    (mount("stoker-sidecar", "/etc"), "stoker-credentials-9 at /etc"),
    (mount("stoker-s3", "/etc"), "stoker-credentials-9 at /etc"),
    (mount("stoker-files", "/stoker/credentials/x", subPath="a"), "mounts in containers of Stoker"),
    (mount("stoker-files", "/stoker/credentials/x", mountPropagation="HostToContainer"),
     "mounts in containers of Stoker"),
    (set_in("stoker-files", terminationMessagePath="/usr/local/bin/stoker-files"), "terminationMessagePath"),
    # A volume that only has a name of Stoker's.
    (lambda pod, ours: pod["spec"]["volumes"].append({"name": "stoker-credentials-9", "emptyDir": {}}),
     "volumes of another kind: stoker-credentials-9"),
    (lambda pod, ours: pod["spec"]["volumes"].append({"name": "stoker-mine", "emptyDir": {}}),
     "volumes of another kind: stoker-mine"),
    # Code of another container that sees these processes.
    (set_in_pod(shareProcessNamespace=True), "hostPID, hostNetwork or shareProcessNamespace"),
    (set_in_pod(hostPID=True), "hostPID, hostNetwork or shareProcessNamespace"),
    (set_in_pod(hostNetwork=True), "hostPID, hostNetwork or shareProcessNamespace"),
])
def test_no_code_of_users_runs_in_containers_of_stoker(with_webhook, change, fault):
    refused = create(with_webhook, foreign(change, EVERYTHING), REPLICA_SETS)
    assert refused.returncode != 0 and fault in refused.stderr, refused.stderr


def refuses(server, item):
    if "mine" not in [volume["name"] for volume in item["spec"]["volumes"]]:
        item["spec"]["volumes"].append({"name": "mine", "emptyDir": {}})
    refused = create(server, item, REPLICA_SETS)
    assert refused.returncode != 0 and "label stoker.dev/dataset" in refused.stderr, refused.stderr


def in_the_shape_of_the_webhook(job):
    """The pod of a TrainingJob's golden Job, as the webhook would add its volumes and containers to a pod."""
    template = json.loads((ROOT / f"tests/contract/golden/{job}.json").read_text())["spec"]["template"]
    spec = template["spec"]
    spec["serviceAccountName"] = "default"
    # Removes the shared memory, which the webhook leaves to the pod's own controller.
    spec["volumes"] = [volume for volume in spec["volumes"] if volume["name"] != "stoker-shm"]
    for container in spec["containers"]:
        container["volumeMounts"] = [m for m in container["volumeMounts"] if m["name"] != "stoker-shm"]
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {**FOREIGN["metadata"], "generateName": "web-"}}


def with_sixteen_datasets():
    """As many datasets as a TrainingJob may have, each with every kind of volume."""
    pod_object = copy.deepcopy(EVERYTHING)
    ours, volumes = containers_of(pod_object), pod_object["spec"]["volumes"]
    for index in range(1, 16):
        name = f"dataset-{index}-" + "x" * 50
        for kind in ("node", "data", "files", "files-server"):
            volumes.append({"name": f"stoker-{kind}-{index}", "csi": {
                "driver": "csi.stoker.dev", "readOnly": kind != "node",
                "volumeAttributes": {"view": "owner" if kind == "node" else kind}}})
        volumes += [{"name": f"stoker-ca-{index}", "configMap": {"name": "ca"}},
                    {"name": f"stoker-credentials-{index}", "secret": {"secretName": "keys"}},
                    {"name": f"stoker-origin-{index}", "persistentVolumeClaim": {"claimName": "claim"}}]
        for container in OURS:
            view_of = f"stoker-node-{index}" if container == "stoker-sidecar" else f"stoker-data-{index}"
            path = f"/stoker/node/{name}" + ("" if container == "stoker-sidecar" else "/data")
            ours[container]["volumeMounts"] += [{"name": view_of, "mountPath": path}] + [
                {"name": f"stoker-{kind}-{index}", "mountPath": f"/stoker/{kind}/{name}"}
                for kind in ("ca", "credentials", "origin")]
        ours["stoker-files"]["volumeMounts"].append(
            {"name": f"stoker-files-server-{index}", "mountPath": f"/stoker/files/{name}"})
    return pod_object


def with_a_shared_dataset():
    pod_object = copy.deepcopy(FOREIGN)
    pod_object["spec"]["volumes"] += [view("stoker-guest-1", "guest"), view("stoker-data-1", "shared")]
    containers_of(pod_object)["stoker-sidecar"]["volumeMounts"] += [
        {"name": "stoker-data-1", "mountPath": "/stoker/node/val/data"},
        {"name": "stoker-guest-1", "mountPath": "/stoker/node/val/guests"}]
    return pod_object


def test_pods_with_files_of_any_controller_are_admitted(with_webhook):
    admits(with_webhook, FILES)
    admits(with_webhook, EVERYTHING)


@pytest.mark.parametrize("job", ["job-files", "job-full", "job-minimal", "job-s3"])
def test_all_containers_of_the_operator_have_the_shape_that_the_policy_knows(with_webhook, job):
    admits(with_webhook, in_the_shape_of_the_webhook(job))


def test_pods_with_shared_and_many_datasets_are_admitted(with_webhook):
    admits(with_webhook, with_a_shared_dataset())
    admits(with_webhook, with_sixteen_datasets())


def admits(server, item):
    admitted = create(server, item, REPLICA_SETS)
    assert admitted.returncode == 0, admitted.stderr


@pytest.mark.parametrize("change", [
    lambda pod, ours: pod["spec"]["initContainers"].append({"name": "prepare", "image": "i"}),
    lambda pod, ours: ours["stoker-sidecar"]["env"].append({"name": "AWS_ROLE_ARN", "value": "r"}),
    lambda pod, ours: [ours["stoker-sidecar"]["env"].append({"name": name, "value": "x"})
                       for name in ("HTTPS_PROXY", "NO_PROXY", "JOB_COMPLETION_INDEX")],
    lambda pod, ours: (
        pod["spec"]["volumes"].append({"name": "aws-iam-token", "emptyDir": {}}),
        ours["stoker-sidecar"]["volumeMounts"].append(
            {"name": "aws-iam-token", "mountPath": "/var/run/secrets/eks.amazonaws.com/serviceaccount"})),
    lambda pod, ours: (
        pod["spec"]["volumes"].append({"name": "eks-pod-identity-token", "emptyDir": {}}),
        ours["stoker-sidecar"]["volumeMounts"].append(
            {"name": "eks-pod-identity-token",
             "mountPath": "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount"})),
    lambda pod, ours: pod["spec"]["containers"].append(
        {"name": "log", "image": "i", "volumeMounts": [{"name": "mine", "mountPath": "/x"}]}),
])
def test_other_changes_of_injected_pods_are_admitted(with_webhook, change):
    item = foreign(change)
    item["spec"]["volumes"].append({"name": "mine", "emptyDir": {}})
    admits(with_webhook, item)


@pytest.fixture
def pod(server):
    made = server.kubectl("create", f"--as={OPERATOR}", "--as-group=system:masters", "-f", "-", stdin=json.dumps(POD))
    assert made.returncode == 0, made.stderr
    yield f"{PODS}/rank"
    server.request("DELETE", f"{PODS}/rank?gracePeriodSeconds=0")


def patch(server, path, body):
    status, answer = server.request("PATCH", path, body, content_type="application/strategic-merge-patch+json")
    return status, answer.get("message", "") if isinstance(answer, dict) else answer


@pytest.mark.parametrize("container", OURS)
def test_images_of_our_containers_cannot_change(server, pod, container):
    other = {"spec": {"initContainers": [{"name": container, "image": "evil:1"}]}}
    status, message = patch(server, pod, other)
    assert status == 422 and "images of stoker-sidecar, stoker-s3 and stoker-files cannot change" in message
    trainer = {"spec": {"containers": [{"name": "trainer", "image": "train:2"}]}}
    assert patch(server, pod, trainer)[0] == 200


def test_sidecar_image_of_a_filler_cannot_change(server):
    filler = copy.deepcopy(POD)
    filler["metadata"]["name"] = "filler"
    filler["spec"]["containers"] = filler["spec"].pop("initContainers")[:1]
    del filler["spec"]["containers"][0]["restartPolicy"]
    made = server.kubectl("create", f"--as={OPERATOR}", "--as-group=system:masters", "-f", "-",
                          stdin=json.dumps(filler))
    assert made.returncode == 0, made.stderr
    try:
        other = {"spec": {"containers": [{"name": "stoker-sidecar", "image": "evil:1"}]}}
        status, message = patch(server, f"{PODS}/filler", other)
        assert status == 422 and "image of stoker-sidecar cannot change" in message
        body = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox:1",
                                                  "targetContainerName": "stoker-sidecar"}]}}
        assert patch(server, f"{PODS}/filler/ephemeralcontainers", body)[0] == 422
    finally:
        server.request("DELETE", f"{PODS}/filler?gracePeriodSeconds=0")


@pytest.mark.parametrize("part, refused", [
    ({}, False),
    ({"targetContainerName": "trainer"}, False),
    ({"targetContainerName": "stoker-sidecar"}, True),
    ({"targetContainerName": "stoker-s3"}, True),
    ({"volumeMounts": [{"name": "stoker-data-0", "mountPath": "/x"}]}, True),
])
def test_ephemeral_containers_cannot_reach_the_sidecar(server, pod, part, refused):
    body = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox:1", **part}]}}
    status, message = patch(server, pod + "/ephemeralcontainers", body)
    assert (status == 422) == refused, message
    assert ("an ephemeral container may neither" in message) == refused


@pytest.mark.parametrize("container", OURS)
@pytest.mark.parametrize("way", ["exec", "attach"])
def test_exec_and_attach_to_our_containers_are_rejected(server, pod, way, container):
    status, answer = server.request("POST", f"{pod}/{way}?command=id&container={container}&stdout=true")
    assert status == 422 and "nobody may run commands in stoker-sidecar, stoker-s3 or stoker-files" in answer["message"]
    status, answer = server.request("POST", f"{pod}/{way}?command=id&container=trainer&stdout=true")
    assert status != 422, answer
