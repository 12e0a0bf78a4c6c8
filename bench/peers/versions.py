"""The versions of the compared programs and packages."""

import re
import subprocess

from common import LOADERS_PYTHON, NotRun, program

COMMANDS = {"memcached": ("memcached", "-V"), "Redis": ("redis-server", "--version"), "nginx": ("nginx", "-v"),
            "JuiceFS": ("juicefs", "version"), "rclone": ("rclone", "version")}
PACKAGES = ("torch", "torchvision", "Pillow", "litdata", "mosaicml-streaming", "webdataset")
ASK_PACKAGES = "import importlib.metadata, sys; [print(importlib.metadata.version(name)) for name in sys.argv[1:]]"


def of_program(name, *arguments):
    done = subprocess.run([program(name), *arguments], capture_output=True, text=True)
    return re.search(r"\d+(?:\.\d+)+", done.stdout + done.stderr).group()


def all_of_them():
    """{program or package: version}; programs that are not installed are absent."""
    found = {}
    for peer, command in COMMANDS.items():
        try:
            found[peer] = of_program(*command)
        except NotRun:
            continue
    if LOADERS_PYTHON.exists():
        done = subprocess.run([LOADERS_PYTHON, "-c", ASK_PACKAGES, *PACKAGES], capture_output=True, text=True, check=True)
        found |= dict(zip(PACKAGES, done.stdout.split()))
    return found
