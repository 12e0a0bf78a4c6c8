"""Training through the cache: requests to the origin, counted at the origin."""

from harness import jobs, origin as origins
from harness.jobs import FULL
from harness.kube import wait_until


def gets_per_epoch(origin, epochs):
    """Object GETs at the origin in each of a trainer's epochs."""
    times = [epoch["began_ms"] for epoch in epochs] + [epochs[-1]["began_ms"] + epochs[-1]["seconds"] * 1000 + 500]
    return [span.gets for span in origin.between(times)]


def test_two_pods_on_one_node_share_one_node_directory(namespace, origin):
    namespace.apply(jobs.dataset())
    mark = origin.mark()
    pods = namespace.start("pair", ["--epochs", 3, "--batch-size", 50], ranks=2, cache=FULL)
    namespace.wait_complete("pair")
    ranks = [namespace.epochs(pod) for pod in pods]
    for first, second in zip(*ranks):
        assert first["distinct"] + second["distinct"] == origins.SAMPLES
    assert [len(epochs) for epochs in ranks] == [3, 3]
    assert origin.since(mark).gets == origins.SAMPLES, "each sample is fetched once for both pods and all epochs"
    first_epoch_end = max(epochs[0]["began_ms"] + epochs[0]["seconds"] * 1000 for epochs in ranks)
    assert origin.between([first_epoch_end, first_epoch_end + 86_400_000])[0].gets == 0, "no GETs after the first epoch"


def test_a_grant_for_half_the_dataset_saves_half_of_the_gets_in_each_epoch(namespace, origin):
    """(1-w)N GETs per epoch, where w = 0.5 is the granted share of the dataset's bytes. The resident samples are random
    and differ in size, so half of the bytes are half of the samples ± 5 (one sigma), a fifth of the test's
    tolerance."""
    namespace.apply(jobs.dataset())
    whole = bytes_on_the_node(origin.sizes())
    half = whole // 2
    pod, = namespace.start("half", ["--epochs", 4, "--hold", "4:0"],
                           cache={"mode": "Fixed", "maxBytes": str(half)}, granted=lambda size: size == half)
    namespace.wait_hold(pod, "4:0")
    epochs = namespace.epochs(pod)
    assert all(epoch["distinct"] == origins.SAMPLES for epoch in epochs)
    expected = (1 - half / whole) * origins.SAMPLES
    first, *others = gets_per_epoch(origin, epochs)
    assert first == origins.SAMPLES and len(others) == 3
    for gets in others:
        assert abs(gets - expected) <= 0.01 * expected, others
    assert 0.99 * half <= namespace.settled_dataset(pod)["cachedBytes"] <= half, "the sidecar keeps the granted bytes, and no more"
    namespace.go(pod, "4:0")
    namespace.wait_complete("half")


def bytes_on_the_node(sizes):
    """Bytes that samples of these sizes take in segments, as grants count them: a record has a header of 64 bytes and
    ends at a multiple of 64 (docs/design/segment-format.md)."""
    return sum((64 + size + 63) // 64 * 64 for size in sizes)


def test_cached_bytes_count_whole_records(namespace, origin):
    namespace.apply(jobs.dataset())
    pod, = namespace.start("all", ["--epochs", 1, "--hold", "1:0"], cache=FULL)
    namespace.wait_hold(pod, "1:0")
    status = namespace.settled_dataset(pod)
    assert status["cachedSamples"] == origins.SAMPLES
    assert status["cachedBytes"] == bytes_on_the_node(origin.sizes())
    namespace.go(pod, "1:0")
    namespace.wait_complete("all")


def test_a_jobs_last_progress_is_in_its_status_after_its_end(namespace):
    namespace.apply(jobs.dataset())
    namespace.start("short", ["--epochs", 1], cache=FULL)  # the sidecar ends with the trainer, between two reports
    namespace.wait_complete("short")
    wait_until("the Dataset's status to count all cached samples",
               lambda: namespace.dataset_status().get("cachedSamples") == origins.SAMPLES, 120)
    wait_until("the job's status to count all that it keeps", lambda: (
        namespace.job("short")["status"]["cache"]["usedBytes"] == namespace.dataset_status()["cachedBytes"]), 120)

    def status():
        return namespace.job("short")["status"]
    wait_until("the job's status to show that it has read everything", lambda: status()["progress"] == {
        "epoch": 0, "percentage": 100, "samplesRead": origins.SAMPLES}, 600, seen=status)
    cache = status()["cache"]
    assert cache["hitRatio"] == "0.00", "a sample that a cold epoch fetches just in time is not a hit"
    assert cache["originBytes"] == namespace.dataset_status()["totalBytes"] and cache["cacheBytes"] == 0
    namespace.start("again", ["--epochs", 1], cache=FULL)
    namespace.wait_complete("again")
    wait_until("the second job's status to show no reads from the origin",
               lambda: namespace.job("again")["status"]["cache"].get("hitRatio") == "1.00", 600)
    for name in ("short", "again"):
        namespace.wait_condition("trainingjob", name, "DataReady")


def test_a_second_job_on_the_same_dataset_starts_warm(namespace, origin):
    namespace.apply(jobs.dataset())
    namespace.start("first", ["--epochs", 1], cache=FULL)
    namespace.wait_complete("first")
    mark = origin.mark()
    pod, = namespace.start("second", ["--epochs", 1], cache=FULL)
    namespace.wait_complete("second")
    assert namespace.epochs(pod)[0]["distinct"] == origins.SAMPLES
    assert origin.since(mark).gets == 0


def test_the_sample_order_is_the_same_with_and_without_the_cache(namespace, expected):
    namespace.apply(jobs.dataset())
    pod, = namespace.start("cached", ["--epochs", 3, "--workers", 2], cache=FULL)
    namespace.wait_complete("cached")
    assert namespace.digests(pod) == expected


def test_a_namespace_over_its_quota_gets_its_share_and_a_reason(namespace):
    quota = 1024 * 1024
    namespace.apply(jobs.quota("1Mi", borrowingLimit="0"), jobs.dataset())
    pod, = namespace.start("greedy", ["--epochs", 2, "--hold", "2:0"], cache=FULL, granted=lambda size: size <= quota)
    found = namespace.wait_condition("trainingjob", "greedy", "CacheAllocated", "True", "QuotaExhausted")
    assert "1Mi" in found["message"]
    namespace.wait_hold(pod, "2:0")
    assert 0.95 * quota <= namespace.settled_dataset(pod)["cachedBytes"] <= quota
    namespace.go(pod, "2:0")
    namespace.wait_complete("greedy")


def test_a_job_with_the_longest_allowed_name_trains(namespace):
    name = "n" * 52
    namespace.apply(jobs.dataset(), jobs.training_job(name, ["--epochs", 1], nodes=2, cache=FULL))
    namespace.wait_complete(name)
    assert sum(namespace.epochs(pod["metadata"]["name"])[0]["distinct"] for pod in namespace.pods(name)) == origins.SAMPLES
