#!/usr/bin/env python3
"""make many-nodes: what the origin sends, and how long an epoch takes, on 1 to 64 nodes, with and without peers.

usage: many_nodes.py --build DIR [--page FILE] [--results FILE] [--from-results FILE]

Up to 3 nodes are real: a stoker-sidecar each with a node directory of its own, TLS between them through a relay that
holds each byte back for half of the round trip, a fake operator that forms their peer group, an S3 server behind the
pacer, and a Python trainer a node. From 1 to 64 nodes are simulated, too: the sidecar's code in virtual time
(stoker-many-nodes). Exits with 1 if the origin was asked more than once for a sample with peers, or a rank got a sample
of another rank.
"""

import argparse
import contextlib
import json
import os
import pathlib
import queue
import random
import shutil
import signal
import socket as sockets
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

import many_nodes_page
import servers
from many_nodes_page import BATCH, COMPUTE, EPOCHS, FIRST_BYTE_MS, ORIGIN_RATE, POOL, REAL, RTTS_MS, SAMPLES, \
    SAMPLE_BYTES, SIMULATED

FOLDER = pathlib.Path("/dev/shm/stoker-many-nodes")
SETTLE_S = 8  # several reports of a sidecar


def make_files(folder):
    prng = random.Random(1)
    for number in range(SAMPLES):
        path = folder / f"{number:06}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(8, "little") + prng.randbytes(SAMPLE_BYTES - 8))


# --- the round trip between nodes -------------------------------------------------------------------------------------


def pump(source, sink, delay):
    """Copies bytes until the end of the stream; each is sent `delay` seconds after it arrived. A thread sleeps more
    exactly than asyncio, which counts milliseconds."""
    waiting = queue.SimpleQueue()

    def send():
        with contextlib.suppress(OSError):
            while (item := waiting.get())[1]:
                time.sleep(max(0, item[0] - time.monotonic()))  # the relay delays each byte
                sink.sendall(item[1])
        with contextlib.suppress(OSError):
            sink.shutdown(sockets.SHUT_RDWR)

    threading.Thread(target=send, daemon=True).start()
    data = b"-"
    while data:
        try:
            data = source.recv(1 << 16)
        except OSError:
            data = b""
        waiting.put((time.monotonic() + delay, data))


def relay(delay, routes):
    """Listens at the first port of each route and passes on to the second one."""
    def accept(server, port):
        while True:
            near, far = server.accept()[0], sockets.create_connection(("127.0.0.1", port))
            for end in (near, far):
                end.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
            for ends in ((near, far), (far, near)):
                threading.Thread(target=pump, args=(*ends, delay), daemon=True).start()

    for here, there in routes:
        server = sockets.create_server(("127.0.0.1", here))
        threading.Thread(target=accept, args=(server, there), daemon=True).start()
    print("ready", flush=True)
    signal.pause()


