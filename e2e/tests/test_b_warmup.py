"""A DatasetWarmup fills a node before a job reads: the job then reads from the node. Requests and their times are
counted at the origin."""

import time

from harness import jobs, origin as origins
from harness.kube import wait_until

RATE = 60_000  # bytes/s: MNIST's 1.25 MB take 20 s


def warm(namespace, name="warm", **spec):
    namespace.apply(jobs.warmup(name, nodes={"names": [namespace.home]}, **spec))
    namespace.wait_condition("datasetwarmup", name, "Complete", reason="Warmed")
    return namespace.get("datasetwarmup", name)["status"]


def warmed(namespace, name):
    return (namespace.get("datasetwarmup", name).get("status") or {}).get("bytesWarmed", 0)


def test_a_job_after_a_warm_up_reads_only_from_the_node(namespace, origin):
    namespace.apply(jobs.dataset())
    mark = origin.mark()
    status = warm(namespace)
    assert (status["samplesWarmed"], status["bytesWarmed"]) == (origins.SAMPLES, sum(origin.sizes()))
    assert (status["totalSamples"], status["totalBytes"]) == (origins.SAMPLES, sum(origin.sizes()))
    assert (status["columns"]["percentage"], status["columns"]["nodes"]) == ("100%", "1/1")
    assert origin.since(mark).gets == origins.SAMPLES, "each sample is fetched once"
    pods = namespace.start("after", ["--epochs", 1], cache=jobs.FULL)
    namespace.wait_complete("after")
    assert [epoch["distinct"] for epoch in namespace.epochs(pods[0])] == [origins.SAMPLES]
    proof = 1  # the job's sidecar sends one GET to prove to the filler's sidecar that its key may read
    assert origin.since(mark).gets <= origins.SAMPLES + proof


def test_a_warm_up_keeps_its_rate(namespace, origin):
    """Measures the middle half of the warm-up, because the origin does not know when the filler starts and ends."""
    namespace.apply(jobs.dataset())
    namespace.apply(jobs.warmup("slow", nodes={"names": [namespace.home]}, rateLimit=str(RATE)))

    whole = sum(origin.sizes())
    wait_until("the warm-up to begin", lambda: warmed(namespace, "slow") > 0, 300)
    began = time.time()
    namespace.wait_condition("datasetwarmup", "slow", "Complete", reason="Warmed")
    quarter = whole / RATE / 4
    span = origin.between([1000 * (began + at) for at in (quarter, 3 * quarter)])[0]
    rate = span.bytes / (2 * quarter)
    print(f"a warm-up at {RATE} bytes/s: {rate:.0f} bytes/s over {2 * quarter:.0f} s")
    assert abs(rate - RATE) <= 0.1 * RATE


def test_a_suspended_or_deleted_warm_up_stops(namespace, origin):
    namespace.apply(jobs.dataset())
    spec = {"nodes": {"names": [namespace.home]}, "rateLimit": str(RATE // 4)}
    namespace.apply(jobs.warmup("long", **spec))
    mark = origin.mark()
    wait_until("the first samples", lambda: warmed(namespace, "long") > 0, 300)
    namespace.apply(jobs.warmup("long", suspend=True, **spec))
    namespace.wait_condition("datasetwarmup", "long", "Running", "False", "Suspended")
    settled = origin.since(mark).gets
    namespace.kube.delete("datasetwarmup", "long", namespace.name)
    wait_until("its filler to go", lambda: not namespace.kube.list("jobs", namespace.name), 300)
    assert settled < origins.SAMPLES and origin.since(mark).gets == settled
