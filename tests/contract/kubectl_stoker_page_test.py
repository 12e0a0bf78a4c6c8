"""docs/reference/kubectl-stoker.md shows the program's output, and explains every flag that is not kubectl's."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("STOKER_BUILD", ROOT / "build" / "release"))
GOLDEN = ROOT / "tests" / "unit" / "cli" / "kubectl_stoker" / "golden"
PAGE = (ROOT / "docs" / "reference" / "kubectl-stoker.md").read_text()
SHOWN = ["top-all.txt", "why-vit.txt", "why-from-status.txt", "what-if-add.txt", "what-if-delete.txt", "quota.txt",
         "where.txt"]


@pytest.mark.parametrize("name", SHOWN)
def test_page_shows_the_programs_output(name):
    assert (GOLDEN / name).read_text().strip("\n") in PAGE


@pytest.mark.parametrize("command", ["top", "why", "what-if", "quota", "where"])
def test_page_explains_every_flag(command):
    done = subprocess.run([BUILD / "bin" / "kubectl-stoker", "__complete", command, "--"], capture_output=True,
                          text=True, check=True)
    of_kubectl = {"--namespace", "--all-namespaces", "--output", "--help", "--as-group"}
    flags = {line for line in done.stdout.splitlines() if line.startswith("--")} - of_kubectl
    assert flags
    assert not [flag for flag in flags if flag not in PAGE]
