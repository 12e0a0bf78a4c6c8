"""The release archive (`make release`), unpacked into an empty folder and used from there as a user would."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("STOKER_BUILD", ROOT / "build" / "release"))
KUBECTL = shutil.which("kubectl")
PROGRAMS = {"bin/kubectl-stoker", "bin/kubectl_complete-stoker", "bin/stoker"}
PAPERS = {"share/doc/stoker/LICENSE", "share/doc/stoker/kubectl-stoker.md"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder], check=True, capture_output=True)
    (made,) = folder.glob("*.tar.gz")
    return made


@pytest.fixture(scope="module")
def unpacked(archive, tmp_path_factory):
    """The archive unpacked as into /usr/local: bin and share at the top."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as files:
        files.extractall(folder)
    return folder


def run(unpacked, *command):
    """Runs with only the archive's programs on the path, and without the build's environment."""
    env = {"PATH": str(unpacked / "bin"), "HOME": str(unpacked)}
    return subprocess.run(command, cwd=unpacked, env=env, capture_output=True, text=True, check=False)


def test_archive_has_a_versioned_name_and_a_checksum(archive):
    version = run(archive.parent, BUILD / "bin" / "stoker", "--version").stdout.split()[-1]
    assert archive.name.startswith(f"stoker-{version}-linux-")
    told, name = archive.with_name(archive.name + ".sha256").read_text().split()
    assert name == archive.name
    assert told == hashlib.sha256(archive.read_bytes()).hexdigest()


def test_archive_holds_only_programs_page_and_licence(unpacked):
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if not path.is_dir()}
    assert files == PROGRAMS | PAPERS
    assert all(os.access(unpacked / name, os.X_OK) for name in PROGRAMS)
    for name in PAPERS:
        source = {"LICENSE": ROOT / "LICENSE"}.get(pathlib.Path(name).name, ROOT / "docs/reference/kubectl-stoker.md")
        assert (unpacked / name).read_bytes() == source.read_bytes()


@pytest.mark.parametrize("program", ["kubectl-stoker", "stoker"])
def test_programs_contain_no_build_paths(unpacked, program):
    assert str(ROOT).encode() not in (unpacked / "bin" / program).read_bytes()


HELP = [("kubectl-stoker", "--help"), ("stoker", "simulate", "--help")] + ([(KUBECTL, "stoker", "--help")] if KUBECTL else [])


@pytest.mark.parametrize("command", HELP, ids=lambda command: " ".join(command))
def test_unpacked_programs_print_their_help(unpacked, command):
    done = run(unpacked, *command)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()


def test_completion_file_completes(unpacked):
    done = run(unpacked, "kubectl_complete-stoker", "")
    assert done.returncode == 0, done.stderr
    assert {"top", "why", "what-if", "quota"} <= {line.split("\t")[0] for line in done.stdout.splitlines()}
