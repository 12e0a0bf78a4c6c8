"""The servers that rows need: a sidecar, an S3 server behind a paced link, Redis. Each ends with its `with`."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "stoker", "AWS_SECRET_ACCESS_KEY": "stoker-secret"}
PORT, PACED_PORT = 19301, 19300
BUCKET = "bench"
START_S = 60


@contextlib.contextmanager
def running(command, **options):
    process = subprocess.Popen([str(word) for word in command], **options)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def wait_for(path, process):
    give_up = time.monotonic() + START_S
    while not path.exists():
        if process.poll() is not None or time.monotonic() > give_up:
            raise SystemExit(f"bench: {process.args[0]} does not start")
        time.sleep(0.02)


@contextlib.contextmanager
def redis(folder):
    """Redis at its best: unix socket, no persistence, all in memory. Gives (socket, pid)."""
    socket = folder / "redis.sock"
    socket.unlink(missing_ok=True)
    command = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no",
               "--client-output-buffer-limit", "normal 0 0 0"]
    with running(command, stdout=subprocess.DEVNULL, cwd=folder) as server:
        wait_for(socket, server)
        yield socket, server.pid


@contextlib.contextmanager
def sidecar(program, folder, origin, prefix=()):
    """A sidecar with one dataset, "bench", whose node directory is folder/node. Gives (socket, pid).

    `prefix` is a command that ends by executing its arguments.
    """
    (folder / "node").mkdir(parents=True, exist_ok=True)
    socket = folder / "sidecar.sock"
    socket.unlink(missing_ok=True)
    # JSON is YAML. Nothing is kept free for others: the bench cleans up behind itself.
    dataset = {"name": "bench", "origin": origin, "directory": str(folder / "node"), "reservedFree": 0.02}
    settings = folder / "sidecar.yaml"
    settings.write_text(json.dumps({"socket": str(socket), "datasets": [dataset]}))
    with open(folder / "sidecar.log", "wb") as log, running(
            [*prefix, program, "--config", settings], stdout=log, stderr=log, env={**os.environ, **CREDENTIALS}) as process:
        wait_for(socket, process)
        yield socket, process.pid


def make_bucket(files, folder, copies):
    """Every file `copies` times, as hard links, and the ETags beside them where the S3 server keeps them."""
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
    """versitygw behind the pacer: 20 ms to the first byte, 200 MB/s in all. Gives the endpoint."""
    command = [ROOT / "e2e" / "origin" / "serve.sh", folder, PORT, PACED_PORT]
    env = {**os.environ, **CREDENTIALS, "FIRST_BYTE_MS": "20", "BYTES_PER_SECOND": "200000000"}
    with running(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        if process.stdout.readline() != "ready\n":
            raise SystemExit("bench: the S3 server does not start")
        yield f"http://127.0.0.1:{PACED_PORT}"
