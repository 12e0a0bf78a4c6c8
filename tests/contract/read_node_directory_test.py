"""tools/read-node-directory reads golden segments and a residency table, and reports damaged records."""

import pathlib
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = pathlib.Path(__file__).parent / "golden"
sys.path.insert(0, str(ROOT / "client" / "tests"))

import nodefiles  # noqa: E402  (found through the path above)


def run(*paths):
    done = subprocess.run([sys.executable, ROOT / "tools" / "read-node-directory", *paths], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout.splitlines()


def test_lists_each_sample_of_a_sealed_segment():
    code, lines = run(GOLDEN / "segment-v1.seg")
    assert code == 0
    assert lines[0].startswith("segment 7, version 1, resident, revision c9d7eccd349f129d") and lines[0].endswith("sealed")
    assert [line.split(" at ")[0] for line in lines[1:]] == ["sample 2", "sample 0", "sample 3", "sample 1"]
    assert all(line.endswith("ok") for line in lines[1:])


def test_tells_an_open_segment_from_a_sealed_one():
    assert run(GOLDEN / "segment-v1-open.seg")[1][0].endswith("open")


def test_names_the_damaged_record(tmp_path):
    data = bytearray((GOLDEN / "segment-v1.seg").read_bytes())
    data[192] ^= 1  # the first byte of sample 0, whose record begins at 128
    path = tmp_path / "1.seg"
    path.write_bytes(data)
    code, lines = run(path)
    assert code == 1
    assert [line.split()[1] for line in lines if line.endswith("DAMAGED")] == ["0"]


def test_decodes_the_words_of_a_residency_table(tmp_path):
    head = struct.pack("<QIIQQ28x", 0x3144495345524B53, 1, 0, 0xC9D7ECCD349F129D, 3)
    words = struct.pack("<QQQ", 0, 1 << 62 | 7 << 30 | 3, 2 << 62 | 9 << 30 | 1)
    path = tmp_path / "residency.c9d7eccd349f129d"
    path.write_bytes(head + struct.pack("<I", nodefiles.crc32c(head)) + words)
    assert run(path) == (0, [
        "residency table, version 1, revision c9d7eccd349f129d, 3 samples",
        "sample 1: resident, segment 7, offset 192", "sample 2: window, segment 9, offset 64",
        "1 absent, 1 resident, 1 window"])


def test_fails_on_a_file_of_no_known_format(tmp_path):
    path = tmp_path / "state.json"
    path.write_text("{}" * 100)
    assert run(path)[0] == 1
