#!/usr/bin/env python3
"""make loaders: unchanged training scripts read through Stoker's S3 endpoint; counts the origin's requests.

usage: run.py [--build DIR] [--only LOADER ...] [--direct] [--page FILE]

Each script in scripts/ first reads straight from an S3 server, then through stoker-s3 with room for all data, then with
room for half of it: one, three and three epochs, each with a cold client (a new process in an empty folder), so that
every epoch goes through S3. The environment is the only difference. Each epoch must return all samples with the right
bytes. Updates DIR/../loaders/results.json, and with --page the table of docs/reference/loaders.md. Exits 1 if a bar is
missed:
  with room for all data, epochs 2 and 3 send no GET to the origin, nor do two epochs in one process;
  with room for half of it, they send a GET for the other objects, within 3 % of all objects.
For the large data sets, which are cached in blocks, the table counts blocks instead of objects.
--direct: only without Stoker.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import page
import stack
from stack import servers

HERE = pathlib.Path(__file__).resolve().parent
EPOCHS = 3
CLIENT_S_MAX = 240
TOLERANCE = 0.03
EPOCH = re.compile(r"^epoch (\d+): (\d+) samples, checksum (\d+)$", re.MULTILINE)


BLOCK_BYTES = 1 << 20  # of the large forms; small, so that 3 % are more than one block


class Loader:
    """`form`: the folder of the data set; a large one is cached in blocks. `changed`: lines of the script that Stoker's
    endpoint needs and Amazon's does not. `variables`: what the library needs beside the trainer's variables, from the
    endpoint."""

    def __init__(self, package, script, form, changed=0, variables=None):
        self.package = package
        self.script = script
        self.form = form
        self.is_large = form.startswith("large-")
        self.changed = changed
        self.variables = variables or (lambda _: {})

    def version(self):
        return importlib.metadata.version(self.package)

    def source(self):
        """Where the samples are, for the sidecar."""
        blocks = {"format": "blocks", "blockSize": str(BLOCK_BYTES)} if self.is_large else {}
        return {"uri": f"s3://data/{self.form}", **blocks}

    def pieces(self, size):
        """Bytes of what is cached of an object of `size` bytes, one by one."""
        if not self.is_large:
            return [size]
        return [min(BLOCK_BYTES, size - at) for at in range(0, size, BLOCK_BYTES)]


def duckdb_variables(endpoint):
    return {"DUCKDB_S3_ENDPOINT": endpoint.removeprefix("http://"), "DUCKDB_S3_USE_SSL": "false"}


LOADERS = {
    "boto3": Loader("boto3", "boto3_objects.py", "images"),
    "s3fs (fsspec)": Loader("s3fs", "s3fs_files.py", "images"),
    "s3torchconnector": Loader("s3torchconnector", "s3torchconnector_map.py", "images"),
    "PyArrow dataset": Loader("pyarrow", "pyarrow_dataset.py", "parquet"),
    "Hugging Face datasets": Loader("datasets", "hf_datasets.py", "parquet"),
    "DuckDB httpfs": Loader("duckdb", "duckdb_parquet.py", "parquet", changed=1, variables=duckdb_variables),
    "WebDataset": Loader("webdataset", "webdataset_tars.py", "shards"),
    "MosaicML Streaming": Loader("mosaicml-streaming", "mosaic_streaming.py", "mds"),
    "LitData": Loader("litdata", "litdata_streaming.py", "litdata"),
    "PyArrow row groups, blocks": Loader("pyarrow", "pyarrow_row_groups.py", "large-parquet"),
    "WebDataset, blocks": Loader("webdataset", "webdataset_large.py", "large-shards"),
}


class Bench:
    """Paths of this run, and the truth about the data."""

    def __init__(self, build):
        self.programs = build / "bin"
        self.folder = build.parent / "loaders"
        self.files = self.folder / "files"
        self.truth = self.folder / "truth.json"
        self.results = self.folder / "results.json"

    def prepare(self):
        source = (HERE / "make_data.py").read_text()
        if not self.truth.exists() or json.loads(self.truth.read_text())["source"] != source:
            self.folder.mkdir(parents=True, exist_ok=True)
            made = subprocess.run([sys.executable, HERE / "make_data.py", self.files], check=True, text=True,
                                  stdout=subprocess.PIPE, env={**os.environ, "HOME": str(self.folder)}).stdout.split()
            small, large = made[-4:-2], made[-2:]
            self.truth.write_text(json.dumps({"source": source, "small": list(map(int, small)), "large": list(map(int, large))}))
        stack.publish(self.files, self.folder / "s3")
        truth = json.loads(self.truth.read_text())
        return {False: tuple(truth["small"]), True: tuple(truth["large"])}

    def earlier_results(self):
        """Results of earlier runs, so that --only measures some loaders again."""
        return json.loads(self.results.read_text()) if self.results.exists() else {}

    def sizes(self, form):
        """Bytes of each object of a data set."""
        return [path.stat().st_size for path in (self.files / "data" / form).rglob("*") if path.is_file()]


def install_duckdb_extension(home):
    """As `INSTALL httpfs` does, from the Python package instead of DuckDB's own site."""
    import duckdb
    import duckdb_extension_httpfs

    version = f"v{duckdb.__version__}"
    source = pathlib.Path(duckdb_extension_httpfs.__file__).parent / "extensions" / version / "httpfs.duckdb_extension"
    target = home / ".duckdb" / "extensions" / version / "linux_amd64" / source.name
    target.parent.mkdir(parents=True)
    shutil.copy(source, target)


