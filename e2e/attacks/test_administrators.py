"""A careless administrator tries odd pool directories and wrong values of the chart."""

import json

import pytest

from harness import jobs, kube as kubes
from harness.installation import RELEASE, SYSTEM
from harness.kube import KubeError, condition, wait_until
from harness.nodes import below_pool, on_node
from harness.strangers import says

pytestmark = pytest.mark.own_cluster


def verdict(kube, name, seconds=90):
    """The pool's Ready condition, once a node program has reported."""
    def told():
        found = condition(kube.get("cachepool", name), "Ready")
        return found if found.get("status") in ("True", "False") else None
    try:
        found = wait_until(f"the verdict on pool {name}", told, seconds)
        return f"{found['status']} {found['reason']}: {found['message']}"
    except AssertionError as error:
        return f"no verdict: {error}"


def test_a_second_pool_on_a_taken_or_odd_directory_is_refused(kube, namespace, neighbour, neighbour_ns, foreign):
    # threat model, row 5: a pool on a directory with other files leaves them alone; system paths are refused, also
    # through links
    before = below_pool(neighbour_ns, f"find {neighbour_ns.name} -type f -name '*.seg' -exec sha256sum {{}} + | sort")
    for node in kube.nodes():
        on_node(kube, node, f"ln -sfn {jobs.POOL_PATH} /mnt/link; ln -sfn /var/lib/kubelet /mnt/kubelet; ln -sfn / /mnt/rootlink; "
                            "ln -sfn /nowhere /mnt/dangling; ln -sfn loop /mnt/loop; echo precious >/mnt/file; mkdir -p /mnt/full /mnt/a; "
                            "echo precious >/mnt/full/precious; mkfifo /mnt/pipe 2>/dev/null; ln -sfn /mnt/full /mnt/a/link; true")
    paths = {"same": jobs.POOL_PATH, "linked": "/mnt/link", "root": "/", "dotted": "/var/lib/kubelet/../kubelet", "kubelet": "/var/lib/kubelet",
             "pods": "/var/lib/kubelet/pods", "kubelink": "/mnt/kubelet", "rootlink": "/mnt/rootlink", "onafile": "/mnt/file",
             "below-a-file": "/mnt/file/x", "full": "/mnt/full", "behind-a-link": "/mnt/a/link", "dangling": "/mnt/dangling", "loop": "/mnt/loop",
             "pipe": "/mnt/pipe", "proc": "/proc/sys", "sys": "/sys/fs/cgroup", "dev": "/dev/shm", "etc": "/etc/stoker", "run": "/run/stoker",
             "containerd": "/var/lib/containerd", "boot": "/boot", "home": "/home", "var": "/var", "mnt": "/mnt", "tmp": "/tmp",
             "inside": f"{jobs.POOL_PATH}/{neighbour_ns.name}", "inside-data": f"{jobs.POOL_PATH}/{neighbour_ns.name}/{foreign}/data/segments",
             "new-inside": f"{jobs.POOL_PATH}/inner", "new-inside-theirs": f"{jobs.POOL_PATH}/{neighbour_ns.name}/{foreign}/data/inner", "above": "/var/lib"}
    made, said = [], {}
    for name, path in paths.items():
        code, words = says(kube, "apply", "-f", "-", stdin=json.dumps(jobs.pool(name=f"odd-{name}", path=path)))
        said[name] = f"refused by the API server: {words.strip()[-160:]}" if code else None
        made += [] if code else [name]
    try:
        for name in made:
            said[name] = verdict(kube, f"odd-{name}")
        print(*[f"{paths[name]}: {words[:260]}" for name, words in said.items()], sep="\n")
        ready = [paths[name] for name in made if said[name].startswith("True")]
        after = below_pool(neighbour_ns, f"find {neighbour_ns.name} -type f -name '*.seg' -exec sha256sum {{}} + | sort")
        assert after == before
        for node in kube.nodes():
            assert on_node(kube, node, "cat /mnt/file /mnt/full/precious; ls -A /mnt/full") == "precious\nprecious\nprecious\n"
        neighbour.goes_on()
        assert not ready, f"these pools are ready: {ready}"
    finally:
        for name in made:
            kube.delete("cachepool", f"odd-{name}", wait=False)


