"""make soak: jobs come and go for MINUTES while programs are killed; nothing may grow, leak or get stuck.

Lanes run one job after another in two namespaces, with every kind of access, and delete some of them on the way; every
third job has a new Dataset. One job with each kind of access reads all the time, so that its sidecar and stoker-s3 or
stoker-files are as old as the run. Sidecars of other jobs are killed all the time, the operator and the node program
only in the first quarter, so that the rest shows how they grow. The seed (SOAK_SEED) is printed.
"""

import json
import math
import os
import random
import subprocess
import threading
import time

import pytest

from growth import MEMORY_FLOOR, SAMPLES_MIN, growth, shortcomings
from harness import jobs, kube as kubes
from harness.installation import SYSTEM
from harness.kube import KubeError, wait_until
from harness.nodes import kill, on_node
from observer import PROGRAMS, Observer
from part import Part

MINUTES = float(os.environ.get("MINUTES", "60"))
SEED = int(os.environ.get("SOAK_SEED", str(random.randrange(1 << 32))))
OUT = kubes.ROOT / "build" / "soak"
LANES = 2  # lanes in each namespace
SAMPLES, SAMPLE_BYTES = 200, 20000
TURNS_OF_A_DATASET = 3
KILL_EVERY_S = 40
STEADY = {"sdk": "steady-sdk", "s3": "steady-s3", "files": "steady-files"}  # jobs that read all the time, by access
SLACK = 8  # descriptors and threads by which an idle program may differ: kept connections, pools
PROGRAM = {"sdk": "read_epochs.py", "s3": "plain_boto3.py", "files": "plain_files.py"}


class Lane(Part):
    """Runs one job after another, `turns` at most, until `stop`; `errors` has why it ended early."""

    def __init__(self, place, bucket, number, stop, turns=math.inf):
        super().__init__(f"{place.name} lane {number}")
        self.place, self.bucket, self.number, self.stop, self.turns = place, bucket, number, stop, turns
        self.random = random.Random(f"{SEED} {place.name} {number}")
        self.contents = bucket.digests()
        self.done, self.deleted, self.digests = 0, 0, set()

    def work(self):
        turn = 0
        while turn < self.turns and not self.stop.is_set():
            if turn % TURNS_OF_A_DATASET == 0:
                dataset = self.new_dataset(turn)
            self.run_job(f"l{self.number}-{turn}", dataset)
            turn += 1
            if turn % TURNS_OF_A_DATASET == 0:
                self.place.kube.delete("dataset", dataset, self.place.name)

    def new_dataset(self, turn):
        name = f"d{self.number}-{turn}"
        self.place.apply(jobs.dataset(name, f"s3://{self.bucket.name}"))
        return name

    def run_job(self, name, dataset):
        access = self.random.choice(sorted(PROGRAM))
        cache = self.random.choice([jobs.FULL, {"mode": "Fixed", "maxBytes": "2Mi"}])
        options = [*arguments(access, self.bucket, self.random.choice([1, 2, 3])),
                   *(["--step-ms", 50] if access == "sdk" else [])]
        self.place.apply(job_with(access, name, options, dataset, cache=cache, run_policy={"backoffLimit": 3}))
        if self.random.random() < 0.2:
            self.place.pod(name)
            self.deleted += 1
        else:
            self.place.wait_complete(name)
            self.check_bytes(name, access)
            self.done += 1
        self.place.delete_job(name)

    def check_bytes(self, name, access):
        """Every epoch of S3 and Files read the bucket's bytes; the first one of every SDK job the same bytes in the
        same order."""
        epochs = self.place.epochs(self.place.pods(name)[-1]["metadata"]["name"])
        assert epochs, f"job {name} completed without an epoch"
        if access == "sdk":
            first = {epoch["digest"] for epoch in epochs if epoch["epoch"] == 0}
            self.digests |= first
            assert len(first) == 1 and len(self.digests) == 1, f"job {name} read {first}, the lane {self.digests}"
        else:
            wrong = [epoch["epoch"] for epoch in epochs if epoch["digests"] != self.contents]
            assert not wrong, f"job {name} read other bytes than the origin's in epochs {wrong}"


def arguments(access, bucket, epochs):
    """Arguments of the access's trainer."""
    if access == "s3":
        return ["--bucket", bucket.name, "--checkpoints", f"{bucket.name}-out", "--epochs", epochs]
    return ["--root", "/data/train", "--epochs", epochs] if access == "files" else ["--epochs", epochs]


