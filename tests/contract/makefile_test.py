"""The Makefile: every target installs or names its requirements, and no file name hides a target."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z0-9-]+):.*## ", TEXT, re.MULTILINE)
NEED_NOTHING = {"help", "clean", "demo-down", "cluster-down"}
NEED_TESTS = {"bench", "loaders", "hooks", "test-local", "traffic", "windowed", "importance", "many-nodes", "accuracy", "time-to-accuracy", "lint", "lint-client", "format", "docs",
              "pre-commit", "mutants", "asan", "tsan", "clang-tidy", "nightly", "generate", "check-generated", "wheel"}


def groups(target):
    """The package groups that the target and its prerequisites install."""
    # Runs only the commands of the phony targets; --always-make would run cmake first.
    out = subprocess.run(["make", "--dry-run", "--no-print-directory", target], cwd=ROOT, capture_output=True, text=True,
                         check=True).stdout
    return {group for line in re.findall(r"tools/deps\.sh ([a-z ]+)", out) for group in line.split()}


@pytest.mark.parametrize("target", sorted(set(TARGETS) - NEED_NOTHING))
def test_target_installs_the_packages_it_needs(target):
    assert groups(target) >= ({"test"} if target in NEED_TESTS else set()) and groups(target)


def test_every_target_is_phony():
    phony = re.search(r"^\.PHONY:((?:.*\\\n)*.*)$", TEXT, re.MULTILINE).group(1)
    assert set(TARGETS) <= set(phony.replace("\\", " ").split())


def test_targets_of_this_test_exist():
    assert NEED_TESTS | NEED_NOTHING <= set(TARGETS)
