"""Fixtures: a folder of samples as origin, a fake sidecar, and other fakes that run as processes."""

import contextlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("STOKER_BUILD", HERE.parent.parent / "build" / "release"))
sys.path.insert(0, str(BUILD / "python"))
os.environ["PYTHONPATH"] = os.pathsep.join([str(BUILD / "python"), str(HERE)])  # for spawned workers
SEED = int(os.environ.get("STOKER_TEST_SEED", "20261121"))
WAIT_S = 60


def wait_until(what, holds):
    """Polls `holds` until it returns a true value; WAIT_S bounds hangs and measures nothing."""
    give_up = time.monotonic() + WAIT_S
    while time.monotonic() < give_up:
        found = holds()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"waited {WAIT_S} s for {what}")


def stats(address):
    """The counts of the stoker-fake-s3 at `address`."""
    with urllib.request.urlopen(f"{address}/__stats") as answer:
        return json.load(answer)


class Origin:
    """A folder with `count` files in a few class folders; `payloads[key]` is a file's content."""

    def __init__(self, root, count=200, size_max=400, classes=("cat", "dog", "ant")):
        self.root = root
        self.payloads = {}
        prng = random.Random(SEED)
        for number in range(count):
            key = f"{classes[number % len(classes)]}/{number:04}.bin"
            self.payloads[key] = prng.randbytes(prng.randrange(1, size_max))
            path = root / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.payloads[key])
        self.keys = sorted(self.payloads)

    @property
    def uri(self):
        return f"file://{self.root}"


class Sidecar:
    """The fake sidecar's process."""

    def __init__(self, folder, origin):
        self.folder = folder
        self.socket = str(folder / "s.sock")
        self.log_path = folder / "log"
        self.settings = {"socket": self.socket, "node": str(folder / "node"), "root": str(origin.root),
                         "log": str(self.log_path)}
        (folder / "node").mkdir()
        self.process = None

    def start(self, **settings):
        command = [sys.executable, str(HERE / "fake_sidecar.py"), json.dumps({**self.settings, **settings})]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        return self

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def events(self, name):
        lines = self.log_path.read_text().splitlines() if self.log_path.exists() else []
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def wait_for(self, name, count=1):
        return wait_until(f"{count} x {name}", lambda: len(self.events(name)) >= count and self.events(name))

    def wait_consumed(self, count):
        """The ids that were acknowledged, in order, once there are so many."""
        def told():
            return [id for event in self.events("consumed") for id in event["samples"]]
        return wait_until(f"{count} acknowledged samples", lambda: len(told()) >= count and told())


class Program:
    """A fake server as a process; collects the lines that it prints."""

    def __init__(self, name, *options):
        command = [str(BUILD / "bin" / name), *map(str, options)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = re.match(r"listening on (\S+)", self.process.stdout.readline()).group(1)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


@pytest.fixture
def origin(tmp_path):
    return Origin(tmp_path / "origin")


@pytest.fixture
def sidecar(tmp_path, origin, monkeypatch):
    """A fake sidecar that is not started yet; the environment already points to it."""
    folder = tmp_path / "run"
    folder.mkdir()
    fake = Sidecar(folder, origin)
    monkeypatch.setenv("STOKER_SOCKET", fake.socket)
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": {"uri": origin.uri}}))
    monkeypatch.setattr("stoker.sources.PATIENCE_S", 0.0)
    yield fake
    fake.kill()


@pytest.fixture
def programs():
    """Starts fakes and stops them when the test ends."""
    with contextlib.ExitStack() as stack:
        def start(name, *options):
            return stack.enter_context(contextlib.closing(Program(name, *options)))
        yield start
