#!/usr/bin/env python3
"""make chunks: what a cold epoch costs as objects and as chunks, compared with the closed form (DIESEL).

usage: chunks.py --build DIR [--page FILE] [--rounds 3] [--only KB ...]

For each sample size: packs files with `stoker pack`, and reads one cold epoch of the chunk-wise shuffle through a new
sidecar, from objects and from chunks in turns, from an S3 server behind a pacer that adds L to each first byte and lets
B bytes pass in a second. With c requests at a time the closed form says, for a sample of s bytes and k samples a chunk,

    objects: max(L/c, s/B) to L/c + s/B        chunks: max(L/(k c), s/B) to L/(k c) + s/B

seconds a sample; for c = 1 both ends are equal and the formula is exact: each request waits for the previous one. Exits
with 1 if a measured speed-up with c = 1 differs by more than 10 % from (L + s/B) / (L/k + s/B).
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

import servers

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = pathlib.Path("/dev/shm/stoker-chunks")  # in memory, because the closed form has no disk
CHUNK_BYTES = 4 << 20
BATCH = 64
GROUP = 2  # chunks that are shuffled together
TOLERANCE = 0.10


@dataclasses.dataclass(frozen=True)
class Row:
    sample_bytes: int
    objects: int  # number of samples in the epochs that are read from objects
    chunks: int  # number of samples in the epochs that are read from chunks
    first_byte_ms: int = 400
    bytes_per_second: int = 5_000_000
    in_flight: int = 1

    @property
    def name(self):
        return f"{self.sample_bytes // 1000} KB, {self.in_flight} in flight"

    def seconds(self, requests_a_sample):
        """Closed form: seconds a sample, at best and without any overlap of waiting and receiving."""
        wait = requests_a_sample * self.first_byte_ms / 1000 / self.in_flight
        receive = self.sample_bytes / self.bytes_per_second
        return (max(wait, receive) if self.in_flight > 1 else wait + receive), wait + receive


ROWS = (
    Row(4_000, 40, 4_000),
    Row(110_000, 40, 370),
    Row(500_000, 30, 120),
    Row(4_000, 1_000, 8_000, in_flight=16),
    Row(110_000, 370, 370, in_flight=16),
)


def make_files(folder, size, count):
    """A folder of `count` files of `size` random bytes, which begin with their numbers."""
    prng = random.Random(size)
    for number in range(count):
        path = folder / f"{number % 10}" / f"{number:06}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(8, "little") + prng.randbytes(size - 8))


def pack(build, files, to):
    command = [build / "bin" / "stoker", "pack", files, to, "--chunk-bytes", str(CHUNK_BYTES), "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return sum(1 for _ in to.glob("chunk-*"))


def read_epoch(socket, count):
    """The trainer: one epoch of the chunk-wise shuffle; prints its seconds. Checks that it had each sample once."""
    import stoker
    import stoker.torch

    with stoker.open("bench", socket=socket) as samples:
        dataset = stoker.torch.Dataset(samples, decode=lambda view: int.from_bytes(view[:8], "little"))
        began = time.monotonic()
        loader = stoker.torch.DataLoader(dataset, batch_size=BATCH, contract="windowed", chunk_group=GROUP, seed=1,
                                         collate_fn=lambda pairs: ([number for number, _ in pairs],))
        numbers = [number for batch in loader for number in batch[0]]
        took = time.monotonic() - began
        if sorted(numbers) != list(range(count)) or samples.stats()["origin_samples"]:
            raise SystemExit(f"bench: the sidecar served {len(numbers)} samples, not each of {count} exactly once")
    print(took)


def epoch(build, folder, origin, row, count):
    """Runs one cold epoch; returns its seconds."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "node").mkdir(parents=True)
    socket = folder / "sidecar.sock"
    dataset = {"name": "bench", "origin": origin, "directory": str(folder / "node"), "grant": "4Gi",
               "reservedFree": 0.001, "stepAsideWindow": "0s", "maxInFlight": row.in_flight}
    settings = {"socket": str(socket), "datasets": [dataset]}
    with servers.configured_sidecar(build / "bin" / "stoker-sidecar", settings):
        env = dict(os.environ, PYTHONPATH=str(build / "python"))
        command = [sys.executable, __file__, "--epoch", str(socket), str(count)]
        run = subprocess.run(command, env=env, capture_output=True, text=True)
        if run.returncode != 0:
            raise SystemExit(run.stdout + run.stderr + (folder / "sidecar.log").read_text()[-2000:])
    shutil.rmtree(folder)
    return float(run.stdout)