def job_with(access, name, options, dataset, **spec):
    """A TrainingJob that reads `dataset` by this access."""
    return jobs.training_job(name, options, dataset_name=dataset, script=PROGRAM[access],
                             datasets=[dataset_access(dataset, access)], **spec)


def dataset_access(dataset, access):
    entry = {"name": "train", "datasetRef": {"name": dataset}}
    if access == "files":
        return {**entry, "access": "Files", "mountPath": "/data/train"}
    return {**entry, "access": "S3"} if access == "s3" else entry


class Killer(Part):
    """Kills a random program every KILL_EVERY_S seconds until `stop` is set."""

    def __init__(self, kube, places, ends_at, stop):
        super().__init__("killer")
        self.kube, self.places, self.ends_at, self.stop = kube, places, ends_at, stop
        self.random = random.Random(f"{SEED} killer")
        self.kills = {}

    def work(self):
        while not self.stop.wait(KILL_EVERY_S):
            early = time.monotonic() < self.ends_at
            program = self.random.choice(["stoker-sidecar"] * 4 + ["stoker-operator", "stoker-node"] * early)
            try:
                victims = self.pods_of(program)
                if victims and kill(self.kube, self.random.choice(victims), program):
                    self.kills[program] = self.kills.get(program, 0) + 1
            except (KubeError, subprocess.SubprocessError):
                pass  # the machine is busy: the next round kills again

    def pods_of(self, program):
        if program == "stoker-sidecar":
            found = [pod for place in self.places for pod in self.kube.list("pods", place.name)
                     if pod["metadata"]["labels"].get("stoker.dev/training-job") not in (None, *STEADY.values())]
        else:
            component = program.removeprefix("stoker-")
            found = self.kube.list("pods", SYSTEM, f"app.kubernetes.io/component={component}")
        return [pod for pod in found if pod["status"].get("phase") == "Running"]


@pytest.fixture
def places(kube, origin, request):
    made = []
    for name in ("soak-a", "soak-b"):
        bucket = origin.bucket(name).create()
        bucket.put_random(SAMPLES, SAMPLE_BYTES)
        origin.bucket(f"{name}-out").create()
        place = jobs.Namespace(kube, name).create()
        request.addfinalizer(place.delete)
        made.append((place, bucket))
    return made


def idle(observer):
    """{program: the most descriptors and threads of its processes on any node}, while no job runs."""
    most = {}
    for sample in observer.look():
        now = most.setdefault(sample["program"], {"descriptors": 0, "threads": 0})
        for what in now:
            now[what] = max(now[what], sample[what])
    return most


