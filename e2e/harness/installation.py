"""Our own images, and the chart installed with them: the same for the tests and the demo."""

import os
import subprocess

from . import kube as kubes

SYSTEM = "stoker-system"
RELEASE = "stoker"
TAG = os.environ.get("STOKER_TAG", "dev")  # as tools/images.sh: two checkouts on one machine need not share images
IMAGES = [f"localhost/stoker-{name}:{TAG}" for name in ("operator", "sidecar", "trainer", "e2e-s3")]
VALUES = {"image.registry": "localhost", "image.tag": TAG, "sidecar.image.registry": "localhost",
          "sidecar.image.tag": TAG}


def load_images():
    """Into every node of the cluster that our own scripts made; of another one, they must be in its registry."""
    subprocess.run([kubes.CLUSTER, "load-image", *IMAGES], check=True, timeout=1800)


def helm_install(kube, *settings):
    """Installs or upgrades, with further SETTINGS ("crds.keep=false"); returns when a job may be applied."""
    wanted = [f"{name}={value}" for name, value in VALUES.items()] + list(settings)
    kube.helm("upgrade", "--install", RELEASE, str(kubes.ROOT / "charts" / "stoker"), "--namespace", SYSTEM,
              "--create-namespace", "--wait", "--timeout", "600s", *[f"--set={setting}" for setting in wanted])
