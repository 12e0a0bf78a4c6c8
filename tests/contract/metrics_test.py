"""Metric names agree in the sources, the reference page, the dashboard and the alerts."""

import json
import re

import pytest

from chart_test import CHART, ROOT, needs_helm, one, render

PREFIXES = "stoker|process|workqueue|controller_runtime|leader_election"
NAME = re.compile(rf"\b(?:{PREFIXES})_[a-z0-9_]+\b")
DECLARED = re.compile(rf'"((?:{PREFIXES})_[a-z0-9_]+)"')
HISTOGRAM = re.compile(r"_(bucket|sum|count)$")


def declared(*folders):
    """Names of all metric families that the sources of these folders declare."""
    names = set()
    for folder in folders:
        for path in (ROOT / folder).rglob("*metrics*.cc"):
            names |= set(DECLARED.findall(path.read_text()))
    return names


OPERATOR = declared("operator")


def expressions_of_dashboard():
    dashboard = json.loads((CHART / "files/dashboards/stoker.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        yield variable["name"], variable["query"]


def names_in(expression):
    """Metric names in an expression, without label names and values."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    bare = re.sub(r"\b(by|without|on|ignoring)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\{[^}]*\}", "", bare)
    return {HISTOGRAM.sub("", name) if HISTOGRAM.sub("", name) in OPERATOR else name for name in NAME.findall(bare)}


def test_sources_declare_metrics():
    assert {"stoker_job_wait_ratio", "workqueue_depth", "stoker_pool_used_bytes"} <= OPERATOR


@pytest.mark.parametrize("title,expression", list(expressions_of_dashboard()))
def test_dashboard_uses_existing_metrics(title, expression):
    assert names_in(expression) <= OPERATOR, title


def test_every_panel_has_a_query():
    dashboard = json.loads((CHART / "files/dashboards/stoker.json").read_text())
    for panel in dashboard["panels"]:
        assert panel["type"] == "row" or all(names_in(t["expr"]) for t in panel["targets"]), panel["title"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


@needs_helm
def test_alerts_use_existing_metrics_and_have_instructions():
    assert not [item for item in render() if item["kind"] == "PrometheusRule"]
    rules = one(render("--set", "metrics.prometheusRule.enabled=true"), "PrometheusRule")["spec"]["groups"][0]["rules"]
    assert len(rules) == len({rule["alert"] for rule in rules}) >= 5
    for rule in rules:
        assert names_in(rule["expr"]) and names_in(rule["expr"]) <= OPERATOR, rule["alert"]
        assert rule["for"] and rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["annotations"]["summary"].endswith(".") and rule["annotations"]["description"]


@needs_helm
def test_dashboard_is_optional_and_has_grafanas_label():
    assert not [item for item in render() if item["metadata"]["name"].endswith("-dashboard")]
    item = one(render("--set", "metrics.dashboard.enabled=true"), "ConfigMap", "stoker-dashboard")
    assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(item["data"]["stoker.json"])["title"] == "Stoker"


def test_reference_page_names_every_metric():
    page = (ROOT / "docs/reference/metrics.md").read_text()
    told = set(re.findall(r"^\| `([a-z0-9_]+)`", page, re.MULTILINE))
    assert OPERATOR <= told <= OPERATOR | declared("sidecar"), "run make generate"

