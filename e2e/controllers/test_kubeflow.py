"""The real training-operator, JobSet and Kubeflow Trainer: their jobs need only the label to read through the cache."""

import pytest

from harness import controllers
from harness.foreign import HOLDS, events, ranks_read_each_sample_once, reader, template
from harness.jobs import TRAINER_IMAGE
from harness.kube import wait_until

REASONS = {"Running", "Complete"}


# By default a worker waits for its master in an init container whose image this cluster lacks.
INIT_CONTAINER = r"""
- name: init-pytorch
  image: {{.InitContainerImage}}
  imagePullPolicy: IfNotPresent
  command: [python3, -c, "import socket, time\nfor _ in range({{.MaxTries}}):\n  try:\n    socket.gethostbyname('{{.MasterAddr}}')\n    break\n  except OSError:\n    time.sleep(2)"]
"""


def with_init_container(items):
    """The training-operator's objects with a ConfigMap at the path where it looks for such a template."""
    deployment, = controllers.of_kinds(items, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    pod["volumes"].append({"name": "config", "configMap": {"name": "init-container"}})
    pod["containers"][0]["volumeMounts"].append({"name": "config", "mountPath": "/etc/config"})
    pod["containers"][0]["args"] = [f"--pytorch-init-container-image={TRAINER_IMAGE}"]
    return [*items, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"initContainer.yaml": INIT_CONTAINER},
                     "metadata": {"name": "init-container", "namespace": deployment["metadata"]["namespace"]}}]


@pytest.fixture(scope="module")
def training_operator(kube, origin):  # pylint: disable=unused-argument
    items = controllers.customized(kube, "training-operator", "overlays/standalone")
    with controllers.installed(kube, "training-operator", with_init_container(items)):
        yield


@pytest.fixture(scope="module")
def jobset(kube, origin):  # pylint: disable=unused-argument
    with controllers.installed(kube, "jobset", controllers.customized(kube, "jobset", "default")):
        yield


@pytest.fixture(scope="module")
def trainer(kube, jobset):  # pylint: disable=unused-argument
    with controllers.installed(kube, "kubeflow-trainer", controllers.customized(
            kube, "kubeflow-trainer", "overlays/manager")):
        yield


def applied(namespace, *objects):
    """Applies objects as soon as the controller's webhooks answer."""
    def apply():
        namespace.apply(*objects)
        return True
    wait_until("the controller's webhooks to answer", apply, 300, 2)


def without_restarts(pod):
    return {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}


def two_pods(pod):
    return {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimit": 0,
            "template": without_restarts(pod)}


@pytest.mark.own_cluster
@pytest.mark.usefixtures("webhook", "photos", "training_operator")
def test_a_pytorchjob_reads_each_sample_once(namespace, origin, bucket, checkpoints):
    mark = origin.mark()
    namespace.container = "pytorch"  # the name that the training-operator asks for
    pod = template(namespace, reader(bucket, checkpoints, *HOLDS))
    role = {"replicas": 1, "restartPolicy": "Never", "template": pod}
    applied(namespace, {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "plain"},
                        "spec": {"pytorchReplicaSpecs": {"Master": role, "Worker": role}}})
    done = ranks_read_each_sample_once(namespace, origin, mark, "pytorchjob-plain")
    assert done["spec"]["workloadRef"]["kind"] == "PyTorchJob"
    assert REASONS <= {event["reason"] for event in events(namespace, "PyTorchJob", "plain")}


@pytest.mark.own_cluster
@pytest.mark.usefixtures("webhook", "photos", "jobset")
def test_a_jobset_reads_each_sample_once(namespace, origin, bucket, checkpoints):
    mark = origin.mark()
    pod = template(namespace, reader(bucket, checkpoints, *HOLDS))
    applied(namespace, {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "plain"},
                        "spec": {"replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": two_pods(pod)}}]}})
    ranks_read_each_sample_once(namespace, origin, mark, "jobset-plain")
    assert REASONS <= {event["reason"] for event in events(namespace, "JobSet", "plain")}


@pytest.mark.own_cluster
@pytest.mark.usefixtures("webhook", "photos", "trainer")
def test_a_trainjob_reads_each_sample_once(namespace, origin, bucket, checkpoints):
    """The label is in the runtime's pod template, where Kubeflow Trainer 2.0 takes pods' labels from."""
    mark = origin.mark()
    namespace.container = "node"  # the name that Kubeflow Trainer asks for
    pod = template(namespace, reader(bucket, checkpoints, *HOLDS))
    step = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    group = "trainer.kubeflow.org"
    applied(namespace,
            {"apiVersion": f"{group}/v1alpha1", "kind": "TrainingRuntime", "metadata": {"name": "torch"},
             "spec": {"mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "auto"}}, "template": {"spec": {
                 "replicatedJobs": [{"name": "node", "template": {
                     "metadata": step, "spec": {"backoffLimit": 0, "template": without_restarts(pod)}}}]}}}},
            {"apiVersion": f"{group}/v1alpha1", "kind": "TrainJob", "metadata": {"name": "plain"},
             "spec": {"runtimeRef": {"apiGroup": group, "kind": "TrainingRuntime", "name": "torch"},
                      "trainer": {"numNodes": 2}}})
    done = ranks_read_each_sample_once(namespace, origin, mark, "trainjob-plain")
    assert done["spec"]["workloadRef"]["kind"] == "TrainJob"
    assert REASONS <= {event["reason"] for event in events(namespace, "TrainJob", "plain")}
