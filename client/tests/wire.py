"""The local protocol spelled with struct, from docs/design/local-protocol.md and not from the C++ sources, so that the
golden vectors compare two spellings."""

import struct

MAGIC = 0x524B5453
HEADER = struct.Struct("<IHHQ")
HELLO, WELCOME, LISTING, ERROR, FETCH, FETCHED, PLAN, PLANNED, CONSUMED, REPORT = range(1, 11)
REPORT_FIELDS = ("epoch", "steps", "samples", "bytes", "hit_samples", "origin_samples", "wait_ns", "compute_ns")


def text(value):
    raw = value.encode()
    return struct.pack("<H", len(raw)) + raw


def ids(values):
    return struct.pack("<II", len(values), 0) + struct.pack(f"<{len(values)}Q", *values)


def frame(kind, payload, request_id=0):
    return HEADER.pack(len(payload), kind, 0, request_id) + payload


def hello(request_id, version=1, relay=False, pid=0, rank=0, world_size=1, stream=0, dataset="", client=""):
    fixed = struct.pack("<IHHIIIIQ", MAGIC, version, int(relay), pid, rank, world_size, 0, stream)
    return frame(HELLO, fixed + text(dataset) + text(client), request_id)


def welcome(request_id, version=1, revision=0, sample_count=0, directory=""):
    return frame(WELCOME, struct.pack("<HHIQQ", version, 0, 0, revision, sample_count) + text(directory), request_id)


def listing(request_id, objects_listed=0):
    return frame(LISTING, struct.pack("<Q", objects_listed), request_id)


def error(request_id, code=0, message=""):
    return frame(ERROR, struct.pack("<H", code) + text(message), request_id)


def fetch(request_id, samples=()):
    return frame(FETCH, ids(samples), request_id)


def fetched(request_id, statuses=(), message=""):
    return frame(FETCHED, struct.pack("<I", len(statuses)) + bytes(statuses) + text(message), request_id)


def plan(request_id, epoch=0, sample_count=0, start=0):
    return frame(PLAN, struct.pack("<QQQ", epoch, sample_count, start), request_id)


def planned(request_id):
    return frame(PLANNED, b"", request_id)


def consumed(request_id, epoch=0, samples=()):
    return frame(CONSUMED, struct.pack("<Q", epoch) + ids(samples), request_id)


def report(request_id, **fields):
    return frame(REPORT, struct.pack("<8Q", *(fields[name] for name in REPORT_FIELDS)), request_id)


ENCODERS = {"hello": hello, "welcome": welcome, "listing": listing, "error": error, "fetch": fetch,
            "fetched": fetched, "plan": plan, "planned": planned, "consumed": consumed, "report": report}


class Reader:
    """Takes values off the front of a payload."""

    def __init__(self, data):
        self.data = data

    def take(self, form):
        size = struct.calcsize("<" + form)
        values = struct.unpack_from("<" + form, self.data)
        self.data = self.data[size:]
        return values

    def text(self):
        (size,) = self.take("H")
        raw, self.data = self.data[:size], self.data[size:]
        return raw.decode()

    def ids(self):
        count, _ = self.take("II")
        return list(self.take(f"{count}Q"))


def decode_hello(payload):
    reader = Reader(payload)
    magic, version, flags, pid, rank, world_size, _, stream = reader.take("IHHIIIIQ")
    assert magic == MAGIC, "hello without the protocol's magic"
    return {"version": version, "relay": bool(flags & 1), "pid": pid, "rank": rank, "world_size": world_size,
            "stream": stream, "dataset": reader.text(), "client": reader.text()}


def decode_fetch(payload):
    return {"samples": Reader(payload).ids()}


def decode_plan(payload):
    return dict(zip(("epoch", "sample_count", "start"), Reader(payload).take("QQQ")))


def decode_consumed(payload):
    reader = Reader(payload)
    return {"epoch": reader.take("Q")[0], "samples": reader.ids()}


def decode_report(payload):
    return dict(zip(REPORT_FIELDS, Reader(payload).take("8Q")))


DECODERS = {HELLO: ("hello", decode_hello), FETCH: ("fetch", decode_fetch), PLAN: ("plan", decode_plan),
            CONSUMED: ("consumed", decode_consumed), REPORT: ("report", decode_report)}
