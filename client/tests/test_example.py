"""The example learns, and differs from an ImageFolder script by five lines at most."""

import difflib
import json
import pathlib
import random
import subprocess
import sys

import PIL.Image

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples" / "mnist"


def code_lines(path):
    """Without the docstring at the top."""
    return path.read_text().split('"""', 2)[2].splitlines()


def test_the_change_to_an_image_folder_script_takes_at_most_five_lines():
    diff = list(difflib.ndiff(code_lines(EXAMPLE / "train_plain.py"), code_lines(EXAMPLE / "train.py")))
    written = [line for line in diff if line.startswith("+ ")]
    assert 1 <= len(written) <= 5, written


def test_the_example_learns_to_tell_two_shapes(tmp_path):
    prng = random.Random(1)
    for label in ("0", "1"):
        (tmp_path / label).mkdir()
        for number in range(100):
            picture = PIL.Image.new("L", (28, 28))
            at = prng.randrange(4, 20)
            picture.paste(255, (at, 2, at + 4, 26) if label == "0" else (2, at, 26, at + 4))
            picture.save(tmp_path / label / f"{number:03}.png")
    command = [sys.executable, str(EXAMPLE / "train.py"), "--data", f"file://{tmp_path}", "--epochs", "10"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert [line["epoch"] for line in lines] == list(range(10))
    assert lines[-1]["test_accuracy"] > 0.9 and lines[-1]["began_ms"] > lines[0]["began_ms"]
