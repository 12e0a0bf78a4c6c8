"""Two jobs read one dataset by importance, one with losses ten times as large. Compares hits when the node directory is
managed by their aggregated importance with hits when it is managed by one job's importance map.

Real sidecars (a leader and a follower over one node directory), one process per trainer, the real client. The losses
are synthetic (lognormal, independent, redrawn a little in every epoch), so the important samples are known. Prints a
table and fails if aggregated importance hits less than 1.10 times as often as one map for both (law T4).

Usage: shared_importance.py --build DIR [--samples N] [--epochs N] [--cache SHARE] [--json FILE]
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import servers

SAMPLE_BYTES = 4096
RECORD_BYTES = SAMPLE_BYTES + 64  # on the node, with header and padding
PARAMETERS = {"beta": 1.0, "warmupEpochs": 1, "reuseFactor": 10000, "hShare": 1.0, "substitute": 0}
BATCH = 64
BAR = 1.10

# name, scale of the second job's losses, weight of each job
ARMS = [
    ("aggregated, losses 10:1", 0.1, {}),
    ("aggregated, losses 1:1", 1.0, {}),
    ("map of the first job", 0.1, {"job-0": 1, "job-1": 0}),
    ("map of the second job", 0.1, {"job-0": 0, "job-1": 1}),
]


def losses_of(job, scale, samples, epoch):
    """One job's loss for each sample in an epoch, float32."""
    base = np.random.default_rng(100 + job).lognormal(0.0, 1.0, samples)
    noise = np.random.default_rng((200 + job, epoch)).lognormal(0.0, 0.3, samples)
    return (scale * (base * noise).astype(np.float32)).astype(np.float32)


def write_dataset(folder, samples):
    """Writes `samples` files of SAMPLE_BYTES."""
    payload = os.urandom(SAMPLE_BYTES)
    for number in range(samples):
        path = folder / "all" / f"{number:06}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(8, "little") + payload[8:])


@contextlib.contextmanager
def sidecars(build, folder, uri, grant, weights):
    """One stoker-sidecar per job over one node directory; the first leads. Yields their sockets."""
    dataset = {"name": "train", "origin": {"uri": uri}, "directory": str(folder / "node"), "grant": str(grant),
               "window": "1Mi", "reservedFree": 0.001, "weights": weights}
    with contextlib.ExitStack() as stack:
        sockets = [folder / f"{job}.sock" for job in range(2)]
        for job, socket in enumerate(sockets):
            settings = {"socket": str(socket), "datasets": [dataset], "job": {"trainingJobUid": f"job-{job}"}}
            stack.enter_context(servers.configured_sidecar(build / "bin" / "stoker-sidecar", settings))
        yield sockets


class Trainer:
    """One job's loop: draws, reads, and reports losses, batch by batch."""

    def __init__(self, job, socket, scale):
        import stoker
        from stoker.contracts import terms
        from stoker.draws import Draws

        self._job, self._scale = job, scale
        self.samples = stoker.open("train", socket=str(socket))
        self._draws = Draws(self.samples, terms("importance", PARAMETERS), seed=7 + job, rank=0, world_size=1,
                            batch_size=BATCH)

    def begin(self, epoch):
        """Begins an epoch."""
        self._losses = losses_of(self._job, self._scale, len(self.samples), epoch)
        self._draws.begin(epoch)

    def step(self):
        """Reads one batch; returns the served ids, none at the end of the epoch."""
        ids = self._draws.next(BATCH)
        if len(ids):
            got = self.samples.fetch(ids)
            assert [int.from_bytes(bytes(sample)[:8], "little") for sample in got] == list(ids)
            self._draws.report(ids, self._losses[ids])
        else:
            self.samples.flush()
        return ids

    def hit_share(self):
        """Share of the epoch's draws whose samples were on the node already."""
        report = self._draws.epoch_report()
        assert report.contract == "importance" and report.alone == 0, report
        return report.node_bytes / (report.node_bytes + report.origin_bytes)


def train(job, socket, scale, epochs):
    """Runs all epochs of one job; returns the hit share of each."""
    trainer = Trainer(job, socket, scale)
    shares = []
    for epoch in range(epochs):
        trainer.begin(epoch)
        while len(trainer.step()):
            pass
        shares.append(trainer.hit_share())
    trainer.samples.close()
    return shares


def run_arm(arguments, folder, uri, scale, weights):
    """Runs both jobs at once; returns each one's mean hit share over the second half of the epochs."""
    grant = int(arguments.cache * arguments.samples) * RECORD_BYTES
    os.environ["STOKER_DATASETS"] = json.dumps({"train": {"uri": uri}})
    with sidecars(arguments.build, folder, uri, grant, weights) as sockets:
        jobs = [subprocess.Popen([sys.executable, __file__, "--build", str(arguments.build), "--job", str(job), "--socket",
                                  str(socket), "--scale", str(scale if job == 1 else 1.0), "--epochs",
                                  str(arguments.epochs)],
                                 stdout=subprocess.PIPE, text=True, env={**os.environ, "STOKER_JOB": "loader"})
                for job, socket in enumerate(sockets)]
        told = [job.communicate()[0] for job in jobs]
    if any(job.returncode for job in jobs):
        raise RuntimeError("a trainer failed")
    shares = [json.loads(text) for text in told]
    return [float(np.mean(of_job[arguments.epochs // 2:])) for of_job in shares]


def compare(arguments):
    """Prints the table; returns whether the bar is met."""
    results = {}
    with tempfile.TemporaryDirectory(prefix="stoker-aiv-") as name, contextlib.ExitStack() as stack:
        origin = pathlib.Path(name) / "origin"
        stack.callback(shutil.rmtree, origin, ignore_errors=True)
        write_dataset(origin, arguments.samples)
        print(f"{arguments.samples} samples, {arguments.cache:.0%} of them granted, {arguments.epochs} epochs; share of "
              "draws that hit")
        print(f"{'kept by':28}{'job 0':>8}{'job 1':>8}{'mean':>8}")
        for number, (arm, scale, weights) in enumerate(ARMS):
            folder = pathlib.Path(name) / str(number)
            folder.mkdir()
            first, second = run_arm(arguments, folder, f"file://{origin}", scale, weights)
            results[arm] = {"job0": first, "job1": second, "mean": (first + second) / 2}
            print(f"{arm:28}{first:8.3f}{second:8.3f}{(first + second) / 2:8.3f}", flush=True)
            shutil.rmtree(folder)
    one_map = np.mean([results[arm]["mean"] for arm, _, weights in ARMS if weights])
    ratio = float(results[ARMS[0][0]]["mean"] / one_map)
    verdict = "met" if ratio >= BAR else "MISSED"
    print(f"aggregated importance hits {ratio:.3f} times as often as the map of one job (bar {BAR:.2f}: {verdict})")
    results["ratio"] = ratio
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")
    return ratio >= BAR


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--cache", type=float, default=0.2)
    parser.add_argument("--json")
    parser.add_argument("--job", type=int, help=argparse.SUPPRESS)  # a trainer's process
    parser.add_argument("--socket", help=argparse.SUPPRESS)
    parser.add_argument("--scale", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    sys.path.insert(0, str(arguments.build / "python"))
    if arguments.job is not None:
        print(json.dumps(train(arguments.job, arguments.socket, arguments.scale, arguments.epochs)))
        return 0
    return 0 if compare(arguments) else 1


if __name__ == "__main__":
    sys.exit(main())