def test_a_pool_inside_another_pool_is_not_swept_away(kube, namespace, neighbour):
    # threat model, rows 5, 6: a sweep of the outer pool removes no file of the inner pool
    inner, path = "nested", f"{jobs.POOL_PATH}/nested"
    kube.apply(jobs.pool(name=inner, path=path))
    try:
        words = verdict(kube, inner)
        print(words)
        if words.startswith("True"):
            cache = {**jobs.FULL, "poolRef": {"name": inner}}
            namespace.apply(jobs.dataset())
            namespace.start("inner", ["--epochs", 1], cache=cache)
            namespace.wait_complete("inner")
            files = f"find nested/{namespace.name} -name '*.seg' | wc -l"
            assert int(below_pool(namespace, files)) > 0
            below_pool(namespace, "touch -d '2 hours ago' nested nested/* nested/*/*")
            own_to_sweep(namespace)
            print(below_pool(namespace, "find nested -maxdepth 3 | head -20"))
            assert int(below_pool(namespace, files)) > 0, "the outer pool's sweep removed the inner pool's bytes"
            assert ".stoker-pool" in below_pool(namespace, "ls -A nested")
        neighbour.goes_on()
        assert not words.startswith("True"), "a pool inside another one is ready"
    finally:
        kube.delete("cachepool", inner, wait=False)
        below_pool(namespace, "rm -rf nested")


def own_to_sweep(namespace):
    """Waits until the outer pool has been swept, that is, until the directory of a deleted Dataset is gone."""
    namespace.apply(jobs.dataset("bait"))
    uid = namespace.get("dataset", "bait")["metadata"]["uid"]
    namespace.start("bait", ["--epochs", 1], dataset_name="bait", cache={**jobs.FULL, "poolRef": {"name": jobs.POOL}})
    namespace.wait_complete("bait")
    namespace.delete_job("bait")
    namespace.kube.delete("dataset", "bait", namespace.name)
    wait_until("the outer pool to be swept", lambda: uid not in below_pool(
        namespace, f"touch -h -d '2 hours ago' {namespace.name}/{uid} {namespace.name}/{uid}/* 2>/dev/null; ls {namespace.name} || true"), 300)


def test_a_running_job_survives_its_pool_being_recreated(kube, namespace, neighbour, expected):
    # threat model, rows 5, 6, 9: an administrator's mistake neither stops a running job nor removes other jobs' bytes
    name, path = "shortlived", f"{jobs.POOL_PATH}-shortlived"
    kube.apply(jobs.pool(name=name, path=path))
    try:
        namespace.apply(jobs.dataset())
        cache = {**jobs.FULL, "poolRef": {"name": name}}
        pod, = namespace.start("under", ["--epochs", 3, "--hold", "1:0", "--hold", "2:0"], cache=cache)
        namespace.wait_hold(pod, "1:0")
        kube.delete("cachepool", name)
        namespace.go(pod, "1:0")
        namespace.wait_hold(pod, "2:0")
        kube.apply(jobs.pool(name=name, path=path))
        print(verdict(kube, name))
        namespace.go(pod, "2:0")
        namespace.wait_complete("under")
        assert namespace.digests(pod) == expected
        namespace.start("again", ["--epochs", 1], cache=cache)
        namespace.wait_complete("again")
        neighbour.goes_on()
    finally:
        kube.delete("cachepool", name, wait=False)


WRONG_VALUES = ["replicas=-1", "replicas=many", "sidecar.windowBytes=-1", "sidecar.windowBytes=lots", "nodee.image.tag=x", "node.kubeletDirectory=",
                "node.kubeletDirectory=kubelet", "control.port=0", "control.port=70000", "control.grantSeconds=1", "logLevel=loud",
                "watchNamespaces=team-a", "watchNamespaces[0]=../x", "image.pullPolicy=Sometimes", "admissionPolicy.enable=false",
                "networkPolicy.controlFrom=all", "crds.keep=maybe", "node.uninstallGraceSeconds=-5", "metrics.port=9443", "probes.port=9443",
                "debug.port=8080",
                "node.kubeletDirectory=/var/lib/../kubelet", "rbac.explain.subjects=me"]


def test_wrong_values_of_the_chart_are_refused_before_anything_changes(kube, namespace, neighbour):
    # not in the threat model: values.schema.json refuses unknown keys and wrong types
    def render(*words):
        kube.helm("template", RELEASE, str(kubes.ROOT / "charts" / "stoker"), "--namespace", SYSTEM, "--kube-version", "1.34.0", *words)
    render()
    accepted = []
    for value in WRONG_VALUES:
        try:
            render("--set", value)
            accepted.append(value)
        except KubeError as error:
            print(f"{value}: {str(error).splitlines()[-1:]}")
    neighbour.goes_on()
    assert not accepted, f"the chart takes {accepted}"