def run_client(bench, loader, variables, epochs, truth):
    """Runs the script in an empty folder with only these variables. Ends the program if it reads wrong bytes."""
    home = bench.folder / "client"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    if loader.package == "duckdb":
        install_duckdb_extension(home)
    env = {"PATH": f"{pathlib.Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home),
           "LANG": "C.UTF-8", **variables}
    command = [sys.executable, HERE / "scripts" / loader.script, str(epochs)]
    done = subprocess.run(command, cwd=home, env=env, text=True, capture_output=True, timeout=CLIENT_S_MAX)
    read = [tuple(map(int, line)) for line in EPOCH.findall(done.stdout)]
    if done.returncode or read != [(epoch, *truth) for epoch in range(epochs)]:
        raise RuntimeError(f"{loader.script} ended with {done.returncode}, read {read} instead of {truth} an epoch:\n"
                           f"{done.stdout[-2000:]}{done.stderr[-6000:]}")


def read_epochs(bench, loader, origin, endpoint, key, truth, epochs=EPOCHS):
    """The origin's requests in each epoch, each with a cold client."""
    variables = stack.client_variables(endpoint, key) | loader.variables(endpoint)
    origin.count()
    counts = []
    for _ in range(epochs):
        run_client(bench, loader, variables, 1, truth)
        counts.append(origin.count())
    return counts


def measured(bench, loader, origin, truth, direct_only):
    """Requests at the origin, by epoch: without Stoker, with room for all, with room for half."""
    result = {"direct": read_epochs(bench, loader, origin, origin.endpoint, servers.CREDENTIALS, truth, 1)}
    if direct_only:
        return result
    sizes = [piece for size in bench.sizes(loader.form) for piece in loader.pieces(size)]
    source, node = loader.source(), bench.folder / "stoker"
    with stack.stoker(bench.programs, node, origin.endpoint, source, "unlimited") as endpoint:
        result["all"] = read_epochs(bench, loader, origin, endpoint, servers.LOOPBACK_KEY, truth)
        variables = stack.client_variables(endpoint, servers.LOOPBACK_KEY) | loader.variables(endpoint)
        run_client(bench, loader, variables, 2, truth)
        result["one process"] = origin.count()
    records = [stack.record_bytes(size) for size in sizes]
    grant = sum(records) // 2 + max(records) // 4
    with stack.stoker(bench.programs, node, origin.endpoint, source, grant) as endpoint:
        result["half"] = read_epochs(bench, loader, origin, endpoint, servers.LOOPBACK_KEY, truth)
    result["objects"], result["kept"] = len(sizes), grant / sum(records)
    return result


def missed_bars(result):
    """The bars that a result misses, in words."""
    late = [*result["all"][1:], result["one process"]]
    missed = [f"{count['gets']} GETs although all data fits" for count in late if count["gets"]]
    expected = (1 - result["kept"]) * result["objects"]
    missed += [f"{count['gets']} GETs with half of the data kept, expected {expected:.1f}" for count in result["half"][1:]
               if abs(count["gets"] - expected) > TOLERANCE * result["objects"]]
    return missed


def gets(counts):
    return " ".join(f"{count['gets']:4}" for count in counts)


def report(name, result):
    """Prints a result; keeps and returns whether it misses a bar."""
    if "all" not in result:
        print(f"{name:24} direct {gets(result['direct'])}", flush=True)
        return False
    missed = result["missed"] = missed_bars(result)
    print(f"{name:24} direct {gets(result['direct'])}   all {gets(result['all'])}   half {gets(result['half'])}   "
          f"of {result['objects']}  {'; '.join(missed) or 'met'}", flush=True)
    return bool(missed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=stack.ROOT / "build" / "release")
    parser.add_argument("--only", nargs="*", default=list(LOADERS), choices=list(LOADERS))
    parser.add_argument("--direct", action="store_true")
    parser.add_argument("--page", type=pathlib.Path)
    arguments = parser.parse_args()
    bench = Bench(arguments.build.resolve())
    truth = bench.prepare()
    results, failed = bench.earlier_results(), 0
    with stack.origin(bench.folder / "s3") as origin:
        for name in arguments.only:
            loader = LOADERS[name]
            try:
                result = measured(bench, loader, origin, truth[loader.is_large], arguments.direct)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{name:24} FAILED: {error}", flush=True)
                failed += 1
                results.pop(name, None)
                continue
            failed += report(name, result)
            results[name] = result | {"version": loader.version(), "changed": loader.changed}
            bench.results.write_text(json.dumps(results, indent=1) + "\n")
    if arguments.page:
        page.write(arguments.page, {name: results[name] for name in LOADERS if name in results})
    print(f"{len(arguments.only)} loaders, {failed} failed or missed a bar")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
