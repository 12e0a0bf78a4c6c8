"""make accuracy: what each sampling contract does to a model's accuracy, and what it saves at the origin.

usage: run.py --build DIR [--out DIR] [--seeds 5] [--epochs 10] [--only CONTRACT ...] [--page FILE]

Trains a small network on the CPU through the real stoker-sidecar, which keeps a fifth of the data set, for every
contract, data set and seed. Origin bytes are those that the sidecar counted while it read the origin.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import warnings

import data
import page

SHARE = 0.2  # of the data set's bytes that may stay on the node
RECORD = 64 + 4 * 784  # bytes of a sample in a segment: header, payload and padding
WINDOW = 1 << 20  # a twelfth of it: the least that the sidecar takes
BATCH = 64
STATUS_AGE_S = 2.5  # the status page is at most so old

# Name of the row: the contract and its parameters. One line for each.
CONTRACTS = {
    "exact": ("exact", {}),
    "windowed": ("windowed", {}),
    "importance": ("importance", {"beta": 0.33, "warmup_epochs": 2, "substitute": 0}),
    "importance + substitution": ("importance", {"beta": 0.33, "warmup_epochs": 2}),
    "replicate": ("replicate", {}),
    "importance, IOWA": ("importance", {"family": "iowa"}),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Sidecar:
    """stoker-sidecar over a folder, with an empty node directory."""

    def __init__(self, build, folder, root, count):
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "node").mkdir(parents=True)
        self.socket, self.port = folder / "sidecar.sock", free_port()
        dataset = {"name": "train", "origin": {"uri": f"file://{root}"}, "directory": str(folder / "node"),
                   "grant": str(int(SHARE * count * RECORD)), "window": str(WINDOW),
                   "reservedFree": 0.001}
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
        time.sleep(STATUS_AGE_S)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status") as answer:
            return json.load(answer)["datasets"][0]["leader"]["originBytes"]

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def train(sidecar, contract, parameters, seed, epochs, test):
    """Trains once. Gives accuracy on `test`, and what the epochs cost."""
    import stoker
    import stoker.torch
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = torch.nn.CrossEntropyLoss(reduction="none")
    samples = stoker.open("train", socket=str(sidecar.socket))
    dataset = stoker.torch.Dataset(samples, decode=lambda view: stoker.torch.decode_raw(view).view(torch.float32))
    loader = stoker.torch.DataLoader(dataset, batch_size=BATCH, contract=contract, seed=seed, **parameters)
    reports = []
    for _ in range(epochs):
        for pixels, labels, ids in loader:
            losses = criterion(model(pixels), labels)
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
            loader.report(ids, losses)
        reports.append(loader.epoch_report())
    alone = samples.stats()["origin_bytes"]  # read past the sidecar
    samples.close()
    with torch.no_grad():
        found = model(torch.from_numpy(test[0]).float() / 255).argmax(dim=1).numpy()
    return {
        "accuracy": float((found == test[1]).mean()),
        "origin_bytes": sidecar.origin_bytes() + alone,
        "requested": sum(report.requested for report in reports),
        "distinct": sum(report.distinct for report in reports) / len(reports),
        "repeated": sum(report.repeated for report in reports),
        "substituted": sum(report.substituted for report in reports),
        "losses_used": sum(report.losses_used for report in reports),
        "contracts": sorted({report.contract for report in reports}),
    }


def measure(arguments, name, root, row, seed, test):
    """One run in a sidecar of its own; None when the sidecar does not know the contract."""
    import stoker

    contract, parameters = CONTRACTS[row]
    folder = arguments.out / "run"
    sidecar = Sidecar(arguments.build, folder, root, data.TRAIN)
    try:
        result = train(sidecar, contract, parameters, seed, arguments.epochs, test)
    except stoker.SettingsError as error:
        print(f"{name}: {row}: {error}", file=sys.stderr)
        return None
    finally:
        sidecar.stop()
    if result["contracts"] != [contract]:
        raise SystemExit(f"accuracy: {name}, {row}: read as {result['contracts']}, not as {contract}")
    return {"data": name, "row": row, "seed": seed, **result}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/accuracy"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=list(CONTRACTS), choices=list(CONTRACTS))
    parser.add_argument("--page", type=pathlib.Path, help="write the page there, and its plots beside it")
    arguments = parser.parse_args()
    arguments.build, arguments.out = arguments.build.resolve(), arguments.out.resolve()
    sys.path.insert(0, str(arguments.build / "python"))
    os.environ["STOKER_DATASETS"] = "{}"
    roots, test = data.prepare(arguments.out)
    results = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        for seed in range(arguments.seeds):
            for name, root in roots.items():
                for row in arguments.only:
                    result = measure(arguments, name, root, row, seed, test)
                    if result is not None:
                        results.append(result)
                        print(f"{name:10} {row:26} seed {seed}: accuracy {100 * result['accuracy']:.2f} %, "
                              f"origin {result['origin_bytes'] / 1e6:.2f} MB", flush=True)
    text = json.dumps({"epochs": arguments.epochs, "share": SHARE, "runs": results}, indent=1)
    (arguments.out / "results.json").write_text(text + "\n")
    table = page.summarize(results)
    print(page.as_text(table))
    if arguments.page:
        page.write(arguments.page, table, arguments)
    sys.exit(page.verdict(table))


if __name__ == "__main__":
    main()
