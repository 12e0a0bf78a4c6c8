"""The S3 server in the cluster that counts what is asked of it (e2e/origin)."""

import dataclasses
import pathlib

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
    """Counts come from the server's access log and the pacer's log, never from Stoker."""

    def __init__(self, kube):
        self.kube = kube

    def deploy(self):
        self.kube.run("apply", "-f", str(MANIFEST))
        self.kube.run("-n", NAMESPACE, "rollout", "status", "deploy/s3", "--timeout=180s")

    def _count(self, *args):
        line = self.kube.exec("deploy/s3", NAMESPACE, "s3", "origin-count", *args).strip()
        return dict(field.split("=", 1) for field in line.split())

    def mark(self):
        """A point in the logs; hand it to since()."""
        return self._count()["mark"]

    def since(self, mark):
        found = self._count("--from", mark)
        return Counts(int(found["gets"]), int(found["lists"]), int(found["failed"]), int(found["bytes"]))

    def between(self, times_ms):
        """Object GETs and bytes in each span between neighbouring UNIX times in ms (paced port only)."""
        lines = self.kube.exec("deploy/s3", NAMESPACE, "s3", "origin-count", "--times",
                               *[str(int(t)) for t in times_ms]).splitlines()
        spans = [dict(field.split("=", 1) for field in line.split()) for line in lines]
        return [Counts(int(span["gets"]), 0, 0, int(span["bytes"])) for span in spans]
