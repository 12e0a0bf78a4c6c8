"""Lent bytes return to their namespace when its own jobs need them."""

import datetime

import pytest

from harness import jobs, origin as origins
from harness.kube import wait_until

NOMINAL = 512 * 1024  # bytes; the dataset has more than three times as many
GRACE = 30  # seconds; the default of a quota
POOL = "reclaim"
CACHE = {"poolRef": {"name": POOL}}


@pytest.fixture
def pool(kube, namespace):
    """A pool whose objective does not depend on the machine's speed. A third namespace's quota reserves the rest of the
    pool, because otherwise the borrower would use bytes that no quota names."""
    kube.apply(jobs.pool("1Gi", POOL, f"{jobs.POOL_PATH}-{POOL}", allocation="Cost"))
    rest = jobs.Namespace(kube, f"{namespace.name[:43]}-rest").create()
    rest.apply(jobs.quota("1Ti", pool_name=POOL, lendingLimit="0"))
    yield
    rest.delete()
    kube.delete("cachepool", POOL)


def quota(**limits):
    return jobs.quota(NOMINAL, pool_name=POOL, reclaim={"gracePeriodSeconds": GRACE}, **limits)


@pytest.fixture
def owner(kube, pool, namespace):
    """The lender's namespace. The test's own namespace borrows."""
    place = jobs.Namespace(kube, f"{namespace.name[:43]}-owner").create()
    place.apply(jobs.dataset(), quota(borrowingLimit="0", lendingLimit=str(NOMINAL)))
    yield place
    place.delete()


def told(namespace, job, reason):
    """The job's events with this reason as (time, message), oldest first; times by the operator's clock."""
    return sorted((datetime.datetime.fromisoformat(event["eventTime"].replace("Z", "+00:00")), event["message"])
                  for event in namespace.kube.list("events", namespace.name)
                  if event.get("involvedObject", {}).get("name") == job and event["reason"] == reason)


def check_grace(namespace, job):
    """Checks that an event announced the grace period, and that no event reported a delay before it ended. How fast
    the bytes return depends on the machine; only if it takes longer than the grace may the operator report a delay."""
    # Two events have the reason Reclaimed: this one and that of the condition CacheAllocated, in any order.
    (begun, _), *_ = wait_until(
        "an event with the grace period",
        lambda: [event for event in told(namespace, job, "Reclaimed") if f"within {GRACE} s" in event[1]],
        jobs.SETTLED_SECONDS)
    for late, message in told(namespace, job, "ReclaimOverdue"):
        assert (late - begun).total_seconds() >= GRACE, message


def test_lent_bytes_return_to_the_lenders_jobs(namespace, owner):
    namespace.apply(jobs.dataset(), quota(borrowingLimit=str(NOMINAL), lendingLimit="0"))
    borrower, = namespace.start("borrower", ["--epochs", 3, "--hold", "1:0"], cache=CACHE,
                                granted=lambda size: size > 1.9 * NOMINAL)
    namespace.wait_hold(borrower, "1:0")
    assert namespace.settled_dataset(borrower)["cachedBytes"] > 1.9 * NOMINAL
    namespace.wait_condition("trainingjob", "borrower", "CacheAllocated", "True", "QuotaExhausted")
    assert namespace.job("borrower")["status"]["cache"]["borrowedBytes"] > 0.9 * NOMINAL
    assert wait_until("the lent bytes to be in the status", lambda: owner.get("cachequota", "quota")["status"].get("lentBytes", 0) > 0.9 * NOMINAL)

    own, = owner.start("own", ["--epochs", 1], cache=CACHE, granted=lambda size: size > 0.9 * NOMINAL)
    assert namespace.settled_dataset(borrower)["cachedBytes"] <= NOMINAL, "the owner's job has bytes that the borrower has not returned yet"
    wait_until("the borrower's status to show it",
               lambda: namespace.job("borrower")["status"]["cache"]["borrowedBytes"] == 0, jobs.SETTLED_SECONDS)
    check_grace(namespace, "borrower")
    namespace.wait_condition("cachequota", "quota", "Enforced")
    namespace.go(borrower, "1:0")
    namespace.wait_complete("borrower")
    owner.wait_complete("own")
    for place, pod in ((namespace, borrower), (owner, own)):
        assert all(epoch["distinct"] == origins.SAMPLES for epoch in place.epochs(pod))
