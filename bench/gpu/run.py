"""Step time of a ResNet-50 on a GPU with data from the node's disk, compared with data that is on the device already.

    PYTHONPATH=build/release/python python3 bench/gpu/run.py --sidecar build/release/bin/stoker-sidecar \\
        --folder /mnt/nvme/new-folder

Needs a CUDA device, torchvision, about 7 GB of disk for 20,480 samples, and no network. As root it also measures reads
after the page cache was dropped. `--device cpu --model tiny` tries the script without a GPU. Sides (ways to load data)
run in turns, a-b-c-d-d-c-b-a; each turn begins with untimed steps, more than the side has read ahead. Prints Markdown
tables; exits with 1 if the bar is missed: `tensors` at most 2 % above `synthetic`, the median over the rounds.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import sides
import stoker
import stoker.torch
import torch

BAR = 1.02
FOLDERS = 10
POOL_BYTES = 64 << 20
UNTIMED = {"synthetic": 4, "tensors": 6, "undecoded": 6, "workers": 20, "files": 20}  # more steps than are read ahead
STEPS = 25


def sync(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def make_origin(root, count):
    """Samples of random bytes, in ten folders."""
    pool = memoryview(torch.randint(0, 256, (POOL_BYTES,), dtype=torch.uint8).numpy())
    for folder in range(FOLDERS):
        (root / f"c{folder}").mkdir(parents=True, exist_ok=True)

    def write(number):
        at = number * 4099 % (POOL_BYTES - sides.SAMPLE_BYTES)
        (root / f"c{number % FOLDERS}" / f"{number:06}.raw").write_bytes(pool[at:at + sides.SAMPLE_BYTES])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool_of_threads:
        list(pool_of_threads.map(write, range(count)))


@contextlib.contextmanager
def running_sidecar(program, folder, origin):
    """A sidecar that keeps every sample; yields when its socket is there."""
    socket = folder / "s.sock"
    settings = {"socket": str(socket), "datasets": [{
        "name": "train", "origin": {"uri": f"file://{origin}"}, "directory": str(folder / "node"),
        "reservedFree": 0.001, "stepAsideWindow": "0s"}]}
    (folder / "node").mkdir()
    (folder / "sidecar.yaml").write_text(json.dumps(settings))
    with open(folder / "sidecar.log", "wb") as log:
        process = subprocess.Popen([program, "--config", str(folder / "sidecar.yaml")], stdout=log, stderr=log)
    os.environ["STOKER_SOCKET"] = str(socket)
    os.environ["STOKER_DATASETS"] = json.dumps({"train": {"uri": f"file://{origin}"}})
    try:
        while not socket.exists() and process.poll() is None:
            time.sleep(0.05)  # polling interval
        yield process
    finally:
        process.terminate()
        process.wait()


def fill(batch_size):
    """Has the sidecar fetch every sample, and reads each once."""
    with stoker.open("train") as samples:
        out = bytearray(batch_size * sides.SAMPLE_BYTES)
        for begin in range(0, len(samples), batch_size):
            samples.gather(range(begin, min(begin + batch_size, len(samples))), out)
        stats = samples.stats()
        if stats["origin_samples"] or stats["corrupt"]:
            raise SystemExit(f"gpu: the sidecar did not serve every sample: {stats}")


class Trainer:
    """A model with its optimizer; one call is one training step."""

    def __init__(self, name, device):
        if name == "resnet50":
            import torchvision
            model = torchvision.models.resnet50(weights=None)
        else:
            model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 16, 16), torch.nn.Flatten(), torch.nn.LazyLinear(10))
            model(torch.zeros(1, *sides.SHAPE))
        self.model = model.to(device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.device = device

    def __call__(self, data, labels):
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(self.model(data), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


def processor_seconds():
    """Processor time of the whole machine so far, without idle time."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:8])) / os.sysconf("SC_CLK_TCK")


def timed(batches, use, untimed, steps, device):
    """Of `steps` steps, after `untimed` ones: seconds per step, and processor seconds of the machine per step."""
    for data, labels in itertools.islice(batches, untimed):
        use(data, labels)
    sync(device)
    busy, began = processor_seconds(), time.perf_counter()
    for data, labels in itertools.islice(batches, steps):
        use(data, labels)
    sync(device)
    seconds = time.perf_counter() - began
    return seconds / steps, (processor_seconds() - busy) / steps


