"""stoker-files with the real sidecar and a real S3 server: scripts read samples as files of a mount."""

import hashlib
import json
import time

import pytest

pytest.importorskip("boto3")
from files_pod import FilesPod, started_files  # noqa: E402

# As ImageFolder does: one walk, then every file from its start to its end.
WALK = """
import hashlib, json, os, sys
digests = {}
for folder, folders, names in os.walk(sys.argv[1]):
    folders.sort()
    for name in names:
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            digests[os.path.relpath(path, sys.argv[1])] = hashlib.sha256(file.read()).hexdigest()
print(json.dumps(digests))
"""
DROP_CACHE = "\nopen('/proc/sys/vm/drop_caches', 'w').write('1')\n"


@pytest.fixture
def limits():
    """Settings of the dataset beside its place."""
    return {}


@pytest.fixture
def pod(tmp_path, limits):
    with started_files(tmp_path, limits) as pod:
        yield pod


def digests(files):
    return {path: hashlib.sha256(payload).hexdigest() for path, payload in files.items()}


def test_second_epoch_reads_nothing_at_the_origin(pod):
    wanted = digests(pod.files_of())
    assert pod.output(WALK) == wanted
    before = pod.origin_gets()
    assert pod.output(WALK) == wanted
    assert pod.output(DROP_CACHE + WALK) == wanted
    assert pod.origin_gets() == before == len(wanted)


def test_names_sizes_and_kinds_come_from_the_manifest(pod):
    script = """
import json, os, stat, sys
root = sys.argv[1]
sizes = {}
for folder, folders, names in os.walk(root):
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o555
    for name in names:
        status = os.stat(os.path.join(folder, name))
        assert stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o444
        sizes[os.path.relpath(os.path.join(folder, name), root)] = status.st_size
missing = [os.path.exists(os.path.join(root, name)) for name in ("none", "c0/none", "x" * 255, "c0/000.bin/x")]
refused = []
for call in (lambda: open(root + "/new", "w"), lambda: os.remove(root + "/c0/000.bin"), lambda: os.mkdir(root + "/d"),
             lambda: open(root + "/c0/000.bin", "a"), lambda: os.chmod(root, 0o777)):
    try:
        call()
    except OSError as error:
        refused.append(error.errno)
print(json.dumps([sizes, missing, refused]))
"""
    sizes, missing, refused = pod.output(script)
    assert sizes == {path: len(payload) for path, payload in pod.files_of().items()}
    assert not any(missing)
    assert refused == [30] * 5  # EROFS
    assert pod.origin_gets() == 0


# Epochs until a file FOLDER/stop is there; exits with an error at the first wrong byte or failed read.
EPOCHS = """
import hashlib, json, mmap, os, random, sys
root, wanted, stop = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
reads = 0
while not os.path.exists(stop):
    for path in random.sample(sorted(wanted), len(wanted)):
        with open(os.path.join(root, path), "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            if random.random() < 0.3 and path != "empty":
                with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
                    got = hashlib.sha256(view).hexdigest()
            else:
                got = hashlib.sha256(file.read()).hexdigest()
        assert got == wanted[path], path
        reads += 1
        print(reads, flush=True)
"""


class Reader:
    """A program that reads epoch after epoch, and checks every byte."""

    def __init__(self, pod):
        self.stop = pod.folder / "stop"
        self.process = pod.python(EPOCHS, json.dumps(digests(pod.files_of())), self.stop)

    def await_reads(self, count):
        first = int(self.process.stdout.readline() or self.fail())
        while int(self.process.stdout.readline() or self.fail()) < first + count:
            pass

    def fail(self):
        raise AssertionError(self.process.stderr.read())

    def end(self):
        self.stop.touch()
        out, errors = self.process.communicate(timeout=100)
        assert self.process.returncode == 0, errors
        return out


def test_readers_of_files_survive_the_death_of_file_server_sidecar_and_node_program(pod):
    reader = Reader(pod)
    reader.await_reads(30)
    for _ in range(3):
        pod.kill("files")
        pod.start_files()
        reader.await_reads(30)
    pod.kill("sidecar")
    reader.await_reads(30)
    pod.start_sidecar()
    pod.kill("mounts")
    reader.await_reads(30)
    pod.start_mounts()
    time.sleep(2.5)  # stoker-files looks for the node program once a second, and gives the mount back
    pod.kill("files")
    pod.start_files()
    reader.await_reads(30)
    reader.end()


def test_a_dead_sidecar_sends_readers_to_the_origin(pod):
    listing = "import json, os, sys; print(json.dumps(sorted(os.listdir(sys.argv[1]))))"
    assert pod.output(listing) == ["c0", "c1", "c2", "odd"]
    pod.kill("sidecar")
    assert pod.output(WALK) == digests(pod.files_of())
    assert pod.origin_gets() == len(pod.files_of())


def test_a_restarted_file_server_shows_the_same_files_without_a_sidecar(pod):
    wanted = digests(pod.files_of())
    assert pod.output(WALK) == wanted
    before = pod.origin_gets()
    pod.kill("sidecar")
    pod.kill("files")
    pod.start_files()
    assert pod.output(DROP_CACHE + WALK) == wanted
    assert pod.origin_gets() == before


@pytest.mark.parametrize("limits", [{"grant": "2Mi", "window": "1Mi"}])
def test_a_second_epoch_fetches_only_what_does_not_fit(pod):
    wanted = digests(pod.files_of())
    assert pod.output(WALK) == wanted
    assert pod.origin_gets() == len(wanted)
    assert pod.output(DROP_CACHE + WALK) == wanted
    assert 0.3 * len(wanted) < pod.origin_gets() - len(wanted) < 0.8 * len(wanted)


class LargeFiles:
    """Objects that take many requests, and one with no byte."""

    def make_payloads(self, prng):
        sizes = {"large.bin": 40_000_000, "page.bin": 4096, "empty": 0}
        return {f"sets/train/{name}": prng.randbytes(size) for name, size in sizes.items()}


@pytest.mark.parametrize("settings", [{}, {"format": "blocks", "blockSize": "1Mi"}], ids=["objects", "blocks"])
def test_large_files_are_read_and_mapped(tmp_path, settings):
    class Large(LargeFiles, FilesPod):
        origin_settings = settings
    with started_files(tmp_path, {}, Large) as pod:
        assert pod.output(WALK) == digests(pod.files_of())
        reader = Reader(pod)
        reader.await_reads(6)
        reader.end()
