"""Attacks by code inside a trainer: writing as root, locks and leases, searching for a token."""

import subprocess
import time

import pytest

from harness import jobs, views
from harness.kube import wait_until
from harness.nodes import kill
from harness.strangers import in_view

pytestmark = pytest.mark.own_cluster

DAMAGE = r"""
import ctypes, fcntl, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
base = "/stoker/node/train"
done = []
def tried(what, function):
    try:
        result = function()
        if isinstance(result, int) and result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        done.append(what)
        print("DONE", what, result)
    except OSError as error:
        print("refused", what, error)
files = [os.path.join(folder, name) for folder, _, names in os.walk(base) for name in names]
print(len(files), "files", os.listdir(base), os.getuid(), open("/proc/self/status").read().split("CapEff:")[1].split()[0])
for path in files[:6] + [f for f in files if f.endswith(".seg")][:1]:
    for what, function in (("write", lambda: os.open(path, os.O_RDWR)), ("truncate", lambda: os.truncate(path, 0)),
                           ("chmod", lambda: os.chmod(path, 0)), ("chown", lambda: os.chown(path, 0, 0)),
                           ("utime", lambda: os.utime(path)), ("unlink", lambda: os.unlink(path)),
                           ("rename", lambda: os.rename(path, path + ".x")),
                           ("lock", lambda: fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB) or "locked"),
                           ("xattr", lambda: os.setxattr(path, "user.x", b"x")),
                           ("link", lambda: os.link(path, base + "/data/link")),
                           ("link out", lambda: os.link(path, "/tmp/link"))):
        tried(f"{what} {os.path.relpath(path, base)}", function)
tried("create", lambda: os.open(f"{base}/data/new", os.O_CREAT | os.O_WRONLY))
tried("mkdir", lambda: os.mkdir(f"{base}/data/segments/new"))
tried("mknod", lambda: os.mknod(f"{base}/data/dev", 0o60666, os.makedev(7, 0)))
MS_REMOUNT, MS_BIND, MS_RDONLY = 32, 4096, 1
for flags in (MS_REMOUNT, MS_REMOUNT | MS_BIND):
    tried(f"remount {flags}", lambda: libc.mount(b"none", f"{base}/data".encode(), None, flags, None))
tried("bind", lambda: libc.mount(f"{base}/data".encode(), b"/tmp", None, MS_BIND, None))
tried("open_tree", lambda: libc.syscall(428, -100, f"{base}/data".encode(), 1))
tried("unmount", lambda: libc.umount2(f"{base}/data".encode(), 2))
tried("handle", lambda: libc.open_by_handle_at(-100, b"\0" * 64, 2))
code = ("import ctypes,os;l=ctypes.CDLL(None,use_errno=True);"
        f"r=l.mount(b'none',b'{base}/data',None,32|4096,None);print('remounted in a user namespace' if r==0 else os.strerror(ctypes.get_errno()));"
        f"open('{base}/data/new','w')")
inside = subprocess.run(["unshare", "-Urm", "python3", "-c", code], capture_output=True, text=True)
print("namespace:", inside.stdout, inside.stderr.splitlines()[-1:])
for path in ("/proc/1/root" + base, "/proc/self/root" + base, "/proc/self/cwd" + base):
    tried(f"create by {path}", lambda: os.open(f"{path}/data/new", os.O_CREAT | os.O_WRONLY))
tried("control", lambda: os.listdir(f"{base}/control"))
print("got:", [what for what in done if not what.startswith(("lock data", ))], "locked:", [what for what in done if what.startswith("lock")])
"""


