"""A hostile program that runs in place of a guest's sidecar. /view is the shared view of the Dataset, /door the folder
with the leader's socket. Frames: docs/design/local-protocol.md.

usage: hostile_sidecar.py JOB SECONDS     JOB: the sampler's name in the owner's loader
It attacks the files, then sends each hostile frame on one connection, and prints one line per attack ("DONE": it
succeeded). Then it prints "flooding" and floods the leader for SECONDS or until its standard input ends.
"""

import array
import collections
import contextlib
import fcntl
import mmap
import os
import random
import select
import socket
import struct
import sys
import threading
import time

JOB, SECONDS = sys.argv[1], float(sys.argv[2])
VIEW, FOLDER = "/view", "/door"
DOOR = f"{FOLDER}/leader.sock"
HELLO, WELCOME, ERROR, FETCH, PLAN, CONSUMED, BEGIN, BEGUN, DRAW, LOSSES, PEER = 1, 2, 4, 5, 7, 9, 11, 12, 13, 15, 25
OF_LEADERS = {"welcome": (2, 26), "listing": (3, 8), "error": (4, 4), "fetched": (6, 6), "planned": (8, 0),
              "begun": (12, 16), "drawn": (14, 16), "tally": (17, 64), "snapshot": (19, 4), "probe": (21, 12), "counted": (23, 32),
              "peer": (25, 40), "pong": (27, 0)}  # type and bytes of payload
SAMPLES = 5000
HUGE = 1 << 27
SILENT, FLOODING = 1000, 24
NUMBERS = random.Random(12)


# --- files ------------------------------------------------------------------------------------------------------------

def tried(what, function):
    try:
        print("DONE", what, function(), flush=True)
    except (OSError, ValueError) as error:
        print("refused", what, error, flush=True)


def changes(path):
    """Tries calls that change a file, its name or its folder."""
    other = f"{path}.x"
    return {"open for writing": lambda: os.open(path, os.O_RDWR), "truncate": lambda: os.truncate(path, 0),
            "unlink": lambda: os.unlink(path), "replace": lambda: os.rename(path, other),
            "create": lambda: os.open(other, os.O_CREAT | os.O_WRONLY), "link": lambda: os.link(path, other),
            "chmod": lambda: os.chmod(path, 0o777), "chown": lambda: os.chown(path, 0, 0),
            "touch": lambda: os.utime(path),
            "map for writing": lambda: mmap.mmap(os.open(path, os.O_RDONLY), 64, mmap.MAP_SHARED, mmap.PROT_WRITE),
            "open by /proc": lambda: os.open(f"/proc/self/fd/{os.open(path, os.O_RDONLY)}", os.O_RDWR),
            "punch": lambda: os.posix_fallocate(os.open(path, os.O_RDONLY), 0, 1)}


def lock(path):
    """Locks files in data/ until the program ends. Harmless: no sidecar takes a lock there."""
    with contextlib.suppress(OSError):
        fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)


def try_files():
    found = sorted(os.path.join(folder, name) for folder, _, names in os.walk(VIEW) for name in names)
    print("sees", len(found), "files", os.listdir(VIEW), os.listdir(FOLDER), "as", os.getuid(), flush=True)
    segments = [path for path in found if path.endswith(".seg")]
    for path in [path for path in found if path not in segments] + segments[:2]:
        for what, function in changes(path).items():
            tried(f"{what} {path}", function)
        lock(path)
    for what, function in {
            "a second manifest": lambda: os.open(f"{VIEW}/manifest.0123456789abcdef", os.O_CREAT | os.O_WRONLY),
            "a folder": lambda: os.mkdir(f"{VIEW}/segments/new"), "the socket's name": lambda: os.unlink(DOOR),
            "a socket in its place": lambda: os.rename(DOOR, f"{DOOR}.x"),
            "a socket beside it": lambda: socket.socket(socket.AF_UNIX).bind(f"{FOLDER}/own.sock"),
            "another guest's door": lambda: os.listdir(f"{FOLDER}/..").index("guests"),
            "control": lambda: os.listdir(f"{VIEW}/../control")}.items():
        tried(what, function)


