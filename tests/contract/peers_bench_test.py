"""`make bench-peers`: a peer that fails is named and leaves the rounds; what was started ends."""

import pathlib
import sys
import time
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench" / "peers"))
import common  # noqa: E402


def test_rounds_go_through_the_peers_and_back():
    seen = []
    figures = common.interleaved(["Stoker", "a", "b"], 2, lambda name, number: seen.append((name, number)) or len(seen), None)
    assert [name for name, _ in seen] == ["Stoker", "a", "b", "b", "a", "Stoker"] * 2
    assert figures == {"Stoker": [3.5, 9.5], "a": [3.5, 9.5], "b": [3.5, 9.5]}


def test_a_peer_that_fails_leaves_the_rounds_with_its_reason():
    def turn(name, number):
        if name == "a" and number == 1:
            raise common.NotRun("it ended")
        return 1.0

    missing = []
    figures = common.interleaved(["Stoker", "a", "b"], 3, turn, lambda name, reason: missing.append((name, reason)))
    assert figures == {"Stoker": [1.0] * 3, "b": [1.0] * 3} and missing == [("a", "it ended")]


def test_ratio_is_above_one_where_stoker_is_better():
    rates = common.result("hits", "c", "p", "samples/s", [20.0, 30.0], [10.0, 10.0], True)
    seconds = common.result("capacity", "c", "p", "s", [1.0, 1.0], [4.0, 2.0], False)
    assert rates["ratio"] == {"median": 2.5, "min": 2.0, "max": 3.0}
    assert seconds["ratio"] == {"median": 3.0, "min": 2.0, "max": 4.0}


def client(tmp_path, script):
    return common.Client([sys.executable, "-c", script], tmp_path / "log")


def test_a_client_that_ends_says_its_last_words(tmp_path):
    with pytest.raises(common.NotRun, match="its client ended: no such peer"):
        client(tmp_path, "import sys; sys.exit('no such peer')")


WITH_A_WORKER = """
import os, time
worker = os.fork()
if worker:
    print("ready", flush=True)
    input()
    print(worker, flush=True)
time.sleep(60)  # until it is killed
"""


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_client_ends_with_its_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "STOP_S_MAX", 0.2)
    reader = client(tmp_path, WITH_A_WORKER)
    worker = reader.ask("worker")
    assert is_running(worker)
    reader.close()
    deadline = time.monotonic() + 5
    while is_running(worker) and time.monotonic() < deadline:
        time.sleep(0.01)  # polling interval
    assert not is_running(worker)


def test_a_program_that_does_not_mount_is_not_run(tmp_path):
    with pytest.raises(common.NotRun, match="false does not mount"):
        with common.mounted(["/bin/false"], tmp_path / "mount", tmp_path / "log", {}):
            pass


@pytest.mark.parametrize("missing, ratio, status", [([], 2.0, 0), ([], 0.9, 2), (["redis"], 2.0, 1)])
def test_exit_status_tells_what_did_not_run_and_where_a_peer_is_faster(missing, ratio, status):
    report = types.SimpleNamespace(missing=missing, results=[{"ratio": {"median": ratio}}])
    assert common.exit_status(report) == status
