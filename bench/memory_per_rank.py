#!/usr/bin/env python3
"""make memory-per-rank: memory of one sidecar and of 8 ranks with 8 DataLoader workers each, at ten million samples.

usage: memory_per_rank.py --build DIR [--samples N] [--ranks 8] [--workers 8] [--page FILE]

A made-up S3 server lists the samples, with names and ETags as ImageNet has them. Each rank opens the dataset,
shuffles it and reads batches until every worker has read some. Then anonymous memory is summed: the kernel divides a
page among the processes that share it (Pss), so a forked worker counts only what it does not share with its rank.
Files are the same pages for all (manifest, residency table, samples), and the kernel may drop them. The same ranks with
an equally large dataset that is not Stoker's show what Python and PyTorch need; the difference is Stoker's share. Exits
with 1 if sidecar and ranks together need more than 1 GiB beyond that. Everything runs under a memory limit of 6 GiB.
"""

import argparse
import contextlib
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import memory_limit
import servers

MIB = 1 << 20
BAR_BYTES = 1 << 30
LIMIT_BYTES = 6 << 30
BATCH = 64
PAGE_KEYS = 20_000  # more than max-keys: on a busy machine each page waits for two switches of process
PER_CLASS = 1300
START_S = 900


def key_of(number):
    folder = number // PER_CLASS
    return f"train/n{folder:08}/n{folder:08}_{number:08}.JPEG"


def size_of(number):
    return 1000 + number % 1000


def etag_of(number):
    return f"{number:032x}"


class Bucket(http.server.BaseHTTPRequestHandler):
    """Lists `samples` objects, and serves zeros. Checks no signature."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    samples = 0

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if "list-type" in query:
            return self.answer(self.page(int(query.get("continuation-token", 0))), {"Content-Type": "application/xml"})
        number = int(re.search(r"_(\d+)\.JPEG$", url.path).group(1))
        return self.answer(bytes(size_of(number)), {"ETag": f'"{etag_of(number)}"'})

    def page(self, begin):
        end = min(begin + PAGE_KEYS, self.samples)
        more = f"<NextContinuationToken>{end}</NextContinuationToken>" if end < self.samples else ""
        objects = "".join(
            f"<Contents><Key>{key_of(number)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>&quot;{etag_of(number)}&quot;</ETag><Size>{size_of(number)}</Size></Contents>"
            for number in range(begin, end))
        return (f'<?xml version="1.0"?><ListBucketResult><Name>bench</Name><KeyCount>{end - begin}</KeyCount>'
                f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated>{more}{objects}</ListBucketResult>").encode()

    def answer(self, body, headers):
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Ignores broken connections: the sidecar ends in the middle of its fetches."""


def rank_main(kind, rank, ranks, workers, samples):
    """One rank: prints "ready" once its workers have read, and waits with its iterator until its input ends."""
    import torch
    import torch.utils.data

    if kind == "stoker":
        import stoker.torch

        dataset = stoker.torch.Dataset("bench", decode=len)
        if len(dataset) != samples:
            raise SystemExit(f"bench: {len(dataset)} samples")
        sampler = stoker.torch.Sampler(dataset, seed=1, num_replicas=ranks, rank=rank, epochs=2)
        loader = stoker.torch.DataLoader(dataset, batch_size=BATCH, sampler=sampler, num_workers=workers)
    else:
        class Zeros(torch.utils.data.Dataset):
            def __len__(self):
                return samples

            def __getitem__(self, _):
                return 0, 0

        # No shuffle: the sampler's memory for it counts as Stoker's.
        loader = torch.utils.data.DataLoader(Zeros(), batch_size=BATCH, sampler=range(rank, samples, ranks),
                                             num_workers=workers)
    batches = iter(loader)
    for _ in range(4 * workers):
        next(batches)
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


