"""Bytes written to the node's disk per byte that a trainer reads, with room for half of the data.

Three epochs in different random orders. The resident half is written once; the other half passes through the window in
every epoch; nothing is copied, because the window drops whole segments. With room for a share w, E epochs therefore
write (1 + (E - 1) (1 - w)) / E bytes per byte read, plus a header of 64 bytes per sample.
"""

import os
import random
import shutil
import subprocess
import sys

import servers

SHARE, EPOCHS, BATCH = 0.5, 3, 64
WINDOW_BYTES = 64 << 20
RUNS = 2
EXPECTED = (1 + (EPOCHS - 1) * (1 - SHARE)) / EPOCHS
WRITTEN = 'stoker_sidecar_written_bytes_total{dataset="train"}'


def written_bytes(metrics):
    return next(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith(WRITTEN))


def one_run(bench):
    folder = bench.folder / "churn"
    shutil.rmtree(folder, ignore_errors=True)
    files = bench.data / "files"
    total = sum(path.stat().st_size for path in files.rglob("*") if path.is_file())
    with servers.watched_sidecar(bench.sidecar_program, folder, {"uri": f"file://{files}"}, int(total * SHARE),
                                 WINDOW_BYTES) as (socket, page):
        env = dict(os.environ, PYTHONPATH=str(bench.build / "python"), STOKER_SOCKET=str(socket))
        run = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, check=True)
        ratio = servers.settled(lambda: written_bytes(page("metrics"))) / float(run.stdout)
    shutil.rmtree(folder)
    return ratio


def read_epochs():
    """The trainer: random orders, batches of 64. Prints how many bytes it read through the node."""
    import stoker

    served = 0
    with stoker.open("train") as samples:
        for epoch in range(EPOCHS):
            order = random.Random(epoch).sample(range(len(samples)), len(samples))
            samples.set_plan(epoch, order)
            for at in range(0, len(order), BATCH):
                served += sum(len(sample.view) for sample in samples.fetch(order[at:at + BATCH]))
        if samples.stats()["origin_samples"]:
            raise SystemExit(f"bench: some samples were read without the sidecar: {samples.stats()}")
    print(served)


def measure(bench):
    return [one_run(bench) for _ in range(RUNS)], 0


if __name__ == "__main__":
    read_epochs()
