"""Samples the cluster every two seconds: statuses, the operator's metrics, the trainers' logs."""

import contextlib
import re
import threading
import time

import scenario
from harness.installation import SYSTEM
from harness.kube import KubeError, condition

EVERY_SECONDS = 2
TOLERANCE = 0.05 * scenario.POOL_BYTES  # bytes count as moved when they are this close to their goal
METRIC = re.compile(r'^(stoker_job_\w+)\{(.*)\} (\S+)$')
LABEL = re.compile(r'(\w+)="([^"]*)"')


def told_of(job):
    """The cache fields of a TrainingJob's status."""
    status = job.get("status", {})
    cache, why = status.get("cache", {}), condition(job, "CacheAllocated")
    return {"granted": cache.get("allocatedBytes", 0), "used": cache.get("usedBytes", 0),
            "borrowed": cache.get("borrowedBytes", 0), "reason": why.get("reason"), "message": why.get("message"),
            "profiled": condition(job, "Profiled").get("reason"), "profile": status.get("profile", {})}


def parse_metrics(text):
    """{job: {metric: value}} from the operator's per-job metrics."""
    found = {}
    for line in text.splitlines():
        match = METRIC.match(line)
        if match:
            labels = dict(LABEL.findall(match[2]))
            if "training_job" in labels:
                found.setdefault(labels["training_job"], {})[match[1]] = float(match[3])
    return found


class Observer(threading.Thread):
    """Appends one {seconds, jobs, quotas, metrics} to `points` per sample; seconds count from `began` (UNIX time)."""

    def __init__(self, kube):
        super().__init__(daemon=True)
        self.began = time.time()
        self.points = []
        self._kube = kube
        self._done = threading.Event()

    def seconds(self):
        return time.time() - self.began

    def run(self):
        while not self._done.wait(EVERY_SECONDS):
            with contextlib.suppress(KubeError):  # the next sample is in two seconds
                self.points.append(self.look())

    def look(self):
        at = self.seconds()
        jobs = {job["metadata"]["name"]: told_of(job) for job in self._kube.list("trainingjobs")}
        quotas = {quota["metadata"]["namespace"]: quota.get("status", {}) for quota in self._kube.list("cachequotas")}
        return {"seconds": at, "jobs": jobs, "quotas": quotas, "metrics": self.metrics()}

    def metrics(self):
        """Metrics of both replicas: each has the objects, the leader also has the profiles."""
        found = {}
        for pod in self._kube.list("pods", SYSTEM):
            name = pod["metadata"]["name"]
            with contextlib.suppress(KubeError):
                told = self._kube.raw(f"/api/v1/namespaces/{SYSTEM}/pods/{name}:8080/proxy/metrics")
                for job, values in parse_metrics(told).items():
                    found.setdefault(job, {}).update(values)
        return found

    def latest(self):
        return self.points[-1] if self.points else {"seconds": 0, "jobs": {}, "quotas": {}, "metrics": {}}

    def stop(self):
        self._done.set()
        self.join()


def samples_read(lines):
    """[(UNIX seconds, samples read so far)] from a trainer's JSON lines."""
    return [(line["ms"] / 1000, line["samples"]) for line in lines if line["event"] == "read"]


def samples_per_second(read, begin, end):
    """Samples/s between the trainer's first and last log line within the span (UNIX seconds)."""
    inside = [entry for entry in read if begin <= entry[0] <= end]
    (first_at, first), (last_at, last) = inside[0], inside[-1]
    return (last - first) / (last_at - first_at)


def seconds_to_arrive(points, began, goal):
    """Seconds from `began` until granted and resident bytes stayed at `goal` ({job: bytes}); None: never."""
    reached = None
    for point in points:
        told = point["jobs"]
        there = all(name in told and all(abs(told[name][what] - bytes_) <= TOLERANCE for what in ("granted", "used"))
                    for name, bytes_ in goal.items())
        if not there:
            reached = None
        elif reached is None:
            reached = point["seconds"] - began
    return reached


def seconds_to_reclaim(points):
    """Seconds from the first sample in which the lender's new job wants bytes until no other namespace borrows from the
    lender and the new job is granted its namespace's quota; None: never."""
    began = None
    for point in points:
        told, name = point["jobs"], scenario.LATE.name
        if name not in told or told[name]["reason"] in (None, "Waiting", "WaitingForPods"):
            continue
        began = point["seconds"] if began is None else began
        held = sum(job["used"] for other, job in told.items() if other in (scenario.IO_BOUND.name, scenario.HALF.name))
        is_back = held <= scenario.NOMINAL[scenario.BORROWER] + TOLERANCE
        if is_back and told[name]["granted"] >= scenario.NOMINAL[scenario.LENDER] - TOLERANCE:
            return point["seconds"] - began
    return None
