"""A cold epoch through a sidecar compared with the paced link alone, both from the third second on.

The bucket holds every sample three times (12,000 objects, 1.35 GB), so that a pass lasts about seven seconds. The
sidecar has the memory limit that the chart gives it in a pod; without root and cgroups, the limit is absent and a
message says so.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys

import memory_limit
import servers

COPIES = 3
BATCH = 64
FROM_SECOND = 2.0  # start of the third second
MEMORY_LIMIT = 1 << 30  # sidecar.resources.limits.memory in charts/stoker/values.yaml


def stoker_rate(bench, endpoint, pass_number, prefix=()):
    """Bytes per second that a trainer in its own process gets, beginning with an empty node directory."""
    folder = bench.folder / "cold"
    shutil.rmtree(folder, ignore_errors=True)
    origin = {"uri": f"s3://{servers.BUCKET}", "endpoint": endpoint}
    with servers.sidecar(bench.sidecar_program, folder, origin, prefix) as (socket, _):
        env = dict(os.environ, PYTHONPATH=str(bench.build / "python"), STOKER_SOCKET=str(socket))
        command = [sys.executable, __file__, str(pass_number)]
        run = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    shutil.rmtree(folder)
    return float(run.stdout)


def read_epoch(pass_number):
    """The trainer: one epoch in random order, batches of 64, every byte touched."""
    import time

    import stoker

    with stoker.open("bench") as samples:
        order = random.Random(pass_number).sample(range(len(samples)), len(samples))
        buffer = bytearray(1 << 24)
        began, late, total = time.monotonic(), None, 0
        samples.set_plan(0, order)
        for at in range(0, len(order), BATCH):
            for sample in samples.fetch(order[at:at + BATCH]):
                view = sample.view
                buffer[:len(view)] = view
                total += len(view)
            if late is None and time.monotonic() - began >= FROM_SECOND:
                late = time.monotonic(), total
        ended = time.monotonic()
        stats = samples.stats()
    if late is None or stats["origin_samples"]:
        raise SystemExit(f"bench: not a cold epoch through the sidecar: {stats}")
    print((total - late[1]) / (ended - late[0]))


def measure(bench):
    """Ratios of A-B-B-A rounds; both sides share the pacer."""
    bucket = bench.folder / "s3"
    servers.make_bucket(bench.data / "files", bucket, COPIES)
    ratios = []
    with servers.paced_s3(bucket) as endpoint, memory_limit.memory_limit(MEMORY_LIMIT) as prefix:
        if not prefix:
            print("cold_vs_link: no memory limit for the sidecar here (needs root and cgroups)", file=sys.stderr)
        env = dict(os.environ, **servers.CREDENTIALS)
        link = bench.cpp("link", f"{endpoint}/{servers.BUCKET}/", [str(COPIES)], env=env)
        for number in range(max(5, bench.rounds // 2)):
            first = stoker_rate(bench, endpoint, 2 * number, prefix)
            links = [float(link.ask(2 * number + turn, 1)[1]) for turn in range(2)]
            second = stoker_rate(bench, endpoint, 2 * number + 1, prefix)
            ratios.append((first + second) / sum(links))
        link.close()
    return ratios, 0.0


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    read_epoch(int(sys.argv[1]))
