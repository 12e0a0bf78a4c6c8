#!/usr/bin/env python3
"""Three jobs in two namespaces on one pool: does the cache go where it saves the most training?

usage: run.py [--phases PHASES] [--out DIR]       (`make three-jobs` calls it, after building what it needs)

Phases, in this order: stoker (the planner divides the pool), reclaim (a fourth job in the lender's namespace), even
(`allocation: Even`), lru (`allocation: Even`, and every job with `evictionPolicy: LRU`, from cold). Writes
DIR/results.json; page.py makes docs/experiments/three-jobs.md from it. With KUBECONFIG set it uses that cluster.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

import observe  # noqa: E402
import page  # noqa: E402
import scenario  # noqa: E402
from harness import installation, jobs, kube as kubes, origin as origins  # noqa: E402
from harness.kube import wait_until  # noqa: E402

PHASES = ("stoker", "reclaim", "even", "lru")
MEASURE_SECONDS = 75
STILL_SECONDS = 30  # a measurement begins when grants have not changed for this long
SETTLED_SECONDS = 240  # after this long the measurement begins anyway, and the page reports it
FOLLOW_SECONDS = 6  # time after which metrics show a decision of the planner
LRU_EPOCHS = 2  # epochs that the fastest reader completes before LRU is measured
STARTED = time.time()
os.environ["STOKER_STARTED"] = str(STARTED)  # the cluster's scripts print seconds since this time


def say(text):
    print(f"[{time.time() - STARTED:5.0f} s] {text}", flush=True)


def share(bytes_):
    return f"{bytes_ / scenario.MIB:.0f} MiB"


class Experiment:
    def __init__(self, kube):
        self.kube = kube
        self.node = kube.nodes()[0]
        self.places = {name: jobs.Namespace(kube, name) for name in (scenario.BORROWER, scenario.LENDER)}
        self.observer = None
        self.results = {"phases": {}, "marks": []}

    # --- setup --------------------------------------------------------------------------------------------------------

    def set_up(self):
        say("installing Stoker, and an origin with "
            f"{scenario.LINK / 1e6:.0f} MB/s for all jobs together, 20 ms to the first byte")
        installation.helm_install(self.kube, f"sidecar.windowBytes={scenario.WINDOW_BYTES // scenario.MIB}Mi")
        origin = origins.Origin(self.kube)
        origin.deploy(scenario.LINK)
        for job in (*scenario.THREE, scenario.LATE):
            origin.bucket(job.bucket).create().put_random(scenario.SAMPLES, scenario.SAMPLE_BYTES)
        self.kube.apply(scenario.pool())
        for place in self.places.values():
            place.create(HERE)
            place.apply(scenario.quota(place.name))
        self.observer = observe.Observer(self.kube)
        self.observer.start()

    def mark(self, name):
        self.results["marks"].append({"seconds": self.observer.seconds(), "name": name})

    def start(self, which, policy="Auto"):
        for job in which:
            self.places[job.namespace].apply(scenario.dataset(job), scenario.training_job(job, self.node, policy))
        for job in which:
            place = self.places[job.namespace]
            pod = place.pod(job.name)["metadata"]["name"]
            wait_until(f"{job.name} to read", lambda pod=pod, place=place: any(
                line["event"] == "read" for line in place.lines(pod)), 600)
        say("reading: " + ", ".join(job.name for job in which))

    def stop(self, which):
        for job in which:
            self.places[job.namespace].delete_job(job.name)
            self.kube.delete("dataset", job.name, job.namespace)

    # --- observation --------------------------------------------------------------------------------------------------

    def bytes_of(self, what):
        return {name: told[what] for name, told in self.observer.latest()["jobs"].items()}

    def predictions(self, which):
        """{job: output of `kubectl stoker why`}, with the planner's predicted rate."""
        found = {}
        for job in which:
            told = self.kube.run("stoker", "why", f"tj/{job.name}", "-n", job.namespace, "-o", "json")
            found[job.name] = json.loads(told)
        return found

    def why_and_metrics(self, which):
        """Output of `why` and metrics from a time without changes of grants and profiles. Statuses follow the plan, and
        metrics the statuses, some seconds later."""
        for _ in range(5):
            why = self.predictions(which)
            time.sleep(FOLLOW_SECONDS)  # the largest delay of the metrics
            metrics = self.observer.look()["metrics"]
            after = self.predictions(which)
            if all(why[job.name]["allocation"][word] == after[job.name]["allocation"][word]
                   for job in which for word in ("grantedBytes", "ingestBytesPerSecond")):
                break
        return why, metrics

    def settle(self):
        """Waits until every job has a profile, grants no longer change and resident bytes match them, both within 5 %
        of the pool."""
        last, since = {}, self.observer.seconds()

        def is_still():
            nonlocal last, since
            granted, used = self.bytes_of("granted"), self.bytes_of("used")
            if any(abs(granted[name] - last.get(name, math.inf)) > observe.TOLERANCE for name in granted):
                last, since = granted, self.observer.seconds()
            followed = all(granted[name] - used[name] <= observe.TOLERANCE for name in granted)
            known = all(told["profiled"] in ("DataBound", "ComputeBound") for told in self.observer.latest()["jobs"].values())
            return granted and known and followed and self.observer.seconds() - since >= STILL_SECONDS
        try:
            wait_until("grants to stop changing", is_still, SETTLED_SECONDS, 2)
        except AssertionError as error:
            say(f"measuring although not settled: {error}")

    def measure(self, name, which):
        """One row of the table: the prediction, and the samples read in the next MEASURE_SECONDS."""
        say(f"{name}: measuring for {MEASURE_SECONDS} s; granted " + ", ".join(
            f"{job} {share(bytes_)}" for job, bytes_ in sorted(self.bytes_of("granted").items())))
        why, metrics = self.why_and_metrics(which)
        begin = time.time()
        time.sleep(MEASURE_SECONDS)  # the measurement
        measured = {}
        for job in which:
            place = self.places[job.namespace]
            lines = place.lines(place.pod(job.name)["metadata"]["name"])
            measured[job.name] = observe.samples_per_second(observe.samples_read(lines), begin, time.time())
        self.results["phases"][name] = {
            "begin": begin - self.observer.began, "end": time.time() - self.observer.began, "measured": measured,
            "why": why, "jobs": self.observer.latest()["jobs"], "quotas": self.observer.latest()["quotas"],
            "metrics": metrics, "load": os.getloadavg()}
        say(f"{name}: " + ", ".join(f"{job} {rate:.1f}" for job, rate in measured.items()) +
            f", together {sum(measured.values()):.1f} samples/s")

    # --- the phases ---------------------------------------------------------------------------------------------------

    def stoker(self):
        self.mark("the jobs start")
        self.start(scenario.THREE)
        self.settle()
        self.measure("stoker", scenario.THREE)

    def reclaim(self):
        self.mark("a fourth job")
        self.start([scenario.LATE])
        self.settle()
        self.mark("it ends")
        self.stop([scenario.LATE])

    def even(self):
        self.mark("allocation: Even")
        self.kube.apply(scenario.pool("Even"))
        self.settle()
        self.measure("even", scenario.THREE)

    def lru(self):
        self.stop(scenario.THREE)
        self.mark("evictionPolicy: LRU")
        self.kube.apply(scenario.pool("Even"))
        self.start(scenario.THREE, "LRU")
        place = self.places[scenario.IO_BOUND.namespace]
        pod = place.pod(scenario.IO_BOUND.name)["metadata"]["name"]
        wait_until("LRU to be warm", lambda: sum(
            line["event"] == "epoch" for line in place.lines(pod)) >= LRU_EPOCHS, 600, 2)
        self.settle()
        self.measure("lru", scenario.THREE)

    def tear_down(self):
        if self.observer is not None:
            self.observer.stop()
            self.results["points"] = self.observer.points
        for place in self.places.values():
            self.kube.delete("namespace", place.name, seconds=600)
        self.kube.delete("cachepool", scenario.POOL)


