"""The S3 server in the cluster, which counts requests (e2e/origin)."""

import base64
import dataclasses
import hashlib
import io
import json
import pathlib
import re
import tarfile

from .installation import TAG
from .kube import wait_until

MANIFEST = pathlib.Path(__file__).resolve().parent.parent / "origin" / "s3.yaml"
NAMESPACE = "stoker-demo"
PACED = f"http://s3.{NAMESPACE}.svc:9000"
UNPACED = f"http://s3.{NAMESPACE}.svc:9001"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "stoker", "AWS_SECRET_ACCESS_KEY": "stoker-secret"}
BUCKET = "mnist"
SAMPLES = 5000


@dataclasses.dataclass
class Counts:
    gets: int
    lists: int
    failed: int
    bytes: int


class Origin:
    """The server and its request counts, which come from its access log and the pacer's log, never from Stoker."""

    def __init__(self, kube):
        self.kube = kube

    def deploy(self, bytes_per_second=None):
        """Deploys the server. A rate replaces the manifest's rate of the paced port."""
        text = MANIFEST.read_text().replace("e2e-s3:dev", f"e2e-s3:{TAG}")
        if bytes_per_second is not None:
            text = re.sub(r"--bytes-per-second=\d+", f"--bytes-per-second={bytes_per_second}", text)
        self.kube.run("apply", "-f", "-", stdin=text)
        self.kube.run("-n", NAMESPACE, "rollout", "status", "deploy/s3", "--timeout=600s")

    def move(self, node):
        """Moves the server to a node, unless it is there. The move loses buckets that tests made."""
        wanted = {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}}}}
        self.kube.run("-n", NAMESPACE, "patch", "deploy/s3", "-p", json.dumps(wanted))
        self.kube.run("-n", NAMESPACE, "rollout", "status", "deploy/s3", "--timeout=600s")

    def shell(self, script, *args, stdin=None):
        """Runs a shell script in the server's container; `stdin` is text."""
        return self.kube.run("exec", "-i", "deploy/s3", "-n", NAMESPACE, "-c", "s3", "--", "sh", "-euc", script, "sh",
                             *args, stdin=stdin or "")

    def _count(self, *args):
        line = self.kube.exec("deploy/s3", NAMESPACE, "s3", "origin-count", *args).strip()
        return dict(field.split("=", 1) for field in line.split())

    def mark(self):
        """The present position in the logs, for since()."""
        return self._count()["mark"]

    def since(self, mark):
        """The requests since `mark`. A request is logged shortly after its answer, so this waits until two readings
        are equal: call it after the last client has stopped."""
        def read():
            found = self._count("--from", mark)
            return Counts(int(found["gets"]), int(found["lists"]), int(found["failed"]), int(found["bytes"]))
        return at_rest("the origin's access log", read)

    def between(self, times_ms):
        """Object GETs and bytes in each interval between consecutive UNIX times in ms (paced port only); see
        since()."""
        def read():
            lines = self.kube.exec("deploy/s3", NAMESPACE, "s3", "origin-count", "--times",
                                   *[str(int(t)) for t in times_ms]).splitlines()
            spans = [dict(field.split("=", 1) for field in line.split()) for line in lines]
            return [Counts(int(span["gets"]), 0, 0, int(span["bytes"])) for span in spans]
        return at_rest("the pacer's log", read)

    def sizes(self, bucket=BUCKET):
        """Sizes in bytes of every object in a bucket, from the server's disk."""
        return [int(line) for line in self.shell('find "/srv/s3/objects/$1" -type f -printf "%s\\n"', bucket).split()]

    def bucket(self, name):
        return Bucket(self, name)


def at_rest(what, read):
    """The value of `read`, once two consecutive readings are equal."""
    last = [read()]

    def equal():
        last.append(read())
        return last[-1] == last[-2]
    wait_until(f"{what} to rest", equal, 120, 1)
    return last[-1]


class Bucket:
    """A bucket for objects that MNIST does not have, written directly into the server's directory."""

    def __init__(self, origin, name):
        self.origin = origin
        self.name = name

    def create(self):
        self.origin.shell('mkdir -p "/srv/s3/objects/$1"', self.name)
        return self

    def put(self, objects):
        """Stores {key: bytes} with the ETags that S3 would give them."""
        text = io.BytesIO()
        with tarfile.open(fileobj=text, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
            for key, body in objects.items():
                etag = b'"%s"' % hashlib.md5(body, usedforsecurity=False).hexdigest().encode()
                for path, content in ((f"objects/{self.name}/{key}", body),
                                      (f"metadata/{self.name}/{key}/meta/etag", etag)):
                    member = tarfile.TarInfo(path)
                    member.size, member.mode = len(content), 0o644
                    tar.addfile(member, io.BytesIO(content))
        self.origin.shell("base64 -d | tar --extract --gzip --directory /srv/s3 --no-same-owner --touch",
                          stdin=base64.b64encode(text.getvalue()).decode())

    def put_random(self, count, size):
        """`count` objects of `size` random bytes each, made at the server; `count` is at most 100,000."""
        self.origin.shell(r"""
            objects=/srv/s3/objects/$1/s metadata=/srv/s3/metadata/$1/s
            mkdir -p "$objects" "$metadata"
            cd "$objects"
            head -c "$(($2 * $3))" /dev/urandom | split -b "$3" -a 5 --numeric-suffixes - ""
            md5sum -- * >/tmp/sums
            cut -c35- /tmp/sums | sed "s|.*|$metadata/&/meta|" | xargs mkdir -p
            awk -v metadata="$metadata" '{ etag = metadata "/" $2 "/meta/etag"; printf "\"%s\"", $1 >etag; close(etag) }' \
                /tmp/sums""", self.name, str(count), str(size))

    def put_sparse(self, key, size):
        """A sparse object of `size` zero bytes, which takes no disk space; its ETag is one of a multipart upload."""
        self.origin.shell('mkdir -p "/srv/s3/metadata/$1/$2/meta"; printf %s "\\"$4-9\\"" >"/srv/s3/metadata/$1/$2/meta/etag"; '
                          'mkdir -p "$(dirname "/srv/s3/objects/$1/$2")"; truncate -s "$3" "/srv/s3/objects/$1/$2"',
                          self.name, key, str(size), hashlib.md5(key.encode(), usedforsecurity=False).hexdigest())

    def remove(self, key):
        self.origin.shell('rm "/srv/s3/objects/$1/$2"; rm -r "/srv/s3/metadata/$1/$2"', self.name, key)

    def digests(self):
        """{key: SHA-256} of all objects, from the server's disk."""
        lines = self.origin.shell('cd "/srv/s3/objects/$1" && find . -type f -printf "%P\\n" | xargs sha256sum',
                                  self.name).splitlines()
        return dict(reversed(line.split()) for line in lines)

    def destroy(self):
        self.origin.shell('rm -rf "/srv/s3/objects/$1" "/srv/s3/metadata/$1"', self.name)
