"""One pod with stoker-files: a real S3 server, a sidecar, stoker-files, and a node program's mount in a namespace."""

import contextlib
import json
import os
import subprocess
import sys

import pytest
from conftest import BUILD
from s3_pod import PREFIX, Pod, skip_without_gateway


class FilesPod(Pod):
    """Programs that read run in the mount's namespace, without rights. `folder`/files: the mount."""

    def __init__(self, folder, stack, limits):
        self.namespace = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sleep", "infinity"])
        stack.callback(self.namespace.wait)
        stack.callback(self.namespace.kill)
        self.mount = folder / "files"
        self.dataset_settings = {"filesSocket": str(folder / "server" / "files.sock")}
        super().__init__(folder, stack, limits)

    def inside(self, *command):
        """The command in the namespace."""
        return ["nsenter", f"--mount=/proc/{self.namespace.pid}/ns/mnt", *map(str, command)]

    def start_mounts(self):
        """The node program."""
        process = subprocess.Popen(self.inside(BUILD / "bin" / "stoker-test-file-mounts", self.folder),
                                   stdout=subprocess.PIPE, text=True)
        self.stack.callback(process.stdout.close)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        assert process.stdout.readline() == "mounted\n"
        self.processes["mounts"] = process

    def start_files(self):
        self.run("files", *self.inside("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs",
                                       BUILD / "bin" / "stoker-files"))

    def python(self, script, *args):
        """Starts a script in the namespace; its output is JSON, one line for each print()."""
        return subprocess.Popen(self.inside(sys.executable, "-c", script, self.mount, *args),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def output(self, script, *args):
        process = self.python(script, *args)
        out, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
        return json.loads(out)

    def files_of(self):
        """The objects by their paths in the mount."""
        return {key[len(PREFIX):]: payload for key, payload in self.payloads.items()}


@contextlib.contextmanager
def started_files(folder, limits, make=FilesPod):
    """A FilesPod whose mount is served."""
    skip_without_gateway()
    if os.geteuid() != 0:
        pytest.skip("only root mounts files")
    with contextlib.ExitStack() as stack:
        pod = make(folder, stack, limits)
        pod.start_mounts()
        pod.start_files()
        pod.start_sidecar()
        yield pod

