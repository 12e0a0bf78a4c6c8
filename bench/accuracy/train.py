"""One run of `make accuracy`: a small network trained on the CPU through a stoker-sidecar of its own."""

import dataclasses
import json
import shutil
import socket
import subprocess
import time
import urllib.request

SHARE = 0.2  # of the data set's bytes that may stay on the node
RECORD = 64 + 4 * 784  # bytes of a sample in a segment: header, payload and padding
WINDOW = 1 << 20  # bytes for what passes, a twelfth of the data set: the least that the sidecar takes
BATCH, HIDDEN, RATE, MOMENTUM = 64, 64, 0.05, 0.9
QUIET_S = 2.5  # the status page is at most so old
OTHER_SHUFFLE = 1000  # added to a seed: the same model, another order of samples


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the table: a contract with its parameters; `shuffle` is added to the loader's seed only."""

    contract: str
    parameters: dict = dataclasses.field(default_factory=dict)
    shuffle: int = 0


ROWS = {
    "exact": Row("exact"),
    "exact, other shuffle": Row("exact", shuffle=OTHER_SHUFFLE),
    "windowed": Row("windowed"),
    "importance (IIS)": Row("importance", {"substitute": 0}),
    "importance (IIS + L)": Row("importance"),
    "importance (IIS + L), β = 1": Row("importance", {"beta": 1.0}),
    "importance, IOWA": Row("importance", {"family": "iowa"}),
    "importance, IOWA + repeat": Row("importance", {"family": "iowa", "redundancy": "repeat"}),
    "replicate, r = 1": Row("replicate", {"replication": 1}),
    "replicate, r = 3": Row("replicate"),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Sidecar:
    """stoker-sidecar over a folder of samples, with an empty node directory."""

    def __init__(self, build, folder, root, count):
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "node").mkdir(parents=True)
        self.socket, self.port = folder / "sidecar.sock", free_port()
        dataset = {"name": "train", "origin": {"uri": f"file://{root}"}, "directory": str(folder / "node"),
                   "grant": str(int(SHARE * count * RECORD)), "window": str(WINDOW), "reservedFree": 0.001}
        settings = {"socket": str(self.socket), "http": {"listen": f"127.0.0.1:{self.port}"}, "datasets": [dataset]}
        (folder / "settings.yaml").write_text(json.dumps(settings))
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen([build / "bin" / "stoker-sidecar", "--config", folder / "settings.yaml"],
                                        stdout=self.log, stderr=self.log)
        give_up = time.monotonic() + 60
        while not self.socket.exists():
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise SystemExit(f"accuracy: the sidecar does not start, see {folder}/log")
            time.sleep(0.02)

    def origin_bytes(self):
        """Bytes that it has read from the origin, once it reads no more."""
        seen = -1
        while True:
            time.sleep(QUIET_S)
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status") as answer:
                now = json.load(answer)["datasets"][0]["leader"]["originBytes"]
            if now == seen:
                return now
            seen = now

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def accuracy_of(model, images, labels):
    import torch

    with torch.no_grad():
        return 100 * float((model(images).argmax(dim=1) == labels).float().mean())


def train(sidecar, row, seed, epochs, test):
    """Trains once. Gives the accuracy after each epoch, in percent, and the loader's reports."""
    import stoker
    import stoker.torch
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    images, labels_of_test = torch.from_numpy(test[0]).float() / 255, torch.from_numpy(test[1])
    model = torch.nn.Sequential(torch.nn.Linear(784, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / epochs)
    criterion = torch.nn.CrossEntropyLoss(reduction="none")
    samples = stoker.open("train", socket=str(sidecar.socket))
    dataset = stoker.torch.Dataset(samples, decode=lambda view: stoker.torch.decode_raw(view).view(torch.float32))
    loader = stoker.torch.DataLoader(dataset, batch_size=BATCH, contract=row.contract, seed=seed + row.shuffle,
                                     **row.parameters)
    curve, reports = [], []
    for _ in range(epochs):
        for pixels, labels, ids in loader:
            losses = criterion(model(pixels), labels)
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
            loader.report(ids, losses)
        schedule.step()
        reports.append(dataclasses.asdict(loader.epoch_report()))
        curve.append(accuracy_of(model, images, labels_of_test))
    alone = samples.stats()["origin_bytes"]  # read past the sidecar
    samples.close()
    return {"curve": curve, "reports": reports, "origin_bytes": sidecar.origin_bytes() + alone}


def measure(build, folder, root, count, name, seed, epochs, test):
    """One run of the row `name` in a sidecar of its own.

    Raises:
        stoker.SettingsError: the sidecar does not do that.
    """
    row = ROWS[name]
    sidecar = Sidecar(build, folder, root, count)
    try:
        result = train(sidecar, row, seed, epochs, test)
    finally:
        sidecar.stop()
    contracts = sorted({report["contract"] for report in result["reports"]})
    if contracts != [row.contract]:
        raise SystemExit(f"accuracy: {name}: read as {contracts}, not as {row.contract}")
    return result
