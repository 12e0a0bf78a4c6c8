"""Loads our images and installs the chart with them, for the tests and the demo."""

import os
import subprocess

from . import kube as kubes

SYSTEM = "stoker-system"
RELEASE = "stoker"
TAG = os.environ.get("STOKER_TAG", "dev")  # as in tools/images.sh: two checkouts on one machine can have different images
def image(name):
    return f"localhost/stoker-{name}:{TAG}"


SMALL_IMAGES = [image(name) for name in ("operator", "sidecar", "node", "e2e-s3")]
IMAGES = [*SMALL_IMAGES, image("trainer")]
VALUES = {f"{part}image.{key}": value for part in ("", "sidecar.", "node.")
          for key, value in (("registry", "localhost"), ("tag", TAG))}
# The tests read sidecars through the API server, whose address is in this range on a cluster made by e2e/cluster.
VALUES["sidecar.metricsReaders"] = "{%s}" % os.environ.get("STOKER_API_SERVER_RANGE", "10.240.0.0/24")


def load_images(images=tuple(IMAGES)):
    """Loads images into every node of a cluster made by e2e/cluster. Any other cluster must get them from its
    registry."""
    subprocess.run([kubes.CLUSTER, "load-image", *images], check=True, timeout=1800)


def load_images_for_a_start():
    """Loads the installation's images. The trainer's image (1 GB) loads in the background; the returned function waits
    for it."""
    load_images(SMALL_IMAGES)
    loading = subprocess.Popen([kubes.CLUSTER, "load-image", image("trainer")])

    def wait():
        code = loading.wait(timeout=1800)
        assert code == 0, f"loading the trainer's image ended with {code}"
    return wait


def helm_install(kube, *settings):
    """Installs or upgrades with additional SETTINGS ("crds.keep=false"). Returns when jobs can be applied."""
    wanted = [f"{name}={value}" for name, value in VALUES.items()] + list(settings)
    kube.helm("upgrade", "--install", RELEASE, str(kubes.ROOT / "charts" / "stoker"), "--namespace", SYSTEM,
              "--create-namespace", "--wait", "--timeout", "600s", *[f"--set={setting}" for setting in wanted])
