"""Samples memory, descriptors and threads of Stoker's processes on every node."""

import json
import subprocess
import threading
import time

from harness.kube import KubeError
from harness.nodes import on_node
from part import Part

PROGRAMS = ("stoker-operator", "stoker-node", "stoker-sidecar", "stoker-s3", "stoker-files")
# One line a process: program, pod's uid, pid, start in ticks since boot, anonymous KiB, threads, descriptors.
SCRIPT = r"""
for d in /proc/[0-9]*; do
  comm=$(cat $d/comm 2>/dev/null) || continue
  case $comm in stoker-*) ;; *) continue ;; esac
  pod=$(grep -o 'pod[0-9a-f][0-9a-f_-]*' $d/cgroup 2>/dev/null | head -1)
  start=$(sed 's/.*) //' $d/stat 2>/dev/null | cut -d' ' -f20)
  anon=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' $d/status 2>/dev/null)
  threads=$(sed -n 's/^Threads:[^0-9]*//p' $d/status 2>/dev/null)
  fds=$(ls $d/fd 2>/dev/null | wc -l)
  echo "$comm ${pod:-none} ${d#/proc/} ${start:-0} ${anon:-0} ${threads:-0} $fds"
done; true
"""


def parse(text):
    """The processes of one node: [{program, pod, pid, start, memory (bytes), threads, descriptors}]. A process that ended
    while it was looked at has no memory, and is left out."""
    found = []
    for line in text.splitlines():
        program, pod, pid, start, memory, threads, descriptors = line.split()
        if program in PROGRAMS and int(memory) > 0:
            found.append({"program": program, "pod": pod, "pid": int(pid), "start": int(start),
                          "memory": int(memory) * 1024, "threads": int(threads), "descriptors": int(descriptors)})
    return found


class Observer(Part):
    """Samples every `interval` seconds until stop(), and writes each sample as a line of JSON."""

    def __init__(self, kube, path, interval=30):
        super().__init__("observer")
        self.kube = kube
        self.interval = interval
        self.began = time.monotonic()
        self.processes = {}  # (program, node, pid, start): [sample with seconds]
        self._path = path
        self._ends = threading.Event()

    def seconds(self):
        return time.monotonic() - self.began

    def stop(self):
        self._ends.set()
        self.join()

    def look(self):
        """Samples once; returns the samples of now."""
        now, found = self.seconds(), []
        for node in self.kube.nodes():
            for process in parse(on_node(self.kube, node, SCRIPT)):
                sample = {"seconds": round(now, 1), "node": node, **process}
                found.append(sample)
                key = (process["program"], node, process["pid"], process["start"])
                self.processes.setdefault(key, []).append(sample)
        with open(self._path, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(sample) + "\n" for sample in found)
        return found

    def work(self):
        while not self._ends.wait(self.interval):
            try:
                self.look()
            except (KubeError, subprocess.SubprocessError):
                pass  # the machine is busy: the next round samples again
