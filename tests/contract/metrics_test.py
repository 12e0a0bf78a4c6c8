"""Metric names agree in the sources, the reference page, the dashboards, the alerts and the runbooks."""

import json
import pathlib
import re
import subprocess

import pytest
import yaml

from chart_test import CHART, ROOT, helm, needs_helm, one, render

PREFIXES = "stoker|process|workqueue|controller_runtime|leader_election|rest_client|csi_operations"
NAME = re.compile(rf"\b(?:{PREFIXES})_[a-z0-9_]+\b")
DECLARED = re.compile(rf'"((?:{PREFIXES})_[a-z0-9_]+)"')
HISTOGRAM = re.compile(r"_(bucket|sum|count)$")
DASHBOARDS = sorted((CHART / "files/dashboards").glob("*.json"))
RUNBOOKS = ROOT / "docs/howto/runbooks.md"
MONITORED = ("--set", "metrics.podMonitor.enabled=true", "--set", "sidecar.metricsReaders={10.244.0.0/16}")


def declared(*folders):
    """Names of all metric families that the sources of these folders declare."""
    names = set()
    for folder in folders:
        for path in (ROOT / folder).rglob("*_metrics.cc"):
            names |= set(DECLARED.findall(path.read_text()))
    return names


PROCESS = declared("common/metrics")
OPERATOR = declared("operator")
SIDECAR = declared("sidecar")
KNOWN = PROCESS | OPERATOR | SIDECAR | declared("node")


def expressions_of(path):
    dashboard = json.loads(path.read_text())
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
    return {HISTOGRAM.sub("", name) if HISTOGRAM.sub("", name) in KNOWN else name for name in NAME.findall(bare)}


def rules(*args):
    rule_set = one(render("--set", "metrics.prometheusRule.enabled=true", *args), "PrometheusRule")
    return rule_set["spec"]["groups"][0]["rules"]


def promtool(*args):
    return subprocess.run(["promtool", *args], capture_output=True, text=True, check=False)


def test_sources_declare_metrics():
    assert {"stoker_job_wait_ratio", "workqueue_depth", "stoker_pool_used_bytes"} <= OPERATOR
    assert {"process_open_fds", "stoker_sidecar_sessions", "csi_operations_seconds"} <= KNOWN


@pytest.mark.parametrize("title,expression", [
    pytest.param(title, text, id=f"{path.stem}-{title}") for path in DASHBOARDS for title, text in expressions_of(path)])