def warm_up(places):
    """Runs a job in every lane, so that pools of connections and threads are full before the first count."""
    lanes = [Lane(place, bucket, f"w{number}", threading.Event(), turns=1)
             for place, bucket in places for number in range(LANES)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    assert not [error for lane in lanes for error in lane.errors]


def directories(kube, namespaces):
    """Node directories of these namespaces, on every node."""
    script = "; ".join(f"ls -d {jobs.POOL_PATH}/{name}/* 2>/dev/null" for name in namespaces) + "; true"
    return [f"{node}:{line}" for node in kube.nodes() for line in on_node(kube, node, script).split()]


def unsettled(kube):
    """{pool: bytes that it still grants}."""
    return {item["metadata"]["name"]: item["status"].get("grantedBytes") for item in kube.list("cachepools")
            if int(item.get("status", {}).get("grantedBytes") or 0) > 0}


def judge(observer, warm_up):
    """A row for each process that was watched for long enough, and a sentence for each problem."""
    rows, troubles = [], []
    for (program, node, pid, _), samples in sorted(observer.processes.items()):
        for what, floor in (("memory", MEMORY_FLOOR), ("descriptors", SLACK), ("threads", SLACK)):
            found = growth([(sample["seconds"], sample[what]) for sample in samples], warm_up, floor)
            if found is None:
                continue
            rows.append({"program": program, "node": node, "pid": pid, "what": what, "last": samples[-1][what], **found})
            if found["grows"]:
                troubles.append(f"{program} {pid} on {node}: {what} grew by {found['gained']:.0f} "
                                f"(noise {found['noise']:.0f}) in {found['samples']} samples")
    return rows, troubles


def start_steady(places):
    """Starts one steady job for each access, in turns in the namespaces. Returns [(place, job, its pod's UID)]."""
    started = []
    for number, (access, name) in enumerate(STEADY.items()):
        place, bucket = places[number % len(places)]
        pause = ["--step-ms", 200 if access == "sdk" else 2000]  # each epoch of access S3 and Files is a long line of the log
        place.apply(jobs.dataset(name, f"s3://{bucket.name}"),
                    job_with(access, name, [*arguments(access, bucket, 1_000_000), *pause], name,
                             cache=jobs.FULL, on=place.home))
        started.append((place, name))
    return [(place, name, place.pod(name)["metadata"]["uid"]) for place, name in started]


def lost(steady):
    """The steady jobs whose pod no longer runs."""
    return [f"job {name} did not read all the time" for place, name, uid in steady
            if not any(pod["metadata"]["uid"] == uid and pod["status"].get("phase") == "Running" for pod in place.pods(name))]


def run_jobs(kube, places, observer):
    """The run itself. Returns the lanes, the killer, how many seconds it took, and what went wrong."""
    stop, seconds = threading.Event(), MINUTES * 60
    steady = start_steady(places)
    lanes = [Lane(place, bucket, number, stop) for place, bucket in places for number in range(LANES)]
    began = time.monotonic()
    killer = Killer(kube, [place for place, _ in places], began + seconds / 4, stop)
    parts = (*lanes, killer, observer)
    for part in parts:
        part.start()
    while time.monotonic() < began + seconds and all(part.is_alive() for part in parts):
        time.sleep(1)  # polling interval
    took = time.monotonic() - began
    stop.set()
    for part in (*lanes, killer):
        part.join()
    observer.stop()
    return lanes, killer, took, [error for part in parts for error in part.errors] + lost(steady)


def clean_up(kube, places):
    """Removes every job and Dataset; fails if any object, grant or directory remains."""
    names = [place.name for place, _ in places]
    for name in names:
        kube.run("delete", "trainingjob", "--all", "-n", name, "--timeout=300s")
    wait_until("every pod to end", lambda: not [pod for name in names for pod in kube.list("pods", name)], 300, 1)
    for name in names:
        kube.run("delete", "dataset", "--all", "-n", name, "--timeout=300s")
    wait_until("every grant to end", lambda: not unsettled(kube), 300, 1)
    wait_until("every node directory to go", lambda: not directories(kube, names), 600, 2)


@pytest.mark.own_cluster
def test_nothing_grows_leaks_or_gets_stuck(kube, places):
    print(f"SOAK_SEED={SEED} MINUTES={MINUTES:g}")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "samples.jsonl").unlink(missing_ok=True)
    observer = Observer(kube, OUT / "samples.jsonl")
    warm_up(places)
    before = idle(observer)
    lanes, killer, took, errors = run_jobs(kube, places, observer)
    if not errors:
        clean_up(kube, places)
    after = idle(observer)
    rows, troubles = judge(observer, MINUTES * 60 / 3)
    troubles += shortcomings(MINUTES, took, {row["program"] for row in rows}, PROGRAMS, killer.kills)
    for program, most in before.items():
        troubles += [f"{program}: {most[what]} {what} before, {after[program][what]} after all jobs have gone"
                     for what in most if program in after and after[program][what] > most[what] + SLACK]
    done = {"seed": SEED, "minutes": MINUTES, "seconds": round(took), "jobs": sum(lane.done for lane in lanes),
            "deleted": sum(lane.deleted for lane in lanes), "kills": killer.kills, "before": before, "after": after,
            "rows": rows, "troubles": errors + troubles}
    (OUT / "results.json").write_text(json.dumps(done, indent=1) + "\n")
    print(summary(done))
    assert done["jobs"] > 0 and not done["troubles"], "\n".join(done["troubles"])


def summary(done):
    lines = [f"{done['jobs']} jobs complete, {done['deleted']} deleted on the way; killed: {done['kills']}"]
    for row in done["rows"]:
        unit = 1 << 20 if row["what"] == "memory" else 1
        lines.append(f"{row['program']:16} {row['node']:12} {row['what']:12} last {row['last'] / unit:8.1f}  "
                     f"gained {row['gained'] / unit:+7.2f}  noise {row['noise'] / unit:6.2f}  {row['samples']} samples")
    if not done["rows"]:
        lines.append(f"no process was watched long enough for a slope ({SAMPLES_MIN} samples after the warm-up)")
    return "\n".join(lines)
