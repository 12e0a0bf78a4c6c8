"""A tenant fills its own node directory with links, devices, sparse files and very many files."""

import contextlib
import os
import subprocess
import time

import pytest

from harness import jobs, views
from harness.kube import wait_until
from harness.nodes import below_pool, node_program, on_node
from harness.strangers import NODE_PORT, ROOT_USER, in_view, own_directory, restarts

pytestmark = pytest.mark.own_cluster

GIB, TIB = 1 << 30, 1 << 40
FILES = int(os.environ.get("STOKER_E2E_FILES", "1000000"))  # files in one directory of a tenant
LINKS, LEVELS = 60_000, 3000  # hard links to one file (ext4 allows 65,000), and levels of nested folders

HOSTILE = r"""
import os, socket, stat
data, control = "/view/data", "/view/control"
def tried(what, function):
    try:
        print(what, "done", function())
    except OSError as error:
        print(what, "refused", error)
for name, target in (("etc", "/etc"), ("root", "/"), ("up", "../../.."), ("kubelet", "/var/lib/kubelet"), ("loop", "loop"),
                     ("marker", "../../../.stoker-pool"), ("proc", "/proc/1/root")):
    tried(f"symlink {name}", lambda: os.symlink(target, f"{data}/{name}"))
tried("hard link of passwd", lambda: os.link("/etc/passwd", f"{data}/passwd"))
for name in ("current.json", "manifest.0123456789abcdef", "residency.0123456789abcdef"):
    tried(f"pipe {name}", lambda: os.mkfifo(f"{data}/{name}"))
for name in ("lock", "secret", "state.0123456789abcdef.json"):
    tried(f"pipe {name}", lambda: (os.path.exists(f"{control}/{name}") and os.unlink(f"{control}/{name}"), os.mkfifo(f"{control}/{name}")))
tried("leader.sock to the kubelet", lambda: os.symlink("/var/lib/kubelet/plugins_registry", f"{control}/leader.sock"))
for name, mode, device in (("disk", stat.S_IFBLK, (7, 0)), ("memory", stat.S_IFCHR, (1, 1)), ("zero", stat.S_IFCHR, (1, 5)),
                           ("console", stat.S_IFCHR, (5, 1))):
    tried(f"mknod {name}", lambda: os.mknod(f"{data}/{name}", mode | 0o666, os.makedev(*device)))
    tried(f"open {name}", lambda: os.read(os.open(f"{data}/{name}", os.O_RDONLY | os.O_NONBLOCK), 4))
tried("socket", lambda: socket.socket(socket.AF_UNIX).bind(f"{data}/socket"))
os.makedirs(f"{data}/segments", exist_ok=True)
tried("segment to a device", lambda: os.symlink("/dev/zero", f"{data}/segments/0.seg"))
with open(f"{data}/suid", "w") as file:
    file.write("#!/bin/sh\nid\n")
os.chmod(f"{data}/suid", 0o6777)
with open(os.fsencode(data) + b"/\xff\xfe\ninvalid\x1b[31m", "w") as file:
    file.write("x")
for name in ("n" * 255, "-rf", "$(reboot)", "..data", " "):
    os.makedirs(f"{data}/{name}", exist_ok=True)
here = os.open(data, os.O_RDONLY)
os.fchdir(here)
for _ in range(3000):
    os.mkdir("d" * 20)
    os.chdir("d" * 20)
print("depth done")
os.chdir("/")
tried("move data", lambda: os.rename(data, "/view/elsewhere"))
tried("link instead of data", lambda: os.symlink("/", data))
tried("a directory beside", lambda: os.mkdir("/view/beside"))
os.chmod(control, 0)
with open("/proc/self/mountinfo") as file:
    print(*[line for line in file if " /view " in line])
"""


