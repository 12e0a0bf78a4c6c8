"""The servers that benchmark rows need: a sidecar, an S3 server behind a paced link, Redis. Each stops at the end of
its `with`."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket as sockets
import subprocess
import time
import typing
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "stoker", "AWS_SECRET_ACCESS_KEY": "stoker-secret"}
PORT, PACED_PORT = 19301, 19300
BUCKET = "bench"
LOOPBACK_KEY = {"AWS_ACCESS_KEY_ID": "pod", "AWS_SECRET_ACCESS_KEY": "key-of-this-pod"}  # of stoker-s3
START_S = 60
QUIET_S = 3  # maximum age of a sidecar's status page


@contextlib.contextmanager
def running(command, **options):
    process = subprocess.Popen([str(word) for word in command], **options)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def wait_for(path, process):
    give_up = time.monotonic() + START_S
    while not path.exists():
        if process.poll() is not None or time.monotonic() > give_up:
            raise SystemExit(f"bench: {' '.join(process.args)} does not start")
        time.sleep(0.02)  # polling interval


def wait_for_port(port, process):
    """Waits until a server listens on this port of loopback."""
    give_up = time.monotonic() + START_S
    while True:
        with sockets.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > give_up:
            raise SystemExit(f"bench: {process.args[0]} does not start")
        time.sleep(0.02)  # polling interval


@contextlib.contextmanager
def redis(folder):
    """Redis in its fastest setup: unix socket, no persistence, all in memory. Yields (socket, pid)."""
    socket = folder / "redis.sock"
    socket.unlink(missing_ok=True)
    command = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no",
               "--client-output-buffer-limit", "normal 0 0 0"]
    with running(command, stdout=subprocess.DEVNULL, cwd=folder) as server:
        wait_for(socket, server)
        yield socket, server.pid


def children(pid):
    """Processes that a process has started."""
    lists = (path.read_text().split() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for found in lists for child in found]


@contextlib.contextmanager
def configured_sidecar(program, settings, prefix=()):
    """A sidecar with these settings. Yields its process once it accepts connections.

    Settings and log are beside the socket and have its name. `prefix` is a command that executes its arguments.
    """
    socket = pathlib.Path(settings["socket"])
    socket.unlink(missing_ok=True)
    socket.with_suffix(".yaml").write_text(json.dumps(settings))  # JSON is YAML
    with open(socket.with_suffix(".log"), "wb") as log, running(
            [*prefix, program, "--config", socket.with_suffix(".yaml")], stdout=log, stderr=log,
            env={**os.environ, **CREDENTIALS}) as process:
        wait_for(socket, process)
        yield process


@contextlib.contextmanager
def sidecar(program, folder, origin, prefix=()):
    """A sidecar with one dataset, "bench", whose node directory is folder/node. Yields (socket, pid)."""
    (folder / "node").mkdir(parents=True, exist_ok=True)
    socket = folder / "sidecar.sock"
    # Reserves almost no free disk space for other programs: the bench removes its files.
    dataset = {"name": "bench", "origin": origin, "directory": str(folder / "node"), "reservedFree": 0.02}
    with configured_sidecar(program, {"socket": str(socket), "datasets": [dataset]}, prefix) as process:
        yield socket, process.pid


@contextlib.contextmanager
def s3_endpoint(programs, folder, dataset):
    """A sidecar with one dataset, whose node directory is folder/node, and stoker-s3, whose clients sign with
    LOOPBACK_KEY; `programs`: the folder of both. Yields (port, pids)."""
    (folder / "node").mkdir(parents=True, exist_ok=True)
    port, log = free_port(), folder / "s3.log"
    settings = {"socket": str(folder / "sidecar.sock"), "s3Listen": f"127.0.0.1:{port}",
                "datasets": [{"directory": str(folder / "node"), **dataset}]}
    own_key = {"STOKER_S3_ACCESS_KEY": LOOPBACK_KEY["AWS_ACCESS_KEY_ID"],
               "STOKER_S3_SECRET_KEY": LOOPBACK_KEY["AWS_SECRET_ACCESS_KEY"]}
    env = {**os.environ, **CREDENTIALS, **own_key, "STOKER_SIDECAR_CONFIG": json.dumps(settings)}
    with configured_sidecar(programs / "stoker-sidecar", settings) as process, open(log, "wb") as out, \
            running([programs / "stoker-s3"], stdout=out, stderr=out, env=env) as endpoint:
        wait_for_port(port, endpoint)
        yield port, [process.pid, endpoint.pid]
        if endpoint.poll() is not None:
            raise SystemExit(f"bench: stoker-s3 ended with {endpoint.returncode}:\n{log.read_text()}")


@contextlib.contextmanager
def watched_sidecar(program, folder, origin, grant, window, eviction="auto", dataset="train"):
    """A sidecar with an empty node directory and one dataset of this name; grant and window in bytes.

    Yields (socket, a function that reads one of its pages: "status", "metrics").
    """
    (folder / "node").mkdir(parents=True)
    socket, port = folder / "sidecar.sock", free_port()
    served = {"name": dataset, "origin": origin, "directory": str(folder / "node"), "grant": str(grant),
              "window": str(window), "eviction": eviction, "reservedFree": 0.001, "stepAsideWindow": "0s"}

    def page(name):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}") as answer:
            return answer.read().decode()

    settings = {"socket": str(socket), "http": {"listen": f"127.0.0.1:{port}"}, "datasets": [served]}
    with configured_sidecar(program, settings):
        yield socket, page


@contextlib.contextmanager
def counted_sidecar(*arguments):
    """As watched_sidecar. Yields (socket, a function that returns the bytes read from the origin as the status page
    says, see settled())."""
    with watched_sidecar(*arguments) as (socket, page):
        yield socket, lambda: json.loads(page("status"))["datasets"][0]["leader"]["originBytes"]


def settled(count):
    """The value of `count`, a number on a sidecar's page, once it has stopped rising."""
    seen = None
    while True:
        time.sleep(QUIET_S)  # until the page has been updated
        now = count()
        if now == seen:
            return now
        seen = now


