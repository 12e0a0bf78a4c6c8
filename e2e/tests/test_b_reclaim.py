"""Bytes that a namespace has lent come back when its own jobs want them."""

import pytest

from harness import jobs, origin as origins
from harness.kube import wait_until

NOMINAL = 512 * 1024  # bytes; the dataset has more than three times as many
GRACE = 600  # seconds; the machine may be slow
POOL = "reclaim"
CACHE = {"poolRef": {"name": POOL}}


@pytest.fixture
def pool(kube):
    """With an objective that does not ask how fast the machine computes."""
    kube.apply(jobs.pool("1Gi", POOL, f"{jobs.POOL_PATH}-{POOL}", allocation="Cost"))
    yield
    kube.delete("cachepool", POOL)


def quota(**limits):
    return jobs.quota(NOMINAL, pool_name=POOL, reclaim={"gracePeriodSeconds": GRACE}, **limits)


@pytest.fixture
def owner(kube, pool, namespace):
    """The lender's namespace, beside the test's own one, which borrows."""
    place = jobs.Namespace(kube, f"{namespace.name[:43]}-owner").create()
    place.apply(jobs.dataset(), quota(lendingLimit=str(NOMINAL)))
    yield place
    place.delete()


def reasons(namespace, job):
    """Of the events about the job."""
    return {event["reason"] for event in namespace.kube.list("events", namespace.name)
            if event.get("involvedObject", {}).get("name") == job}


def test_lent_bytes_come_back_to_the_jobs_of_their_owner(namespace, owner):
    namespace.apply(jobs.dataset(), quota(borrowingLimit=str(NOMINAL)))
    borrower, = namespace.start("borrower", ["--epochs", 3, "--hold", "1:0"], cache=CACHE,
                                granted=lambda size: size > 1.9 * NOMINAL)
    namespace.wait_hold(borrower, "1:0")
    assert namespace.settled_dataset(borrower)["cachedBytes"] > 1.9 * NOMINAL
    namespace.wait_condition("trainingjob", "borrower", "CacheAllocated", "True", "QuotaExhausted")
    assert namespace.job("borrower")["status"]["cache"]["borrowedBytes"] > 0.9 * NOMINAL
    assert wait_until("what is lent", lambda: owner.get("cachequota", "quota")["status"].get("lentBytes", 0) > 0.9 * NOMINAL)

    own, = owner.start("own", ["--epochs", 1], cache=CACHE, granted=lambda size: size > 0.9 * NOMINAL)
    assert namespace.settled_dataset(borrower)["cachedBytes"] <= NOMINAL, "the owner's job has bytes that are still elsewhere"
    wait_until("the borrower's status to say so",
               lambda: namespace.job("borrower")["status"]["cache"]["borrowedBytes"] == 0, jobs.SETTLED_SECONDS)
    wait_until("an event that says so", lambda: "Reclaimed" in reasons(namespace, "borrower"), jobs.SETTLED_SECONDS)
    assert "ReclaimOverdue" not in reasons(namespace, "borrower")
    namespace.go(borrower, "1:0")
    namespace.wait_complete("borrower")
    owner.wait_complete("own")
    for place, pod in ((namespace, borrower), (owner, own)):
        assert all(epoch["distinct"] == origins.SAMPLES for epoch in place.epochs(pod))