def test_root_in_a_trainer_neither_writes_nor_remounts_its_view(namespace, neighbour, expected):
    # threat model, rows 2, 3: a trainer cannot change, cut or lock its view, not even as root with everything that Pod
    # Security level baseline allows
    namespace.apply(jobs.dataset())
    item = jobs.training_job("root", ["--epochs", 2, "--hold", "1:0"], on=namespace.home, cache=jobs.FULL)
    item["spec"]["podTemplate"]["spec"]["securityContext"] = {"runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False,
                                                               "supplementalGroups": [65532]}
    item["spec"]["podTemplate"]["spec"]["containers"][0]["securityContext"] = {
        "runAsUser": 0, "capabilities": {"add": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "MKNOD", "SETUID", "SYS_CHROOT"]}}
    namespace.apply(item)
    pod = namespace.pod("root")["metadata"]["name"]
    namespace.wait_hold(pod, "1:0")
    said = in_view(namespace, pod, DAMAGE, container="trainer")
    print(said)
    summary = [line for line in said.splitlines() if line.startswith("got:")][-1]
    assert summary.startswith("got: [] "), summary
    assert "remounted" not in said
    # Repeats the attempts as the sidecar's user, from an ephemeral container that shares the trainer's processes.
    views.add_ephemeral(namespace, pod, targetContainerName="trainer", securityContext={"runAsUser": 65532})
    beside = in_view(namespace, pod, DAMAGE.replace('"/stoker/node/train"', '"/proc/1/root/stoker/node/train"'), container="intruder")
    print(beside)
    assert [line for line in beside.splitlines() if line.startswith("got:")] in ([], ["got: [] locked: []"]), beside
    namespace.go(pod, "1:0")
    namespace.wait_complete("root")
    assert namespace.digests(pod) == expected[:2]
    neighbour.goes_on()


HOLDER = r"""
import fcntl, os, time
held = []
for folder, _, names in os.walk("/stoker/node/train/data"):
    for name in names:
        path = os.path.join(folder, name)
        file = os.open(path, os.O_RDONLY)
        for what, function in (("lock", lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)),
                               ("lease", lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK))):
            try:
                function()
                held.append(file)
                print("HELD", what, name, flush=True)
            except OSError as error:
                print("refused", what, name, error, flush=True)
print("holding", os.getuid(), flush=True)
time.sleep(1000)
"""


def test_a_trainers_locks_and_leases_do_not_block_its_sidecar(namespace, neighbour, expected):
    # threat model, row 2: a trainer cannot change, cut or lock its view. Here the trainer's image runs as the sidecar's
    # user.
    namespace.apply(jobs.dataset())
    pod, = namespace.start("holder", ["--epochs", 3, "--hold", "1:0", "--hold", "2:0"], cache=jobs.FULL)
    namespace.wait_hold(pod, "1:0")
    holder = subprocess.Popen([namespace.kube.kubectl, "exec", "-i", pod, "-n", namespace.name, "-c", "trainer", "--", "python3", "-u",
                               "-c", HOLDER], stdout=subprocess.PIPE, text=True, env=namespace.kube.environment)
    for line in holder.stdout:
        print(line.strip())
        if line.startswith("holding"):
            break
    assert kill(namespace.kube, namespace.get("pod", pod), "stoker-sidecar")
    begun = time.monotonic()
    wait_until("the sidecar to lead again", lambda: namespace.sidecar(pod).get("role") == "leading" and namespace.sidecar(pod).get(
        "leader", {}).get("state") == "serving", 120)
    took = time.monotonic() - begun
    namespace.go(pod, "1:0", "2:0")
    namespace.wait_complete("holder")
    holder.kill()
    print(f"led again after {took:.1f} s")
    assert namespace.digests(pod) == expected
    neighbour.goes_on()
    assert took < 30, f"a trainer's locks or leases held the sidecar up for {took:.0f} s"


def test_a_trainer_cannot_reach_the_token_or_the_secret_of_its_sidecar(namespace, neighbour):
    # threat model, rows 2, 11, 19: neither a trainer nor an ephemeral container can see the sidecar's token or control/
    namespace.apply(jobs.dataset())
    pod, = namespace.start("curious", ["--epochs", 2, "--hold", "1:0"], cache=jobs.FULL)
    namespace.wait_hold(pod, "1:0")
    program = r"""
import glob, os
for folder, _, names in os.walk("/"):
    if folder.startswith(("/proc", "/sys")):
        continue
    for name in names:
        if name in ("token", "secret", "leader.sock") or (name == "lock" and "stoker" in folder):
            print("FOUND", os.path.join(folder, name))
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        text = open(path, "rb").read()
        if b"STOKER_SIDECAR_CONFIG" in text:
            print("FOUND", path)
    except OSError:
        pass
print("looked", sorted(key for key in os.environ if "STOKER" in key))
"""
    said = in_view(namespace, pod, program, container="trainer")
    print(said)
    assert "looked" in said and "FOUND" not in said
    namespace.go(pod, "1:0")
    namespace.wait_complete("curious")
    neighbour.goes_on()