def open_dropped(folder):
    """Opens each file below the folder in turn, its pages dropped from the page cache."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with open(path, "rb", buffering=0) as file:
                os.fsync(file)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                yield file


def drop_pages(folder):
    """Drops the pages of all files below the folder."""
    for _ in open_dropped(folder):
        pass


def read_afresh(folder):
    """Reloads all files below the folder into the page cache in the same way: recently read files and files written
    hours ago get pages of different sizes, which made one side up to a tenth faster."""
    for file in open_dropped(folder):
        while file.read(1 << 20):
            pass


def record_bytes(payload):
    """Bytes of a sample in a segment: header, payload and padding (docs/design/segment-format.md)."""
    return -(-(payload + 32) // 64) * 64


def free_port():
    with sockets.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_bucket(files, folder, copies):
    """Hard-links every file `copies` times, and sets ETags where the S3 server stores them."""
    marker = folder / f"copies-{copies}"
    if marker.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    for path in sorted(files.rglob("*.bin")):
        etag = f'"{hashlib.md5(path.read_bytes()).hexdigest()}"'
        for copy in range(copies):
            key = pathlib.Path(BUCKET, f"c{copy}", path.relative_to(files))
            for place in (folder / "objects" / key, folder / "metadata" / key / "meta" / "etag"):
                place.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, folder / "objects" / key)
            (folder / "metadata" / key / "meta" / "etag").write_text(etag)
    marker.touch()


@contextlib.contextmanager
def paced_s3(folder):
    """versitygw behind the pacer: 20 ms to the first byte, 200 MB/s in total. Yields the endpoint."""
    command = [ROOT / "e2e" / "origin" / "serve.sh", folder, PORT, PACED_PORT]
    env = {**os.environ, **CREDENTIALS, "FIRST_BYTE_MS": "20", "BYTES_PER_SECOND": "200000000"}
    with running(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        if process.stdout.readline() != "ready\n":
            raise SystemExit("bench: the S3 server does not start")
        yield f"http://127.0.0.1:{PACED_PORT}"


class PlainS3(typing.NamedTuple):
    url: str
    port: int
    pids: list


@contextlib.contextmanager
def plain_s3(folder):
    """versitygw without the pacer, at full speed."""
    programs = subprocess.run([ROOT / "e2e" / "origin" / "build.sh"], check=True, capture_output=True, text=True).stdout
    port = free_port()
    for name in ("objects", "metadata"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    command = [pathlib.Path(programs.strip()) / "versitygw", "--port", f"127.0.0.1:{port}", "--keep-alive", "--quiet",
               "posix", "--sidecar", folder / "metadata", folder / "objects"]
    env = {**os.environ, "ROOT_ACCESS_KEY_ID": CREDENTIALS["AWS_ACCESS_KEY_ID"],
           "ROOT_SECRET_ACCESS_KEY": CREDENTIALS["AWS_SECRET_ACCESS_KEY"]}
    with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env) as process:
        wait_for_port(port, process)
        yield PlainS3(f"http://127.0.0.1:{port}", port, [process.pid])


@contextlib.contextmanager
def fake_s3(build, root):
    """The tests' S3 server with root/<bucket>/<key>. Yields the endpoint."""
    command = [build / "bin" / "stoker-fake-s3", "--root", root, "--access-key", CREDENTIALS["AWS_ACCESS_KEY_ID"],
               "--secret-key", CREDENTIALS["AWS_SECRET_ACCESS_KEY"]]
    with running(command, stdout=subprocess.PIPE, text=True) as server:
        ready = server.stdout.readline()
        if not ready:
            raise SystemExit("bench: the S3 server does not start")
        yield ready.split()[-1]


@contextlib.contextmanager
def paced_folder(build, files, bytes_per_second, first_byte_ms):
    """fake_s3() on a folder, behind the pacer. Yields the origin as in a sidecar's settings."""
    with fake_s3(build, files.parent) as endpoint:
        paced = f"127.0.0.1:{free_port()}"
        pacer = [build / "bin" / "stoker-pacer", f"--listen={paced}", f"--upstream={endpoint.removeprefix('http://')}",
                 f"--bytes-per-second={bytes_per_second}", f"--first-byte-ms={first_byte_ms}"]
        with running(pacer):
            yield {"uri": f"s3://{files.name}", "endpoint": f"http://{paced}"}
