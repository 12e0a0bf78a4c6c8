"""Attacks with a tenant's own S3 server, which lists odd keys and reports wrong sizes."""

import hashlib
import json
import time
import urllib.parse

import pytest

from harness import jobs, views
from harness.kube import condition, wait_until

pytestmark = pytest.mark.own_cluster

ODD_KEYS = ["../../../../etc/passwd", "/etc/shadow", "a/../../b", "a/./b", "..", ".", "a//b", " ", "new\nline", "cr\r\nX-Evil: 1",
            "tab\there", "nul\0inside", "ünï/日本語🚂", "é-nfc/é-nfd", "%2e%2e/%2f", "?x=1#y", "a&b=c+d", "'\"<>&;`$(id)",
            "z" * 1024, "ä" * 512, "d/" * 500 + "deep", "\u202egpj.txt", "\x7f\x01"]
BODIES = ["", "x", "0-byte neighbours"]


def odd_origin(namespace, objects):
    """A pod and a Service `odd` with the tenant's own S3 server."""
    namespace.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd"}, "data": {"objects.json": json.dumps(objects)}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "odd"}, "spec": {
            "selector": {"app": "odd"}, "ports": [{"port": 9000}]}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "odd", "labels": {"app": "odd"}}, "spec": {
            "terminationGracePeriodSeconds": 0,
            "volumes": [{"name": "trainers", "configMap": {"name": "trainers"}}, {"name": "odd", "configMap": {"name": "odd"}}],
            "containers": [{"name": "main", "image": jobs.TRAINER_IMAGE,
                            "command": ["python3", "/trainers/odd_origin.py", "/odd/objects.json"],
                            "readinessProbe": {"tcpSocket": {"port": 9000}, "periodSeconds": 1},
                            "volumeMounts": [{"name": "trainers", "mountPath": "/trainers"},
                                             {"name": "odd", "mountPath": "/odd"}]}]}})
    views.running(namespace, "odd")
    namespace.apply(jobs.dataset("odd", "s3://bucket", f"http://odd.{namespace.name}.svc:9000"))


@pytest.mark.parametrize("cache", [jobs.FULL, jobs.OFF], ids=["cached", "at-the-origin"])
def test_hostile_keys_are_never_used_as_paths(namespace, neighbour, cache):
    # threat model, row 4: a key is never used as a path on the node; it goes to the origin byte for byte
    objects = [{"key": key, "body": f"{BODIES[number % 3]}{number if number % 3 else ''}"}
               for number, key in enumerate(ODD_KEYS)]
    odd_origin(namespace, objects)
    namespace.apply(jobs.training_job("odd", ["--plan"], script="read_keys.py", dataset_name="odd", cache=cache,
                                      on=namespace.home))
    namespace.wait_complete("odd", 240)
    pod = namespace.pods("odd")[0]["metadata"]["name"]
    found = [line for line in namespace.lines(pod) if line["event"] == "sample" and line["round"] == 1]
    wrong = []
    for item in objects:
        mine = [line for line in found if line.get("key") == item["key"]]
        digest = hashlib.sha256(item["body"].encode()).hexdigest()
        if [line.get("sha256") for line in mine] != [digest]:
            wrong.append((item["key"][:40], mine))
    asked = {json.loads(line)["path"].partition("?")[0] for line in namespace.kube.logs("odd", namespace.name).splitlines()
             if '"asked"' in line}
    sent = {urllib.parse.unquote_to_bytes(path)[len("/bucket/"):] for path in asked}
    missing = [item["key"][:40] for item in objects if item["body"] and item["key"].encode() not in sent]
    strays = [path for path in asked if not path.startswith("/bucket")]
    assert (wrong, missing, strays) == ([], [], []), sorted(asked)
    neighbour.goes_on()


def test_an_oversized_listing_is_refused_with_the_key(namespace, neighbour, neighbour_ns):
    # threat model, rows 17, 20: sums of sizes saturate instead of overflowing
    huge = 2**63 - 1
    odd_origin(namespace, [{"key": f"a/{i}", "body": "x", "size": huge} for i in range(3)])
    grant = neighbour_ns.job(neighbour.name)["status"]["cache"]["allocatedBytes"]
    namespace.apply(jobs.training_job("fooled", ["--hold", "0:0"], script="read_keys.py", dataset_name="odd", on=namespace.home,
                                      cache={"mode": "Auto"}))
    told = wait_until("the refusal", lambda: condition(namespace.get("dataset", "odd"), "Ready").get("reason") == "OriginFailed" and
                      condition(namespace.get("dataset", "odd"), "Ready"), 300)
    assert "a/" in told["message"], told
    assert namespace.dataset_status("odd").get("totalBytes", 0) == 0
    assert neighbour_ns.job(neighbour.name)["status"]["cache"]["allocatedBytes"] >= grant
    neighbour.goes_on()


def test_false_object_sizes_take_nothing_from_a_neighbour(namespace, neighbour, neighbour_ns):
    # threat model, rows 17, 20: a claimed size allocates no memory
    huge = 2**54  # three objects of this size stay below a dataset's limit
    odd_origin(namespace, [{"key": "a/1", "body": "1", "size": huge}, {"key": "a/2", "body": "2", "size": huge},
                           {"key": "a/3", "body": "3", "size": huge}, {"key": "a/4", "body": "four", "size": 1 << 40},
                           {"key": "a/5", "body": "five", "size": 2}, {"key": "a/6", "body": "6"}])
    grant = neighbour_ns.job(neighbour.name)["status"]["cache"]["allocatedBytes"]
    namespace.apply(jobs.training_job("fooled", ["--hold", "0:0"], script="read_keys.py", dataset_name="odd", on=namespace.home,
                                      cache={"mode": "Auto"}))
    namespace.wait_hold(namespace.pod("fooled")["metadata"]["name"], "0:0")
    time.sleep(20)  # the operator plans several times with the wrong sizes
    print(json.dumps(namespace.job("fooled").get("status")), json.dumps(namespace.dataset_status("odd")), sep="\n")
    namespace.go(namespace.pod("fooled")["metadata"]["name"], "0:0")
    wait_until("the job to end", lambda: condition(namespace.job("fooled"), "Finished").get("status") == "True", 120)
    print(condition(namespace.job("fooled"), "Finished"))
    told = namespace.dataset_status("odd")
    assert told.get("totalBytes", 0) >= 0 and told.get("cachedBytes", 0) >= 0
    assert neighbour_ns.job(neighbour.name)["status"]["cache"]["allocatedBytes"] >= grant
    for pod in namespace.pods("fooled"):
        for line in namespace.lines(pod["metadata"]["name"]):
            print(line)
            if line["event"] == "sample" and "error" not in line:
                assert line["key"] == "a/6", f"bytes of another size were served: {line}"
    neighbour.goes_on()