# --- one connection ---------------------------------------------------------------------------------------------------

def frame(type_, payload=b"", request=1, flags=0, claims=None):
    return struct.pack("<IHHQ", len(payload) if claims is None else claims, type_, flags, request) + payload


def text(words):
    data = words.encode()
    return struct.pack("<H", len(data)) + data


def ids(numbers):
    numbers = array.array("Q", numbers)
    return struct.pack("<II", len(numbers), 0) + numbers.tobytes()


def some(count):
    return [NUMBERS.randrange(SAMPLES) for _ in range(count)]


def hello(stream=0, relay=1):
    return frame(HELLO, struct.pack("<IHHIIIIQ", 0x524B5453, 1, relay, 1, 0, 1, 0, stream) +
                 text("train") + text("hostile"))


def peer(secret=b"\0" * 32):
    return frame(PEER, secret + struct.pack("<Q", NUMBERS.getrandbits(64)))


def plan(count, start=0):
    return frame(PLAN, struct.pack("<QQQ", 1, count, start), 7)


def begin(job, contract="windowed", batch=50, world=1, epoch=1):
    return frame(BEGIN, struct.pack("<QQQIIIQQI", epoch, 0, 7, 0, world, batch, 0, 0, 0) +
                 text(contract) + text(job), 8)


def losses(count, value, epoch=1):
    numbers = some(count)
    return frame(LOSSES, struct.pack("<QII", epoch, count, 0) + array.array("Q", numbers).tobytes() +
                 array.array("f", [value] * count).tobytes(), 0)


def connect():
    found = socket.socket(socket.AF_UNIX)
    found.settimeout(20)
    found.connect(DOOR)
    return found


