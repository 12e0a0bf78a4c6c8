"""Reads of samples on the node from Python: one by one, by a DataLoader's new worker, and the system calls of a batch.

`python_reads.py FOLDER` is the trainer of the last two rows; protocol: each line on stdin is a question, each line on
stdout its answer.
"""

import contextlib
import multiprocessing
import os
import random
import subprocess
import sys
import time

import python_driver
import turns

BATCH = python_driver.BATCH
WORKER_S = 1.5  # how long a worker reads, from its first touch on
ORDER = ("stoker", "memoryview", "memoryview", "stoker")
LARGEST_BYTES = 1 << 20  # no sample of the workload is larger
SINGLES, REPEATS, BATCHES = 20_000, 5, 20_000


def read_for(read, count, seconds):
    """Batches per second; repeats passes over the samples in random orders."""
    began, number, done = time.perf_counter(), 0, 0
    while True:
        order = random.Random(number).sample(range(count), count)
        number += 1
        for at in range(0, count, BATCH):
            read(order[at:at + BATCH])
            done += 1
            passed = time.perf_counter() - began
            if passed >= seconds:
                return done / passed


def work(kind, folder, samples, answers):
    """The work of a worker that was just spawned. `samples`: a pickled copy; its parent has verified the samples."""
    reader = python_driver.memoryview_reader(folder) if kind == "memoryview" else \
        python_driver.copying_reader(samples, LARGEST_BYTES)
    answers.put(read_for(*reader, WORKER_S))


def spawned(kind, folder, samples):
    """Batches per second of one new worker."""
    spawning = multiprocessing.get_context("spawn")
    answers = spawning.SimpleQueue()
    process = spawning.Process(target=work, args=(kind, folder, samples if kind == "stoker" else None, answers))
    process.start()
    speed = answers.get()
    process.join()
    return speed


def single_us(samples):
    """Processor time of samples[id], in microseconds: the best of some runs."""
    order = random.Random(1).sample(range(len(samples)), len(samples))
    ids = [order[number % len(order)] for number in range(SINGLES)]
    runs = []
    for _ in range(REPEATS):
        began = time.process_time()
        for id in ids:
            samples[id]
        runs.append(time.process_time() - began)
    return min(runs) / SINGLES * 1e6


def read_batches(samples):
    for number in range(BATCHES):
        first = number * BATCH % (len(samples) - BATCH)
        samples.fetch(range(first, first + BATCH))
    return BATCHES


def main():
    import stoker

    folder = sys.argv[1]
    with stoker.open("bench") as samples:
        samples.fetch(range(len(samples)))
        samples.fetch(range(len(samples)))  # the first pass read them from the window or the origin
        for line in sys.stdin:
            question, *words = line.split()
            if question == "spawn":
                print(spawned(*words, folder, samples), flush=True)
            else:
                print({"single": single_us, "batches": read_batches}[question](samples), flush=True)


class Trainer:
    """A running trainer. `ask` waits for its answer."""

    def __init__(self, bench, socket):
        env = dict(os.environ, PYTHONPATH=str(bench.build / "python"), STOKER_SOCKET=str(socket))
        self.process = subprocess.Popen([sys.executable, __file__, str(bench.data)], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, question):
        self.process.stdin.write(f"{question}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def trainer(bench):
    with bench.warm_sidecar() as (socket, _), contextlib.closing(Trainer(bench, socket)) as running:
        yield running


def one_sample(bench):
    with trainer(bench) as running:
        return [running.ask("single") for _ in range(bench.rounds)], 0


def new_worker(bench):
    """Speed of a worker that was just spawned, divided by that of one that maps one file; A-B-B-A."""
    ratios, cores = [], 0.0
    with trainer(bench) as running:
        for _ in range(bench.rounds):
            began, (before, ours) = time.monotonic(), turns.busy_seconds([running.process.pid])
            first, *middle, last = [running.ask(f"spawn {kind}") for kind in ORDER]
            ratios.append((first + last) / sum(middle))
            after, ours_after = turns.busy_seconds([running.process.pid])
            busy = (after - before - (ours_after - ours)) / (time.monotonic() - began)
            cores = max(cores, busy - 1)  # one worker runs at a time
    return ratios, max(cores, 0.0)


def system_calls(bench):
    """System calls of a batch, as strace counts them."""
    with trainer(bench) as running:
        running.ask("batches")
        log = bench.folder / "strace"
        counter = subprocess.Popen(["strace", "-f", "-c", "-o", log, "-p", str(running.process.pid)],
                                   stderr=subprocess.PIPE, text=True)
        counter.stderr.readline()  # strace has attached
        batches = running.ask("batches")
        counter.terminate()
        counter.wait()
        counter.stderr.close()
    total = next(line for line in log.read_text().splitlines() if line.endswith("total"))
    return [int(total.split()[3]) / batches], 0


if __name__ == "__main__":
    main()
