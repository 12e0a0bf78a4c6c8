"""A tenant's hostile S3 server: it lists the given keys and sizes, and logs each request byte for byte.

usage: odd_origin.py FILE     FILE: JSON, a list of {"key": text, "body": text}; "size" and "etag" may be false
"""

import hashlib
import http.server
import json
import sys
import urllib.parse

OBJECTS = {}  # bytes of the key -> (body, listed size, ETag)


def say(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")  # a single write keeps threads' lines apart
    sys.stdout.flush()


def quoted(key):
    return urllib.parse.quote(key, safe="/")


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, body, **headers):
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        say(event="asked", path=self.path)
        asked = urllib.parse.parse_qs(query, keep_blank_values=True)
        if "list-type" in asked:
            self.list(asked)
            return
        key = urllib.parse.unquote_to_bytes(path)[len("/bucket/"):]
        if key not in OBJECTS:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        body, _, etag = OBJECTS[key]
        wanted = self.headers.get("Range")
        if wanted and body:
            first, last = wanted.removeprefix("bytes=").split("-")
            part = body[int(first):int(last or len(body) - 1) + 1]
            self.answer(206, part, ETag=etag, Content_Range=f"bytes {first}-{int(first) + len(part) - 1}/{len(body)}")
        else:
            self.answer(200, body, ETag=etag)

    do_HEAD = do_GET

    def list(self, asked):
        items = "".join(
            f"<Contents><Key>{quoted(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{etag.replace(chr(34), '&quot;')}</ETag><Size>{size}</Size></Contents>"
            for key, (_, size, etag) in sorted(OBJECTS.items()))
        say(event="listed", encoding=asked.get("encoding-type"))
        self.answer(200, ('<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>bucket</Name>'
                          f"<EncodingType>url</EncodingType><KeyCount>{len(OBJECTS)}</KeyCount>"
                          f"<IsTruncated>false</IsTruncated>{items}</ListBucketResult>").encode(),
                    Content_Type="application/xml")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        for item in json.load(file):
            body = item["body"].encode()
            etag = item.get("etag", f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"')
            OBJECTS[item["key"].encode()] = (body, item.get("size", len(body)), etag)
    http.server.ThreadingHTTPServer(("", 9000), Server).serve_forever()


if __name__ == "__main__":
    main()
