"""docs/reference/rbac.md lists exactly the rights that the chart grants, with and without watchNamespaces."""

import re

import pytest

from chart_test import ROOT, needs_helm, one, render

PAGE = ROOT / "docs" / "reference" / "rbac.md"
WATCHED = ("team-a", "team-b")


def documented(title):
    """{scope: {(group, resource, name): verbs}} from the table under that heading."""
    section = PAGE.read_text().split(f"## {title}", 1)[1].split("\n## ", 1)[0]
    found = {"users": {}, "cluster": {}, "own": {}}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 5 or cells[0] not in found:
            continue
        scope, group, resources, verbs, reason = cells
        assert reason, line
        for resource in resources.split(", "):
            kind, _, name = resource.partition(" ")
            key = ("" if group == "core" else group, kind, name.strip("`"))
            assert key not in found[scope], f"{key} is a duplicate"
            found[scope][key] = set(verbs.split(", "))
    return found


def rights(role):
    found = {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames", [""]):
                    found.setdefault((group, resource, name), set()).update(rule["verbs"])
    return found


def roles_of(items, account):
    """Rights of every role that is bound to this account, by kind and namespace."""
    found = {}
    for binding in items:
        subjects = [subject["name"] for subject in binding.get("subjects", [])]
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding") or account not in subjects:
            continue
        reference = binding["roleRef"]
        role = [item for item in items if item["kind"] == reference["kind"] and
                item["metadata"]["name"] == reference["name"] and
                item["metadata"].get("namespace") == binding["metadata"].get("namespace")]
        assert len(role) == 1, binding["metadata"]
        found[binding["metadata"].get("namespace", "")] = rights(role[0])
    return found


@needs_helm
@pytest.mark.parametrize("watched", [(), ("--set", f"watchNamespaces={{{','.join(WATCHED)}}}")])
def test_page_lists_what_the_webhook_adds(watched):
    page = documented("The webhook")
    without = roles_of(render(*watched), "stoker-operator")
    added = {}
    for place, found in roles_of(render(*watched, "--set", "webhook.enabled=true"), "stoker-operator").items():
        more = {key: verbs - without[place].get(key, set()) for key, verbs in found.items()}
        added[place] = {key: verbs for key, verbs in more.items() if verbs}
    users = {name: page["users"] for name in WATCHED} if watched else {}
    cluster = page["cluster"] if watched else {**page["users"], **page["cluster"]}
    assert added == {"": cluster, "stoker-system": page["own"], **users}


def test_operator_reads_the_kinds_of_workloads_that_the_chart_grants():
    text = (ROOT / "operator" / "controllers" / "workload_kinds.cc").read_text()
    read = {(group, plural) for group, plural in re.findall(r'\{"([a-z0-9.-]+)", "[A-Za-z]+", "([a-z]+)"\}', text)}
    granted = {(group, kind) for (group, kind, _), verbs in documented("The webhook")["users"].items() if "get" in verbs}
    assert read == granted | {("batch", "jobs")}


ACCOUNTS = [("The operator", "stoker-operator"), ("The node program", "stoker-node")]


@needs_helm
@pytest.mark.parametrize("title, account", ACCOUNTS)
def test_page_lists_the_charts_rights(title, account):
    page = documented(title)
    found = roles_of(render(), account)
    assert found == {"": {**page["users"], **page["cluster"]}, "stoker-system": page["own"]}


@needs_helm
@pytest.mark.parametrize("title, account", ACCOUNTS)
def test_watched_namespaces_give_no_rights_in_others(title, account):
    page = documented(title)
    found = roles_of(render("--set", f"watchNamespaces={{{','.join(WATCHED)}}}"), account)
    assert found == {"": page["cluster"], "stoker-system": page["own"], **{name: page["users"] for name in WATCHED}}


@needs_helm
def test_external_secret_leaves_the_operator_no_secret_rights():
    rules = rights(one(render("--set", "control.tlsSecretName=mine"), "Role", "stoker-operator"))
    assert not [resource for _, resource, _ in rules if resource == "secrets"]


@needs_helm
def test_users_write_no_pools_and_quotas():
    writers = [item for item in render() if item["kind"] == "ClusterRole" and
               "rbac.authorization.k8s.io/aggregate-to-edit" in item["metadata"]["labels"]]
    written = {resource for role in writers for (_, resource, _), verbs in rights(role).items()
               if verbs - {"get", "list", "watch"}}
    assert len(writers) == 2 and written == {"trainingjobs", "datasets", "datasetwarmups"}


@needs_helm
def test_no_role_reads_all_secrets():
    for item in render("--set", "webhook.enabled=true"):
        for rule in item.get("rules", []) if item["kind"] in ("Role", "ClusterRole") else []:
            if "secrets" in rule.get("resources", []):
                assert item["kind"] == "Role" and item["metadata"]["namespace"] == "stoker-system"
                assert rule["verbs"] == ["create"] or rule["resourceNames"] in (["stoker-control-ca"], ["stoker-webhook-ca"])


def test_page_names_no_verb_twice():
    for line in PAGE.read_text().splitlines():
        verbs = re.findall(r"\b(get|list|watch|create|update|patch|delete)\b", line.split("|")[4]) if line.count("|") == 6 else []
        assert len(verbs) == len(set(verbs)), line
