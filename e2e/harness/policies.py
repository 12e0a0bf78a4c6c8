"""Removes the chart's admission policies for some tests and restores them."""

import contextlib
import itertools
import json

from . import jobs, views
from .installation import helm_install
from .kube import wait_until
from .strangers import says

NUMBERS = itertools.count(1)


def pods_with_views(place):
    """A pod and a Job with a view of a node directory, as a user would write them."""
    pod = views.pod("probe", views.view(place.name, "probe", "owner"), place.home)
    template = {"spec": {**pod["spec"], "restartPolicy": "Never"}}
    return pod, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "probe"}, "spec": {
        "suspend": True, "template": template}}


def verdicts(place):
    """The API server's refusals of these objects; None for one that it accepts."""
    found = []
    for item in pods_with_views(place):
        code, words = says(place.kube, "apply", "--dry-run=server", "-f", "-", stdin=json.dumps(place.here(item)))
        found.append(words if code else None)
    return found


@contextlib.contextmanager
def absent(kube, name):
    """No policy is in force inside the block; all are in force again after it. `name`: namespace used to check this."""
    place = jobs.Namespace(kube, f"{name}-{next(NUMBERS)}").create()
    try:
        helm_install(kube, "admissionPolicy.enabled=false")
        wait_until("the policies to be gone", lambda: not any(verdicts(place)), 120)
        yield
    finally:
        helm_install(kube)
        wait_until("the policies to be in force again", lambda: all(
            words and "ValidatingAdmissionPolicy" in words for words in verdicts(place)), 120)
        place.delete()
