"""One pod with stoker-s3: a real S3 server, a sidecar and the endpoint as processes, and boto3 clients."""

import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import subprocess

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from conftest import BUILD, SEED, wait_until

BUCKET, PREFIX = "data", "sets/train/"
LOOPBACK = ("loopback-key", "loopback-secret")
REAL = ("origin-key", "origin-secret")


def built_gateway():
    """The real S3 server, if the cluster scripts have built it; as in tools/run-tests."""
    given = os.environ.get("STOKER_VERSITYGW")
    home = os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")
    cache = pathlib.Path(os.environ.get("STOKER_CACHE", pathlib.Path(home) / "stoker"))
    return given or next(iter(sorted(cache.glob("programs/versitygw-*/versitygw"))), None)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def client_of(port, key, **settings):
    config = Config(retries={"max_attempts": 0}, **settings)
    return boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", aws_access_key_id=key[0],
                        aws_secret_access_key=key[1], region_name="us-east-1", config=config)


def source(response):
    return response["ResponseMetadata"]["HTTPHeaders"].get("x-stoker-source")


def status_of(call, *args, **kwargs):
    """(status, code) of a call that must fail."""
    with pytest.raises(ClientError) as caught:
        call(*args, **kwargs)
    response = caught.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


class Pod:
    """The S3 server, and the sidecar and the endpoint of one pod. `origin_settings`: beside the origin's address;
    `dataset_settings`: beside those of `limits`."""

    origin_settings = {}
    dataset_settings = {}

    def __init__(self, folder, stack, limits):
        self.folder, self.stack, self.limits, self.node = folder, stack, limits, folder / "node"
        self.origin_port, self.port = free_port(), free_port()
        (folder / "objects").mkdir()
        self.node.mkdir()
        self.access_log = folder / "access.log"
        self.processes = {}
        self.run("origin", built_gateway(), "--port", f"127.0.0.1:{self.origin_port}", "--keep-alive", "--quiet",
                 "--access", REAL[0], "--secret", REAL[1], "--access-log", self.access_log, "posix", folder / "objects")
        wait_until("the S3 server", lambda: answers(self.origin_port))
        self.direct = client_of(self.origin_port, REAL)
        self.client = client_of(self.port, LOOPBACK)
        prng = random.Random(SEED)
        self.payloads = self.make_payloads(prng)
        self.direct.create_bucket(Bucket=BUCKET)
        self.direct.create_bucket(Bucket="other")
        for key, payload in self.payloads.items():
            self.direct.put_object(Bucket=BUCKET, Key=key, Body=payload)
        self.keys = sorted(self.payloads)

    def make_payloads(self, prng):
        """The objects of the dataset, by key."""
        payloads = {f"{PREFIX}c{at % 3}/{at:03}.bin": prng.randbytes(prng.randrange(1, 150_000)) for at in range(60)}
        return {**payloads, f"{PREFIX}odd/a b+c&<é>.bin": b"odd"}

    def run(self, name, *command):
        dataset = {"name": "train", "directory": str(self.node), "reservedFree": 0.001, **self.limits,
                   "origin": {"uri": f"s3://{BUCKET}/{PREFIX[:-1]}", "endpoint": f"http://127.0.0.1:{self.origin_port}",
                              **self.origin_settings}}
        settings = {"socket": str(self.folder / "s.sock"), "s3Listen": f"127.0.0.1:{self.port}",
                    "datasets": [{**dataset, **self.dataset_settings}]}
        env = {**os.environ, "STOKER_SIDECAR_CONFIG": json.dumps(settings), "AWS_ACCESS_KEY_ID": REAL[0],
               "AWS_SECRET_ACCESS_KEY": REAL[1], "STOKER_S3_ACCESS_KEY": LOOPBACK[0], "STOKER_S3_SECRET_KEY": LOOPBACK[1]}
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen([str(part) for part in command], env=env, stdout=log, stderr=log)
        self.processes[name] = process
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)

    def start_sidecar(self):
        self.run("sidecar", BUILD / "bin" / "stoker-sidecar")

    def start_endpoint(self):
        self.run("endpoint", BUILD / "bin" / "stoker-s3")
        wait_until("the endpoint", lambda: answers(self.port))

    def kill(self, name, with_signal=signal.SIGKILL):
        process = self.processes.pop(name)
        process.send_signal(with_signal)
        return process.wait()

    def await_cache(self):
        """Waits until the endpoint serves from the manifest."""
        wait_until("the manifest", lambda: source(self.client.head_object(Bucket=BUCKET, Key=self.keys[0])) == "manifest")

    def read(self, key, client=None):
        """Reads an object and checks its bytes; returns where they came from."""
        response = (client or self.client).get_object(Bucket=BUCKET, Key=key)
        assert response["Body"].read() == self.payloads[key]
        return source(response)

    def read_all(self):
        return {self.read(key) for key in self.keys}

    def origin_gets(self):
        """GETs of objects that the S3 server has answered."""
        return self.access_log.read_text().count("s3_GetObject ")


class Neighbour(Pod):
    """Another pod on the node of `pod`, whose sidecar leads: this one's follows."""

    def __init__(self, pod):  # pylint: disable=super-init-not-called
        vars(self).update(vars(pod), folder=pod.folder / "neighbour", processes={}, port=free_port())
        self.folder.mkdir()
        self.client = client_of(self.port, LOOPBACK)


def skip_without_gateway():
    if built_gateway() is None:
        pytest.skip("no versitygw: e2e/origin/build.sh builds it")


@contextlib.contextmanager
def started(make, folder, limits):
    """A Pod of class `make` whose endpoint serves from the manifest."""
    skip_without_gateway()
    with contextlib.ExitStack() as stack:
        pod = make(folder, stack, limits)
        pod.start_sidecar()
        pod.start_endpoint()
        pod.await_cache()
        yield pod