def rounds_of(names, running, use, rounds, steps, device):
    """By side and round: (seconds, processor seconds) per step. A round visits the sides forwards and backwards; its
    figures are the means of both visits."""
    result = {name: [] for name in names}
    for _ in range(rounds):
        turns = {name: [] for name in names}
        for name in [*names, *reversed(names)]:
            turns[name].append(timed(running[name], use, UNTIMED[name], steps, device))
            if name in ("workers", "files"):
                time.sleep(1.0)  # time for the side's workers to read ahead again
        for name in names:
            result[name].append([statistics.mean(part) for part in zip(*turns[name])])
    return result


def first_batch_seconds(samples, batch_size, device):
    """From the beginning of an epoch to its first batch on the device; median of nine epochs."""
    loader = stoker.torch.TensorLoader(samples, batch_size, shape=sides.SHAPE, device=device, shuffle=True)
    times = []
    for epoch in range(9):
        loader.set_epoch(epoch)
        began = time.perf_counter()
        next(iter(loader))
        sync(device)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def pinned_copy_rate(size, device):
    """GiB/s of copies from one pinned buffer to the device."""
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(size, dtype=torch.uint8, device=device)
    for _ in range(2):
        sync(device)
        began = time.perf_counter()
        for _ in range(100):
            there.copy_(host, non_blocking=True)
        sync(device)
        seconds = time.perf_counter() - began
    return 100 * size / seconds / 2**30


def gather_rate(samples, batch_size, pinned):
    """GiB/s of Samples.gather() into one buffer, with every sample mapped before."""
    out = torch.empty(batch_size * sides.SAMPLE_BYTES, dtype=torch.uint8, pin_memory=pinned)
    count = len(samples) // batch_size
    for _ in range(2):
        order = torch.randperm(len(samples)).numpy()
        began = time.perf_counter()
        for begin in range(0, count * batch_size, batch_size):
            samples.gather(order[begin:begin + batch_size], out)
        seconds = time.perf_counter() - began
    return count * batch_size * sides.SAMPLE_BYTES / seconds / 2**30


def check(samples, origin, device):
    """Checks that an epoch of TensorLoader equals the files, sample by sample."""
    loader = stoker.torch.TensorLoader(samples, 256, shape=sides.SHAPE, device=device, shuffle=True, seed=1)
    files = sides.Files(origin)
    order = loader.sampler.order().tolist()
    at = 0
    for data, labels in loader:
        for row, label in zip(data.cpu(), labels.tolist()):
            expected, its_label = files[order[at]]
            if label != its_label or not torch.equal(row, expected):
                raise SystemExit(f"gpu: sample {order[at]} differs from its file")
            at += 1
    if at != len(files):
        raise SystemExit(f"gpu: read {at} of {len(files)} samples")


def read_from_disk_bytes():
    with open("/proc/vmstat", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("pgpgin "))


def cold_turns(synthetic, use, batch_size, rounds, device):
    """Seconds per step of synthetic data and of the files after the page cache was dropped, and bytes read from the
    disk per byte served. Every turn opens the dataset anew, because mapped pages are not dropped."""
    result = {"synthetic": [], "cold": [], "disk": []}
    for epoch in range(rounds):
        with stoker.open("train") as samples:
            os.sync()
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
            loader = stoker.torch.TensorLoader(samples, batch_size, shape=sides.SHAPE, device=device, shuffle=True,
                                               seed=epoch, transform=sides.Normalise(device))
            batches, before = iter(loader), read_from_disk_bytes()
            result["cold"].append(timed(batches, use, UNTIMED["tensors"], STEPS, device))
            batches.close()
            served = samples.stats()["node_bytes"]
            result["disk"].append((read_from_disk_bytes() - before) / served)
        result["synthetic"].append(timed(synthetic, use, UNTIMED["synthetic"], STEPS, device))
    return result


def ratios_of(ours, base):
    return [a / b for (a, _), (b, _) in zip(ours, base)]


def ratio_row(name, ours, base):
    ratios, steps = ratios_of(ours, base), [seconds * 1e3 for seconds, _ in ours]
    return (f"| {name} | {statistics.median(steps):.2f} ({min(steps):.2f} to {max(steps):.2f}) | "
            f"{statistics.median(ratios):.4f} ({min(ratios):.4f} to {max(ratios):.4f}) | "
            f"{statistics.median(busy / seconds for seconds, busy in ours):.1f} | {len(ours)} |")


def rate_row(name, ours, batch_size):
    rates = sorted(batch_size / seconds for seconds, _ in ours)
    gib = statistics.median(rates) * sides.SAMPLE_BYTES / 2**30
    processor = statistics.median(busy / batch_size * 1e6 for _, busy in ours)
    return (f"| {name} | {statistics.median(rates):,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f}) | {gib:.2f} | "
            f"{processor:.0f} |")


def say(*words):
    print(*words, flush=True)