def test_planted_links_devices_and_pipes_expose_nothing_of_the_node(namespace, neighbour, no_policies):
    # threat model, rows 4, 7, 18: no link is followed; a directory of any shape can be measured and removed
    kube = namespace.kube
    uid = own_directory(namespace)
    said = in_view(namespace, "own", HOSTILE)
    print(said)
    assert "depth done" in said
    for name in ("disk", "memory", "console"):
        assert f"open {name} done" not in said, "a device of the node can be read"
    # Root in the container acts as the node's root in these folders: `data` is now a link to /. No view may follow it.
    for name, kind in (("second", "data"), ("third", "owner")):
        namespace.apply(views.pod(name, views.view(namespace.name, uid, kind), namespace.home,
                                  securityContext=ROOT_USER))
    wait_until("both pods to start or be refused", lambda: {
        event["involvedObject"]["name"] for event in namespace.kube.list("events", namespace.name)
        if event["reason"] in ("FailedMount", "Started")} >= {"second", "third"})
    time.sleep(5)  # the API may show a started pod as Running a moment later
    for name in ("second", "third"):
        if namespace.get("pod", name)["status"]["phase"] == "Running":
            seen = views.attempt(namespace, name, "ls -la /view; cat /view/etc/machine-id; ls /view/data/var/lib/kubelet/pods")
            print(name, "RUNS:", seen)
            assert "kubelet" not in views.attempt(namespace, name, "ls /view/var/lib; ls /view | grep -w proc"), "the node's root is shown"
        else:
            print(name, views.refusal(namespace, name))
    mount = [line for line in said.splitlines() if " /view " in line][-1]
    # The attacker's job on this directory may fail. It must end, and Stoker's programs must keep running.
    namespace.apply(jobs.training_job("own", ["--epochs", 1], dataset_name="own", on=namespace.home, cache=jobs.FULL))
    neighbour.goes_on()
    moved = in_view(namespace, "own", "import os; os.unlink('/view/data'); os.rename('/view/elsewhere', '/view/data'); print('back')")
    assert "back" in moved, moved
    namespace.kube.run("delete", "pod", "own", "second", "third", "-n", namespace.name)
    namespace.kube.delete("trainingjob", "own", namespace.name)
    wait_until("the attacker's pods to end", lambda: not namespace.pods("own"), 300)
    namespace.kube.delete("dataset", "own", namespace.name)
    wait_until("the directory to be swept", lambda: uid not in below_pool(
        namespace, f"touch -h -d '2 hours ago' {namespace.name}/{uid} {namespace.name}/{uid}/* 2>/dev/null; ls {namespace.name} || true"), 300)
    assert on_node(kube, namespace.home, "cat /etc/passwd | head -1").startswith("root:")
    assert "nodev" in mount and "nosuid" in mount, f"a view honours devices and set-uid programs: {mount}"


SHAPES = {
    "plain": (65532, "open('/view/data/x', 'w')"),
    "lock-is-a-pipe": (65532, "os.mkfifo('/view/control/lock')"),
    "lock-is-a-link": (65532, "os.symlink('/nowhere', '/view/control/lock')"),
    "lock-is-a-directory": (65532, "os.mkdir('/view/control/lock')"),
    "control-is-a-link": (0, "os.rmdir('/view/control'); os.symlink('/', '/view/control')"),
    "data-is-a-link": (0, "os.rmdir('/view/data'); os.symlink('/', '/view/data')"),
    "data-is-a-file": (0, "os.rmdir('/view/data'); open('/view/data', 'w')"),
}


def test_a_damaged_directory_of_a_deleted_dataset_is_swept(namespace, neighbour, no_policies):
    # threat model, rows 6, 7: a directory of any shape can be measured and removed; one that cannot would leak disk
    # space for good
    uids = {}
    for name, (who, _) in SHAPES.items():
        namespace.apply(jobs.dataset(name))
        uids[name] = namespace.get("dataset", name)["metadata"]["uid"]
        namespace.apply(views.pod(name, views.view(namespace.name, uids[name], "owner"), namespace.home,
                                  securityContext={"runAsUser": who}))
    for name, (_, script) in SHAPES.items():
        views.running(namespace, name)
        said = in_view(namespace, name, f"import os\n{script}\nprint('made')")
        assert "made" in said, f"{name}: {said}"
    namespace.kube.run("delete", "pod", *SHAPES, "-n", namespace.name)
    below_pool(namespace, f"find {namespace.name} -exec touch -h -d '2 hours ago' {{}} +")
    namespace.kube.run("delete", "dataset", *SHAPES, "-n", namespace.name)
    left = set(uids)

    def swept():
        found = below_pool(namespace, f"ls {namespace.name} || true")
        left.intersection_update(name for name, uid in uids.items() if uid in found)
        return not left
    with contextlib.suppress(AssertionError):
        wait_until("all to be swept", swept, 420)
    neighbour.goes_on()
    assert not left, f"never swept: {sorted(left)}"