def memory_of(pid):
    """{field: bytes} of smaps_rollup."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}


def anonymous(pids):
    return sum(memory_of(pid)["Pss_Anon"] for pid in pids)


def measure_ranks(kind, options, env):
    """Bytes of anonymous memory of (the ranks' main processes, their workers), all together."""
    command = [sys.executable, __file__, "--rank-of", kind, "--ranks", options.ranks, "--workers", options.workers,
               "--samples", options.samples, "--rank"]
    workers = []
    # The ranks start at the same time, as with torchrun, so their peaks coincide.
    processes = [subprocess.Popen([*map(str, command), str(rank)], env=env, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) for rank in range(options.ranks)]
    try:
        if any(process.stdout.readline() != "ready\n" for process in processes):
            raise SystemExit(f"bench: a rank of {kind} failed")
        mains = [process.pid for process in processes]
        workers = [child for pid in mains for child in servers.children(pid)]
        if len(workers) < options.ranks * options.workers:
            raise SystemExit(f"bench: {len(workers)} workers")
        return anonymous(mains), anonymous(workers)
    finally:
        for process in processes:
            process.stdin.close()
            process.wait()
            process.stdout.close()
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Peak:
    """Peak of a process's anonymous memory, sampled ten times a second until stop()."""

    def __init__(self, pid):
        self.bytes = 0
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._ended.wait(0.1):
            self.bytes = max(self.bytes, memory_of(self._pid)["Anonymous"])

    def stop(self):
        self._ended.set()
        self._thread.join()
        return self.bytes


def start_server(samples):
    Bucket.samples = samples
    server = Server(("127.0.0.1", 0), Bucket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def sidecar_settings(folder, endpoint):
    (folder / "node").mkdir()
    dataset = {"name": "bench", "directory": str(folder / "node"), "grant": "1Gi", "window": "256Mi",
               "reservedFree": 0.001,
               "origin": {"uri": "s3://bench/train", "endpoint": endpoint, "pathStyle": True}}
    return {"socket": str(folder / "sidecar.sock"), "datasets": [dataset],
            "http": {"listen": f"127.0.0.1:{servers.free_port()}"}}


def wait_for_manifest(address):
    give_up = time.monotonic() + START_S

    def state():
        with urllib.request.urlopen(f"http://{address}/status") as answer:
            return json.loads(answer.read())["datasets"][0].get("leader", {}).get("state")

    while state() != "serving":
        if time.monotonic() > give_up:
            raise SystemExit("bench: the sidecar does not serve")
        time.sleep(1)  # polling interval


def measure(options):
    env = dict(os.environ, PYTHONPATH=str(options.build / "python"), PYTHONWARNINGS="ignore")
    rows = {"without": measure_ranks("plain", options, env)}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        settings = sidecar_settings(pathlib.Path(name), start_server(options.samples))
        with servers.configured_sidecar(options.build / "bin" / "stoker-sidecar", settings) as process:
            socket, peak = settings["socket"], Peak(process.pid)
            wait_for_manifest(settings["http"]["listen"])
            rows["listing"] = peak.stop()
            peak = Peak(process.pid)
            rows["with"] = measure_ranks("stoker", options, {**env, "STOKER_SOCKET": socket})
            rows["reading"] = peak.stop()
    return rows


def table(rows, options):
    mib = {name: [part / MIB for part in value] if isinstance(value, tuple) else value / MIB
           for name, value in rows.items()}
    mains, workers = (mine - plain for mine, plain in zip(mib["with"], mib["without"]))
    total = mib["reading"] + mains + workers
    lines = ["| what | MiB | of Python and PyTorch alone |", "| --- | ---: | ---: |",
             f"| sidecar, most while it lists {options.samples:,} objects | {mib['listing']:.0f} | |",
             f"| sidecar, most while {options.ranks} ranks read | {mib['reading']:.0f} | |",
             f"| {options.ranks} ranks' main processes | {mib['with'][0]:.0f} | {mib['without'][0]:.0f} |",
             f"| their {options.ranks * options.workers} workers | {mib['with'][1]:.0f} | {mib['without'][1]:.0f} |",
             f"| **Stoker in all, without Python and PyTorch** (bar ≤ {BAR_BYTES // MIB}) | **{total:.0f}** | |"]
    return "\n".join(lines) + "\n", total * MIB


def write_page(page, text):
    marked = re.compile(r"(<!-- begin memory -->\n).*?(<!-- end memory -->)", re.DOTALL)
    page.write_text(marked.sub(lambda found: found.group(1) + text + found.group(2), page.read_text()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=servers.ROOT / "build" / "release")
    parser.add_argument("--folder", default="/var/tmp", help="where to create the node directory, which needs 2 GB")
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--page", type=pathlib.Path, help="write the table between this page's marks")
    parser.add_argument("--rank-of", choices=("stoker", "plain"), help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank_of:
        return rank_main(options.rank_of, options.rank, options.ranks, options.workers, options.samples)
    if not options.inside:
        with memory_limit.memory_limit(LIMIT_BYTES) as prefix:
            raise SystemExit(subprocess.run([*prefix, sys.executable, *sys.argv, "--inside"], check=False).returncode)
    options.build = options.build.resolve()
    text, total = table(measure(options), options)
    print(text)
    if options.page:
        write_page(options.page, text)
    if total > BAR_BYTES:
        raise SystemExit(f"{total / MIB:.0f} MiB, more than {BAR_BYTES // MIB}")


if __name__ == "__main__":
    main()
