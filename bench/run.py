#!/usr/bin/env python3
"""Measures the figures that the README promises and compares them with their bars.

All figures except eight are ratios of two programs that run in the same round, A-B-B-A, because absolute times say
little on shared machines. The eight have no program to compare with: processor time, memory, system calls, or bytes
written to disk. Writes build/bench/results.json ([{"name", "median", "min", "max", "unit", "baseline"}]) and prints a
table. Exits 1 if a bar is missed. The samples: 4,000, log-normal sizes with a mean of 110 KiB, random order, batches of
64, every byte touched (bench/workload.h).
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys

import churn
import cold
import python_reads
import s3_endpoint
import servers
import turns

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
DATA_VERSION = "1"


class Bench:
    """Paths and settings of this run."""

    def __init__(self, build, rounds):
        self.build = build.resolve()
        self.program = self.build / "bin" / "stoker-bench"
        self.sidecar_program = self.build / "bin" / "stoker-sidecar"
        self.folder = ROOT / "build" / "bench"
        self.data = self.folder / "data"
        self.rounds = rounds

    def prepare(self):
        marker = self.data / "version"
        if not marker.exists() or marker.read_text() != DATA_VERSION:
            self.data.mkdir(parents=True, exist_ok=True)
            subprocess.run([self.program, "prepare", self.data], check=True)
            marker.write_text(DATA_VERSION)
        servers.read_afresh(self.data)

    def cpp(self, kind, path, arguments=(), helpers=(), env=None):
        return turns.Program([str(self.program), kind, str(path), *arguments], helpers, env)

    def python(self, script, kind, helpers=(), **env):
        env = dict(os.environ, PYTHONPATH=str(self.build / "python"), **env)
        return turns.Program([sys.executable, str(HERE / script), kind, str(self.data)], helpers, env)

    def warm_sidecar(self):
        """A sidecar whose node directory holds all samples after the first pass; kept for later runs."""
        origin = {"uri": f"file://{self.data / 'files'}"}
        return servers.sidecar(self.sidecar_program, self.data / "warm", origin)

    def compare(self, a, b):
        with contextlib.closing(a), contextlib.closing(b):
            return turns.compare(a, b, self.rounds)


def hit_cpp_vs_mmap(bench):
    return bench.compare(bench.cpp("stoker", bench.data / "node"), bench.cpp("mmap", bench.data / "flat.bin"))


def hit_python_vs_memoryview(bench):
    with bench.warm_sidecar() as (socket, pid):
        stoker = bench.python("python_driver.py", "stoker", [pid], STOKER_SOCKET=str(socket))
        return bench.compare(stoker, bench.python("python_driver.py", "memoryview"))


def hit_vs_redis(bench):
    with servers.redis(bench.folder) as (socket, pid):
        return bench.compare(bench.cpp("stoker", bench.data / "node"), bench.cpp("redis", socket, helpers=[pid]))


def hit_vs_pagecache_files(bench):
    return bench.compare(bench.cpp("stoker", bench.data / "node"), bench.cpp("files", bench.data / "files"))


def epoch_overhead(bench):
    """Epoch time with Stoker divided by that without: the inverse of a ratio of speeds."""
    step = subprocess.run([sys.executable, HERE / "overhead.py", "calibrate"], check=True, capture_output=True, text=True)
    work = {"BENCH_STEP_WORK": step.stdout.strip()}
    with bench.warm_sidecar() as (socket, pid):
        stoker = bench.python("overhead.py", "stoker", [pid], STOKER_SOCKET=str(socket), **work)
        speeds, foreign = bench.compare(stoker, bench.python("overhead.py", "files", **work))
    return [1 / speed for speed in speeds], foreign


DECIDE_RUNS = 2


@functools.cache
def decisions(program):
    """stoker-bench-decide's results for each contract at ten million samples, run by run."""
    return [[json.loads(line) for line in subprocess.run([program], check=True, capture_output=True, text=True)
             .stdout.splitlines()] for _ in range(DECIDE_RUNS)]


def worst_of_contracts(field):
    def measure(bench):
        runs = decisions(bench.build / "bin" / "stoker-bench-decide")
        return [max(contract[field] for contract in run) for run in runs], 0
    return measure


@functools.cache
def draws(program):
    """stoker-bench-draw's results for each job and loader at ten million samples, run by run."""
    return [[json.loads(line) for line in subprocess.run([program], check=True, capture_output=True, text=True)
             .stdout.splitlines()] for _ in range(DECIDE_RUNS)]


def dearest_draw(bench):
    return [max(row["draw_ns"] for row in run) for run in draws(bench.build / "bin" / "stoker-bench-draw")], 0


@functools.cache
def plans(program):
    """stoker-bench-plan's results for each cluster."""
    return [json.loads(line) for line in subprocess.run([program], check=True, capture_output=True, text=True)
            .stdout.splitlines()]


def of_plans(field):
    return lambda bench: ([plan[field] for plan in plans(bench.build / "bin" / "stoker-bench-plan")], 0)


