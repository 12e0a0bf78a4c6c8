"""Writes a node directory with struct: manifest, residency table, segments. Independent of the C++ encoders."""

import os
import struct

ALIGN = 64
RESIDENT, WINDOW = 1, 2


def _crc_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def revision_of(objects):
    """FNV-1a over keys, sizes and ETags."""
    value = 0xCBF29CE484222325
    def add(raw):
        nonlocal value
        for byte in raw:
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    for key, size, etag in objects:
        add(key + b"\0" + struct.pack("<Q", size) + etag.encode() + b"\0")
    return value


def parent_of(key):
    return key.split(b"/")[-2] if b"/" in key else None


def encode_manifest(objects):
    """`objects` is [(key bytes, size, etag)]; returns (sorted objects, revision, file bytes)."""
    objects = sorted(objects)
    labels = sorted({parent_of(key) for key, _, _ in objects} - {None})
    records, pool = b"", b""
    for key, size, etag in objects:
        parent = parent_of(key)
        label = labels.index(parent) if parent is not None else -1
        records += struct.pack("<QQIHHiIQ", size, len(pool), len(key), len(etag), 0, label, 0, 0)
        pool += key + etag.encode()
    table = b""
    for label in labels:
        table += struct.pack("<II", len(pool), len(label))
        pool += label
    revision = revision_of(objects)
    sizes = [size for _, size, _ in objects]
    header = struct.pack("<8sIIQQQQQ", b"SKMANIF1", 1, len(labels), len(objects), revision, sum(sizes), max(sizes),
                         len(pool)).ljust(128, b"\0")
    body = header + records + table + pool
    return objects, revision, body + struct.pack("<I", crc32c(body))


def _sealed(fields):
    fields = fields.ljust(60, b"\0")
    return fields + struct.pack("<I", crc32c(fields))


class NodeDirectory:
    """A node directory with one open segment at a time. `path` must exist."""

    def __init__(self, path, objects, capacity=1 << 20):
        self.path = path
        self.capacity = capacity
        self.objects, self.revision, manifest = encode_manifest(objects)
        self.ids = {key: id for id, (key, _, _) in enumerate(self.objects)}
        os.makedirs(os.path.join(path, "segments"), exist_ok=True)
        self._write(f"manifest.{self.revision:016x}", manifest)
        self.table = os.path.join(path, f"residency.{self.revision:016x}")
        if not os.path.exists(self.table):
            self.make_table()
        self.seq = max([int(name[:-4]) for name in os.listdir(os.path.join(path, "segments"))], default=0)
        self.end = None
        self.segment_class = RESIDENT

    def _write(self, name, data):
        path = os.path.join(self.path, name)
        with open(path + ".tmp", "wb") as file:
            file.write(data)
        os.replace(path + ".tmp", path)

    def make_table(self):
        header = _sealed(struct.pack("<8sIIQQ", b"SKRESID1", 1, 0, self.revision, len(self.objects)))
        self._write(os.path.basename(self.table), header + bytes(8 * len(self.objects)))

    def segment_path(self, seq=None):
        return os.path.join(self.path, "segments", f"{seq or self.seq}.seg")

    def start_segment(self, segment_class=RESIDENT):
        self.seq += 1
        self.segment_class = segment_class
        header = struct.pack("<8sIIIIQQ", b"STKRSEG1", 1, segment_class, self.seq, 0, self.revision, self.capacity)
        with open(self.segment_path(), "wb") as file:
            file.write(_sealed(header))
        self.end = ALIGN

    def put(self, id, payload, damage=False):
        """Appends and publishes; `damage` flips a bit of the payload under its checksum."""
        size = (64 + len(payload) + ALIGN - 1) // ALIGN * ALIGN
        if self.end is None or self.end + size > self.capacity:
            self.start_segment(self.segment_class)
        header = _sealed(struct.pack("<IIQQI", 0x44524352, self.seq, id, len(payload), crc32c(payload)))
        if damage:
            payload = bytes([payload[0] ^ 1]) + payload[1:]
        with open(self.segment_path(), "r+b") as file:
            file.seek(self.end)
            file.write((header + payload).ljust(size, b"\0"))
        self.set_word(id, self.segment_class << 62 | self.seq << 30 | self.end // ALIGN)
        self.end += size

    def word(self, id):
        with open(self.table, "rb") as file:
            file.seek(64 + 8 * id)
            return struct.unpack("<Q", file.read(8))[0]

    def set_word(self, id, word):
        with open(self.table, "r+b") as file:
            file.seek(64 + 8 * id)
            file.write(struct.pack("<Q", word))
