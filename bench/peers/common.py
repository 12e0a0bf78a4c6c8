"""Code of all rows: clients that answer in lines, mounts that end, peers that do not start, ratios by round."""

import concurrent.futures
import contextlib
import os
import pathlib
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.extend([str(ROOT / "bench"), str(ROOT / "tests" / "loaders")])
import servers  # noqa: E402
import stack  # noqa: E402
import turns  # noqa: E402

STOKER = "Stoker"
ANSWER_S_MAX = 120
STOP_S_MAX = 10
VENV = ROOT / "build" / "venv-peers" / "bin"
LOADERS_PYTHON = ROOT / "build" / "venv-loaders" / "bin" / "python"


class NotRun(Exception):
    """A peer cannot be measured; the message is the reason."""


@contextlib.contextmanager
def reasons():
    """Turns every error that keeps a peer from running into NotRun."""
    try:
        yield
    except (OSError, subprocess.SubprocessError, SystemExit) as error:
        raise NotRun(" ".join(str(error).split()) or type(error).__name__) from error


def program(name):
    """Path of a peer's program."""
    found = shutil.which(name, path=f"{VENV}:{os.environ['PATH']}:/usr/sbin")
    if not found:
        raise NotRun(f"{name} is not installed")
    return found


def plain_env(**variables):
    """The environment without variables that affect a peer: AWS_CA_BUNDLE breaks rclone even for plain HTTP."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | variables


class Client:
    """A process that prints `ready` and then answers each line with one line. Errors raise NotRun."""

    def __init__(self, command, log, env=None):
        self.command = [str(word) for word in command]
        self.log = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out,
                                            text=True, env=env, start_new_session=True)
        try:
            if self.answer() != "ready":
                raise self.failure("did not start")
        except BaseException:
            self.close()
            raise

    def failure(self, what):
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return NotRun(f"its client {what}: {lines[-1] if lines else 'no message'}")

    def send(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def answer(self):
        if not select.select([self.process.stdout], [], [], ANSWER_S_MAX)[0]:
            raise self.failure(f"gave no answer in {ANSWER_S_MAX} s")
        line = self.process.stdout.readline()
        if not line:
            raise self.failure("ended")
        return line.strip()

    def ask(self, line):
        with reasons():
            self.send(line)
        return self.answer()

    def close(self):
        """Ends the process, and its workers with it."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()


def unmount(point):
    """Unmounts, even if the program behind the mount is dead; does nothing if there is no mount."""
    subprocess.run(["umount", "--lazy", point], check=False, stderr=subprocess.DEVNULL)


def unmount_below(folder):
    """Unmounts mounts that a killed run has left, so that its folder can be removed."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        point = pathlib.Path(line.split()[1])
        if folder in point.parents:
            unmount(point)


@contextlib.contextmanager
def mounted(command, point, log, env):
    """A FUSE program in the foreground. Yields its pids once `point` is a mount; unmounted at the end in any case."""
    point.mkdir(parents=True, exist_ok=True)
    try:
        with open(log, "wb") as out, servers.running(command, stdout=out, stderr=out, env=env,
                                                     start_new_session=True) as process:
            give_up = time.monotonic() + servers.START_S
            while not os.path.ismount(point):
                if process.poll() is not None or time.monotonic() > give_up:
                    raise NotRun(f"{pathlib.Path(command[0]).name} does not mount: "
                                 f"{log.read_text(errors='replace').strip().splitlines()[-1:]}")
                time.sleep(0.02)  # polling interval
            yield [process.pid, *servers.children(process.pid)]
    finally:
        unmount(point)


def juicefs_format(bucket, meta, storage, env):
    command = [program("juicefs"), "format", "--storage", storage, "--bucket", bucket, "--trash-days", "0", meta, "bench"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise NotRun(f"juicefs format: {done.stderr.strip().splitlines()[-1:]}")


def juicefs(folder, meta, cache_mib, env, *options):
    """JuiceFS on folder/mount with its cache in folder/cache; yields (mount, pids)."""
    point = folder / "mount"
    command = [program("juicefs"), "mount", meta, point, "--cache-dir", folder / "cache", "--cache-size", str(cache_mib),
               "--free-space-ratio", "0.01", "--verify-cache-checksum", "none", "--max-fuse-io", "1M",
               "--attr-cache", "3600", "--entry-cache", "3600", "--dir-entry-cache", "3600", "--open-cache", "3600",
               "--backup-meta", "0", "--no-bgjob", "--no-usage-report", "--no-syslog", "--metrics",
               f"127.0.0.1:{servers.free_port()}", *options]
    return mount_of(command, point, folder, env)


def rclone(folder, remote, cache_bytes, env):
    """rclone on folder/mount with its cache in folder/cache; yields (mount, pids)."""
    point = folder / "mount"
    command = [program("rclone"), "mount", remote, point, "--config", "/dev/null", "--cache-dir", folder / "cache",
               "--vfs-cache-mode", "full", "--vfs-cache-max-size", f"{cache_bytes}B", "--vfs-cache-poll-interval", "1s",
               "--vfs-cache-max-age", "24h", "--vfs-fast-fingerprint", "--vfs-read-ahead", "1Mi", "--dir-cache-time", "24h",
               "--attr-timeout", "24h", "--poll-interval", "0", "--no-modtime", "--no-checksum", "--read-only"]
    return mount_of(command, point, folder, env)


@contextlib.contextmanager
def mount_of(command, point, folder, env):
    folder.mkdir(parents=True, exist_ok=True)
    with mounted([str(word) for word in command], point, folder / "log", env) as pids:
        yield point, pids


def copy_files(folder, to):
    """Copies the files of a tree, eight at a time."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    for parent in sorted({path.parent for path in files}):
        (to / parent.relative_to(folder)).mkdir(parents=True)
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda path: shutil.copyfile(path, to / path.relative_to(folder)), files))


def interleaved(names, rounds, turn, not_run):
    """Rounds A-B-...-Z-Z-...-B-A of turn(name, round): {name: the mean of its two turns, round by round}.

    A peer that fails is left out of further rounds and reported by not_run(name, reason); a failure of Stoker ends the
    run.
    """
    figures = {name: [] for name in names}
    for number in range(rounds):
        for name in [*figures, *reversed(figures)]:
            if name not in figures:
                continue
            try:
                figures[name].append(turn(name, number))
            except NotRun as reason:
                if name == STOKER:
                    raise SystemExit(f"bench-peers: Stoker: {reason}") from reason
                figures.pop(name)
                not_run(name, f"{reason}")
    return {name: [(there + back) / 2 for there, back in zip(seen[::2], seen[1::2])] for name, seen in figures.items()}


def spread(values):
    """Five digits: more would be noise."""
    figures = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: float(f"{value:.5g}") for name, value in figures.items()}


def result(row, case, peer, unit, ours, theirs, more_is_better, **more):
    """One line of the table. `ours`, `theirs`: a figure for each round; the ratio says how much better Stoker is."""
    ratios = [mine / other if more_is_better else other / mine for mine, other in zip(ours, theirs)]
    return {"row": row, "case": case, "peer": peer, "unit": unit, "rounds": len(ratios),
            "stoker": spread(ours), "value": spread(theirs), "ratio": spread(ratios), **more}


def exit_status(report):
    """The exit status. 1: a peer did not run; 2: all ran, and a peer's median is better than Stoker's; else 0."""
    if report.missing:
        return 1
    return 2 if any(result["ratio"]["median"] < 1 for result in report.results) else 0