def used_bytes(kube):
    return (kube.get("cachepool", jobs.POOL).get("status") or {}).get("usedBytes", 0)


def test_sparse_files_and_hard_links_count_allocated_blocks(namespace, neighbour, neighbour_ns, no_policies):
    # threat model, row 6, and promise 8 of ADR 0008: usage counts allocated blocks, each once; the neighbour's grant
    # does not change
    own_directory(namespace)
    before = used_bytes(namespace.kube)
    grant = neighbour_ns.job(neighbour.name)["status"]["cache"]["allocatedBytes"]
    said = in_view(namespace, "own", f"""
import os
os.makedirs("/view/data/segments", exist_ok=True)
with open("/view/data/segments/7.seg", "wb") as file:
    file.truncate({TIB})
with open("/view/data/real", "wb") as file:
    for _ in range(64):
        file.write(os.urandom(1 << 20))
os.makedirs("/view/data/links")
for number in range(20000):
    os.link("/view/data/real", f"/view/data/links/{{number}}")
print("made")
""")
    assert "made" in said, said
    wait_until("the bytes to be measured", lambda: used_bytes(namespace.kube) >= before + (60 << 20), 120)
    time.sleep(30)  # the node program measures again, with all links there
    used = used_bytes(namespace.kube) - before
    print(f"measured {used / GIB:.3f} GiB more; the neighbour had {grant} and has",
          neighbour_ns.job(neighbour.name)["status"]["cache"]["allocatedBytes"])
    neighbour.goes_on()
    assert used < GIB, f"64 MiB were measured as {used / GIB:.0f} GiB"


def test_a_directory_of_very_many_files_is_swept_while_the_node_program_answers(namespace, neighbour, no_policies):
    # threat model, rows 6, 7: a sweep works on two levels at a time and bounds its counting; other pods' mounts succeed
    # meanwhile
    kube = namespace.kube
    uid = own_directory(namespace)
    begun = time.monotonic()
    said = in_view(namespace, "own", f"""
import os
for number in range({FILES}):
    if number % 50000 == 0:
        os.makedirs(f"/view/data/{{number}}")
        os.chdir(f"/view/data/{{number}}")
    os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY))
os.mkdir("/view/data/links")
for number in range({LINKS}):
    os.link("/view/data/0/0", f"/view/data/links/{{number}}")
os.chdir("/view/data")
for _ in range({LEVELS}):
    os.mkdir("d" * 20)
    os.chdir("d" * 20)
print("made")
""")
    assert "made" in said, said
    print(f"{FILES} files in {time.monotonic() - begun:.0f} s")
    kube.delete("pod", "own", namespace.name)
    kube.delete("dataset", "own", namespace.name)
    _, address = node_program(kube, namespace.home)
    slowest, begun = 0.0, time.monotonic()

    def swept():
        nonlocal slowest
        asked = time.monotonic()
        subprocess.run(["curl", "-s", "--max-time", "30", "-o", "/dev/null", f"http://{address}:{NODE_PORT}/healthz"], check=True)
        slowest = max(slowest, time.monotonic() - asked)
        return uid not in below_pool(namespace, f"touch -d '2 hours ago' {namespace.name}/{uid} {namespace.name}/{uid}/* "
                                                f"2>/dev/null; ls {namespace.name} || true")
    neighbour.goes_on()  # the neighbour's second job needs a mount during the sweep
    wait_until("the directory to be swept", swept, 600, 1)
    print(f"swept after {time.monotonic() - begun:.0f} s; the slowest /healthz took {slowest:.2f} s")
    assert slowest < 5
    assert restarts(kube) == neighbour.before
