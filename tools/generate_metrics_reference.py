#!/usr/bin/env python3
"""Writes docs/reference/metrics.md from the sources that declare metrics. --check: only compares."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "metrics.md"
TEXT = r'"(?:[^"\\]|\\.)*"'
# A name, then its help text (perhaps in several literals), then perhaps its labels.
DECLARATION = re.compile(
    r'"((?:stoker|process|workqueue|controller_runtime|leader_election|rest_client)'
    r'_[a-z0-9_]+)",'
    rf"\s*((?:{TEXT}\s*)+)(?:,\s*(\{{[^}}]*\}}|labels))?")
LABELS = re.compile(r'labels\{([^}]*)\}')
FAMILY_LABELS = re.compile(r"gauge_family\(name, help, \{([^}]*)\}")  # in the class that declares by family()
SECTIONS = (
    ("Every program", "common/metrics", []),
    ("Operator", "operator", ["The node program also exposes `rest_client_*`.\n"]),
    ("Sidecar", "sidecar", []),
    ("Node program", "node", []),
)
HEAD = """# Metrics

Made by `make generate` from the sources; do not edit. Operator, sidecar and node program serve `/metrics` as text for
Prometheus. The chart's ServiceMonitor (`metrics.serviceMonitor`) scrapes the operator, its PodMonitors
(`metrics.podMonitor`) the node programs and the sidecars of all training pods, foreign pods and fillers. A sidecar's
own pod and the address ranges of `sidecar.metricsReaders` may read the sidecar's. `metrics.dashboard` and
`metrics.prometheusRule` install dashboards and alerts; [runbooks](../howto/runbooks.md) say what to do about each.
Names are those of client-go and controller-runtime where these have the metric. Other programs in the cluster have
them, too: select the operator's by `job`, which is `<release>-metrics` with the chart's ServiceMonitor.

Every replica of the operator exposes jobs, datasets, pools and quotas; the leader also exposes profiles. Before you
sum, take `max by (namespace, training_job)` and the like, as the dashboard does.
"""


def clean(parts):
    return " ".join(part[1:-1].strip() for part in re.findall(TEXT, parts)).replace("|", "\\|")


def labels_of(match, source):
    """The labels of one declaration; a shared `labels` refers to the last definition before it."""
    given = match.group(3) or ""
    if given == "labels":
        given = LABELS.findall(source[: match.start()])[-1]
    found = re.findall(r'"([a-z_]+)"', given)
    if not found and re.search(r"family\(\s*registry,\s*$", source[: match.start()]):
        found = re.findall(r'"([a-z_]+)"', FAMILY_LABELS.search(source, match.end()).group(1))
    return ", ".join(f"`{label}`" for label in found)


def rows(folder):
    table = {}
    for path in sorted((ROOT / folder).rglob("*_metrics.cc")):
        source = path.read_text()
        for match in DECLARATION.finditer(source):
            table[match.group(1)] = (clean(match.group(2)), labels_of(match, source))
    return [f"| `{name}` | {labels} | {text} |" for name, (text, labels) in sorted(table.items())]


def page():
    out = [HEAD]
    for title, folder, text in SECTIONS:
        out += [f"## {title}\n", *text, "| metric | labels | what it is |", "| --- | --- | --- |", *rows(folder), ""]
    return "\n".join(out)


def main():
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            print(f"{PAGE.relative_to(ROOT)} is out of date: run make generate")
            return 1
        return 0
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
