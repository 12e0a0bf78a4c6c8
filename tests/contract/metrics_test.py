"""Metric names agree in the sources, the reference page, the dashboards, the alerts and the runbooks."""

import functools
import json
import pathlib
import re
import subprocess

import pytest
import yaml

from chart_test import CHART, ROOT, helm, needs_helm, one, render

PREFIXES = "stoker|process|workqueue|controller_runtime|leader_election|rest_client"
NAME = re.compile(rf"\b(?:{PREFIXES})_[a-z0-9_]+\b")
DECLARED = re.compile(rf'"((?:{PREFIXES})_[a-z0-9_]+)"')
SHARED = re.compile(r"\b(?:workqueue|controller_runtime|leader_election|rest_client)_\w+")  # other programs' names, too
OF_AN_OBJECT = re.compile(r"stoker_(job|dataset|quota)_")  # with the object's namespace
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
NODE = declared("node")
KNOWN = PROCESS | OPERATOR | SIDECAR | NODE


def expressions_of(path):
    dashboard = json.loads(path.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        yield variable["name"], variable["query"]


QUERIES = [(path, title, text) for path in DASHBOARDS for title, text in expressions_of(path)]


def queries(wanted=lambda text: True):
    return [pytest.param(title, text, id=f"{path.stem}-{title}") for path, title, text in QUERIES if wanted(text)]


def family_of(name):
    bare = HISTOGRAM.sub("", name)
    return bare if bare in KNOWN else name


def names_in(expression):
    """Metric names in an expression, without label names and values."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    bare = re.sub(r"\b(by|without|on|ignoring)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\{[^}]*\}", "", bare)
    return {family_of(name) for name in NAME.findall(bare)}


@functools.cache
def rules(*args):
    rule_set = one(render("--set", "metrics.prometheusRule.enabled=true", *args), "PrometheusRule")
    return rule_set["spec"]["groups"][0]["rules"]


def promtool(*args):
    return subprocess.run(["promtool", *args], capture_output=True, text=True, check=False)


def test_sources_declare_metrics():
    assert {"stoker_job_wait_ratio", "workqueue_depth", "stoker_pool_used_bytes"} <= OPERATOR
    assert {"process_open_fds", "stoker_sidecar_sessions", "stoker_node_csi_seconds"} <= KNOWN


@pytest.mark.parametrize("title,expression", queries())
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


def selectors_in(expression):
    """(metric, its selector without braces) of each metric of the operator or the node program."""
    for name, selector in re.findall(r"(\b[a-z_]{4,}\b)(?:\{([^}]*)\})?", re.sub(r"\b(by|on)\s*\([^)]*\)", "", expression)):
        family = family_of(name)
        if family in (OPERATOR | NODE) - SIDECAR - PROCESS:
            yield family, selector


@needs_helm
def test_alerts_look_at_the_release_only():
    seen = set()
    for rule in rules("--set", "metrics.prometheusRule.operatorJob=scrape"):
        for family, selector in selectors_in(rule["expr"]):
            seen.add(family)
            assert ('namespace="stoker-system"' in selector) != bool(OF_AN_OBJECT.match(family)), rule["alert"]
            assert ('job="scrape"' in selector) == (family in OPERATOR), rule["alert"]
    assert {"leader_election_master_status", "stoker_job_running", "stoker_node_pool_ready"} <= seen
    service = one(render(), "Service", "stoker-metrics")
    assert all(f'job="{service["metadata"]["name"]}"' in rule["expr"] for rule in rules() if SHARED.search(rule["expr"]))


@pytest.mark.parametrize("title,expression", queries(SHARED.search))
def test_dashboards_take_shared_names_from_the_operator_only(title, expression):
    assert len(re.findall(r'\{job="\$job"', expression)) == len(SHARED.findall(expression)), title


def test_panels_with_a_line_per_pod_have_a_bound():
    for panel in json.loads((CHART / "files/dashboards/stoker-sidecars.json").read_text())["panels"]:
        for target in panel.get("targets", []):
            if "{{pod}}" in target.get("legendFormat", ""):
                assert re.match(r"(top|bottom)k\(20, ", target["expr"]), panel["title"]


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


def sources(*folders):
    return "".join(path.read_text() for folder in folders for path in (ROOT / folder).rglob("*.cc"))


@needs_helm
def test_runbooks_look_into_the_logs_of_both_replicas():
    text = RUNBOOKS.read_text()
    label = "app.kubernetes.io/component=operator"
    assert "logs -n stoker-system deploy/" not in text and f"-l {label} --prefix --tail=-1" in text
    name, value = label.split("=")
    assert one(render(), "Deployment")["spec"]["template"]["metadata"]["labels"][name] == value


def test_runbooks_quote_what_the_logs_say():
    quoted = [*re.findall(r'grep "([^"]+)"', " ".join(RUNBOOKS.read_text().split())),
              *re.findall(r'"([^"]+)"', sections()["StokerPoolOvercommitted"])]
    assert len(quoted) >= 5
    told = sources("operator", "node")
    assert not [words for words in quoted if f'"{words}' not in told]


def test_the_runbook_of_origins_names_codes_that_fetches_give():
    names = dict(re.findall(r'case ErrorCode::(k\w+):\s+return "(\w+)"', (ROOT / "common/base/error.cc").read_text()))
    begun = {names[code] for code in re.findall(r"ErrorCode::(k\w+),", (ROOT / "sidecar/origin/origin_metrics.cc").read_text())}
    _, do = sections()["StokerOriginFails"].split("- **Do:**")
    named = set(re.findall(r"`([a-z_]+)`", do.split("- **Over:**")[0]))
    assert {"forbidden", "unavailable"} <= named <= begun


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
def test_objects_keep_their_namespaces():
    items = render(*MONITORED, "--set", "metrics.serviceMonitor.enabled=true")
    endpoint, = one(items, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["honorLabels"] is True
    assert endpoint["port"] in [port["name"] for port in one(items, "Service", "stoker-metrics")["spec"]["ports"]]
    for item in items:
        if item["kind"] == "PodMonitor":  # a user's pod must not choose its namespace
            assert "honorLabels" not in item["spec"]["podMetricsEndpoints"][0]


@needs_helm
@pytest.mark.parametrize("monitor", ["stoker-sidecars", "stoker-fillers"])
def test_users_pods_give_only_a_sidecars_metrics_and_not_without_end(monitor):
    dropped = '[{"sourceLabels":["__name__"],"regex":"x","action":"drop"}]'
    items = render(*MONITORED, "--set-json", f"metrics.podMonitor.metricRelabelings={dropped}",
                   "--set", "metrics.podMonitor.sampleLimit=7,metrics.podMonitor.labelLimit=9")
    spec = one(items, "PodMonitor", monitor)["spec"]
    assert (spec["sampleLimit"], spec["labelLimit"]) == (7, 9)
    endpoint, = spec["podMetricsEndpoints"]
    keep, *more = endpoint["metricRelabelings"]
    assert endpoint["honorTimestamps"] is False and more == json.loads(dropped)
    assert (keep["action"], keep["sourceLabels"]) == ("keep", ["__name__"])
    kept = {name for name in KNOWN if re.fullmatch(keep["regex"], name)}
    assert kept == SIDECAR | PROCESS
    assert not re.fullmatch(keep["regex"], "kube_pod_info")


@needs_helm
def test_pod_monitor_needs_readers():
    done = helm("template", "x", CHART, "--kube-version", "1.34.0", "--set", "metrics.podMonitor.enabled=true")
    assert "needs sidecar.metricsReaders" in done.stderr


def test_reference_page_names_every_metric():
    page = (ROOT / "docs/reference/metrics.md").read_text()
    told = set(re.findall(r"^\| `([a-z0-9_]+)`", page, re.MULTILINE))
    assert told == KNOWN, "run make generate"
