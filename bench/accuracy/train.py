"""One run: a small network trained on the CPU through a stoker-sidecar of its own."""

import contextlib
import dataclasses
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import servers  # noqa: E402

SHARE = 0.2  # of the data set's bytes that may stay on the node
INK = 0.25  # pixels of this value or more are ink; the near copies' noise is far below
WINDOW = 1 << 20  # bytes for samples in transit: the minimum that the sidecar accepts
BATCH, RATE, MOMENTUM = 64, 0.05, 0.9
OTHER_SHUFFLE = 1000  # added to a seed: the same model, another order of samples
EPOCHS = {"mnist5k": 30, "duplicates": 30, "fashion": 6, "glyphs": 14}


@dataclasses.dataclass(frozen=True)
class Row:
    """A table row: a contract with its parameters.

    Attributes:
        shuffle: added to the loader's seed only.
        eviction, share: the sidecar's policy, and the part of the data set that it may keep.
        hides_waiting: the loader reports that it never waits, so that IOWA takes the job for compute-bound.
    """

    contract: str
    parameters: dict = dataclasses.field(default_factory=dict)
    shuffle: int = 0
    eviction: str = "auto"
    share: float = SHARE
    hides_waiting: bool = False


ROWS = {
    "exact": Row("exact"),
    "exact, other shuffle": Row("exact", shuffle=OTHER_SHUFFLE),
    "windowed": Row("windowed"),
    "importance (IIS)": Row("importance", {"substitute": 0}),
    "importance (IIS + L)": Row("importance"),
    "importance (IIS + L), β = 1": Row("importance", {"beta": 1.0}),
    "importance, IOWA": Row("importance", {"family": "iowa"}),
    "importance, IOWA + remove": Row("importance", {"family": "iowa", "redundancy": "remove"}),
    "importance, IOWA + repeat": Row("importance", {"family": "iowa", "redundancy": "repeat"}),
    "replicate, r = 1": Row("replicate", {"replication": 1}),
    "replicate, r = 3": Row("replicate", {"replication": 3}),
}
# Rows that are measured only for time, not for accuracy.
TIMED = {
    "no cache": Row("exact", share=0),
    "LRU": Row("exact", eviction="lru"),
    "importance (IIS), β = 1, short warm-up": Row("importance", {"substitute": 0, "beta": 1.0, "warmup_epochs": 1}),
    "importance, IOWA, io-bound": Row("importance", {"family": "iowa"}),
    "importance, IOWA, compute-bound": Row("importance", {"family": "iowa"}, hides_waiting=True),
}


def row_of(name):
    return ROWS.get(name) or TIMED[name]


