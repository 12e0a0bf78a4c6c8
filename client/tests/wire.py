"""The local protocol encoded with struct, written from docs/design/local-protocol.md and not from the C++ sources, so
that the golden vectors compare two independent encoders."""

import struct

MAGIC = 0x524B5453
HEADER = struct.Struct("<IHHQ")
HELLO, WELCOME, LISTING, ERROR, FETCH, FETCHED, PLAN, PLANNED, CONSUMED, REPORT = range(1, 11)
BEGIN, BEGUN, DRAW, DRAWN, LOSSES, ASK_EPOCH, EPOCH_TALLY, ASK_SNAPSHOT, SNAPSHOT = range(11, 20)
ASK_PROBE, PROBE, PROBED, COUNTED, SIMILARITY, PEER, PING, PONG = range(20, 28)
FEATURE_CONTRACTS, FEATURE_PROBE, FEATURE_COUNTS, FEATURE_AHEAD, FEATURE_P_OTHERS = 1, 2, 4, 8, 16
KIND_ON_NODE = 0x80
BEGIN_FIELDS = ("epoch", "skip", "seed", "rank", "world_size", "batch", "served_bytes", "snapshot_bytes")
TALLY_FIELDS = ("epoch", "requested", "distinct", "repeated", "substituted", "skipped", "losses_used",
                "losses_ignored")
PROBED_FIELDS = ("id", "bypassing", "bypassed_batches", "bypassed_ns", "bypassed_bytes", "cached_batches", "cached_ns",
                 "cached_bytes")
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


def welcome(request_id, version=1, revision=0, sample_count=0, directory="", features=0):
    fixed = struct.pack("<HHIQQ", version, 0, features, revision, sample_count)
    return frame(WELCOME, fixed + text(directory), request_id)


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


def blob(hexadecimal):
    raw = bytes.fromhex(hexadecimal)
    return struct.pack("<I", len(raw)) + raw


def begin(request_id, epoch=0, skip=0, seed=0, rank=0, world_size=1, batch=1, contract="", job="", parameters=(),
          served_bytes=0, snapshot_bytes=0):
    fixed = struct.pack("<QQQIIIQQI", epoch, skip, seed, rank, world_size, batch, served_bytes, snapshot_bytes,
                        len(parameters))
    numbers = b"".join(text(name) + struct.pack("<d", value) for name, value in parameters)
    return frame(BEGIN, fixed + text(contract) + text(job) + numbers, request_id)


def begun(request_id, epoch=0, losses=0):
    return frame(BEGUN, struct.pack("<QQ", epoch, losses), request_id)


def draw(request_id, epoch=0, count=0):
    return frame(DRAW, struct.pack("<QII", epoch, count, 0), request_id)


def drawn(request_id, epoch=0, ended=False, requested=(), served=(), kinds=()):
    count = len(served)
    arrays = struct.pack(f"<{count}Q", *requested) + struct.pack(f"<{count}Q", *served) + bytes(kinds)
    return frame(DRAWN, struct.pack("<QII", epoch, count, int(ended)) + arrays, request_id)


def losses(request_id, epoch=0, samples=(), losses=(), p_others=()):
    count = len(samples)
    arrays = struct.pack(f"<{count}Q", *samples) + struct.pack(f"<{count}f", *losses)
    arrays += struct.pack(f"<{len(p_others)}f", *p_others)
    return frame(LOSSES, struct.pack("<QII", epoch, count, int(len(p_others) > 0)) + arrays, request_id)


def similarity(request_id, samples=(), hashes=()):
    count = len(samples)
    arrays = struct.pack(f"<{count}Q", *samples) + struct.pack(f"<{count}Q", *hashes)
    return frame(SIMILARITY, struct.pack("<II", count, 0) + arrays, request_id)


def ask_epoch(request_id, epoch=0):
    return frame(ASK_EPOCH, struct.pack("<Q", epoch), request_id)


def epoch_tally(request_id, **fields):
    return frame(EPOCH_TALLY, struct.pack("<8Q", *(fields[name] for name in TALLY_FIELDS)), request_id)


