"""The servers behind a loader: an S3 server that counts requests, a sidecar, and the sidecar's S3 endpoint. Each stops at
the end of its `with`."""

import base64
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import servers  # noqa: E402

REGION = "us-east-1"
WINDOW = 8 << 20
QUIET_S = 0.5  # no request at the origin for so long: an epoch's requests have ended


def publish(files, folder):
    """Links files/BUCKET/KEY into the S3 server's folder, with what the server would have stored at an upload: the ETag, and
    a checksum, without which its listings have an empty <ChecksumAlgorithm> that s3torchconnector refuses."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in sorted(path for path in files.rglob("*") if path.is_file()):
        key = path.relative_to(files)
        data, meta = path.read_bytes(), folder / "metadata" / key / "meta"
        meta.mkdir(parents=True)
        (meta / "etag").write_text(f'"{hashlib.md5(data).hexdigest()}"')
        crc = base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()
        (meta / "checksums").write_text(json.dumps({"Algorithm": "CRC32", "Type": "FULL_OBJECT", "CRC32": crc}))
        (folder / "objects" / key).parent.mkdir(parents=True, exist_ok=True)
        os.link(path, folder / "objects" / key)


class Origin:
    """The S3 server. `count()` returns the requests since the last call: {"gets": 3, "heads": 0, "lists": 1, ...}."""

    def __init__(self, endpoint, logs):
        self.endpoint = endpoint
        self.logs = logs
        self.mark = "0.0"

    def read(self):
        command = [ROOT / "e2e" / "origin" / "origin-count", "--from", self.mark]
        line = subprocess.run(command, env={**os.environ, "ORIGIN_LOGS": str(self.logs)}, check=True,
                              capture_output=True, text=True).stdout
        return dict(word.split("=") for word in line.split())

    def count(self):
        seen = self.read()
        while True:
            time.sleep(QUIET_S)  # until the server has logged all requests
            now = self.read()
            if now == seen:
                self.mark = now.pop("mark")
                return {name: int(value) for name, value in now.items()}
            seen = now


@contextlib.contextmanager
def origin(folder):
    """versitygw on `folder`, as publish() left it."""
    port = servers.free_port()
    command = [ROOT / "e2e" / "origin" / "serve.sh", folder, port, servers.free_port()]
    shutil.rmtree(folder / "logs", ignore_errors=True)
    env = {**os.environ, **servers.CREDENTIALS}
    with servers.running(command, stdout=subprocess.PIPE, text=True, env=env) as server:
        if server.stdout.readline() != "ready\n":
            raise SystemExit("loaders: the S3 server does not start")
        yield Origin(f"http://127.0.0.1:{port}", folder / "logs")


@contextlib.contextmanager
def stoker(programs, folder, endpoint, source, grant):
    """A sidecar with an empty node directory below `folder`, and stoker-s3. `source`: the origin's settings beside the
    endpoint. `grant`: bytes, or "unlimited".

    Yields the S3 endpoint.
    """
    shutil.rmtree(folder, ignore_errors=True)
    dataset = {"name": "train", "origin": {**source, "endpoint": endpoint}, "grant": str(grant), "window": str(WINDOW),
               "reservedFree": 0.001, "stepAsideWindow": "0s"}
    with servers.s3_endpoint(programs, folder, dataset) as (port, _):
        yield f"http://127.0.0.1:{port}"


def record_bytes(payload):
    """Bytes that an object takes of a grant (common/domain/segment_format.h)."""
    return -(-(64 + payload) // 64) * 64


def client_variables(endpoint, key):
    """The variables that a trainer gets; nothing else tells a client about Stoker."""
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ENDPOINT_URL_S3": endpoint, "AWS_REGION": REGION, **key}