def measure(build, folder, row, rounds):
    """One row: seconds a sample, as objects and as chunks, the median of `rounds` turns."""
    shutil.rmtree(folder, ignore_errors=True)
    root = folder / "origin"
    make_files(root / "objects", row.sample_bytes, row.objects)
    make_files(folder / "files", row.sample_bytes, row.chunks)
    (root / "chunks").mkdir()
    chunks = pack(build, folder / "files", root / "chunks")
    link = row.bytes_per_second, row.first_byte_ms
    took = {"objects": [], "chunks": []}
    with contextlib.ExitStack() as stack:
        objects = stack.enter_context(servers.paced_folder(build, root / "objects", *link))
        packed = stack.enter_context(servers.paced_folder(build, root / "chunks", *link)) | {"format": "chunks"}
        for _ in range(rounds):
            took["objects"].append(epoch(build, folder / "run", objects, row, row.objects) / row.objects)
            took["chunks"].append(epoch(build, folder / "run", packed, row, row.chunks) / row.chunks)
    shutil.rmtree(folder)
    result = {"name": row.name, **dataclasses.asdict(row), "samples_a_chunk": row.chunks / chunks}
    for kind, requests in (("objects", 1), ("chunks", chunks / row.chunks)):
        best, worst = row.seconds(requests)
        result[kind] = {"ms": 1000 * statistics.median(took[kind]), "least_ms": 1000 * best, "most_ms": 1000 * worst,
                        "all_ms": [1000 * seconds for seconds in took[kind]]}
    result["speed_up"] = result["objects"]["ms"] / result["chunks"]["ms"]
    result["law"] = result["objects"]["most_ms"] / result["chunks"]["most_ms"]
    return result


def form(part):
    ends = f"{part['least_ms']:.3f}", f"{part['most_ms']:.3f}"
    return " to ".join(dict.fromkeys(ends))


def table(results):
    heads = ("samples", "B, MB/s", "in flight", "k", "objects, ms a sample", "closed form", "chunks, ms a sample",
             "closed form", "speed-up", "closed form")
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    for row in results:
        law = f"{row['law']:.1f}" if row["in_flight"] == 1 else "-"
        cells = (f"{row['sample_bytes'] // 1000} KB", row["bytes_per_second"] // 10**6, row["in_flight"],
                 f"{row['samples_a_chunk']:.1f}", f"{row['objects']['ms']:.3f}", form(row["objects"]),
                 f"{row['chunks']['ms']:.3f}", form(row["chunks"]), f"{row['speed_up']:.1f}", law)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def put_table(page, text):
    """Replaces the text between the page's marks."""
    begin, end = "<!-- chunks.py -->\n", "<!-- end -->"
    before, rest = page.read_text().split(begin)
    page.write_text(before + begin + text + "\n" + end + rest.split(end)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--only", type=int, nargs="+", help="rows, from 0")
    parser.add_argument("--epoch", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.epoch:
        return read_epoch(arguments.epoch[0], int(arguments.epoch[1]))
    build, folder = arguments.build.resolve(), FOLDER
    results, missed = [], []
    for number in arguments.only or range(len(ROWS)):
        row = measure(build, folder, ROWS[number], arguments.rounds)
        print(json.dumps(row), flush=True)
        results.append(row)
        if row["in_flight"] == 1 and abs(row["speed_up"] / row["law"] - 1) > TOLERANCE:
            missed.append(row["name"])
    print(table(results))
    if arguments.page:
        put_table(arguments.page, table(results))
    if missed:
        raise SystemExit(f"chunks: more than {TOLERANCE:.0%} off the predicted speed-up: {', '.join(missed)}")


if __name__ == "__main__":
    main()
