"""Objects as real origins have them: odd names, huge ones among small ones, some deleted or changed since the
listing."""

import hashlib
import random

import pytest

from harness import jobs
from harness.jobs import FULL, OFF

KEYS = ["0/plain.png", "0/with space.png", "0/ two  spaces and an end ", "0/ünïcode-日本語-🚂.png", "0/100%.png",
        "0/100%25.png", "0/a+b.png", "0/a%2Bb.png", "0/..two dots", "0/dots..inside", "a..b/..c/d...png",
        "1/question?mark=1&more#hash.png", "1/semi;colon:and,comma", "1/quote'and\"double", "1/<angle>&amp;.xml",
        "1/back\\slash", "1/[brackets]{braces}", "1/$(dollar) $$ ${HOME}", "1/tilde~under_score-dash", "1/" + "l" * 200]


def text(seed, size):
    return random.Random(seed).randbytes(size)


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def samples(namespace, pod):
    """The samples that read_keys.py got, sorted by round and id."""
    found = [line for line in namespace.lines(pod) if line["event"] == "sample"]
    return sorted(found, key=lambda line: (line["round"], line["id"]))


def dataset(bucket):
    return jobs.dataset("odd", f"s3://{bucket.name}")


def start(namespace, name, args, cache=FULL, **spec):
    return namespace.start(name, args, script="read_keys.py", dataset_name="odd", cache=cache, **spec)[0]


@pytest.mark.parametrize("cache", [FULL, OFF], ids=["cached", "at-the-origin"])
def test_any_key_is_listed_and_read(namespace, bucket, cache):
    objects = {key: text(key, 500 + 37 * number) for number, key in enumerate(KEYS)}
    bucket.put(objects)
    namespace.apply(dataset(bucket))
    pod = start(namespace, "keys", ["--plan"], cache)
    namespace.wait_complete("keys")
    found = samples(namespace, pod)
    expected = [(key, sha256(objects[key])) for key in sorted(objects, key=str.encode)]
    for round_number in (0, 1):
        assert [(line["key"], line["sha256"]) for line in found if line["round"] == round_number] == expected


def test_a_deleted_or_changed_object_is_an_error_with_its_key_and_the_others_are_read(namespace, bucket):
    objects = {f"0/{number:02}.bin": text(number, 3000) for number in range(20)}
    bucket.put(objects)
    namespace.apply(dataset(bucket))
    # The dataset is listed but unread: the trainer waits until the objects have changed.
    namespace.apply(jobs.training_job("late", ["--hold", "0:0"], script="read_keys.py", dataset_name="odd", cache=FULL))
    pod = namespace.pod("late")["metadata"]["name"]
    namespace.wait_hold(pod, "0:0")
    namespace.wait_granted([pod], lambda size: size > 0)
    bucket.remove("0/03.bin")
    bucket.put({"0/07.bin": text("same size", 3000), "0/11.bin": text("other size", 3001)})
    namespace.go(pod, "0:0")
    namespace.wait_complete("late")
    found = samples(namespace, pod)
    assert len(found) == 2 * len(objects)
    for line in found:
        key = f"0/{line['id']:02}.bin"
        if line["id"] in (3, 7, 11):
            assert line["error"] == ("NotFoundError" if line["id"] == 3 else "ChangedError")
            assert line["key"] == key and key in line["words"]
        else:
            assert (line["key"], line["sha256"]) == (key, sha256(objects[key]))


def test_a_changed_dataset_is_a_new_revision_for_the_next_job(namespace, bucket):
    bucket.put({f"0/{number}.bin": text(number, 1000) for number in range(10)})
    namespace.apply(dataset(bucket))
    start(namespace, "before", [])
    namespace.wait_complete("before")
    changed = {"0/4.bin": text("changed", 1000), "0/new.bin": text("new", 1000)}
    bucket.put(changed)
    pod = start(namespace, "after", [])
    namespace.wait_complete("after")
    found = {line["key"]: line["sha256"] for line in samples(namespace, pod)}
    assert len(found) == 11
    assert {key: found[key] for key in changed} == {key: sha256(body) for key, body in changed.items()}


HUGE = 5 << 30
LARGE = 300 << 20


def test_a_large_object_is_cached_in_parts_and_one_without_room_is_read_past_the_cache(namespace, bucket, kube):
    small = {f"small/{number:03}.bin": text(number, 10_000) for number in range(200)}
    bucket.put(small)
    bucket.put_sparse("large/300-mebibytes.bin", LARGE)  # more than the 64 MiB that may be in memory at a time
    bucket.put_sparse("large/5-gibibytes.bin", HUGE)
    namespace.apply(dataset(bucket))
    # The plan contains all objects, so the sidecar itself must find the object that has no room. The trainer reads all
    # but that object (number 1), which does not fit into the trainer's memory limit.
    pod = start(namespace, "huge", ["--plan", "--skip", 1, "--hold", "2:0"], cache={
        "mode": "Fixed", "maxBytes": "1Gi"})
    namespace.wait_hold(pod, "2:0")
    found = {(line["round"], line["key"]): line for line in samples(namespace, pod)}
    zeros = hashlib.sha256()
    for _ in range(LARGE >> 20):
        zeros.update(bytes(1 << 20))
    for round_number in (0, 1):
        assert found[round_number, "large/300-mebibytes.bin"]["sha256"] == zeros.hexdigest()
        for key, body in small.items():
            assert found[round_number, key]["sha256"] == sha256(body)
    status = namespace.settled_dataset(pod, name="odd")
    assert (status["samples"], status["cachedSamples"]) == (len(small) + 2, len(small) + 1)
    assert status["totalBytes"] == HUGE + LARGE + sum(map(len, small.values()))
    namespace.go(pod, "2:0")
    namespace.wait_complete("huge")
    for state in kube.get("pod", pod, namespace.name)["status"]["initContainerStatuses"]:
        assert state["restartCount"] == 0, state
