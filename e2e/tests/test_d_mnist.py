"""Real training on real data: the cache changes the time, not the model."""

import json

from harness import jobs


def mnist(name, cache):
    item = jobs.training_job(name, [], cache=cache)
    item["spec"]["trainer"]["command"] = ["python3", "-u", "mnist/train.py", "--epochs", "3", "--seed", "1"]
    return item


def accuracy(namespace, name):
    text = namespace.kube.logs(namespace.pods(name)[0]["metadata"]["name"], namespace.name, "trainer")
    last = [json.loads(line) for line in text.splitlines() if line.startswith("{")][-1]
    return last["test_accuracy"]


def test_accuracy_with_the_cache_equals_accuracy_without(namespace):
    namespace.apply(jobs.dataset(), mnist("with", {"mode": "Fixed", "maxBytes": "1Gi"}),
                    mnist("without", {"mode": "Off"}))
    namespace.wait_complete("with", 900)
    namespace.wait_complete("without", 900)
    assert accuracy(namespace, "with") > 0.85, "it learns at all"
    assert abs(accuracy(namespace, "with") - accuracy(namespace, "without")) < 0.01
