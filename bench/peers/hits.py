"""Row "hits": samples a second, warm, random order, every byte read, by one and by two client processes at once.

All servers of a size run at the same time; the turns of a round go through them and back, A-B-...-Z-Z-...-B-A. All
clients are C++ (main.cc) and ask for 64 samples at a time.
"""

import contextlib
import shutil
import subprocess

from common import STOKER, Client, NotRun, copy_files, interleaved, juicefs, juicefs_format, plain_env, program, rclone
from common import reasons, servers, turns

NAME = "hits"
SIZES = {4: 4000, 110: 4000, 1024: 400}  # mean KiB: samples
CLIENTS = (1, 2)
CACHE_MIB = 2048  # more than any row's samples
NGINX = """
daemon off; worker_processes 2; pid {folder}/nginx.pid; error_log {folder}/error.log; user root;
events {{ worker_connections 64; }}
http {{
  access_log off; sendfile on; sendfile_max_chunk 0; keepalive_requests 100000000; keepalive_timeout 600s;
  open_file_cache max=20000 inactive=1h; open_file_cache_valid 1h;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen unix:{folder}/nginx.sock; root {root}; default_type application/octet-stream; }}
}}
"""


# Each server yields (kind and path of its client, pids of the servers).

@contextlib.contextmanager
def stoker(data):
    yield ("stoker", data / "node"), []


@contextlib.contextmanager
def page_cache(data):
    yield ("files", data / "files"), []


@contextlib.contextmanager
def memcached(data):
    socket = data / "memcached.sock"
    command = [program("memcached"), "-s", socket, "-u", "root", "-m", str(CACHE_MIB), "-I", "16m", "-t", "2", "-R", "200",
               "-o", "no_lru_crawler"]
    with servers.running(command) as process:
        servers.wait_for(socket, process)
        yield ("memcached", socket), [process.pid]


@contextlib.contextmanager
def redis(data):
    with servers.redis(data) as (socket, pid):
        yield ("redis", socket), [pid]


@contextlib.contextmanager
def nginx(data):
    folder = data / "nginx"
    folder.mkdir()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, root=data / "files"))
    command = [program("nginx"), "-p", folder, "-c", folder / "nginx.conf"]
    with servers.running(command, stderr=subprocess.DEVNULL) as process:
        servers.wait_for(folder / "nginx.sock", process)
        yield ("nginx", folder / "nginx.sock"), [process.pid, *servers.children(process.pid)]


@contextlib.contextmanager
def juicefs_mount(data):
    folder, env = data / "juicefs", plain_env()
    folder.mkdir()
    meta = f"sqlite3://{folder}/meta.db"
    juicefs_format(f"{folder}/objects/", meta, "file", env)
    with juicefs(folder, meta, CACHE_MIB, env, "--writeback") as (point, _):
        copy_files(data / "files", point / "files")
    with juicefs(folder, meta, CACHE_MIB, env, "--read-only") as (point, pids):
        yield ("files", point / "files"), pids


@contextlib.contextmanager
def rclone_mount(data):
    with rclone(data / "rclone", f":local:{data / 'files'}", CACHE_MIB << 20, plain_env()) as (point, pids):
        yield ("files", point), pids


SERVERS = {STOKER: stoker, "plain files, page cache": page_cache, "memcached": memcached, "Redis": redis, "nginx": nginx,
           "JuiceFS mount": juicefs_mount, "rclone mount": rclone_mount}


class Reader:
    """A peer with as many clients as are ever needed. `pids`: of servers and clients."""

    def __init__(self, bench, data, name, workload, stack):
        with reasons():
            (kind, path), helpers = stack.enter_context(SERVERS[name](data))
            self.clients = []
            for number in range(max(CLIENTS)):
                command = [bench.build / "bin" / "stoker-bench-peers", kind, path, *workload, 1 + 1000 * number]
                self.clients.append(Client(command, data / f"{kind}.{number}.log"))
                stack.callback(self.clients[-1].close)
        self.pids = [*helpers, *(client.process.pid for client in self.clients)]
        self.sums = [total for _, _, total in self.ask(max(CLIENTS), 0)]  # also fills the peer's cache

    def ask(self, count, length):
        """Asks `count` clients to read at the same time; returns their answers."""
        busy = self.clients[:count]
        with reasons():
            for client in busy:
                client.send(length)
        return [client.answer().split() for client in busy]

    def turn(self, count, length):
        """Samples a second of `count` clients together, for `length` seconds."""
        return sum(int(samples) / float(took) for samples, took, _ in self.ask(count, length))


def start(bench, data, workload, stack, report):
    """The peers that could be started, by name. All have read the same bytes."""
    readers = {}
    for name in SERVERS:
        try:
            readers[name] = Reader(bench, data, name, workload, stack)
        except NotRun as reason:
            report.not_run(NAME, name, f"{reason}")
    truth = readers[STOKER].sums[0]
    for name in [name for name, reader in readers.items() if set(reader.sums) != {truth}]:
        readers.pop(name)
        report.not_run(NAME, name, "read other bytes than Stoker")
    return readers


def rounds(bench, readers, count, case, report):
    """{peer: samples a second in each round}, and the cores that other programs used."""
    pids = [pid for reader in readers.values() for pid in reader.pids]
    rates, cores = turns.with_foreign_cores(pids, lambda: interleaved(
        readers, bench.rounds, lambda name, _: readers[name].turn(count, bench.seconds),
        lambda name, reason: report.not_run(NAME, name, reason)))
    report.foreign(f"{NAME}, {case}", cores)
    return rates


def measure_size(bench, kib, count, report):
    data = bench.folder / "hits"
    shutil.rmtree(data, ignore_errors=True)
    workload = [count, kib << 10]
    subprocess.run([bench.build / "bin" / "stoker-bench", "prepare", data, *map(str, workload)], check=True)
    (data / "flat.bin").unlink()
    servers.read_afresh(data)
    with contextlib.ExitStack() as stack:
        readers = start(bench, data, workload, stack, report)
        for clients in CLIENTS:
            case = f"{kib} KiB, {clients} client{'s' * (clients > 1)}"
            rates = rounds(bench, readers, clients, case, report)
            report.add_rates(NAME, case, "samples/s", rates)
    shutil.rmtree(data)


def measure(bench, report):
    for kib, count in SIZES.items():
        measure_size(bench, kib, count, report)
