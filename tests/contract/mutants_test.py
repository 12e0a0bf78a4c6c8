"""The planted bugs of tests/mutants: each applies, and names tests that exist. tools/mutants plants them."""

import fnmatch
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUTANTS = sorted((ROOT / "tests" / "mutants").glob("*.patch"))


def gtest_names():
    """Suite.Name of all C++ tests."""
    texts = (path.read_text() for path in (ROOT / "tests").rglob("*.cc"))
    return [f"{suite}.{name}" for text in texts for suite, name in re.findall(r"TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", text)]


GTEST_NAMES = gtest_names()


def selects(pattern):
    """Whether one pattern of --gtest_filter selects a test; of a parameterised one the suite's and the case's name count."""
    parts = pattern.split("/")
    name = parts[1] if len(parts) > 1 else parts[0]
    return not name or any(fnmatch.fnmatchcase(test, name) for test in GTEST_NAMES)


@pytest.mark.parametrize("path", MUTANTS, ids=lambda path: path.stem)
def test_a_patch_names_tests_that_exist(path):
    target, rest = re.search(r"^# test: (\S+) ?(.*)$", path.read_text(), re.MULTILINE).groups()
    if target == "pytest":
        file, _, words = rest.partition(" -k ")
        assert any(words in name for name in re.findall(r"def (test_\w+)", (ROOT / file).read_text()))
    else:
        patterns = rest.removeprefix("--gtest_filter=").split(":")
        assert all(pattern.startswith("-") or selects(pattern) for pattern in patterns)


def test_every_patch_applies():
    stale = [path.stem for path in MUTANTS
             if subprocess.run(["git", "apply", "--check", path], cwd=ROOT, capture_output=True, check=False).returncode]
    assert not stale
