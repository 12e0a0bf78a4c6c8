"""Training through the cache: who asks the origin how often, counted at the origin."""

from harness import jobs, origin as origins

FULL = {"mode": "Fixed", "maxBytes": "1Gi"}


def gets_per_epoch(origin, epochs):
    """Object GETs at the origin in each of a trainer's epochs."""
    times = [epoch["began_ms"] for epoch in epochs] + [epochs[-1]["began_ms"] + epochs[-1]["seconds"] * 1000 + 500]
    return [span.gets for span in origin.between(times)]


def test_two_pods_on_one_node_share_one_node_directory(namespace, origin):
    namespace.apply(jobs.dataset(), jobs.training_job("pair", ["--epochs", 3, "--batch-size", 50], nodes=2, cache=FULL))
    mark = origin.mark()
    namespace.wait_complete("pair")
    pods = namespace.pods("pair")
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 1
    ranks = [namespace.epochs(pod["metadata"]["name"]) for pod in pods]
    for first, second in zip(*ranks):
        assert first["distinct"] + second["distinct"] == origins.SAMPLES
    assert origin.since(mark).gets == origins.SAMPLES, "each sample is fetched once for both pods and all epochs"
    last = max(rank[0]["began_ms"] + rank[0]["seconds"] * 1000 for rank in ranks)
    assert origin.between([last + 1000, last + 600_000])[0].gets == 0, "nothing after the first epoch"


def test_half_a_grant_costs_half_the_dataset_each_epoch(namespace, origin):
    namespace.apply(jobs.dataset())
    total = jobs_dataset_bytes(namespace)
    namespace.apply(jobs.training_job("half", ["--epochs", 4, "--step-ms", 5], cache={
        "mode": "Fixed", "maxBytes": str(total // 2)}))
    namespace.wait_complete("half")
    epochs = namespace.epochs(namespace.pods("half")[0]["metadata"]["name"])
    status = namespace.job("half")["status"]
    resident = resident_samples(namespace)
    assert 0.45 <= resident / origins.SAMPLES <= 0.55, status
    for gets in gets_per_epoch(origin, epochs)[1:]:
        assert abs(gets - (origins.SAMPLES - resident)) <= 0.01 * origins.SAMPLES
    assert all(epoch["distinct"] == origins.SAMPLES for epoch in epochs)


def jobs_dataset_bytes(namespace):
    """Bytes on the node that the whole dataset takes, learnt from a first job that is then forgotten."""
    namespace.apply(jobs.training_job("measure", ["--epochs", 1], cache=FULL))
    namespace.wait_complete("measure")
    status = namespace.get("dataset", "mnist")["status"]
    namespace.kube.delete("trainingjob", "measure", namespace.name)
    return int(status["cachedBytes"])


def resident_samples(namespace):
    return int(namespace.get("dataset", "mnist")["status"]["cachedSamples"])


def test_a_second_job_on_the_same_dataset_starts_warm(namespace, origin):
    namespace.apply(jobs.dataset(), jobs.training_job("first", ["--epochs", 1], cache=FULL))
    namespace.wait_complete("first")
    mark = origin.mark()
    namespace.apply(jobs.training_job("second", ["--epochs", 1], cache=FULL))
    namespace.wait_complete("second")
    assert origin.since(mark).gets == 0


def test_the_stream_is_the_same_with_and_without_the_cache(namespace, origin):
    namespace.apply(jobs.dataset(),
                    jobs.training_job("cached", ["--epochs", 2, "--workers", 2], cache=FULL),
                    jobs.training_job("plain", ["--epochs", 2, "--workers", 2], cache={"mode": "Off"}))
    namespace.wait_complete("cached")
    namespace.wait_complete("plain")
    digests = [[epoch["digest"] for epoch in namespace.epochs(namespace.pods(name)[0]["metadata"]["name"])]
               for name in ("cached", "plain")]
    assert digests[0] == digests[1] and len(digests[0]) == 2


def test_a_namespace_over_its_quota_gets_its_share_and_a_reason(namespace, origin):
    namespace.apply(jobs.quota("1Mi"), jobs.dataset(),
                    jobs.training_job("greedy", ["--epochs", 2], cache=FULL))
    found = namespace.wait_condition("trainingjob", "greedy", "CacheAllocated", "True", "QuotaExhausted")
    assert "1Mi" in found["message"]
    namespace.wait_complete("greedy")
    assert int(namespace.get("dataset", "mnist")["status"]["cachedBytes"]) <= 1024 * 1024