def machine(device):
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU"
    return f"{gpu}, {os.cpu_count()} cores, torch {torch.__version__}, Python {platform.python_version()}"


def measure(args, device, origin):
    batch, result = args.batch, {"machine": machine(device)}
    use = Trainer(args.model, device)
    synthetic = sides.synthetic(batch, device)
    timed(synthetic, use, 10, 5, device)
    if args.cold_rounds and os.geteuid() == 0 and device.type == "cuda":
        result["cold"] = cold_turns(synthetic, use, batch, args.cold_rounds, device)
    with stoker.open("train") as samples:
        check(samples, origin, device)
        running = {"synthetic": synthetic,
                   "tensors": sides.tensor_loader(samples, batch, device, sides.Normalise(device)),
                   "undecoded": sides.tensor_loader(samples, batch, device, None),
                   "workers": sides.stoker_workers(samples, batch, device, args.workers),
                   "files": sides.file_workers(origin, batch, device, args.workers)}
        for name in ("tensors", "workers", "files"):
            timed(running[name], use, UNTIMED[name], 2, device)
        say("measuring steps")
        result["steps"] = rounds_of(["synthetic", "tensors"], running, use, args.rounds, args.steps, device)
        result["steps_with_workers"] = rounds_of(["synthetic", "tensors", "workers", "files"], running, use,
                                                 args.worker_rounds, args.steps, device)
        say("measuring rates")
        result["rates"] = rounds_of(["undecoded", "tensors", "workers", "files"], running, lambda data, labels: None,
                                    args.worker_rounds, 3 * args.steps, device)
        result["first_batch_ms"] = first_batch_seconds(samples, batch, device) * 1e3
        if device.type == "cuda":
            result["pinned_copy_gib_s"] = pinned_copy_rate(batch * sides.SAMPLE_BYTES, device)
        result["gather_gib_s"] = gather_rate(samples, batch, device.type == "cuda")
        result["stats"] = samples.total_stats()
    return result


def report(result, batch):
    """Prints the tables; returns the ratio that is compared with the bar."""
    steps, others = result["steps"], result["steps_with_workers"]
    say(result["machine"])
    say("| data | step, ms: median (range) | ratio to synthetic, round by round | busy cores | rounds |")
    say("| --- | --- | --- | --- | --- |")
    say(ratio_row("synthetic", steps["synthetic"], steps["synthetic"]))
    say(ratio_row("TensorLoader, page cache warm", steps["tensors"], steps["synthetic"]))
    if "cold" in result:
        cold = result["cold"]
        say(ratio_row("TensorLoader, page cache dropped", cold["cold"], cold["synthetic"]))
        say("bytes from the disk per byte served:", [round(value, 2) for value in cold["disk"]])
    for name, words in (("workers", "stoker.torch.DataLoader, workers"), ("files", "torch's DataLoader over files, workers")):
        say(ratio_row(words, others[name], others["synthetic"]))
    say("| loader without a model | samples/s: median (range) | GiB/s | processor, µs a sample |\n| --- | --- | --- | --- |")
    for name in result["rates"]:
        say(rate_row(name, result["rates"][name], batch))
    say(f"pinned copy: {result.get('pinned_copy_gib_s', 0):.1f} GiB/s; gather: {result['gather_gib_s']:.1f} GiB/s; first "
        f"batch of an epoch: {result['first_batch_ms']:.1f} ms; {result['stats']}")
    return statistics.median(ratios_of(steps["tensors"], steps["synthetic"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sidecar", required=True, help="the program stoker-sidecar")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="a new folder on the disk to measure")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", choices=["resnet50", "tiny"], default="resnet50")
    parser.add_argument("--samples", type=int, default=20480)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=STEPS, help="timed steps of a turn")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--worker-rounds", type=int, default=3)
    parser.add_argument("--cold-rounds", type=int, default=4)
    parser.add_argument("--out", type=pathlib.Path, help="a file for all figures, as JSON")
    args = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    device = torch.device(args.device)
    args.folder.mkdir(parents=True)
    origin = args.folder / "origin"
    began = time.monotonic()
    make_origin(origin, args.samples)
    say(f"origin written: {time.monotonic() - began:.1f} s")
    with running_sidecar(args.sidecar, args.folder, origin):
        fill(args.batch)
        say(f"node directory filled: {time.monotonic() - began:.1f} s")
        result = measure(args, device, origin)
    if args.out:
        args.out.write_text(json.dumps(result))
    ratio = report(result, args.batch)
    say(f"all: {time.monotonic() - began:.0f} s; bar: {ratio:.4f}, at most {BAR}")
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
