"""An independent reader of the golden segment and manifest files, written from the design pages.

It decodes the output of node_format_golden_test.cc with only the offsets in docs/design/segment-format.md and
docs/design/manifest-format.md.
"""

import pathlib
import struct

import pytest

GOLDEN = pathlib.Path(__file__).parent / "golden"
REVISION = 0xC9D7ECCD349F129D
ORDER = [2, 0, 3, 1]  # sample ids in the order of the segments


def crc32c(data):
    """CRC-32C (Castagnoli), bit by bit (RFC 3720, appendix B.4)."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) % (1 << 64)
    return value


def u32(data, offset):
    return struct.unpack_from("<I", data, offset)[0]


def u64(data, offset):
    return struct.unpack_from("<Q", data, offset)[0]


def manifest_rows(data):
    """[(key, ETag, size, label)] of a manifest, decoded as the page describes."""
    labels, samples, pool_bytes = u32(data, 12), u64(data, 16), u64(data, 48)
    pool = data[128 + 40 * samples + 8 * labels:][:pool_bytes]
    rows = []
    for at in range(128, 128 + 40 * samples, 40):
        size, key_offset, key_bytes, etag_bytes, zero, label, checksum, place = struct.unpack_from("<QQIHHiIQ", data, at)
        assert (zero, checksum, place) == (0, 0, 0)
        key = pool[key_offset:key_offset + key_bytes]
        rows.append((key, pool[key_offset + key_bytes:][:etag_bytes], size, label))
    table = 128 + 40 * samples
    names = [pool[u32(data, table + 8 * n):][:u32(data, table + 8 * n + 4)] for n in range(labels)]
    return rows, names, table + 8 * labels + pool_bytes


def test_manifest_matches_its_page():
    data = (GOLDEN / "manifest-v1.bin").read_bytes()
    assert (u64(data, 0), u32(data, 8)) == (0x3146494E414D4B53, 1)
    rows, names, end = manifest_rows(data)
    assert names == [b"cat", b"dog"]
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert [(row[0].decode(), row[2], row[3]) for row in rows] == [
        ("README", 5, -1), ("cat/1.png", 64, 0), ("cat/2.png", 0, 0), ("dog/ö.png", 130, 1)]
    assert (u64(data, 32), u64(data, 40)) == (199, 130)
    assert data[56:128] == bytes(72)
    assert len(data) == end + 4 and u32(data, end) == crc32c(data[:end])
    # The revision is a hash over every key, size and ETag in order; a zero byte ends each string.
    named = b"".join(key + b"\0" + struct.pack("<Q", size) + etag + b"\0" for key, etag, size, _ in rows)
    assert u64(data, 24) == fnv1a(named) == REVISION


def check_record(data, offset, sample, size):
    """Checks the record at this offset; returns the offset of the next one."""
    head = data[offset:offset + 64]
    assert head[:4] == b"RCRD" and u32(head, 4) == 7
    assert (u64(head, 8), u64(head, 16)) == (sample, size)
    payload = bytes((sample + 3 + 7 * i) % 256 for i in range(size))
    assert data[offset + 64:][:size] == payload and u32(head, 24) == crc32c(payload)
    assert head[28:60] == bytes(32) and u32(head, 60) == crc32c(head[:60])
    end = offset + 64 + size
    assert not any(data[end:end + -end % 64]), "zeroes up to the next multiple of 64"
    return end + -end % 64


@pytest.mark.parametrize("name, class_", [("segment-v1.seg", 1), ("segment-v1-open.seg", 2)])
def test_segment_matches_its_page(name, class_):
    sizes = [row[2] for row in manifest_rows((GOLDEN / "manifest-v1.bin").read_bytes())[0]]
    data = (GOLDEN / name).read_bytes()
    assert data[:8] == b"STKRSEG1"
    assert [u32(data, at) for at in (8, 12, 16, 20)] == [1, class_, 7, 0]
    assert (u64(data, 24), u64(data, 32)) == (REVISION, 4096)
    assert data[40:60] == bytes(20) and u32(data, 60) == crc32c(data[:60])
    offset, entries = 64, b""
    for sample in ORDER:
        entries += struct.pack("<QQQ", sample, offset, sizes[sample])
        offset = check_record(data, offset, sample, sizes[sample])
    if class_ == 2:
        assert len(data) == offset, "an open segment ends after its last record"
        return
    footer = data[offset:]
    assert len(footer) % 64 == 0 and len(footer) >= len(entries) + 64
    assert footer.startswith(entries) and not any(footer[len(entries):-28])
    length, count, seq, checksum, magic = struct.unpack("<QQII4s", footer[-28:])
    assert (length, count, seq) == (len(footer), len(ORDER), 7)
    assert checksum == crc32c(footer[:-8])
    assert magic == b"FOOT"
