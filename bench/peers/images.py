"""Row "images": decoded JPEG images a second through torch's DataLoader with two workers (image_reader.py).

Warm: the data is on the node, in the page cache; a turn is an epoch, A-B-...-Z-Z-...-B-A. Cold: a new process with
an empty cache reads its first epoch from an S3 server behind a slow link; ImageFolder knows no S3 and reads the local
disk, after its pages were dropped.
"""

import contextlib
import shutil
import subprocess
import typing

from common import HERE, LOADERS_PYTHON, STOKER, Client, NotRun, interleaved, plain_env, reasons, servers, stack

NAME = "images"
LOCAL = "ImageFolder, local disk"
BUCKET = "images"


class Peer(typing.NamedTuple):
    kind: str  # of image_reader.py
    form: str  # folder of make_images.py


PEERS = {STOKER: Peer("stoker", "files"), LOCAL: Peer("imagefolder", "files"), "LitData": Peer("litdata", "litdata"),
         "Mosaic Streaming": Peer("mosaic", "mds"), "WebDataset": Peer("webdataset", "shards")}


class Data:
    """The images in all forms, as files and in the S3 server's folder."""

    def __init__(self, bench):
        self.folder = bench.folder / "images"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        with reasons():
            subprocess.run([LOADERS_PYTHON, HERE / "make_images.py", self.folder / "buckets"], check=True,
                           stdout=subprocess.DEVNULL, env=plain_env(HOME=str(self.folder)))
        self.files = self.folder / "buckets" / BUCKET
        self.count = sum(1 for _ in (self.files / "files").rglob("*.jpg"))
        self.s3 = self.folder / "s3"
        stack.publish(self.files.parent, self.s3)

    def form(self, name):
        return self.files / PEERS[name].form


def client(bench, data, name, where, **variables):
    """A client in an empty folder, which holds whatever its library caches."""
    home = data.folder / f"home-{PEERS[name].kind}"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    env = plain_env(PYTHONPATH=str(bench.build / "python"), HOME=str(home), TMPDIR=str(home), **variables)
    command = ["env", "-C", home, LOADERS_PYTHON, HERE / "image_reader.py", PEERS[name].kind, where]
    return Client(command, data.folder / f"{PEERS[name].kind}.log", env)


def images_per_second(reader, epoch, count):
    images, took = reader.ask(epoch).split()
    if int(images) != count:
        raise NotRun(f"gave {images} images instead of {count}")
    return count / float(took)


def start_warm(bench, data, sidecar, stack_of_clients, report):
    """Clients that have read an epoch, by name."""
    readers = {}
    for name in PEERS:
        try:
            reader = client(bench, data, name, sidecar if name == STOKER else data.form(name))
            stack_of_clients.callback(reader.close)
            images_per_second(reader, 0, data.count)
            readers[name] = reader
        except NotRun as reason:
            report.not_run(NAME, name, f"{reason}")
    return readers


def measure_warm(bench, data, report):
    origin = {"uri": f"file://{data.form(STOKER)}"}
    with contextlib.ExitStack() as clients, servers.sidecar(bench.build / "bin" / "stoker-sidecar", data.folder / "warm",
                                                            origin) as (socket, _):
        readers = start_warm(bench, data, socket, clients, report)
        rates = interleaved(readers, bench.rounds,
                            lambda name, number: images_per_second(readers[name], 1 + number, data.count),
                            lambda name, reason: report.not_run(NAME, name, reason))
    report.add_rates(NAME, "warm", "images/s", rates)


@contextlib.contextmanager
def cold_place(bench, data, name, endpoint):
    """The place where a cold client reads: its data is neither in the page cache nor in a library's cache."""
    if name == LOCAL:
        servers.drop_pages(data.form(name))
        yield str(data.form(name))
    elif name == STOKER:
        folder = data.folder / "cold"
        shutil.rmtree(folder, ignore_errors=True)
        origin = {"uri": f"s3://{BUCKET}/{PEERS[name].form}", "endpoint": endpoint, "region": stack.REGION}
        with servers.sidecar(bench.build / "bin" / "stoker-sidecar", folder, origin) as (socket, _):
            yield str(socket)
    else:
        yield f"s3://{BUCKET}/{PEERS[name].form}"


def cold_epoch(bench, data, name, endpoint):
    variables = stack.client_variables(endpoint, servers.CREDENTIALS)
    with reasons(), cold_place(bench, data, name, endpoint) as where:
        reader = client(bench, data, name, where, **variables)
        try:
            return images_per_second(reader, 0, data.count)
        finally:
            reader.close()


def measure_cold(bench, data, report):
    with servers.paced_s3(data.s3) as endpoint:
        rates = interleaved(PEERS, bench.slow_rounds, lambda name, _: cold_epoch(bench, data, name, endpoint),
                            lambda name, reason: report.not_run(NAME, name, f"cold: {reason}"))
    report.add_rates(NAME, "cold", "images/s", rates)


def measure(bench, report):
    try:
        data = Data(bench)
    except NotRun as reason:
        for name in PEERS:
            report.not_run(NAME, name, f"{reason}")
        return
    measure_warm(bench, data, report)
    measure_cold(bench, data, report)
    shutil.rmtree(data.folder)
