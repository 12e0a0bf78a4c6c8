"""A small sidecar with fault injection: `python fake_sidecar.py '{"socket": ..., "node": ..., "root": ..., ...}'`.

Serves the files below `root` and appends requested ones to the node directory; one thread per connection. Logs what it
receives to `log`, one JSON object per line. It runs as a separate process, so that forked workers do not inherit its
sockets.

Settings: preload (share of the samples that are resident from the start), version (of its Welcome), garbage (answer to
a Hello, hex), refuse ([code, message] as the answer to a Hello), listings (Listing frames before the Welcome),
die_in_fetch (n: exits in the middle of its n-th answer), damage (ids that it stores damaged, once each), step_aside
(answers READ_AT_ORIGIN), origin_error (ids), origin_says (message of origin errors), wrong_directory, deaf (never
answers a fetch), stall ({"ids": [...], "until": path}: answers a fetch of one of the ids when the file exists), probe
([id, batches]: the measurement that it requests), sees_ahead (accepts plans with the beginning of the next epoch;
"refuses": announces it and rejects them).
"""

import json
import mmap
import os
import socket
import sys
import threading
import time

import wire
from nodefiles import NodeDirectory

READY, READ_AT_ORIGIN, ORIGIN_ERROR = 0, 1, 2
INVALID_ARGUMENT = 0  # an ErrorCode of the protocol


def list_folder(root):
    objects = []
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            status = os.stat(path)
            key = os.fsencode(os.path.relpath(path, root))
            objects.append((key, status.st_size, etag_of(status)))
    return objects


def etag_of(status):
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"


class FakeSidecar:
    def __init__(self, settings):
        self.settings = settings
        self.lock = threading.Lock()
        self.node = NodeDirectory(settings["node"], list_folder(settings["root"]), settings.get("capacity", 1 << 16))
        self.damage = set(settings.get("damage", ()))
        self.fetches = 0
        self.log_file = open(settings["log"], "a", encoding="utf-8")
        for id in range(int(len(self.node.objects) * settings.get("preload", 0))):
            if not self.node.word(id):
                self.store(id)

    def log(self, event, **fields):
        with self.lock:
            self.log_file.write(json.dumps({"event": event, **fields}) + "\n")
            self.log_file.flush()

    def store(self, id):
        key, _, _ = self.node.objects[id]
        with open(os.path.join(os.fsencode(self.settings["root"]), key), "rb") as file:
            self.node.put(id, file.read(), damage=id in self.damage)
        self.damage.discard(id)

    def serve(self):
        path = self.settings["socket"]
        if os.path.exists(path):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.attend, args=(connection,), daemon=True).start()

    def attend(self, connection):
        served = set()  # ids that this connection was given: a second fetch of one means that its record is damaged
        try:
            while True:
                raw, _, fds = receive(connection, wire.HEADER.size)
                size, kind, _, request_id = wire.HEADER.unpack(raw)
                payload, _, more = receive(connection, size)
                name, decode = wire.DECODERS[kind]
                self.answer(connection, name, decode(payload), request_id, fds + more, served)
        except (ConnectionError, EOFError):
            connection.close()

    def answer(self, connection, name, fields, request_id, fds, served):
        if name == "plan":
            with mmap.mmap(fds[0], 0, prot=mmap.PROT_READ) as plan:
                told = list(memoryview(plan).cast("Q"))
            os.close(fds[0])
            fields["samples"], fields["ahead"] = told[:fields["sample_count"]], told[fields["sample_count"]:]
        self.log(name, **fields)
        if name == "hello":
            self.answer_hello(connection, request_id)
        elif name == "fetch" and not self.settings.get("deaf"):
            self.answer_fetch(connection, fields["samples"], request_id, served)
        elif name == "ask_probe":
            connection.sendall(wire.probe(request_id, *self.settings["probe"]))
        elif name == "plan" and fields["ahead"] and self.settings.get("sees_ahead") == "refuses":
            connection.sendall(wire.error(request_id, INVALID_ARGUMENT, "the memfd does not hold what the plan says"))
        elif name == "plan":
            connection.sendall(wire.planned(request_id))

    def answer_hello(self, connection, request_id):
        settings = self.settings
        if "garbage" in settings:
            connection.sendall(bytes.fromhex(settings["garbage"]))
            raise EOFError
        if "refuse" in settings:
            code, message = settings["refuse"]
            connection.sendall(wire.error(request_id, code, message))
            raise EOFError
        for number in range(settings.get("listings", 0)):
            connection.sendall(wire.listing(request_id, 1000 * number))
        features = (wire.FEATURE_PROBE if "probe" in settings else 0) | (
            wire.FEATURE_AHEAD if settings.get("sees_ahead") else 0)
        connection.sendall(wire.welcome(
            request_id, settings.get("version", 1), self.node.revision, len(self.node.objects),
            settings.get("wrong_directory", settings["node"]), features))

    def answer_fetch(self, connection, ids, request_id, served):
        stall = self.settings.get("stall", {"ids": ()})
        while not set(ids).isdisjoint(stall["ids"]) and not os.path.exists(stall["until"]):
            time.sleep(0.01)
        with self.lock:
            self.fetches += 1
            dies = self.fetches == self.settings.get("die_in_fetch")
            statuses = [self.fetch_one(id, served) for id in ids]
        said = self.settings.get("origin_says", "GET broken: 404") if ORIGIN_ERROR in statuses else ""
        answer = wire.fetched(request_id, statuses, said)
        if dies:
            connection.sendall(answer[: len(answer) // 2])
            os._exit(9)
        connection.sendall(answer)

    def fetch_one(self, id, served):
        if self.settings.get("step_aside"):
            return READ_AT_ORIGIN
        if id in self.settings.get("origin_error", ()):
            return ORIGIN_ERROR
        if not self.node.word(id) or id in served:
            self.store(id)
        served.add(id)
        return READY


def receive(connection, size):
    data, fds = b"", []
    while len(data) < size:
        part, passed, _, _ = socket.recv_fds(connection, size - len(data), 4)
        if not part:
            raise EOFError
        data += part
        fds += passed
    return data, size, fds


if __name__ == "__main__":
    FakeSidecar(json.loads(sys.argv[1])).serve()