def test_dashboards_use_existing_metrics(title, expression):
    assert names_in(expression) <= KNOWN, title


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_has_a_query(path):
    dashboard = json.loads(path.read_text())
    for panel in dashboard["panels"]:
        assert panel["type"] == "row" or all(names_in(t["expr"]) for t in panel["targets"]), panel["title"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_do_not_overlap(path):
    taken = set()
    for panel in json.loads(path.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells


def test_the_sidecars_dashboard_shows_what_sidecars_do():
    shown = {name for _, text in expressions_of(CHART / "files/dashboards/stoker-sidecars.json") for name in names_in(text)}
    assert shown <= SIDECAR | PROCESS
    assert {"stoker_sidecar_trainer_samples_total", "stoker_origin_received_bytes_total", "stoker_sidecar_failures_total",
            "stoker_sidecar_trainer_seconds_total", "stoker_sidecar_dropped_samples_total",
            "stoker_sidecar_in_flight_bytes"} <= shown


@needs_helm
def test_alerts_use_existing_metrics_and_have_instructions():
    assert not [item for item in render() if item["kind"] == "PrometheusRule"]
    found = rules()
    assert len(found) == len({rule["alert"] for rule in found}) >= 20
    for rule in found:
        foreign = re.findall(r"kube_\w+", rule["expr"])
        assert names_in(rule["expr"]) and names_in(rule["expr"]) <= KNOWN, rule["alert"]
        assert not foreign or rule["alert"] == "StokerMemoryNearLimit"
        assert rule["for"] and rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["annotations"]["summary"].endswith(".") and rule["annotations"]["description"]


def sections():
    """{alert: text of its section}."""
    parts = re.split(r"^### (\w+)\n", RUNBOOKS.read_text(), flags=re.MULTILINE)
    return {name: text.split("\n## ")[0] for name, text in zip(parts[1::2], parts[2::2])}


@needs_helm
def test_every_alert_has_its_runbook():
    assert set(sections()) == {rule["alert"] for rule in rules()}
    for rule in rules():
        anchor = f"#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook"] == f"docs/howto/runbooks.md{anchor}"
        assert "runbook_url" not in rule["annotations"]
    for rule in rules("--set", "metrics.prometheusRule.runbookUrl=https://wiki.example.com/stoker"):
        assert rule["annotations"]["runbook_url"] == f"https://wiki.example.com/stoker#{rule['alert'].lower()}"


@pytest.mark.parametrize("alert,text", sections().items(), ids=sections())
def test_a_runbook_says_what_it_means_how_to_look_what_to_do_and_when_it_is_over(alert, text):
    assert re.findall(r"^- \*\*(\w+):\*\*", text, re.MULTILINE) == ["Jobs", "Look", "Do", "Over"], alert
    assert {HISTOGRAM.sub("", name) for name in NAME.findall(text)} <= KNOWN, alert


@needs_helm
def test_rules_hold_and_fire_as_their_cases_say(tmp_path):
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "stoker", "rules": rules()}]}))
    checked = promtool("check", "rules", str(tmp_path / "rules.yaml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    cases = pathlib.Path(__file__).with_name("alert_cases.yaml")
    (tmp_path / "cases.yaml").write_text(cases.read_text())
    tested = promtool("test", "rules", str(tmp_path / "cases.yaml"))
    assert tested.returncode == 0, tested.stdout + tested.stderr


@needs_helm
def test_dashboards_are_optional_and_have_grafanas_label():
    assert not [item for item in render() if item["metadata"]["name"].endswith("-dashboard")]
    item = one(render("--set", "metrics.dashboard.enabled=true"), "ConfigMap", "stoker-dashboard")
    assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert {name: json.loads(text)["title"] for name, text in item["data"].items()} == {
        "stoker.json": "Stoker", "stoker-sidecars.json": "Stoker sidecars"}


@needs_helm
def test_pod_monitors_select_sidecars_fillers_and_node_programs():
    assert not [item for item in render() if item["kind"] == "PodMonitor"]
    items = render(*MONITORED)
    port = {}
    for name, label in (("sidecars", "stoker.dev/training-job"), ("fillers", "stoker.dev/filler")):
        spec = one(items, "PodMonitor", f"stoker-{name}")["spec"]
        assert spec["selector"]["matchExpressions"] == [{"key": label, "operator": "Exists"}]
        assert spec["namespaceSelector"] == {"any": True}
        port[name], = (endpoint["port"] for endpoint in spec["podMetricsEndpoints"])
    assert set(port.values()) == {"stoker-http"}
    assert '"stoker-http"' in (ROOT / "operator/api/job_manifest.cc").read_text()
    node = one(items, "PodMonitor", "stoker-node")["spec"]
    pod = one(items, "DaemonSet")["spec"]["template"]
    assert node["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert {"name": node["podMetricsEndpoints"][0]["port"], "containerPort": 9456} in pod["spec"]["containers"][0]["ports"]
    inside = one(render(*MONITORED, "--set", "watchNamespaces={a,b}"), "PodMonitor", "stoker-sidecars")["spec"]
    assert inside["namespaceSelector"] == {"matchNames": ["a", "b"]}


@needs_helm
def test_pod_monitor_needs_readers():
    done = helm("template", "x", CHART, "--kube-version", "1.34.0", "--set", "metrics.podMonitor.enabled=true")
    assert "needs sidecar.metricsReaders" in done.stderr


def test_reference_page_names_every_metric():
    page = (ROOT / "docs/reference/metrics.md").read_text()
    told = set(re.findall(r"^\| `([a-z0-9_]+)`", page, re.MULTILINE))
    assert told == KNOWN, "run make generate"
