#!/usr/bin/env python3
"""make windowed: three jobs on one dataset, w = 0.2, through real processes; measures the bytes that the origin sends.

Three stoker-sidecars share one node directory, one leads and two follow; each serves its own training process
(trainer.py) with the Python client. The origin is an S3 server that counts what it sends. The harness hands out the
steps, so speeds and phases are the same on any machine. never-evict and ODS come from `stoker simulate` with the same
numbers; never-evict is also measured with the same processes, without a contract.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import servers  # noqa: E402

ROOT = HERE.parent.parent
KEYS = servers.CREDENTIALS
SHARE = 0.2
WINDOW_LEAST = 1 << 20

# name: (contract; speed of each job; whether the jobs start at random times; the largest share of the dataset that the
# origin may send for a job and epoch, None: any)
RUNS = {
    "lock-step": ("windowed", (1, 1, 1), False, 0.30),
    "random phases": ("windowed", (1, 1, 1), True, 0.34),
    "speeds 1 : .5 : .7": ("windowed", (1, 0.5, 0.7), False, 0.40),
    "never-evict, lock-step": ("exact", (1, 1, 1), False, None),
}


class Data:
    """Objects <root>/data/<class>/<number>.bin; each begins with its number."""

    def __init__(self, root, count, mean, seed=1):
        self.root, self.count = root, count
        prng = random.Random(seed)
        self.bytes = self.records = 0
        for number in range(count):
            size = prng.randrange(mean // 2, mean * 3 // 2)
            path = root / "data" / f"class{number % 10}" / f"{number:06}.bin"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(number.to_bytes(8, "little") + prng.randbytes(size - 8))
            self.bytes += size
            self.records += servers.record_bytes(size)


@contextlib.contextmanager
def counting_origin(build, root):
    """Yields (endpoint, a function that returns how many payload bytes it has sent)."""
    with servers.fake_s3(build, root) as endpoint:

        def sent():
            with urllib.request.urlopen(f"{endpoint}/__stats") as answer:
                return json.load(answer)["get_bytes"]

        yield endpoint, sent


class Job:
    """A sidecar and its training process."""

    def __init__(self, stack, build, folder, number, settings, trainer):
        self.folder, self.number = folder, number
        self.socket = folder / f"job{number}.sock"
        stack.enter_context(servers.configured_sidecar(
            build / "bin" / "stoker-sidecar", {"socket": str(self.socket), "datasets": [settings]}))
        log = stack.enter_context(open(folder / f"trainer{number}.log", "wb"))
        told = {"socket": str(self.socket), "seed": 100 + number, **trainer}
        env = {**os.environ, **KEYS, "PYTHONPATH": str(build / "python"), "STOKER_JOB": f"job{number}",
               "OMP_NUM_THREADS": "1"}
        self.trainer = stack.enter_context(
            servers.running([sys.executable, HERE / "trainer.py", json.dumps(told)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=log, text=True, env=env))
        stack.callback(self.end)
        self.drawn, self.books, self.alone, self.owed = 0, [], 0, 0.0

    def end(self):
        """Lets the trainer end by itself: a terminated one leaves its workers behind."""
        self.trainer.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.trainer.wait(timeout=30)

    def answer(self):
        line = self.trainer.stdout.readline()
        if not line:
            raise SystemExit(f"windowed: the trainer of job {self.number} ended, see {self.folder}/trainer{self.number}.log")
        return json.loads(line)

    def give(self, batches):
        self.trainer.stdin.write(f"{batches}\n")
        self.trainer.stdin.flush()

    def take(self):
        answer = self.answer()
        self.drawn += answer["drawn"]
        self.books, self.alone = answer["books"], answer["alone"]


def turn(jobs, speeds, begun):
    """Gives each job as many steps as its speed says; the fastest does one."""
    busy = []
    for job, speed, has_begun in zip(jobs, speeds, begun):
        job.owed += speed if has_begun else 0
        steps = int(job.owed + 1e-9)
        if steps:
            job.owed -= steps
            job.give(steps)
            busy.append(job)
    for job in busy:
        job.take()


def run(build, folder, data, endpoint, sent, name, asked, seed=1):
    """One row: {"share", "complete", ...}. Excludes every job's first epoch, as the figures in docs/design do. `asked`:
    parse()'s result."""
    contract, speeds, phases, _ = RUNS[name]
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "node").mkdir(parents=True)
    cache = int(SHARE * data.records)
    window = max(WINDOW_LEAST, int(asked.window_share * cache))
    settings = {"name": "train", "origin": {"uri": "s3://data", "endpoint": endpoint}, "directory": str(folder / "node"),
                "grant": str(cache - window), "window": str(window), "reservedFree": 0.001, "stepAsideWindow": "0s"}
    steps = -(-data.count // asked.batch)
    trainer = {"batch": asked.batch, "ahead": asked.ahead, "contract": contract}
    starts = [0] * len(speeds)
    if phases:
        prng = random.Random(seed)
        starts = [0, *(prng.randrange(steps) for _ in speeds[1:])]
    with contextlib.ExitStack() as stack:
        jobs = [Job(stack, build, folder, number, settings, trainer) for number in range(len(speeds))]
        for job in jobs:
            assert job.answer()["samples"] == data.count
        now = 0
        while not all(job.books for job in jobs):
            turn(jobs, speeds, [now >= start for start in starts])
            now += 1
        before = sent(), sum(job.drawn for job in jobs)
        for _ in range(asked.epochs * steps):
            turn(jobs, speeds, [True] * len(jobs))
        job_epochs = (sum(job.drawn for job in jobs) - before[1]) / data.count
        share = (sent() - before[0]) / data.bytes / job_epochs
        return {"name": name, "share": share, "jobEpochs": job_epochs, "alone": sum(job.alone for job in jobs),
                "complete": [[book["else"] == 0 and book["once"] == data.count for book in job.books] for job in jobs]}


def simulated(build, data, batch, policy, speeds=(1, 1, 1)):
    """The baseline by the simulator, with the same cache: bytes per job and epoch, as a share of the dataset."""
    command = [build / "bin" / "stoker", "simulate", "--json", "--policy", policy, "--samples", str(data.count),
               "--sample-bytes", str(data.bytes // data.count), "--batch", str(batch), "--cache-share", str(SHARE),
               "--epochs", "5", "--until-first-ends"]
    for speed in speeds:
        command += ["--job", f"speed={speed}"]
    report = json.loads(subprocess.run([str(word) for word in command], check=True, capture_output=True).stdout)
    return report["runs"][0]["fetchesPerJobEpoch"]


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--samples", type=int, default=16384)
    parser.add_argument("--mean-bytes", type=int, default=2800)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4, help="measured epochs of the fastest job")
    parser.add_argument("--ahead", type=int, default=0, help="batches that a worker's loader draws ahead; 0: no workers")
    parser.add_argument("--window-share", type=float, default=0.1,
                        help="window as a share of the cache, but at least the sidecar's minimum")
    parser.add_argument("--only", choices=RUNS)
    return parser.parse_args(words)


def main():
    arguments = parse()
    build = arguments.build.resolve()
    folder = ROOT / "build" / "windowed"
    shutil.rmtree(folder, ignore_errors=True)
    data = Data(folder / "origin", arguments.samples, arguments.mean_bytes)
    rows, missed = [], []
    with counting_origin(build, folder / "origin") as (endpoint, sent):
        for name in [arguments.only] if arguments.only else RUNS:
            row = run(build, folder / "run", data, endpoint, sent, name, arguments)
            row["bar"] = bar = RUNS[name][3]
            is_complete = all(all(epochs) for epochs in row["complete"]) and row["alone"] == 0
            if not is_complete or (bar is not None and row["share"] > bar):
                missed.append(name)
            print(f"{name:24} {row['share']:.3f} of the dataset a job-epoch, bar {bar or '-'}; epochs complete: "
                  f"{[len(epochs) for epochs in row['complete']]}{'' if is_complete else ' NO'}", flush=True)
            rows.append(row)
    for policy in ("never-evict", "ods"):
        for speeds, how in (((1, 1, 1), ""), (RUNS["speeds 1 : .5 : .7"][1], ", speeds 1 : .5 : .7")):
            share = simulated(build, data, arguments.batch, policy, speeds)
            name = f"{policy}, simulated{how}"
            print(f"{name:44} {share:.3f}")
            rows.append({"name": name, "share": share})
    (folder / "results.json").write_text(json.dumps(rows, indent=1))
    if missed:
        raise SystemExit(f"windowed: bars missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