def simulate_seconds(bench):
    """Processor time of `stoker simulate` for a million samples, ten epochs, one job."""
    command = [bench.build / "bin" / "stoker", "simulate", "--samples", "1000000", "--epochs", "10", "--json"]

    def run():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return [run() for _ in range(DECIDE_RUNS)], 0


# name, measuring function, bar, whether more is better, baseline; unit, unless it is a ratio
ROWS = [
    ("hit_cpp_vs_mmap", hit_cpp_vs_mmap, 0.90, True, "C++: the same bytes in one mapped file"),
    ("hit_python_vs_memoryview", hit_python_vs_memoryview, 0.85, True, "Python: slices of one mapped file"),
    ("new_worker_vs_memoryview", python_reads.new_worker, 0.95, True,
     "a spawned worker's first 1.5 s, first touches included; a worker that maps one file"),
    ("one_sample_us", python_reads.one_sample, 1.5, False, "processor time of samples[id] in Python", "us"),
    ("batch_system_calls", python_reads.system_calls, 0.1, False, "of a batch of 64 samples on the node", "calls"),
    ("hit_vs_redis", hit_vs_redis, 8.0, True, "Redis, MGET of 64 over a unix socket, hiredis"),
    ("hit_vs_pagecache_files", hit_vs_pagecache_files, 2.0, True, "one file a sample: open, pread, close"),
    ("cold_vs_link", cold.measure, 0.90, True, "the paced link alone, 64 GETs in flight, from the third second on"),
    ("s3_endpoint_vs_nginx", s3_endpoint.row("nginx", 8), 1.0, True,
     "nginx, the same objects as static files; 8 connections, stoker-s3 verifies signatures"),
    ("s3_endpoint_vs_versitygw", s3_endpoint.row("versitygw", 8), 4, True, "versitygw, 8 connections"),
    ("s3_endpoint_one_vs_nginx", s3_endpoint.row("nginx", 1), 1.0, True, "the same with one connection"),
    ("s3_endpoint_one_vs_versitygw", s3_endpoint.row("versitygw", 1), 4, True, "the same with one connection"),
    ("nvme_bytes_written_per_byte_served", churn.measure, 0.70, False,
     f"closed form {churn.EXPECTED:.3f}: half of the data fits, three epochs", "bytes"),
    ("epoch_overhead", epoch_overhead, 1.02, False, "compute-bound epoch over local files, DistributedSampler"),
    ("decide_ns_per_sample", worst_of_contracts("decide_ns_per_sample"), 1000, False,
     "the dearest contract, 10,000,000 samples, a fifth cached", "ns"),
    ("draw_ns_per_sample", dearest_draw, 1000, False,
     "the engine's draw() with its plan: windowed, 10,000,000 samples, 1 and 3 jobs, 2x128 and 16x256 ahead", "ns"),
    ("policy_bytes_per_sample", worst_of_contracts("policy_bytes_per_sample"), 24, False,
     "the largest contract, sampler and eviction at their peak", "bytes"),
    ("simulate_seconds", simulate_seconds, 10, False, "stoker simulate: 1,000,000 samples, 10 epochs, one job", "s"),
    ("plan_seconds", of_plans("plan_seconds"), 1, False,
     "a plan of all grants: 1,000 jobs, 1,000 nodes, 100 namespaces, one core", "s"),
    ("plan_mib", of_plans("plan_mib"), 500, False, "the same, the whole process at its peak", "MiB"),
]


def summarize(name, ratios, baseline, unit="ratio"):
    return {"name": name, "median": round(statistics.median(ratios), 3), "min": round(min(ratios), 3),
            "max": round(max(ratios), 3), "unit": unit, "baseline": baseline}


def is_met(result, bar, more_is_better):
    return result["median"] >= bar if more_is_better else result["median"] <= bar


def line(result, bar, more_is_better, foreign):
    verdict = "met" if is_met(result, bar, more_is_better) else "MISSED"
    relation = ">=" if more_is_better else "<="
    spread = f"{result['min']:.3f} - {result['max']:.3f}"
    noise = f"  (others used {foreign:.1f} cores)" if foreign > turns.BUSY_CORES_MAX else ""
    return (f"{result['name']:34} {result['median']:8.3f}  {spread:16}  {relation} {bar:<5} {verdict:7}"
            f"{result['baseline']}{noise}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", metavar="NAME", action="append", help="this row only (may be repeated)")
    arguments = parser.parse_args()
    bench = Bench(arguments.build, arguments.rounds)
    bench.prepare()

    print(f"{'':34} {'median':>8}  {'range':16}  bar")
    results, missed = [], []
    for name, measure, bar, more_is_better, baseline, *unit in ROWS:
        if arguments.only and name not in arguments.only:
            continue
        ratios, foreign = measure(bench)
        result = summarize(name, ratios, baseline, *unit)
        results.append(result)
        print(line(result, bar, more_is_better, foreign), flush=True)
        if not is_met(result, bar, more_is_better):
            missed.append(name)
    (bench.folder / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
