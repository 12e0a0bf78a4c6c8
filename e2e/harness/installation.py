"""Our own images, and the chart installed with them: the same for the tests and the demo."""

import subprocess

from . import kube as kubes

SYSTEM = "stoker-system"
RELEASE = "stoker"
IMAGES = ["localhost/stoker-operator:dev", "localhost/stoker-sidecar:dev", "localhost/stoker-trainer:dev",
          "localhost/stoker-e2e-s3:dev"]
VALUES = {"image.registry": "localhost", "image.tag": "dev", "sidecar.image.registry": "localhost",
          "sidecar.image.tag": "dev"}


def load_images():
    """Into every node of the cluster that our own scripts made; of another one, they must be in its registry."""
    subprocess.run([kubes.CLUSTER, "load-image", *IMAGES], check=True, timeout=1800)


def helm_install(kube):
    """Installs or upgrades; returns when a job may be applied."""
    settings = [word for name, value in VALUES.items() for word in ("--set", f"{name}={value}")]
    kube.helm("upgrade", "--install", RELEASE, str(kubes.ROOT / "charts" / "stoker"), "--namespace", SYSTEM,
              "--create-namespace", "--wait", "--timeout", "600s", *settings)