def connect(build):
    """Connects to the cluster, and puts `kubectl stoker` beside kubectl on its $PATH."""
    if "KUBECONFIG" in os.environ:
        kube = kubes.users_cluster()
    else:
        kube = kubes.own_cluster(1)
        installation.load_images()
    kube.environment["PATH"] = f"{(build / 'bin').resolve()}:{kube.environment['PATH']}"
    return kube


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--phases", default=",".join(PHASES), type=lambda text: text.split(","))
    parser.add_argument("--build", default=kubes.ROOT / "build" / "release", type=pathlib.Path, help="where kubectl-stoker is")
    parser.add_argument("--out", default=kubes.ROOT / "build" / "three-jobs", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path, help="write the page and its plot here")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    experiment = Experiment(connect(options.build))
    try:
        experiment.set_up()
        for phase in options.phases:
            getattr(experiment, phase)()
    finally:
        experiment.tear_down()
        results = options.out / "results.json"
        results.write_text(json.dumps(experiment.results, indent=1))
        say(f"wrote {results}")
        experiment.kube.close()
        if "KUBECONFIG" not in os.environ and os.environ.get("STOKER_KEEP_CLUSTER") != "1":
            subprocess.run([kubes.CLUSTER, "down"], check=True, timeout=300)
    if options.page:
        page.write([experiment.results], options.page)


if __name__ == "__main__":
    main()
