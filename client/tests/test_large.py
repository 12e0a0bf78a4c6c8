"""One object beyond 4 GiB among small ones: everyone lists its size, and a trainer gets either its bytes or an error
with the reason. The test needs neither the memory nor the disk for it."""

import builtins
import http.server
import json
import os
import re
import subprocess
import sys
import threading

import pytest
import stoker
from stoker.origin import Request, directory, large, remote, s3
from stoker.settings import DatasetSettings
from test_real_sidecar import RealSidecar

HUGE = (4 << 30) + large.PART_BYTES + 17
MARKS = {0: b"first", (4 << 30) + 5: b"beyond 32 bits", HUGE - 4: b"last"}
SMALL = {f"small/{number}.bin": f"sample {number}".encode() for number in range(3)}
ZEROS = bytes(large.PART_BYTES)
ETAG = "0123456789abcdef0123456789abcdef-81"  # ETag of a multipart upload


class Bucket(http.server.ThreadingHTTPServer):
    """An S3 server with the small objects and a huge one that it computes."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = self.path.partition("?")[0]
        key = path[len("/bucket/"):]
        if not key:
            sizes = {**{name: len(body) for name, body in SMALL.items()}, "huge/one.bin": HUGE}
            rows = "".join(f"<Contents><Key>{name}</Key><ETag>\"{ETAG}\"</ETag><Size>{size}</Size></Contents>"
                           for name, size in sorted(sizes.items()))
            body = f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode()
        else:
            body = SMALL.get(key, b"")
        self.send_response(200 if body else 500)
        self.send_header("ETag", f'"{ETAG}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def bucket(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    server = Bucket()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def folder(tmp_path):
    """The same objects as files; the huge one is sparse, with three marks."""
    for key, body in SMALL.items():
        path = tmp_path / "origin" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    huge = tmp_path / "origin" / "huge" / "one.bin"
    huge.parent.mkdir()
    with open(huge, "wb") as file:
        file.truncate(HUGE)
        for offset, mark in MARKS.items():
            file.seek(offset)
            file.write(mark)
    return tmp_path / "origin"


class Recorder:
    """Stands in for the buffer: accepts every byte once, in order, and keeps only nonzero ones."""

    def __init__(self, size, what, key):
        self.size, self.filled, self.found = size, 0, {}

    def __len__(self):
        return self.filled

    def __setitem__(self, where, part):
        assert (where.start, where.stop) == (self.filled, self.filled + len(part)) and where.stop <= self.size
        if part != ZEROS[: len(part)]:
            for match in re.finditer(rb"[^\0]+", part):
                self.found[self.filled + match.start()] = match.group()
        self.filled += len(part)

    def __getitem__(self, where):
        return self


def zeros_with_marks(start, end):
    """Bytes start..end of the huge object; each part holds at most one mark."""
    for offset, mark in MARKS.items():
        if start <= offset < end:
            return bytes(offset - start) + mark + bytes(end - offset - len(mark))
    return ZEROS[: end - start]


# A trainer whose address space is smaller than the object.
TRAINER = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import stoker
samples = stoker.open("train")
samples.set_plan(0, list(range(len(samples))))
small = {s.key: bytes(s).decode() for s in samples.fetch(range(1, len(samples)))}
try:
    samples.fetch([0])
    error = None
except stoker.OriginError as caught:
    error = [type(caught).__name__, caught.key, str(caught)]
print(json.dumps({"total": samples.total_bytes, "small": small, "error": error, "stats": samples.stats()}))
"""


