"""Hugging Face datasets reads `stoker://` by the entry point of fsspec: data_files is the only changed line."""

import json
import os
import subprocess
import sys

import pyarrow
import pyarrow.parquet
import pytest
from conftest import TESTS
from test_webdataset import SAMPLES, SHARDS, make_shards

SCRIPT = """
import sys
import datasets

dataset = datasets.load_dataset(sys.argv[1], data_files=sys.argv[2], split="train", streaming=True)
for epoch in range(2):
    print(sorted(row[sys.argv[3]] for row in dataset))
"""


@pytest.fixture
def run(tmp_path):
    """Runs the script with Stoker's package as pip installs it: its entry points are those of pyproject.toml."""
    package = tmp_path / "site" / "stoker-0.dist-info"
    package.mkdir(parents=True)
    text = (TESTS.parent / "pyproject.toml").read_text()
    names = text.split('[project.entry-points."fsspec.specs"]\n')[1].split("\n\n")[0].replace('"', "")
    (package / "entry_points.txt").write_text(f"[fsspec.specs]\n{names}\n")
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: stoker\nVersion: 0\n")

    def run(folder, *arguments):
        place = {"train": {"uri": f"file://{folder}"}}
        path = os.pathsep.join([os.environ["PYTHONPATH"], str(tmp_path / "site")])
        env = {**os.environ, "PYTHONPATH": path, "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1",
               "STOKER_DATASETS": json.dumps(place), "STOKER_SOCKET": str(tmp_path / "no.sock")}
        done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], env=env, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr[-4000:]
        return [json.loads(line.replace("'", '"')) for line in done.stdout.splitlines()]
    return run


def test_parquet_files_are_found_and_read(tmp_path, run):
    for part in range(5):
        path = tmp_path / "origin" / f"{part % 2}" / f"part-{part}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.table({"row": range(100 * part, 100 * part + 100)}), path)
    epochs = run(tmp_path / "origin", "parquet", "stoker://train/**/*.parquet", "row")
    assert epochs == [list(range(500))] * 2


def test_tar_shards_of_format_objects_are_found_and_read(tmp_path, run):
    make_shards(tmp_path / "origin")
    first, second = run(tmp_path / "origin", "webdataset", "stoker://train/*/*.tar", "__key__")
    assert first == second and len(set(first)) == SHARDS * SAMPLES
