"""Warm GETs of 110 KiB objects from stoker-s3, beside nginx with the same bytes as static files, and versitygw.

One client program (s3_endpoint.cc) reads from all three in turns, A-B-C-C-B-A, over one or eight kept connections.
Every request is signed once, before the clock starts: the client costs the same for all, and stoker-s3 and versitygw
verify each signature. nginx does not; it has two workers, sendfile, a cache of open files, and no log.

All run in a network namespace whose TCP is Reno. stoker-s3 asks for Reno anyway; on a host with BBR the other servers
would be slower.
"""

import contextlib
import ctypes
import datetime
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys

import servers
import turns

LOOPBACK_KEY = tuple(servers.LOOPBACK_KEY.values())
CONNECTIONS = (1, 8)
REGION = "us-east-1"
CLONE_NEWNET = 0x40000000
NGINX = """
daemon off; worker_processes 2; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; keepalive_timeout 600s;
  open_file_cache max=8000 inactive=600s; open_file_cache_valid 600s;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen 127.0.0.1:{port}; root {root}; default_type application/octet-stream; }}
}}
"""


@contextlib.contextmanager
def nginx(folder, root):
    """Yields (port, pids). nginx's workers run as root here, so that they may read `root`."""
    folder.mkdir(parents=True, exist_ok=True)
    port = servers.free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(user + NGINX.format(folder=folder, port=port, root=root))
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    with servers.running([program, "-p", folder, "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL) as process:
        servers.wait_for_port(port, process)
        yield port, [process.pid, *servers.children(process.pid)]


def stoker_s3(bench, folder, origin):
    """A sidecar that may keep everything, and stoker-s3. Yields (port, pids)."""
    return servers.s3_endpoint(bench.build / "bin", folder, {"name": "bench", "origin": origin, "reservedFree": 0.02})


def write_requests(path, keys, port, key):
    """One signed request head for each key, in order."""
    from stoker.origin.sigv4 import Credentials, sign_get

    now, host = datetime.datetime.now(datetime.timezone.utc), f"127.0.0.1:{port}"
    with open(path, "w", encoding="ascii", newline="") as file:
        for name in keys:
            headers = sign_get(Credentials(*key), REGION, host, f"/{name}", [], now)
            lines = [f"GET /{name} HTTP/1.1", *(f"{header}: {value}" for header, value in headers.items()), "", ""]
            file.write("\r\n".join(lines))


class Side:
    """One server, and the requests that it gets."""

    def __init__(self, bench, name, keys, port, pids, key):
        self.requests = bench.folder / f"requests-{name}"
        self.program = bench.build / "bin" / "stoker-bench-s3-endpoint"
        self.port, self.pids = port, pids
        write_requests(self.requests, keys, port, key)

    def client(self, connections):
        command = [self.program, self.port, connections, self.requests]
        return turns.Program([str(word) for word in command], self.pids)


def one_round(programs):
    """Seconds per pass of each program, A-B-C-C-B-A, and the cores that others used meanwhile."""
    pids = sorted({pid for program in programs for pid in program.pids})
    (there, back), foreign = turns.with_foreign_cores(pids, lambda: (
        [program.turn() for program in programs], [program.turn() for program in reversed(programs)][::-1]))
    return [first + second for first, second in zip(there, back)], foreign


def rounds_of(bench, programs):
    """{"nginx": ratios, "versitygw": ratios} of the first program's speed, and the cores that others used."""
    for program in programs:
        program.warm_up()
    if len({program.pass_sum for program in programs}) != 1:
        raise SystemExit(f"bench: the servers sent different bytes: {[program.pass_sum for program in programs]}")
    done = []
    while len(done) < bench.rounds + turns.SPARE_ROUNDS and sum(
            foreign <= turns.BUSY_CORES_MAX for _, foreign in done) < bench.rounds:
        done.append(one_round(programs))
    quietest = sorted(done, key=lambda one: one[1])[:bench.rounds]
    ratios = {name: [times[at] / times[0] for times, _ in quietest] for at, name in ((1, "nginx"), (2, "versitygw"))}
    return ratios, max(foreign for _, foreign in quietest)


def compare(bench, sides, connections):
    """As rounds_of(), but starts clients for this number of connections; servers would close idle ones."""
    with contextlib.ExitStack() as stack:
        return rounds_of(bench, [stack.enter_context(contextlib.closing(side.client(connections))) for side in sides])


def fill(bench, folder, origin, keys):
    """Fills the node directory. No process maps its files afterwards, so that read_afresh() can drop their pages."""
    shutil.rmtree(folder, ignore_errors=True)
    with stoker_s3(bench, folder, origin) as (port, pids):
        with contextlib.closing(Side(bench, "fill", keys, port, pids, LOOPBACK_KEY).client(1)) as client:
            client.ask(0, 1)
    servers.read_afresh(folder / "node")


def enter_own_network():
    """Gives this process, and those that it starts, a network of their own: loopback only, with Reno. Needs root."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise SystemExit(f"bench: a network namespace needs root: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("reno", encoding="ascii")


def measure_apart(bench, answers):
    enter_own_network()
    answers.put(measure_all(bench))


def measure_all(bench):
    """{connections: (ratios by server, foreign cores)}."""
    sys.path.insert(0, str(bench.build / "python"))
    files, bucket = bench.data / "files", bench.folder / "s3-one"
    servers.make_bucket(files, bucket, 1)
    names = sorted(path.relative_to(files).as_posix() for path in files.rglob("*.bin"))
    keys = [f"{servers.BUCKET}/c0/{name}" for name in names]
    with contextlib.ExitStack() as stack:
        endpoint = stack.enter_context(servers.plain_s3(bucket))
        origin = {"uri": f"s3://{servers.BUCKET}", "endpoint": endpoint.url}
        fill(bench, bench.folder / "s3-endpoint", origin, keys)
        ours = stack.enter_context(stoker_s3(bench, bench.folder / "s3-endpoint", origin))
        static = stack.enter_context(nginx(bench.folder / "nginx", files))
        gateway_key = tuple(servers.CREDENTIALS.values())
        sides = [Side(bench, "stoker", keys, *ours, LOOPBACK_KEY), Side(bench, "nginx", names, *static, LOOPBACK_KEY),
                 Side(bench, "versitygw", keys, endpoint.port, endpoint.pids, gateway_key)]
        return {count: compare(bench, sides, count) for count in CONNECTIONS}


def row(server, connections):
    """A function that measures a row of run.py. The first call measures all rows."""

    def measure(bench):
        if not hasattr(bench, "s3_endpoint"):
            forked = multiprocessing.get_context("fork")
            answers = forked.SimpleQueue()
            process = forked.Process(target=measure_apart, args=(bench, answers))
            process.start()
            process.join()
            if process.exitcode != 0:
                raise SystemExit("bench: the S3 endpoint could not be measured")
            bench.s3_endpoint = answers.get()
        ratios, foreign = bench.s3_endpoint[connections]
        return ratios[server], foreign

    return measure