@pytest.mark.parametrize("kind", ["folder", "bucket"])
def test_too_large_object_is_an_error_and_the_rest_is_read(tmp_path, request, monkeypatch, kind):
    place = request.getfixturevalue(kind)
    source = {"uri": f"file://{place}"} if kind == "folder" else {"uri": "s3://bucket/", "endpoint": place.endpoint}
    monkeypatch.setenv("STOKER_DATASETS", json.dumps({"train": source}))
    with RealSidecar(tmp_path, None, source=source) as sidecar:
        monkeypatch.setenv("STOKER_SOCKET", str(sidecar.socket))
        run = subprocess.run([sys.executable, "-c", TRAINER], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        said = json.loads(run.stdout)
        assert said["total"] == HUGE + sum(map(len, SMALL.values()))
        assert said["small"] == {key: body.decode() for key, body in SMALL.items()}
        name, key, message = said["error"]
        assert (name, key) == ("TooLargeError", "huge/one.bin") and str(HUGE) in message
        assert said["stats"]["attached"] == 1 and said["stats"]["origin_samples"] == 0


class HugeFile:
    """The huge file of `folder`; reads its holes without the kernel, which would fill the page cache with them."""

    def __init__(self, *arguments, **options):
        self.real, self.at = builtins.open(*arguments, **options), 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.real.close()

    def fileno(self):
        return self.real.fileno()

    def read(self, size):
        end = min(self.at + size, HUGE)
        part = zeros_with_marks(self.at, end)
        self.at = end
        return part


def test_folder_delivers_the_huge_file_in_full(folder, monkeypatch):
    monkeypatch.setattr(directory, "place_for", Recorder)
    monkeypatch.setattr(directory, "open", HugeFile, raising=False)
    path = folder / "huge" / "one.bin"
    etag = directory.etag_of(os.stat(path))
    got = directory.DirectoryOrigin(str(folder)).read(Request(b"huge/one.bin", HUGE, etag))
    assert (got.filled, got.found) == (HUGE, MARKS)


def test_bucket_delivers_the_huge_object_in_ranges_with_if_match(monkeypatch):
    monkeypatch.setattr(remote, "place_for", Recorder)
    asked = []

    def exchange(self, path, query, headers, method):
        assert (path, headers["if-match"]) == ("/bucket/huge/one.bin", f'"{ETAG}"')
        start, end = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", headers["range"]).groups())
        asked.append((start, end + 1))
        answer = remote.Answer.__new__(remote.Answer)
        answer.status, answer.body = 206, zeros_with_marks(start, end + 1)
        answer.headers = {"Content-Range": f"bytes {start}-{end}/{HUGE}"}
        return answer

    monkeypatch.setattr(s3.S3Origin, "_exchange", exchange)
    origin = s3.S3Origin(DatasetSettings(uri="s3://bucket/", endpoint="http://nowhere"))
    got = origin.read(Request(b"huge/one.bin", HUGE, ETAG))
    assert (got.filled, got.found) == (HUGE, MARKS)
    assert asked == list(large.parts(HUGE))


@pytest.mark.parametrize("told, kind", [
    ("bytes 0-67108863/9", stoker.ChangedError),  # the object was replaced
    ("bytes 5-67108868/%d" % HUGE, stoker.OriginError),  # not the requested part
    ("", stoker.ChangedError),
])
def test_answer_with_another_range_is_refused(monkeypatch, told, kind):
    monkeypatch.setattr(remote, "place_for", Recorder)
    monkeypatch.setattr("stoker.origin.retry.FIRST_DELAY_S", 0.001)

    def exchange(self, path, query, headers, method):
        answer = remote.Answer.__new__(remote.Answer)
        answer.status, answer.body, answer.headers = 206, bytes(large.PART_BYTES), {"Content-Range": told}
        return answer

    monkeypatch.setattr(s3.S3Origin, "_exchange", exchange)
    origin = s3.S3Origin(DatasetSettings(uri="s3://bucket/", endpoint="http://nowhere"))
    with pytest.raises(kind, match="huge/one.bin"):
        origin.read(Request(b"huge/one.bin", HUGE, ETAG))


def test_container_limit_is_checked_before_reading(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    limit.write_text("1073741824\n")
    monkeypatch.setattr(large, "_LIMITS", (str(limit),))
    with pytest.raises(stoker.TooLargeError, match="may use 1073741824 bytes of memory"):
        large.place_for(HUGE, "'huge/one.bin'", "huge/one.bin")
    limit.write_text("max\n")
    assert len(large.place_for(5, "'x'", "x")) == 5
