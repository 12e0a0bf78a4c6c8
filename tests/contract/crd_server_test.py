"""The CRDs in a real API server: it accepts them, sets defaults, rejects bad objects, and prints columns.

No operator runs, so the answers are those that users get while the operator is down.
"""

import copy
import json
import time

import pytest
import yaml

import crd_server
from crd_cases import ACCEPTED, DIRECTORY, FULL, IMMUTABLE, JOB, MUTABLE, POOL, QUOTA, REFUSED, S3
from crd_server import CRD_DIR, GROUP_PATH, ROOT, crd_files, load_documents

PLURALS = {
    "TrainingJob": "trainingjobs",
    "Dataset": "datasets",
    "DatasetWarmup": "datasetwarmups",
    "CachePool": "cachepools",
    "CacheQuota": "cachequotas",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    missing = crd_server.missing_programs()
    if missing:
        pytest.skip(f"needs {', '.join(missing)}; `make cluster-build` installs them")
    running = crd_server.ApiServer(tmp_path_factory.mktemp("api-server"))
    try:
        for path in crd_files():
            status, answer = running.request(
                "POST",
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldValidation=Strict",
                load_documents(path)[0])
            assert status == 201, json.dumps(answer, indent=1)
        wait_until_served(running)
        yield running
    finally:
        running.close()


def wait_until_served(running):
    for plural in PLURALS.values():
        for _ in range(300):
            if running.request("GET", f"{GROUP_PATH}/{plural}")[0] == 200:
                break
            time.sleep(0.1)
        else:
            raise AssertionError(f"{plural} is not served")


def collection(document, name=""):
    plural = PLURALS[document["kind"]]
    scope = "" if document["kind"] == "CachePool" else "/namespaces/default"
    return f"{GROUP_PATH}{scope}/{plural}{name and '/' + name}"


def create(server, document, dry_run=True):
    query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
    return server.request("POST", collection(document) + query, document)


def example(name):
    return load_documents(CRD_DIR / "examples" / f"{name}.yaml")[0]


def changed(document, path, value):
    """A copy with the value at the path, e.g. spec/datasets/0/access; None removes it."""
    result = copy.deepcopy(document)
    *parents, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    place = result
    for step in parents:
        place = place[step] if isinstance(place, list) else place.setdefault(step, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return result


@pytest.mark.parametrize("name, path, value, answer", [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED])
def test_rejects_invalid_objects(server, name, path, value, answer):
    status, body = create(server, changed(example(name), path, value))
    assert status in (400, 422), json.dumps(body, indent=1)
    assert answer in body["message"]


@pytest.mark.parametrize("name, path", [
    (FULL, "spec/cache/maxBytes"), (FULL, "spec/cache/minBytes"), (POOL, "spec/capacityPerNode"),
    (POOL, "spec/originBandwidth"), (QUOTA, "spec/nominalQuota"), (QUOTA, "spec/lendingLimit")])
def test_non_quantity_gets_only_the_pattern_error(server, name, path):
    status, body = create(server, changed(example(name), path, "lots"))
    assert status == 422 and "should match" in body["message"]
    assert "must be" not in body["message"], body["message"]


@pytest.mark.parametrize("name, path, value", [row[1:] for row in ACCEPTED], ids=[r[0] for r in ACCEPTED])
def test_accepts_valid_objects(server, name, path, value):
    status, body = create(server, changed(example(name), path, value))
    assert status == 201, json.dumps(body, indent=1)


def documents_for_users():
    files = sorted((CRD_DIR / "examples").glob("*.yaml")) + sorted((ROOT / "docs/examples").glob("*.yaml"))
    return [(f"{path.stem}-{number}", document)
            for path in files for number, document in enumerate(load_documents(path))
            if document.get("apiVersion", "").startswith("stoker.dev/")]


@pytest.mark.parametrize("document", [d for _, d in documents_for_users()], ids=[n for n, _ in documents_for_users()])
def test_examples_are_accepted(server, document):
    document = copy.deepcopy(document)
    document["metadata"].pop("namespace", None)
    status, body = create(server, document)
    assert status == 201, json.dumps(body, indent=1)


def test_sets_defaults(server):
    spec = create(server, example(JOB))[1]["spec"]
    assert spec["suspend"] is False
    assert spec["trainer"]["numNodes"] == 1
    assert spec["trainer"]["numProcPerNode"] == "auto"
    assert spec["runPolicy"] == {"backoffLimit": 3}
    assert spec["cache"] == {
        "mode": "Auto", "medium": "NVMe", "evictionPolicy": "Auto", "warmup": "Lazy", "onCacheFailure": "Bypass",
            "weight": 1}
    assert spec["datasets"] == [{
        "name": "train", "datasetRef": {"name": "imagenet"}, "access": "SDK", "sampling": "EpochShuffle",
        "contract": "Exact", "placement": "Hash"}]
    spec = create(server, example(S3))[1]["spec"]
    assert (spec["format"], spec["consistency"]) == ("Objects", {"mode": "Immutable"})
    spec = create(server, changed(example(POOL), "spec/reservedFree", None))[1]["spec"]
    assert (spec["medium"], spec["reservedFree"], spec["stopPolicy"]) == ("NVMe", "15%", "None")
    assert spec["allocation"] == "Throughput"
    assert create(server, example(QUOTA))[1]["spec"]["stopPolicy"] == "None"


def test_sets_defaults_if_spec_cache_has_only_max_bytes(server):
    spec = create(server, changed(example(JOB), "spec/cache", {"maxBytes": "1Gi"}))[1]["spec"]
    assert (spec["cache"]["mode"], spec["cache"]["warmup"]) == ("Auto", "Lazy")


@pytest.fixture
def stored(server):
    """Stores documents, and deletes them after the test."""
    kept = []

    def store(document):
        status, body = create(server, document, dry_run=False)
        assert status == 201, json.dumps(body, indent=1)
        kept.append(body)
        return body

    yield store
    for document in kept:
        server.request("DELETE", collection(document, document["metadata"]["name"]))


def update(server, document, path, value):
    document = changed(document, path, value)
    name = document["metadata"]["name"]
    return server.request("PUT", collection(document, name) + "?fieldValidation=Strict", document)


@pytest.mark.parametrize("name, path, value, answer", [r[1:] for r in IMMUTABLE], ids=[r[0] for r in IMMUTABLE])
def test_immutable_fields_may_not_change(server, stored, name, path, value, answer):
    status, body = update(server, stored(example(name)), path, value)
    assert status == 422, json.dumps(body, indent=1)
    assert answer in body["message"]


@pytest.mark.parametrize("name, path, value", [r[1:] for r in MUTABLE], ids=[r[0] for r in MUTABLE])
def test_other_fields_may_change(server, stored, name, path, value):
    status, body = update(server, stored(example(name)), path, value)
    assert status == 200, json.dumps(body, indent=1)


def test_suspended_job_may_change_its_trainer(server, stored):
    body = stored(changed(example(JOB), "spec/suspend", True))
    for path, value in (("spec/trainer/image", "other:2"), ("spec/cache/mode", "Off")):
        status, body = update(server, body, path, value)
        assert status == 200, json.dumps(body, indent=1)


def test_stores_status_only_through_its_subresource(server, stored):
    document = stored(example(JOB))
    assert "status" not in update(server, document, "status", {"attempt": 1})[1]
    path = collection(document, "digits") + "/status"
    status, body = server.request("PUT", path, changed(document, "status", {"attempt": 1}))
    assert status == 200, json.dumps(body, indent=1)
    assert body["status"] == {"attempt": 1}


def condition(kind, status, reason):
    return {"type": kind, "status": status, "reason": reason, "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}


# (example, status, its row in the wide table without Age)
PRINTED = [
    (JOB,
     {"conditions": [condition("CacheAllocated", "True", "Granted"), condition("Finished", "False", "Running")],
      "columns": {"cache": "310Gi/500Gi", "hit": "62%", "origin": "120Mi/s"}, "attempt": 2,
      "progress": {"epoch": 3}},
     {"Name": "digits", "State": "Running", "Nodes": 1, "Cache": "310Gi/500Gi", "Hit": "62%",
      "Epoch": 3, "Attempt": 2, "Origin": "120Mi/s", "Why": "Granted"}),
    (S3,
     {"conditions": [condition("Ready", "True", "Listed")], "samples": 5000, "nodes": 2,
      "columns": {"size": "137Gi", "cached": "80Gi", "cachedPercentage": "29%", "hit": "62%"}},
     {"Name": "imagenet", "Size": "137Gi", "Samples": 5000, "Cached": "80Gi", "Cached%": "29%", "Hit": "62%",
      "Nodes": 2, "Ready": "True", "Why": "Listed", "Origin": "s3://imagenet/train"}),
    (POOL,
     {"conditions": [condition("Ready", "True", "Ready")],
      "columns": {"nodes": "3/4", "used": "1.2Ti", "granted": "1.4Ti"}},
     {"Name": "gpu-nodes", "Nodes": "3/4", "Per Node": "1600Gi", "Used": "1.2Ti", "Granted": "1.4Ti",
      "Ready": "True", "Path": "/mnt/nvme/stoker", "Stop": "None"}),
    (QUOTA,
     {"conditions": [condition("Active", "True", "Active")], "columns": {"used": "1.2Ti", "share": "60%"}},
     {"Name": "gpu-nodes", "Pool": "gpu-nodes", "Nominal": "2Ti", "Used": "1.2Ti", "Share": "60%",
      "Active": "True"}),
]


@pytest.mark.parametrize("name, status, row", PRINTED, ids=[row[0] for row in PRINTED])
def test_kubectl_get_prints_columns(server, stored, name, status, row):
    document = stored(example(name))
    path = collection(document, document["metadata"]["name"])
    assert server.request("PUT", path + "/status", changed(document, "status", status))[0] == 200
    table = server.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")[1]
    columns = table["columnDefinitions"]
    printed = dict(zip([c["name"] for c in columns], table["rows"][0]["cells"]))
    assert {name: printed[name] for name in row} == row
    ours = [c for c in columns if c["name"] not in ("Name",)]
    assert all(c["description"].endswith(".") for c in ours)


def test_prints_the_queue_label(server, stored):
    stored(example(FULL))
    table = server.request(
        "GET", f"{GROUP_PATH}/namespaces/default/trainingjobs/resnet",
        accept="application/json;as=Table;v=v1;g=meta.k8s.io")[1]
    queue = [c["name"] for c in table["columnDefinitions"]].index("Queue")
    assert table["rows"][0]["cells"][queue] == "team-vision"


def test_lists_all_kinds_by_category_and_short_names(server, stored):
    for name in (JOB, S3, POOL, QUOTA):
        stored(example(name))
    answer = server.kubectl("get", "stoker", "-o", "name")
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.split()) == 4, answer.stdout
    answer = server.kubectl("get", "tj,dset,cpool,cquota", "-o", "name")
    assert len(answer.stdout.split()) == 4, answer.stdout + answer.stderr


def test_apply_twice_changes_nothing(server):
    for name in (JOB, FULL, S3, DIRECTORY, POOL, QUOTA):
        text = yaml.safe_dump(example(name))
        first = server.kubectl("apply", "--server-side", "-f", "-", stdin=text)
        assert first.returncode == 0, first.stderr
        second = server.kubectl("apply", "--server-side", "-f", "-", "-o", "jsonpath={.metadata.generation}",
                                stdin=text)
        assert second.stdout == "1", second.stdout + second.stderr
        removed = server.kubectl("delete", "--wait=false", "-f", "-", stdin=text)
        assert removed.returncode == 0, removed.stderr


@pytest.mark.parametrize("path, words", [
    ("tj", "runs one distributed training from node-local NVMe"),
    ("tj.spec.cache.maxBytes", "The most bytes that the job may have in the cache"),
    ("tj.spec.datasets.contract", "What Stoker may change about the sample stream"),
    ("tj.status.conditions.reason", "One word for programs"),
    ("dset.spec.sources.secretRef", "The pods read it; the operator cannot"),
    ("cpool.spec.reservedFree", "Share of the file system that is always left free"),
    ("cquota.spec.nominalQuota", "Bytes that belong to the namespace"),
])
def test_kubectl_explain_shows_descriptions(server, path, words):
    answer = server.kubectl("explain", path)
    assert answer.returncode == 0, answer.stderr
    assert words in " ".join(answer.stdout.split())


def accept_golden(server, name, collection):
    """Creates a golden file's object with dryRun; returns the object as sent, and as the API server would store it."""
    document = json.loads((ROOT / "tests/contract/golden" / f"{name}.json").read_text())
    document["metadata"]["namespace"] = "default"
    status, body = server.request("POST", f"{collection}?dryRun=All&fieldValidation=Strict", document)
    assert status == 201, json.dumps(body, indent=1)
    return document, body


@pytest.mark.parametrize("name", ["job-minimal", "job-without-cache", "job-s3", "job-full", "filler"])
def test_operators_jobs_are_accepted(server, name):
    accept_golden(server, name, "/apis/batch/v1/namespaces/default/jobs")


@pytest.mark.parametrize("name", ["foreign-training-job", "foreign-files-training-job"])
def test_operators_training_job_for_a_foreign_workload_is_accepted_but_not_if_suspended(server, name):
    collection = "/apis/stoker.dev/v1alpha1/namespaces/default/trainingjobs"
    document, _ = accept_golden(server, name, collection)
    document["spec"]["suspend"] = True
    status, body = server.request("POST", f"{collection}?dryRun=All", document)
    assert status == 422 and "suspend the workload instead" in body["message"]


def test_operators_service_is_accepted(server):
    _, body = accept_golden(server, "service", "/api/v1/namespaces/default/services")
    assert body["spec"]["clusterIP"] == "None"
