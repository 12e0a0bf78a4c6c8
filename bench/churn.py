"""Bytes written to the node's disk for each byte that a trainer is given, where half of the data fits.

Three epochs, each in another random order: the half that stays is written once, the other half passes through the
window in every epoch, and nothing is copied because whole segments of the window go. So with a share w that fits, E
epochs write (1 + (E - 1) (1 - w)) / E bytes for each that is read, and a header of 64 bytes a sample.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import time
import urllib.request

import servers

SHARE, EPOCHS, BATCH = 0.5, 3, 64
WINDOW_BYTES = 64 << 20
RUNS = 2
EXPECTED = (1 + (EPOCHS - 1) * (1 - SHARE)) / EPOCHS
WRITTEN = 'stoker_sidecar_written_bytes_total{dataset="bench"}'


def written_bytes(port):
    """Once it rises no more."""
    seen = -1.0
    while True:
        time.sleep(servers.QUIET_S)  # until the page is a new one
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        now = next(float(line.split()[-1]) for line in lines if line.startswith(WRITTEN))
        if now == seen:
            return now
        seen = now


def one_run(bench):
    folder = bench.folder / "churn"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "node").mkdir(parents=True)
    files = bench.data / "files"
    total = sum(path.stat().st_size for path in files.rglob("*") if path.is_file())
    port = servers.free_port()
    dataset = {"name": "bench", "origin": {"uri": f"file://{files}"}, "directory": str(folder / "node"),
               "grant": str(int(total * SHARE)), "window": str(WINDOW_BYTES), "reservedFree": 0.02,
               "stepAsideWindow": "0s"}
    settings = {"socket": str(folder / "sidecar.sock"), "http": {"listen": f"127.0.0.1:{port}"}, "datasets": [dataset]}
    with servers.configured_sidecar(bench.sidecar_program, settings):
        env = dict(os.environ, PYTHONPATH=str(bench.build / "python"), STOKER_SOCKET=settings["socket"])
        run = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, check=True)
        ratio = written_bytes(port) / float(run.stdout)
    shutil.rmtree(folder)
    return ratio


def read_epochs():
    """The trainer: random orders, batches of 64. Prints how many bytes it was given by the node."""
    import stoker

    served = 0
    with stoker.open("bench") as samples:
        for epoch in range(EPOCHS):
            order = random.Random(epoch).sample(range(len(samples)), len(samples))
            samples.set_plan(epoch, order)
            for at in range(0, len(order), BATCH):
                served += sum(len(sample.view) for sample in samples.fetch(order[at:at + BATCH]))
        if samples.stats()["origin_samples"]:
            raise SystemExit(f"bench: some samples came past the sidecar: {samples.stats()}")
    print(served)


def measure(bench):
    return [one_run(bench) for _ in range(RUNS)], 0


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    read_epochs()
