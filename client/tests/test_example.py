"""The example trains a model, and differs from an ImageFolder script by at most five lines."""

import difflib
import json
import os
import pathlib
import random
import subprocess
import sys

import PIL.Image
from test_real_sidecar import run  # noqa: F401  (a fixture)

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples" / "mnist"


def code_lines(path):
    """Code lines without the module docstring."""
    return path.read_text().split('"""', 2)[2].splitlines()


def test_example_differs_from_image_folder_by_at_most_five_lines():
    diff = list(difflib.ndiff(code_lines(EXAMPLE / "train_plain.py"), code_lines(EXAMPLE / "train.py")))
    written = [line for line in diff if line.startswith("+ ")]
    assert 1 <= len(written) <= 5, written


class Shapes:
    """A folder with images of 100 vertical and 100 horizontal bars."""

    def __init__(self, root):
        self.uri = f"file://{root}"
        prng = random.Random(1)
        for label in ("0", "1"):
            (root / label).mkdir(parents=True)
            for number in range(100):
                picture = PIL.Image.new("L", (28, 28))
                at = prng.randrange(4, 20)
                picture.paste(255, (at, 2, at + 4, 26) if label == "0" else (2, at, 26, at + 4))
                picture.save(root / label / f"{number:03}.png")


def test_example_learns_to_tell_two_shapes(tmp_path):
    data = Shapes(tmp_path / "shapes").uri
    command = [sys.executable, str(EXAMPLE / "train.py"), "--data", data, "--epochs", "10"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert [line["epoch"] for line in lines] == list(range(10))
    assert lines[-1]["test_accuracy"] > 0.9 and lines[-1]["began_ms"] > lines[0]["began_ms"]


def test_importance_example_learns_through_a_sidecar(tmp_path, run):  # noqa: F811
    """Uses the loop of docs/reference/sampling-contracts.md: ids, per-sample losses, report, epoch_report."""
    shapes = Shapes(tmp_path / "shapes")
    command = [sys.executable, str(EXAMPLE / "train_importance.py"), "--contract", "importance", "--epochs", "12"]
    place = {**os.environ, "STOKER_SOCKET": str(run(of=shapes).socket),
             "STOKER_DATASETS": json.dumps({"train": {"uri": shapes.uri}})}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=place)
    epochs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [epoch["epoch"] for epoch in epochs] == list(range(12))
    for epoch in epochs:
        assert (epoch["contract"], epoch["alone"], epoch["losses_ignored"]) == ("importance", 0, 0)
        assert epoch["requested"] == epoch["distinct"] + epoch["repeated"]
        assert epoch["losses_used"] > 0
    assert epochs[0]["distinct"] == 200 > epochs[-1]["distinct"]  # the last epoch skips samples
    assert epochs[-1]["test_accuracy"] > 0.9
    assert "Warning" not in done.stderr