def ask_snapshot(request_id):
    return frame(ASK_SNAPSHOT, b"", request_id)


def snapshot(request_id, state=""):
    return frame(SNAPSHOT, blob(state), request_id)


def ask_probe(request_id):
    return frame(ASK_PROBE, b"", request_id)


def probe(request_id, id=0, batches=0):
    return frame(PROBE, struct.pack("<QI", id, batches), request_id)


def probed(request_id, **fields):
    return frame(PROBED, struct.pack("<8Q", *(int(fields[name]) for name in PROBED_FIELDS)), request_id)


def counted(request_id, hit_samples=0, hit_bytes=0, fetched_samples=0, fetched_bytes=0):
    return frame(COUNTED, struct.pack("<QQQQ", hit_samples, hit_bytes, fetched_samples, fetched_bytes), request_id)


def peer(request_id, secret="", sidecar=0):
    return frame(PEER, bytes.fromhex(secret) + struct.pack("<Q", sidecar), request_id)


def ping(request_id):
    return frame(PING, b"", request_id)


def pong(request_id):
    return frame(PONG, b"", request_id)


ENCODERS = {"peer": peer, "ping": ping, "pong": pong, "ask_probe": ask_probe, "probe": probe, "probed": probed,
            "begin": begin, "begun": begun, "draw": draw, "drawn": drawn, "losses": losses, "similarity": similarity,
            "ask_epoch": ask_epoch, "epoch_tally": epoch_tally, "ask_snapshot": ask_snapshot, "snapshot": snapshot,
            "counted": counted,
            "hello": hello, "welcome": welcome, "listing": listing, "error": error, "fetch": fetch,
            "fetched": fetched, "plan": plan, "planned": planned, "consumed": consumed, "report": report}


class Reader:
    """Reads values from the front of a payload."""

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


def decode_begin(payload):
    reader = Reader(payload)
    *numbers, count = reader.take("QQQIIIQQI")
    fields = dict(zip(BEGIN_FIELDS, numbers))
    fields |= {"contract": reader.text(), "job": reader.text()}
    fields["parameters"] = [[reader.text(), reader.take("d")[0]] for _ in range(count)]
    return fields


def decode_draw(payload):
    epoch, count, _ = Reader(payload).take("QII")
    return {"epoch": epoch, "count": count}


def decode_losses(payload):
    reader = Reader(payload)
    epoch, count, has_others = reader.take("QII")
    fields = {"epoch": epoch, "samples": list(reader.take(f"{count}Q")), "losses": list(reader.take(f"{count}f"))}
    return {**fields, "p_others": list(reader.take(f"{count}f"))} if has_others else fields


def decode_similarity(payload):
    reader = Reader(payload)
    count, _ = reader.take("II")
    return {"samples": list(reader.take(f"{count}Q")), "hashes": list(reader.take(f"{count}Q"))}


def decode_ask_epoch(payload):
    return {"epoch": Reader(payload).take("Q")[0]}


def decode_ask_snapshot(payload):
    assert payload == b""
    return {}


def decode_ask_probe(payload):
    assert payload == b""
    return {}


def decode_probed(payload):
    return dict(zip(PROBED_FIELDS, Reader(payload).take("8Q")))


DECODERS = {ASK_PROBE: ("ask_probe", decode_ask_probe), PROBED: ("probed", decode_probed),
            BEGIN: ("begin", decode_begin), DRAW: ("draw", decode_draw), LOSSES: ("losses", decode_losses),
            SIMILARITY: ("similarity", decode_similarity),
            ASK_EPOCH: ("ask_epoch", decode_ask_epoch), ASK_SNAPSHOT: ("ask_snapshot", decode_ask_snapshot),
            HELLO: ("hello", decode_hello), FETCH: ("fetch", decode_fetch), PLAN: ("plan", decode_plan),
            CONSUMED: ("consumed", decode_consumed), REPORT: ("report", decode_report)}
