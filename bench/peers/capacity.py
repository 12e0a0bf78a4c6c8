"""Row "capacity": two shuffled epochs from an S3 server behind a slow link, with room for a part of the data.

The reader is torch's DataLoader with two workers (epoch_reader.py). The row says how long the second epoch took and how
many bytes the link carried meanwhile, as a share of the dataset. The mounts' pages are dropped behind the reader: the
data of a real job exceeds the node's memory, so the kernel cannot stand in for the cache that is measured.
"""

import shutil
import subprocess
import sys

from common import HERE, STOKER, Client, NotRun, copy_files, juicefs, juicefs_format, plain_env, rclone, reasons, result
from common import servers, stack

NAME = "capacity"
SAMPLES, MEAN_BYTES = 600, 110 << 10
ROOM = {"w = 0.25": 0.25, "w = 0.5": 0.5, "w = 1": 1.1}  # share of the dataset; w = 1 has a tenth to spare
WINDOW = 4 << 20  # a part of Stoker's room
META = "jfs"  # bucket for JuiceFS's blocks
AS_AWS = {"AWS_REGION": stack.REGION, **servers.CREDENTIALS}


class Data:
    """The same samples as S3 objects and as JuiceFS's blocks, and their size."""

    def __init__(self, bench):
        self.folder = bench.folder / "capacity"
        shutil.rmtree(self.folder, ignore_errors=True)
        made = self.folder / "made"
        subprocess.run([bench.build / "bin" / "stoker-bench", "prepare", made, str(SAMPLES), str(MEAN_BYTES)], check=True)
        self.files = self.folder / "buckets" / servers.BUCKET
        self.files.parent.mkdir()
        (made / "files").rename(self.files)
        shutil.rmtree(made)
        self.s3 = self.folder / "s3"
        stack.publish(self.files.parent, self.s3)
        (self.s3 / "objects" / META).mkdir()
        self.meta = f"sqlite3://{self.folder}/meta.db"
        self.bytes = sum(path.stat().st_size for path in self.files.rglob("*.bin"))
        self.records = sum(stack.record_bytes(path.stat().st_size) for path in self.files.rglob("*.bin"))
        self.has_blocks = False

    def make_blocks(self):
        """Writes the samples through JuiceFS, past the slow link."""
        if self.has_blocks:
            return
        env = plain_env(**AS_AWS, ACCESS_KEY=AS_AWS["AWS_ACCESS_KEY_ID"], SECRET_KEY=AS_AWS["AWS_SECRET_ACCESS_KEY"])
        juicefs_format(f"http://127.0.0.1:{servers.PORT}/{META}", self.meta, "s3", env)
        with juicefs(self.folder / "filling", self.meta, 64, env) as (point, _):
            copy_files(self.files, point / "files")
        self.has_blocks = True


def reader(bench, kind, where, folder):
    return Client([sys.executable, HERE / "epoch_reader.py", kind, where, SAMPLES], folder / "reader.log",
                  plain_env(PYTHONPATH=str(bench.build / "python")))


def epochs(bench, kind, where, folder, origin):
    """(seconds, checksum, origin bytes) of two epochs of one process."""
    client, seen = reader(bench, kind, where, folder), []
    try:
        origin.count()
        for number in range(2):
            took, checksum = client.ask(number).split()
            seen.append((float(took), int(checksum), origin.count()["bytes"]))
    finally:
        client.close()
    return seen


def stoker(bench, data, origin, room, folder):
    source = {"uri": f"s3://{servers.BUCKET}", "endpoint": origin.endpoint, "region": stack.REGION}
    with servers.watched_sidecar(bench.build / "bin" / "stoker-sidecar", folder, source, int(room * data.records) - WINDOW,
                                 WINDOW, dataset="bench") as (socket, _):
        return epochs(bench, "stoker", socket, folder, origin)


def juicefs_epochs(bench, data, origin, room, folder):
    data.make_blocks()
    with juicefs(folder, data.meta, int(room * data.bytes) >> 20, plain_env(**AS_AWS), "--read-only", "--bucket",
                 f"{origin.endpoint}/{META}") as (point, _):
        return epochs(bench, "files", point / "files", folder, origin)


def rclone_epochs(bench, data, origin, room, folder):
    remote = (f":s3,provider=Other,env_auth=true,region={stack.REGION},endpoint='{origin.endpoint}',"
              f"no_check_bucket=true:{servers.BUCKET}")
    with rclone(folder, remote, int(room * data.bytes), plain_env(**AS_AWS)) as (point, _):
        return epochs(bench, "files", point, folder, origin)


SIDES = {STOKER: stoker, "JuiceFS, cache-size": juicefs_epochs, "rclone, vfs-cache-max-size": rclone_epochs}


def one_round(bench, data, origin, room, order, report):
    """{peer: its two epochs}; peers that fail are absent."""
    seen = {}
    for name in order:
        folder = data.folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            with reasons():
                seen[name] = SIDES[name](bench, data, origin, room, folder)
        except NotRun as reason:
            report.not_run(NAME, name, f"{reason}")
    checksums = {checksum for both in seen.values() for _, checksum, _ in both}
    if len(checksums) > 1:
        raise SystemExit(f"bench-peers: the sides of `{NAME}` read different bytes: {checksums}")
    return seen


def measure_case(bench, data, origin, case, report):
    done = []
    for number in range(bench.slow_rounds):
        order = list(SIDES) if number % 2 == 0 else list(reversed(SIDES))
        done.append(one_round(bench, data, origin, ROOM[case], order, report))
    for name in list(SIDES)[1:]:
        both = [(seen[STOKER][1], seen[name][1]) for seen in done if STOKER in seen and name in seen]
        if both:
            shares = {side: sum(pair[at][2] for pair in both) / len(both) / data.bytes
                      for at, side in enumerate(("stoker_origin_share", "origin_share"))}
            report.add(result(NAME, case, name, "s", [ours[0] for ours, _ in both], [theirs[0] for _, theirs in both], False,
                              **shares))


def measure(bench, report):
    data = Data(bench)
    with servers.paced_s3(data.s3) as endpoint:
        origin = stack.Origin(endpoint, data.s3 / "logs")
        for case in ROOM:
            measure_case(bench, data, origin, case, report)
    shutil.rmtree(data.folder)