@contextlib.contextmanager
def relays(rtt_ms, routes):
    words = [f"{here}:{there}" for here, there in routes]
    command = [sys.executable, __file__, "--relay", str(rtt_ms / 2000), *words]
    with servers.running(command, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        yield


def round_trip_ms(rtt_ms):
    """Median round trip of a byte through the relay to an echo on loopback."""
    echo = sockets.create_server(("127.0.0.1", 0))

    def answer():
        connection, _ = echo.accept()
        with connection:
            while data := connection.recv(64):
                connection.sendall(data)

    threading.Thread(target=answer, daemon=True).start()
    port, took = servers.free_port(), []
    with relays(rtt_ms, [(port, echo.getsockname()[1])]), sockets.create_connection(("127.0.0.1", port)) as ping:
        ping.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
        for _ in range(100):
            began = time.monotonic()
            ping.sendall(b"-")
            ping.recv(1)
            took.append(1000 * (time.monotonic() - began))
    echo.close()
    return statistics.median(took)


# --- real nodes -------------------------------------------------------------------------------------------------------


def train(socket, rank, ranks):
    """A rank: prints when each epoch ended and which samples it had; begins with a line of stdin."""
    import stoker
    import stoker.torch

    with stoker.open("bench", socket=socket) as samples:
        dataset = stoker.torch.Dataset(samples, decode=lambda view: int.from_bytes(view[:8], "little"))
        sampler = stoker.torch.Sampler(dataset, ranks, rank, seed=1, epochs=EPOCHS)
        loader = stoker.torch.DataLoader(dataset, batch_size=BATCH, sampler=sampler,
                                         collate_fn=lambda pairs: [number for number, _ in pairs])
        print("ready", flush=True)
        sys.stdin.readline()
        ends, numbers = [], []
        for epoch in range(EPOCHS):
            sampler.set_epoch(epoch)
            seen = []
            for batch in loader:
                seen += batch
                time.sleep(len(batch) / COMPUTE)  # the step that a GPU would take
            if seen != sampler.order().tolist():
                raise SystemExit(f"bench: rank {rank} had other samples than its own in epoch {epoch}")
            ends.append(time.monotonic())
            numbers.append(seen)
        print(json.dumps({"ends": ends, "numbers": numbers, "alone": samples.stats()["origin_samples"]}), flush=True)


class Operator:
    """stoker-fake-operator; keeps the newest report of each node's leader."""

    def __init__(self, build, folder, nodes, grant, stack):
        self.ca = folder / "ca.pem"
        command = [build / "bin" / "stoker-fake-operator", "--ca", self.ca, "--grant", f"bench={grant}", "--peers", nodes]
        process = stack.enter_context(servers.running(command, stdout=subprocess.PIPE, text=True))
        self.endpoint = process.stdout.readline().split()[-1]
        self.reports = {}
        threading.Thread(target=self._hear, args=(process.stdout,), daemon=True).start()

    def _hear(self, lines):
        with contextlib.suppress(ValueError):  # the pipe is closed
            for line in lines:
                for report in json.loads(line).get("report", {}).get("datasets", []):
                    self.reports[report.get("peerAddress")] = report

    def wait(self, nodes):
        """Waits until all nodes know each other and have their grants."""
        give_up = time.monotonic() + servers.START_S
        while sum("peerGroupVersion" in report and "grantedBytes" in report
                  for report in list(self.reports.values())) < nodes:
            if time.monotonic() > give_up:
                raise SystemExit(f"bench: the nodes do not know each other: {self.reports}")
            time.sleep(0.1)  # polling interval

    def instead_of_peers(self):
        return sum(int(report.get(name, 0)) for report in self.reports.values()
                   for name in ("peerHedges", "peerFailures"))


def settings_of(folder, node, origin, grant, operator, port, relayed):
    path = folder / f"n{node}"
    (path / "node").mkdir(parents=True)
    dataset = {"name": "bench", "origin": origin, "directory": str(path / "node"), "grant": str(grant),
               "reservedFree": 0.001, "stepAsideWindow": "0s"}
    settings = {"socket": str(path / "s.sock"), "datasets": [dataset],
                "job": {"namespace": "team", "pod": f"pod-{node}", "node": f"n{node}", "rank": node,
                        "trainingJob": "wide", "trainingJobUid": "wide", "attemptUid": "wide-1"}}
    if operator is not None:
        dataset |= {"peers": True, "pinned": True}
        settings |= {"control": {"endpoint": operator.endpoint, "caFile": str(operator.ca),
                                 "tokenFile": str(folder / "token")},
                     "peers": {"listen": f"127.0.0.1:{port}", "address": f"127.0.0.1:{relayed}"}}
    return settings


def stats_of(origin):
    with urllib.request.urlopen(f"{origin['endpoint']}/__stats") as answer:
        return json.load(answer)


def ranks_done(stack, build, sockets_of_nodes):
    """Runs a rank a node; returns (the time when they began, what each printed at its end)."""
    env = dict(os.environ, PYTHONPATH=str(build / "python"))
    ranks = []
    for rank, socket in enumerate(sockets_of_nodes):
        command = [sys.executable, __file__, "--train", socket, str(rank), str(len(sockets_of_nodes))]
        ranks.append(stack.enter_context(servers.running(command, env=env, stdin=subprocess.PIPE,
                                                         stdout=subprocess.PIPE, text=True)))
    for rank in ranks:
        if rank.stdout.readline() != "ready\n":
            raise SystemExit("bench: a rank does not begin")
    began = time.monotonic()
    for rank in ranks:
        rank.stdin.write("go\n")
        rank.stdin.flush()
    return began, [json.loads(rank.stdout.readline()) for rank in ranks]


def measure(build, nodes, has_peers, rtt_ms):
    """A run on real nodes."""
    folder = FOLDER / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "token").write_text("a.token\n")
    grant = int(POOL * SAMPLES * servers.record_bytes(SAMPLE_BYTES) / nodes)
    with contextlib.ExitStack() as stack:
        origin = stack.enter_context(servers.paced_folder(build, FOLDER / "files", ORIGIN_RATE, FIRST_BYTE_MS))
        operator = Operator(build, folder, nodes, grant, stack) if has_peers else None
        routes = [(servers.free_port(), servers.free_port()) for _ in range(nodes)]
        if has_peers:
            stack.enter_context(relays(rtt_ms, routes))
        paths = []
        for node, (relayed, port) in enumerate(routes):
            settings = settings_of(folder, node, origin, grant, operator, port, relayed)
            stack.enter_context(servers.configured_sidecar(build / "bin" / "stoker-sidecar", settings))
            paths.append(settings["socket"])
        if operator is not None:
            operator.wait(nodes)
        began, ranks = ranks_done(stack, build, paths)
        check(ranks, nodes)
        stats = stats_of(origin)
        if operator is not None:
            time.sleep(SETTLE_S)  # the last counts arrive with the next reports
        instead = operator.instead_of_peers() if operator is not None else 0
    ends = [began, *(max(epoch) for epoch in zip(*[rank["ends"] for rank in ranks]))]
    return {"seconds": [end - start for start, end in zip(ends, ends[1:])], "stats": stats, "instead_of_peers": instead}


