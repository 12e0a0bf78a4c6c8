"""Bad input gets a clear message: from `kubectl apply` for static rules, otherwise in a condition."""

import copy

import pytest

from harness import jobs
from harness.kube import condition, wait_until


def job(**changes):
    item = jobs.training_job("bad", ["--epochs", 1])
    for path, value in changes.items():
        target = item
        *parents, last = path.split("__")
        for parent in parents:
            target = target[int(parent)] if parent.isdigit() else target[parent]
        if value is None:
            del target[last]
        else:
            target[last] = value
    return item


REFUSED = [
    ("an unknown field", job(spec__cashe={"mode": "Off"}), "cashe"),
    ("a missing image", job(spec__trainer__image=None), "spec.trainer.image"),
    ("zero nodes", job(spec__trainer__numNodes=0), "spec.trainer.numNodes"),
    ("minBytes over maxBytes", job(spec__cache={"minBytes": "2Gi", "maxBytes": "1Gi"}), "minBytes"),
    ("neither datasetRef nor storageUri", job(spec__datasets=[{"name": "train"}]), "datasetRef"),
    ("both datasetRef and storageUri",
     job(spec__datasets=[{"name": "train", "datasetRef": {"name": "a"}, "storageUri": "s3://b"}]), "storageUri"),
    ("a name of 60 characters", job(metadata__name="n" * 60), "52 characters"),
    ("sizes with the cache off", job(spec__cache={"mode": "Off", "maxBytes": "1Gi"}), "Off"),
]


@pytest.mark.parametrize("item,words", [entry[1:] for entry in REFUSED], ids=[entry[0] for entry in REFUSED])
def test_a_wrong_job_is_refused_with_the_field_in_the_answer(namespace, item, words):
    assert words in namespace.refused(copy.deepcopy(item))


def test_a_job_waits_for_its_dataset_and_starts_when_it_appears(namespace):
    namespace.apply(jobs.training_job("early", ["--epochs", 1]))
    found = namespace.wait_condition("trainingjob", "early", "DataReady", "False")
    assert "mnist" in found["message"] and found["reason"] == "DatasetNotFound"
    namespace.apply(jobs.dataset())
    namespace.wait_complete("early")


def dataset_condition(namespace, words):
    """The Ready condition, once it contains the origin's message."""
    def said():
        found = condition(namespace.get("dataset", "mnist"), "Ready")
        return found if found.get("status") == "False" and words in found.get("message", "") else None
    return wait_until(f"the dataset to say '{words}'", said, 600)


TRY_ON = {"backoffLimit": 100}


def test_a_missing_bucket_is_named_in_the_origins_words_and_retried(namespace, bucket):
    name = bucket.name
    bucket.destroy()
    namespace.apply(jobs.dataset(uri=f"s3://{name}"),
                    jobs.training_job("lost", ["--epochs", 1, "--hold", "1:0"], run_policy=TRY_ON))
    found = dataset_condition(namespace, "NoSuchBucket")
    assert name in found["message"]
    bucket.create().put({"0/a.bin": b"a", "0/b.bin": b"b"})
    pod = namespace.pod_at_hold("lost", "1:0")  # a pod of the first attempt that finds the bucket
    wait_until("the sidecar to find the bucket, too", lambda: namespace.dataset_status().get("samples") == 2, 600)
    namespace.go(pod, "1:0")
    namespace.wait_complete("lost")


def test_wrong_credentials_are_reported_in_the_origins_words(namespace):
    namespace.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"},
                     "stringData": {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}},
                    jobs.dataset(), jobs.training_job("locked-out", ["--epochs", 1]))
    dataset_condition(namespace, "No user exists with the provided access key ID")


def test_an_empty_dataset_waits_until_it_has_samples(namespace, bucket):
    namespace.apply(jobs.dataset(uri=f"s3://{bucket.name}/no/such/prefix"),
                    jobs.training_job("empty", ["--epochs", 1], run_policy=TRY_ON))
    dataset_condition(namespace, "empty")
    bucket.put({"no/such/prefix/0/a.bin": b"a"})
    namespace.wait_complete("empty")
