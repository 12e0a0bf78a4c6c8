"""One run of `make accuracy`: a small network trained on the CPU through its own stoker-sidecar."""

import dataclasses
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import servers  # noqa: E402

SHARE = 0.2  # of the data set's bytes, as the node's cache
SIDE = 28  # pixels per side of an image, floats from 0 to 1
INK = 0.25  # pixels of at least this value are ink; the near copies' noise is far below
RECORD = 64 + 4 * SIDE**2  # bytes of a sample's record in a segment: header, payload and padding
WINDOW = 1 << 20  # bytes of the sidecar's window, a twelfth of the data set: the sidecar's minimum
BATCH, HIDDEN, RATE, MOMENTUM = 64, 64, 0.05, 0.9
OTHER_SHUFFLE = 1000  # added to a seed: same model, other sample order


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table: a contract with parameters; `shuffle` is added to the loader's seed only."""

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
    "importance, IOWA + remove": Row("importance", {"family": "iowa", "redundancy": "remove"}),
    "importance, IOWA + repeat": Row("importance", {"family": "iowa", "redundancy": "repeat"}),
    "replicate, r = 1": Row("replicate", {"replication": 1}),
    "replicate, r = 3": Row("replicate"),
}


def accuracy_of(model, images, labels):
    import torch

    with torch.no_grad():
        return 100 * float((model(images).argmax(dim=1) == labels).float().mean())


def fingerprint_of_ink(pixels):
    """dHash of a digit's bounding box, so independent of its position and of the background noise. Nine in ten near
    copies of data.py are within three bits of their image, but only one in 10,000 pairs of different images."""
    import stoker.similarity

    image = pixels.numpy().reshape(SIDE, SIDE)
    ink = image >= INK
    rows, columns = ink.any(axis=1).nonzero()[0], ink.any(axis=0).nonzero()[0]
    if not rows.size:
        return None
    box = (image * ink)[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return stoker.similarity.difference_hash(box)


def train(socket, origin_bytes, row, seed, epochs, test):
    """Trains once; returns the accuracy after each epoch, in percent, and the loader's reports."""
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
    samples = stoker.open("train", socket=str(socket))
    dataset = stoker.torch.Dataset(samples, decode=lambda view: stoker.torch.decode_raw(view).view(torch.float32))
    likeness = {"similarity": fingerprint_of_ink} if "redundancy" in row.parameters else {}
    loader = stoker.torch.DataLoader(dataset, batch_size=BATCH, contract=row.contract, seed=seed + row.shuffle,
                                     **row.parameters, **likeness)
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
    alone = samples.stats()["origin_bytes"]  # read without the sidecar
    samples.close()
    return {"curve": curve, "reports": reports, "origin_bytes": origin_bytes() + alone}


def measure(build, folder, root, count, name, seed, epochs, test):
    """One run of the row `name` with its own sidecar.

    Raises:
        stoker.SettingsError: the sidecar rejects the contract.
    """
    row = ROWS[name]
    shutil.rmtree(folder, ignore_errors=True)
    with servers.counted_sidecar(build / "bin" / "stoker-sidecar", folder, root, int(SHARE * count * RECORD),
                                 WINDOW) as (socket, origin_bytes):
        result = train(socket, origin_bytes, row, seed, epochs, test)
    contracts = sorted({report["contract"] for report in result["reports"]})
    if contracts != [row.contract]:
        raise SystemExit(f"accuracy: {name}: read as {contracts}, not as {row.contract}")
    return result