def check(ranks, nodes):
    """Checks that each epoch has each sample. torch's sampler repeats some at the end so that all ranks have equally
    many."""
    for epoch in zip(*[rank["numbers"] for rank in ranks]):
        read = [number for numbers in epoch for number in numbers]
        if set(read) != set(range(SAMPLES)) or len(read) != -(-SAMPLES // nodes) * nodes:
            raise SystemExit("bench: an epoch was not complete")
    if any(rank["alone"] for rank in ranks):
        raise SystemExit("bench: a trainer read the origin past its sidecar")


# --- simulated nodes --------------------------------------------------------------------------------------------------


def simulate(build, nodes, has_peers, rtt_ms):
    numbers = {"nodes": nodes, "peers": int(has_peers), "rtt-ms": rtt_ms, "epochs": EPOCHS, "samples": SAMPLES,
               "sample-bytes": SAMPLE_BYTES, "pool": POOL, "origin-rate": ORIGIN_RATE, "first-byte-ms": FIRST_BYTE_MS,
               "compute": COMPUTE}
    words = [str(word) for name, value in numbers.items() for word in (f"--{name}", value)]
    run = subprocess.run([build / "bin" / "stoker-many-nodes", *words], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def runs(build):
    """Yields every run as {"kind", "nodes", "peers", "rtt_ms", "seconds", "gets", ...}."""
    for kind, counts in (("real", REAL), ("simulated", SIMULATED)):
        for nodes in counts:
            for rtt_ms in (None, *RTTS_MS) if nodes > 1 else (None,):
                row = {"kind": kind, "nodes": nodes, "peers": rtt_ms is not None, "rtt_ms": rtt_ms}
                if kind == "real":
                    row |= measure(build, nodes, row["peers"], rtt_ms or 0)
                    row["gets"] = row["stats"]["get"]
                else:
                    row |= simulate(build, nodes, row["peers"], rtt_ms or 0)
                    row["gets"] = sum(row["gets"])
                print(json.dumps(row), flush=True)
                yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=servers.ROOT / "build" / "release")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path, help="file for the results")
    parser.add_argument("--from-results", type=pathlib.Path, help="do not measure; use this file of --results")
    parser.add_argument("--relay", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--train", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.relay:
        routes = [tuple(map(int, word.split(":"))) for word in arguments.relay[1:]]
        return relay(float(arguments.relay[0]), routes)
    if arguments.train:
        return train(arguments.train[0], int(arguments.train[1]), int(arguments.train[2]))
    if arguments.from_results:
        results = json.loads(arguments.from_results.read_text())
    else:
        shutil.rmtree(FOLDER, ignore_errors=True)
        make_files(FOLDER / "files")
        results = {"round_trips_ms": {str(rtt): round_trip_ms(rtt) for rtt in RTTS_MS},
                   "runs": list(runs(arguments.build.resolve()))}
        shutil.rmtree(FOLDER)
    if arguments.results:
        arguments.results.write_text(json.dumps(results))
    print(many_nodes_page.table(results))
    if arguments.page:
        many_nodes_page.write(arguments.page, results)
    missed = [f"{row['kind']} on {row['nodes']} nodes, {row['gets']}" for row in results["runs"]
              if row["peers"] and row["gets"] > SAMPLES + row["instead_of_peers"]]
    if missed:
        raise SystemExit(f"many-nodes: the origin was asked more than {SAMPLES} times: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