def network(side, classes):
    """The network: 784-64-10 for few classes of small images, three convolutions for many classes."""
    from torch import nn

    if classes <= 10:
        return nn.Sequential(nn.Flatten(), nn.Linear(side * side, 64), nn.ReLU(), nn.Linear(64, classes))
    return nn.Sequential(nn.Conv2d(1, 16, 5, 2, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                         nn.Conv2d(32, 48, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(48 * (side // 8) ** 2, classes))


def accuracy_of(model, images, labels):
    import torch

    with torch.no_grad():
        right = sum(int((model(part).argmax(dim=1) == truth).sum())
                    for part, truth in zip(images.split(1000), labels.split(1000)))
    return 100 * right / len(labels)


def fingerprint_of_ink(pixels):
    """dHash of a digit's bounding box, so the hash does not depend on position or background noise. Nine in ten near
    copies of data.py are within three bits of their image, but only one in 10,000 pairs of different images."""
    import stoker.similarity

    image = pixels.numpy()[0]
    ink = image >= INK
    rows, columns = ink.any(axis=1).nonzero()[0], ink.any(axis=0).nonzero()[0]
    if not rows.size:
        return None
    box = (image * ink)[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return stoker.similarity.difference_hash(box)


class Watch:
    """Seconds of training, without tests. `waited`: the part that the loop waited for its next batch."""

    def __init__(self):
        self.seconds, self.waited = 0.0, 0.0

    def batches(self, loader):
        began = time.monotonic()
        for batch in loader:
            self.waited += time.monotonic() - began
            yield batch
            self.seconds += time.monotonic() - began
            began = time.monotonic()
        self.seconds += time.monotonic() - began


def hide_waiting(loader):
    draws = loader._stream.draws
    draws.note_step = lambda wait_ns, compute_ns, note=draws.note_step: note(0, compute_ns)


def train(socket, row, seed, epochs, origin, origin_bytes):
    """Trains once.

    Args:
        origin_bytes: returns the bytes that the sidecar has read so far, at most two seconds old.

    Returns:
        After each epoch: "curve" (accuracy in percent), "seconds", "bytes_read" (from the origin), "reports" (the
        loader's); "waiting" (of family iowa: the share that each epoch's begin sent, which chooses the bottleneck); and
        "waited" and "alone" (bytes read past the sidecar) of the whole run.
    """
    import stoker
    import stoker.torch
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    images, truth = torch.from_numpy(origin.images), torch.from_numpy(origin.labels)
    model = network(origin.side, origin.classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / epochs)
    criterion = torch.nn.CrossEntropyLoss(reduction="none")
    samples = stoker.open("train", socket=str(socket))
    dataset = stoker.torch.Dataset(samples, decode=lambda view: torch.tensor(origin.decode(view)))
    likeness = {"similarity": fingerprint_of_ink} if "redundancy" in row.parameters else {}
    loader = stoker.torch.DataLoader(dataset, batch_size=BATCH, contract=row.contract, seed=seed + row.shuffle,
                                     **row.parameters, **likeness)
    if row.hides_waiting:
        hide_waiting(loader)
    curve, seconds, bytes_read, reports, watch = [], [], [], [], Watch()
    waiting = []
    for _ in range(epochs):
        for pixels, labels, ids in watch.batches(loader):
            losses = criterion(model(pixels), labels)
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
            loader.report(ids, losses)
        schedule.step()
        reports.append(dataclasses.asdict(loader.epoch_report()))
        if row.parameters.get("family") == "iowa" and loader._stream.draws.sent_waiting is not None:
            waiting.append(loader._stream.draws.sent_waiting)
        curve.append(accuracy_of(model, images, truth))
        seconds.append(watch.seconds)
        bytes_read.append(origin_bytes() + samples.stats()["origin_bytes"])
    alone = samples.stats()["origin_bytes"]
    samples.close()
    return {"curve": curve, "seconds": seconds, "bytes_read": bytes_read, "reports": reports, "waited": watch.waited,
            "waiting": waiting, "alone": alone}


def measure(build, folder, origin, name, seed, epochs, link=None):
    """One run of the row `name` with its own sidecar.

    Args:
        link: (bytes a second, ms to the first byte) of an S3 server as the origin; None: the sidecar reads the folder.

    Raises:
        stoker.SettingsError: the sidecar rejects the contract.
    """
    row = row_of(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        place = {"uri": f"file://{origin.root}"}
        if link is not None:
            place = stack.enter_context(servers.paced_folder(build, origin.root, *link))
        socket, origin_bytes = stack.enter_context(servers.counted_sidecar(
            build / "bin" / "stoker-sidecar", folder, place, int(row.share * origin.records), WINDOW, row.eviction))
        result = train(socket, row, seed, epochs, origin, origin_bytes)
        result["origin_bytes"] = servers.settled(origin_bytes) + result["alone"]
    contracts = sorted({report["contract"] for report in result["reports"]})
    if contracts != [row.contract]:
        raise SystemExit(f"accuracy: {name}: epochs ran under {contracts} instead of {row.contract}")
    return {**result, "samples": origin.count, "bytes": origin.bytes}
