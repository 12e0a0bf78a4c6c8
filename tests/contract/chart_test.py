"""The chart agrees with the CRDs, with the operator's flags and settings, and with its own schema."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "stoker"
BUILD = pathlib.Path(os.environ.get("STOKER_BUILD", ROOT / "build" / "release"))
OPERATOR = BUILD / "bin" / "stoker-operator"


def find_helm():
    """helm of $PATH, or the one that the cluster scripts built."""
    script = ROOT / "e2e" / "cluster" / "cluster.sh"
    text = subprocess.run([script, "env"], capture_output=True, text=True, check=False).stdout
    found = subprocess.run(["bash", "-c", f"{text}\ncommand -v helm"], capture_output=True, text=True, check=False)
    return shutil.which("helm") or found.stdout.strip()


HELM = find_helm()
needs_helm = pytest.mark.skipif(not HELM, reason="no helm: `make cluster-up` builds one")


def helm(*args):
    return subprocess.run([HELM, *args], capture_output=True, text=True, check=False)


def render(*args):
    done = helm("template", "stoker", CHART, "--namespace", "stoker-system", "--kube-version", "1.34.0", *args)
    assert done.returncode == 0, done.stderr
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def one(items, kind, name=None):
    found = [item for item in items if item["kind"] == kind and name in (None, item["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} of {kind} {name}"
    return found[0]


def test_the_charts_definitions_are_those_of_crds():
    ours = {path.name: path.read_text() for path in (ROOT / "crds").glob("*.yaml")}
    charts = {path.name: path.read_text() for path in (CHART / "files" / "crds").glob("*.yaml")}
    assert ours and ours == charts, "run `make generate`"


@needs_helm
def test_it_renders_every_definition_and_keeps_it_on_uninstall():
    crds = [item for item in render() if item["kind"] == "CustomResourceDefinition"]
    assert len(crds) == 4
    assert all(crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for crd in crds)
    source = {crd["metadata"]["name"]: crd["spec"] for crd in
              (yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml"))}
    assert {crd["metadata"]["name"]: crd["spec"] for crd in crds} == source


@needs_helm
def test_definitions_can_be_left_out_or_let_go():
    assert not [i for i in render("--set", "crds.enabled=false") if i["kind"] == "CustomResourceDefinition"]
    loose = [i for i in render("--set", "crds.keep=false") if i["kind"] == "CustomResourceDefinition"]
    assert loose and all("helm.sh/resource-policy" not in i["metadata"].get("annotations", {}) for i in loose)


@needs_helm
@pytest.mark.parametrize("setting", ["sidcar.image=x", "replicas=0", "logLevel=loud", "metrics.port=99999",
                                     "image.digest=sha256:short", "sidecar.windowBytes=lots"])
def test_a_wrong_value_is_an_error(setting):
    assert helm("template", "x", CHART, "--kube-version", "1.34.0", "--set", setting).returncode != 0


@needs_helm
def test_an_old_cluster_is_refused():
    done = helm("template", "x", CHART, "--kube-version", "1.28.0")
    assert "kubeVersion" in done.stderr


def test_every_value_is_in_the_schema():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())

    def walk(node, rules, path):
        if "$ref" in rules:
            rules = schema["definitions"][rules["$ref"].rsplit("/", 1)[1]]
        for key, value in node.items():
            known = rules.get("properties")
            if known is None:
                return
            assert key in known, f"{path}{key} is not in values.schema.json"
            if isinstance(value, dict):
                walk(value, known[key], f"{path}{key}.")

    walk(values, schema, "")


@needs_helm
def test_network_policies_are_a_switch_and_let_through_what_is_needed():
    assert not [item for item in render() if item["kind"] == "NetworkPolicy"]
    items = render("--set", "networkPolicy.enabled=true")
    pod = one(items, "Deployment")["spec"]["template"]
    policy = one(items, "NetworkPolicy", "stoker-operator")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
    assert {rule["ports"][0]["port"] for rule in policy["ingress"]} == ports
    assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {53, 443, 6443}
    nodes = one(items, "NetworkPolicy", "stoker-nodes")["spec"]
    assert nodes["policyTypes"] == ["Ingress", "Egress"] and "ingress" not in nodes and "egress" not in nodes


@needs_helm
def test_every_container_is_restricted():
    for item in render():
        if item["kind"] not in ("Deployment", "Pod"):
            continue
        spec = item["spec"]["template"]["spec"] if item["kind"] == "Deployment" else item["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container.get("resources", {}).get("limits") or item["kind"] == "Pod"


# What the operator may do. Adding a verb is a decision: change it here in the same commit, and say why.
CLUSTER_RULES = {
    ("stoker.dev", "trainingjobs"): {"get", "list", "watch", "delete"},
    ("stoker.dev", "datasets"): {"get", "list", "watch"},
    ("stoker.dev", "cachepools"): {"get", "list", "watch"},
    ("stoker.dev", "cachequotas"): {"get", "list", "watch"},
    ("stoker.dev", "trainingjobs/status"): {"get", "patch"},
    ("stoker.dev", "datasets/status"): {"get", "patch"},
    ("stoker.dev", "cachepools/status"): {"get", "patch"},
    ("stoker.dev", "cachequotas/status"): {"get", "patch"},
    ("stoker.dev", "trainingjobs/finalizers"): {"update"},
    ("batch", "jobs"): {"get", "list", "watch", "create", "patch", "delete"},
    ("", "services"): {"get", "list", "watch", "create"},
    ("", "pods"): {"get", "list", "watch"},
    ("", "nodes"): {"get", "list", "watch"},
    ("", "namespaces"): {"get", "list", "watch"},
    ("events.k8s.io", "events"): {"create", "patch"},
    ("", "events"): {"list"},
    ("authentication.k8s.io", "tokenreviews"): {"create"},
}
OWN_NAMESPACE_RULES = {
    ("coordination.k8s.io", "leases"): {"get", "create", "update"},
    ("", "pods"): {"create", "delete"},
}


def rules(item):
    found = {}
    for rule in item["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


@needs_helm
def test_the_operator_has_these_rights_and_no_others():
    items = render()
    assert rules(one(items, "ClusterRole", "stoker-operator")) == CLUSTER_RULES
    assert rules(one(items, "Role", "stoker-operator")) == OWN_NAMESPACE_RULES


# What `kubectl stoker why` and `what-if` need: who leads, and a GET to that pod.
EXPLAIN_RULES = {("coordination.k8s.io", "leases"): {"get"}, ("", "pods/proxy"): {"get"}}


@needs_helm
def test_who_may_ask_the_operator_why_is_named_and_may_do_nothing_else(tmp_path):
    role = one(render(), "Role", "stoker-explain")
    assert rules(role) == EXPLAIN_RULES
    lease = yaml.safe_load(one(render(), "ConfigMap")["data"]["operator.yaml"])["leaderElection"]["leaseName"]
    assert [rule["resourceNames"] for rule in role["rules"] if "leases" in rule["resources"]] == [[lease]]
    assert not [i for i in render() if i["kind"] == "RoleBinding" and i["metadata"]["name"] == "stoker-explain"]
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"rbac": {"explain": {"subjects": [{"kind": "Group", "name": "ml-team"}]}}}))
    binding = one(render("--values", str(values)), "RoleBinding", "stoker-explain")
    assert binding["subjects"] == [{"kind": "Group", "name": "ml-team"}]
    assert binding["roleRef"]["name"] == "stoker-explain"


@needs_helm
def test_a_closed_metrics_port_can_let_the_api_server_in(tmp_path):
    scraper, server = {"podSelector": {"matchLabels": {"app": "prometheus"}}}, {"ipBlock": {"cidr": "10.0.0.1/32"}}
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"networkPolicy": {
        "enabled": True, "metricsFrom": [scraper], "apiServerFrom": [server]}}))
    policy = one(render("--values", str(values)), "NetworkPolicy", "stoker-operator")["spec"]
    assert [rule["from"] for rule in policy["ingress"] if rule["ports"][0]["port"] == "http"] == [[scraper, server]]


@needs_helm
def test_the_operator_accepts_the_settings_and_flags_that_the_chart_gives_it(tmp_path):
    items = render("--set", "control.grantSeconds=90", "--set", "logLevel=debug")
    config = one(items, "ConfigMap")["data"]["operator.yaml"]
    (tmp_path / "operator.yaml").write_text(config)
    container = one(items, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    args = [arg.replace("/etc/stoker/operator.yaml", str(tmp_path / "operator.yaml")) for arg in container["args"]]
    done = subprocess.run([OPERATOR, *args, "--check-config"], capture_output=True, text=True, check=False,
                          env={"POD_NAME": "operator-0", "POD_NAMESPACE": "stoker-system"})
    assert done.returncode == 0, done.stdout + done.stderr