def receive(connection):
    """(type, payload) of the next frame; None: the peer closed the connection; "silent": no frame came in time."""
    def read(size):
        data = b""
        while len(data) < size:
            more = connection.recv(size - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data
    try:
        size, type_, _, _ = struct.unpack("<IHHQ", read(16))
        return type_, read(size)
    except TimeoutError:
        return "silent"
    except OSError:
        return None


def guest():
    """A connection that has completed the handshake of an honest sidecar and opened a stream."""
    found = connect()
    found.sendall(peer() + hello(NUMBERS.getrandbits(63)))
    while True:
        answer = receive(found)
        if answer in (None, "silent") or answer[0] in (WELCOME, ERROR):
            return found, answer


def told(answer):
    """The outcome in one word, or the error message."""
    if answer is None:
        return "hung up"
    if answer == "silent":
        return answer
    return f"error: {answer[1][4:].decode(errors='replace')}" if answer[0] == ERROR else f"answer {answer[0]}"


def said(what, data, *descriptors, greeted=True):
    """Sends this on a new connection and prints the answer."""
    connection = guest()[0] if greeted else connect()
    with connection:
        with contextlib.suppress(OSError):
            if descriptors:
                socket.send_fds(connection, [data], descriptors)
            else:
                connection.sendall(data)
        print(f"said {what}: {told(receive(connection))}", flush=True)


def memfd(size, content=b"", seals=fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW):
    found = os.memfd_create("plan", os.MFD_ALLOW_SEALING)
    os.write(found, content)
    os.ftruncate(found, size)
    if seals:
        fcntl.fcntl(found, fcntl.F_ADD_SEALS, seals)
    return found


def try_words():
    """Every frame must get an error or a closed connection, except the last two: those samplers belong to the guest."""
    said("a trainer's hello", peer() + hello(relay=0), greeted=False)
    said("a hello before the secret", hello(), greeted=False)
    said("garbage", os.urandom(4096), greeted=False)
    said("a frame of 4 GiB before the hello", frame(HELLO, claims=0xFFFFFFFF), greeted=False)
    said("a frame of 4 GiB", frame(FETCH, b"x" * 65536, claims=0xFFFFFFFF))
    said("a frame of 1 MiB and a byte", frame(FETCH, claims=(1 << 20) + 1))
    said("flags", frame(FETCH, ids([1]), flags=0xFFFF))
    said("more ids than bytes", frame(FETCH, struct.pack("<II", 0xFFFFFFFF, 0)))
    said("ids of no sample", frame(FETCH, ids([SAMPLES, 2**63, 2**64 - 1])))
    said("a fetch of 100,000 ids", frame(FETCH, ids([1] * 100_000)))
    said("a type without a meaning", frame(99))
    for name, (type_, size) in OF_LEADERS.items():
        said(f"{name}, which clients may not send", frame(type_, b"\0" * size))
    said("a plan of a sparse memfd", plan(HUGE), memfd(8 * HUGE))
    said("a plan more than eight times as long as the dataset", plan(100 * SAMPLES), memfd(800 * SAMPLES))
    said("a plan longer than its memfd", plan(SAMPLES), memfd(8))
    said("a plan of 2^63 ids", plan(2**63), memfd(8 * SAMPLES))
    said("a plan of unknown sample ids", plan(8), memfd(64, b"\xff" * 64))
    said("a plan that is not sealed", plan(SAMPLES), memfd(8 * SAMPLES, seals=0))
    said("a plan of a pipe", plan(SAMPLES), os.pipe()[0])
    said("a plan of a device", plan(SAMPLES), os.open("/dev/zero", os.O_RDONLY))
    said("a plan of a directory", plan(SAMPLES), os.open("/", os.O_RDONLY))
    said("a plan without a memfd", plan(SAMPLES))
    said("a plan with many descriptors", plan(SAMPLES), *[memfd(8 * SAMPLES) for _ in range(32)])
    said("a contract of no name", begin(JOB, "owner"))
    said("a sampler with a huge batch", begin("own", batch=2**32 - 1))
    said("the owner's sampler", begin(JOB))


# --- flood ------------------------------------------------------------------------------------------------------------

def storm(as_owner):
    """The frames that one flooding connection sends in one go."""
    words = begin(JOB if as_owner else f"job-{NUMBERS.randrange(1000)}", NUMBERS.choice(("windowed", "importance")))
    words += frame(DRAW, struct.pack("<QII", 1, 65536, 0), 9)
    words += b"".join(losses(500, value) for value in (3e38, float("inf"), float("nan"), -3e38))
    words += frame(CONSUMED, struct.pack("<Q", 1) + ids(some(2000)), 0)
    return words + b"".join(frame(FETCH, ids(some(64)), 10) for _ in range(32))


def is_cut(connection):
    try:
        return not connection.recv(65536)
    except BlockingIOError:
        return False
    except OSError:
        return True


def silent(held, counts):
    """Holds SILENT connections that send nothing, or only a hello; reopens those that the leader closes."""
    for one in list(held):
        if is_cut(one):
            counts["cut"] += 1
            held.remove(one)
            one.close()
    for _ in range(min(100, SILENT - len(held))):
        try:
            one = socket.socket(socket.AF_UNIX)
            one.setblocking(False)
            one.connect(DOOR)
            one.send(NUMBERS.choice((b"", peer(), peer() + hello(NUMBERS.getrandbits(63)))))
            held.append(one)
            counts["opened"] += 1
        except OSError as error:
            counts[f"not opened: {error}"] += 1
            one.close()
            return


def storms(counts):
    """Opens connections one after another and sends all frames on each; reads the answers or leaves them unread."""
    while True:
        with contextlib.suppress(OSError), guest()[0] as connection:
            counts["loud"] += 1
            while True:
                connection.sendall(storm(NUMBERS.randrange(2)))
                counts["storms"] += 1
                if NUMBERS.random() < 0.5:
                    connection.recv(1 << 20)
        time.sleep(0.1)


def flood():
    held, counts, ends = [], collections.Counter(), time.monotonic() + SECONDS
    while len(held) < SILENT and time.monotonic() < ends - SECONDS / 2:
        silent(held, counts)
        time.sleep(0.01)
    print("holds", len(held), "connections", flush=True)
    for _ in range(FLOODING):
        threading.Thread(target=storms, args=(counts,), daemon=True).start()
    print("flooding", flush=True)
    while time.monotonic() < ends and not select.select([sys.stdin], [], [], 0.1)[0]:
        silent(held, counts)
    print("flooded", dict(counts), flush=True)


if __name__ == "__main__":
    try_files()
    try_words()
    flood()
