"""The chart agrees with the CRDs, with the operator's flags and settings, and with its schema."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "stoker"
BUILD = pathlib.Path(os.environ.get("STOKER_BUILD", ROOT / "build" / "release"))
OPERATOR = BUILD / "bin" / "stoker-operator"


def find_helm():
    """Path of helm from $PATH, or of the one that the cluster scripts built."""
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


def test_chart_crds_equal_the_sources():
    ours = {path.name: path.read_text() for path in (ROOT / "crds").glob("*.yaml")}
    charts = {path.name: path.read_text() for path in (CHART / "files" / "crds").glob("*.yaml")}
    assert ours and ours == charts, "run `make generate`"


@needs_helm
def test_renders_every_crd_and_keeps_it_on_uninstall():
    crds = [item for item in render() if item["kind"] == "CustomResourceDefinition"]
    assert len(crds) == 5
    assert all(crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for crd in crds)
    source = {crd["metadata"]["name"]: crd["spec"] for crd in
              (yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml"))}
    assert {crd["metadata"]["name"]: crd["spec"] for crd in crds} == source


@needs_helm
def test_crds_can_be_left_out_or_removed_on_uninstall():
    assert not [i for i in render("--set", "crds.enabled=false") if i["kind"] == "CustomResourceDefinition"]
    loose = [i for i in render("--set", "crds.keep=false") if i["kind"] == "CustomResourceDefinition"]
    assert loose and all("helm.sh/resource-policy" not in i["metadata"].get("annotations", {}) for i in loose)


@needs_helm
@pytest.mark.parametrize("setting", ["sidcar.image=x", "replicas=0", "logLevel=loud", "metrics.port=99999",
                                     "image.digest=sha256:short", "sidecar.windowBytes=lots"])
def test_invalid_value_is_an_error(setting):
    assert helm("template", "x", CHART, "--kube-version", "1.34.0", "--set", setting).returncode != 0


@needs_helm
def test_old_cluster_is_rejected():
    done = helm("template", "x", CHART, "--kube-version", "1.28.0")
    assert "kubeVersion" in done.stderr


@needs_helm
@pytest.mark.parametrize("setting, words", [
    ("metrics.port=9443", "must differ, they are 9443, 8081, 9443, 8443"),
    ("webhook.enabled=true,webhook.port=8443", "must differ, they are 9443, 8081, 8080, 8443, 8443"),
    ("node.kubeletDirectory=/var/lib/../kubelet", "must be a plain absolute path"),
    ("node.kubeletDirectory=/etc/..", "must be a plain absolute path"),
])
def test_contradictory_values_are_rejected(setting, words):
    done = helm("template", "x", CHART, "--kube-version", "1.31.0", "--set", setting)
    assert words in done.stderr


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


def ingress(items, name):
    """{port: from}; None: open to all."""
    return {rule["ports"][0]["port"]: rule.get("from") for rule in one(items, "NetworkPolicy", name)["spec"]["ingress"]}


@needs_helm
def test_network_policies_are_on_and_allow_needed_traffic(tmp_path):
    items = render()
    pod = one(items, "Deployment")["spec"]["template"]
    policy = one(items, "NetworkPolicy", "stoker-operator")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    own, everywhere = {"podSelector": {}}, {"namespaceSelector": {}}
    rules_in = ingress(items, "stoker-operator")
    assert set(rules_in) == {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
    assert rules_in["control"] == [everywhere] and rules_in["probes"] == [own] and rules_in["debug"] is None
    assert own in rules_in["http"] and everywhere not in rules_in["http"]
    assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {53, 443, 6443}
    node = one(items, "NetworkPolicy", "stoker-node")["spec"]
    labels = one(items, "DaemonSet")["spec"]["template"]["metadata"]["labels"]
    assert node["podSelector"]["matchLabels"].items() <= labels.items()
    assert {port["port"] for rule in node["egress"] for port in rule["ports"]} == {53, 443, 6443, 9443}
    assert not [item for item in render("--set", "networkPolicy.enabled=false") if item["kind"] == "NetworkPolicy"]
    scraper, server = {"podSelector": {"matchLabels": {"app": "prometheus"}}}, {"ipBlock": {"cidr": "10.0.0.1/32"}}
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"networkPolicy": {"metricsFrom": [scraper], "debugFrom": [server]}}))
    rules_in = ingress(render("--values", str(values)), "stoker-operator")
    assert rules_in["http"] == [own, scraper] and rules_in["debug"] == [server]


WEBHOOK = ("--set", "webhook.enabled=true")


@needs_helm
def test_webhook_is_off_by_default():
    items = render()
    assert not [item for item in items if item["kind"] == "MutatingWebhookConfiguration"]
    assert "webhook" not in one(items, "ConfigMap", "stoker-operator")["data"]["operator.yaml"]


@needs_helm
def test_webhook_can_stop_no_pod():
    hook, = one(render(*WEBHOOK), "MutatingWebhookConfiguration")["webhooks"]
    assert hook["failurePolicy"] == "Ignore" and hook["timeoutSeconds"] == 5
    assert hook["rules"] == [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                              "scope": "Namespaced"}]
    assert hook["objectSelector"]["matchExpressions"] == [{"key": "stoker.dev/dataset", "operator": "Exists"}]
    assert hook["sideEffects"] == "NoneOnDryRun" and hook["reinvocationPolicy"] == "IfNeeded"
    assert "caBundle" not in hook["clientConfig"], "the operator's; an upgrade must not reset it"


@needs_helm
def test_webhook_skips_the_control_planes_namespaces_and_those_that_are_not_watched():
    def namespaces(*args):
        hook, = one(render(*WEBHOOK, *args), "MutatingWebhookConfiguration")["webhooks"]
        return {rule["operator"]: rule["values"] for rule in hook["namespaceSelector"]["matchExpressions"]}
    system = ["kube-system", "kube-public", "kube-node-lease", "stoker-system"]
    assert namespaces() == {"NotIn": system}
    assert namespaces("--set", "watchNamespaces={a,b}") == {"NotIn": system, "In": ["a", "b"]}


@needs_helm
def test_webhooks_service_port_and_certificate_belong_together():
    items = render(*WEBHOOK, "--set", "webhook.port=9555")
    hook, = one(items, "MutatingWebhookConfiguration")["webhooks"]
    called = hook["clientConfig"]["service"]
    service = one(items, "Service", called["name"])
    port, = service["spec"]["ports"]
    assert port["port"] == called["port"] == 9555
    container = one(items, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert {"name": port["targetPort"], "containerPort": 9555} in container["ports"]
    settings = yaml.safe_load(one(items, "ConfigMap", "stoker-operator")["data"]["operator.yaml"])["webhook"]
    assert settings["listen"] == "[::]:9555"
    assert settings["hostName"] == f"{called['name']}.{called['namespace']}.svc"
    assert settings["configurationName"] == one(items, "MutatingWebhookConfiguration")["metadata"]["name"]
    assert ingress(items, "stoker-operator")["webhook"] is None, "the API server's address is not known"


@needs_helm
def test_rendering_is_stable_and_contains_no_key():
    first = helm("template", "stoker", CHART, "--namespace", "stoker-system", "--kube-version", "1.34.0")
    second = helm("template", "stoker", CHART, "--namespace", "stoker-system", "--kube-version", "1.34.0")
    assert first.returncode == 0 and first.stdout == second.stdout
    assert not [item for item in render() if item["kind"] == "Secret"]
    assert "genCA" not in "".join(path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file())


@needs_helm
@pytest.mark.parametrize("metrics", ["true", "false"])
def test_helm_test_probes_a_port_that_the_service_has(metrics):
    items = render("--set", f"metrics.enabled={metrics}")
    url, = re.findall(r"--probe=http://([^.]+)\.stoker-system\.svc:(\d+)/readyz",
                      one(items, "Pod")["spec"]["containers"][0]["args"][0])
    service = one(items, "Service", url[0])
    target, = [port["targetPort"] for port in service["spec"]["ports"] if port["port"] == int(url[1])]
    container = one(items, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert container["readinessProbe"]["httpGet"]["port"] == target and target in ports
    settings = yaml.safe_load(one(items, "ConfigMap", "stoker-operator")["data"]["operator.yaml"])["http"]
    assert settings["probes"].endswith(f":{ports[target]}")
    assert bool(settings["metrics"]) == (metrics == "true") == ("http" in ports)


@needs_helm
def test_no_pod_mounts_the_operators_ca():
    items = render()
    assert "control-ca" not in str([item["spec"]["template"]["spec"]["volumes"] for item in items
                                    if item["kind"] == "Deployment"])
    volumes = [volume for item in items if item["kind"] in ("Deployment", "DaemonSet")
               for volume in item["spec"]["template"]["spec"]["volumes"]]
    assert not [volume for volume in volumes if "secret" in volume]
    trust, = [volume["configMap"]["name"] for volume in volumes if volume["name"] == "control-ca"]
    settings = yaml.safe_load(one(items, "ConfigMap", "stoker-operator")["data"]["operator.yaml"])["control"]
    assert settings["trustConfigMapName"] == trust


@needs_helm
def test_admission_policies_are_bound_and_can_be_turned_off():
    items = render()
    policies = {i["metadata"]["name"]: i["spec"] for i in items if i["kind"] == "ValidatingAdmissionPolicy"}
    bound = [i["spec"]["policyName"] for i in items if i["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert sorted(policies) == sorted(bound) and len(bound) == 4
    operator = "system:serviceaccount:stoker-system:stoker-operator"
    assert operator in policies["stoker-views-jobs"]["validations"][0]["expression"]
    creators = policies["stoker-views-pods"]["validations"][0]["expression"]
    assert operator in creators and "system:serviceaccount:kube-system:job-controller" in creators
    for off in (["--set", "admissionPolicy.enabled=false"], ["--kube-version", "1.29.0"]):
        assert not [i for i in render(*off) if i["kind"].startswith("ValidatingAdmissionPolicy")]


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


def rules(item):
    found = {}
    for rule in item["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


@needs_helm
def test_only_the_node_program_is_privileged():
    items = render()
    spec = one(items, "DaemonSet")["spec"]["template"]["spec"]
    assert spec["containers"][0]["securityContext"]["privileged"] is True
    settings = yaml.safe_load(one(items, "ConfigMap", "stoker-operator")["data"]["operator.yaml"])
    assert settings["node"]["serviceAccount"] == spec["serviceAccountName"]
    driver = one(items, "CSIDriver")
    assert driver["metadata"]["name"] == "csi.stoker.dev"
    assert driver["spec"]["podInfoOnMount"] is True, "the node program authorizes views by the pod's namespace"
    assert driver["spec"]["volumeLifecycleModes"] == ["Ephemeral"]


@needs_helm
def test_node_programs_mounts_reach_the_host_and_outlive_it():
    container = one(render(), "DaemonSet")["spec"]["template"]["spec"]["containers"][0]
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert mounts["kubelet"]["mountPropagation"] == "Bidirectional"


# Rights of `kubectl stoker why` and `what-if`: the leader's lease, a GET to its pod, and a token of an allowed account.
EXPLAIN_RULES = {("coordination.k8s.io", "leases"): {"get"}, ("", "pods/proxy"): {"get"},
                 ("", "serviceaccounts/token"): {"create"}}


@needs_helm
def test_explain_role_grants_only_its_needs_to_its_subjects(tmp_path):
    role = one(render(), "Role", "stoker-explain")
    assert rules(role) == EXPLAIN_RULES
    account = one(render(), "ServiceAccount", "stoker-explain")["metadata"]["name"]
    assert [rule["resourceNames"] for rule in role["rules"] if "serviceaccounts/token" in rule["resources"]] == [[account]]
    assert one(render(), "ClusterRole", "stoker-explain")["rules"] == [
        {"nonResourceURLs": ["/debug/allocation"], "verbs": ["get"]}]
    binding = one(render(), "ClusterRoleBinding", "stoker-explain")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "stoker-system"}]
    lease = yaml.safe_load(one(render(), "ConfigMap")["data"]["operator.yaml"])["leaderElection"]["leaseName"]
    assert [rule["resourceNames"] for rule in role["rules"] if "leases" in rule["resources"]] == [[lease]]
    assert not [i for i in render() if i["kind"] == "RoleBinding" and i["metadata"]["name"] == "stoker-explain"]
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"rbac": {"explain": {"subjects": [{"kind": "Group", "name": "ml-team"}]}}}))
    binding = one(render("--values", str(values)), "RoleBinding", "stoker-explain")
    assert binding["subjects"] == [{"kind": "Group", "name": "ml-team"}]
    assert binding["roleRef"]["name"] == "stoker-explain"


@needs_helm
def test_operator_accepts_the_charts_settings_and_flags(tmp_path):
    items = render(*WEBHOOK, "--set", "control.grantSeconds=90", "--set", "logLevel=debug", "--set", "watchNamespaces={a,b}")
    config = one(items, "ConfigMap")["data"]["operator.yaml"]
    (tmp_path / "operator.yaml").write_text(config)
    container = one(items, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    args = [arg.replace("/etc/stoker/operator.yaml", str(tmp_path / "operator.yaml")) for arg in container["args"]]
    done = subprocess.run([OPERATOR, *args, "--check-config"], capture_output=True, text=True, check=False,
                          env={"POD_NAME": "operator-0", "POD_NAMESPACE": "stoker-system"})
    assert done.returncode == 0, done.stdout + done.stderr
