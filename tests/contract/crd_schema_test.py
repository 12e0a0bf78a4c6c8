"""Conventions for all fields of all CRDs. Needs no API server."""

import re
import subprocess
import sys

import pytest
import yaml

from crd_server import ROOT, crd_files

CRDS = [yaml.safe_load(path.read_text()) for path in crd_files()]
KINDS = [crd["spec"]["names"]["kind"] for crd in CRDS]


def walk(schema, path=""):
    """(path, schema) of the schema and of everything below it."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from walk(field, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from walk(schema["items"], path + "[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], path + "{}")


def fields(crd):
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return [(path, field) for path, field in walk(schema) if path.startswith(("spec", "status"))]


def leaves_something_out(crd, complaint):
    found = sorted({path for path, field in fields(crd) if complaint(path, field)})
    assert not found, found


def pytest_generate_tests(metafunc):
    if "crd" in metafunc.fixturenames:
        metafunc.parametrize("crd", CRDS, ids=KINDS)


def test_there_are_five_kinds():
    assert sorted(KINDS) == ["CachePool", "CacheQuota", "Dataset", "DatasetWarmup", "TrainingJob"]


def test_every_field_is_described_by_sentences(crd):
    def complaint(path, field):
        text = field.get("description", "")
        anonymous = path.endswith(("[]", "{}"))
        return not (text[:1].isupper() and text.endswith(".")) and not (anonymous and not text)

    leaves_something_out(crd, complaint)


def test_every_list_is_bounded_and_has_a_merge_type(crd):
    leaves_something_out(
        crd, lambda path, field: field.get("type") == "array" and not
        {"maxItems", "x-kubernetes-list-type"} <= field.keys())


def test_every_map_is_bounded(crd):
    leaves_something_out(crd, lambda path, field: "additionalProperties" in field and "maxProperties" not in field)


def test_every_string_is_bounded(crd):
    leaves_something_out(
        crd, lambda path, field: field.get("type") == "string" and not
        {"maxLength", "enum", "format"} & field.keys())


def test_every_number_has_a_width(crd):
    leaves_something_out(
        crd, lambda path, field: field.get("type") == "integer" and "format" not in field)


def test_every_number_in_a_spec_is_bounded(crd):
    leaves_something_out(
        crd, lambda path, field: path.startswith("spec") and field.get("type") in ("integer", "number") and not
        {"minimum", "maximum"} <= field.keys())


# The only form of anyOf with types that an API server accepts; it rejects the whole CRD for any other.
def test_every_quantity_is_an_int_or_string_bounded_by_rules(crd):
    leaves_something_out(
        crd, lambda path, field: "anyOf" in field and
        (field["anyOf"] != [{"type": "integer"}, {"type": "string"}] or not field.get("x-kubernetes-int-or-string")))


def test_every_enum_is_camel_case_text(crd):
    leaves_something_out(
        crd, lambda path, field: not all(
            isinstance(value, str) and value[:1].isupper() and value.isalnum() for value in field.get("enum", [])))


def test_every_rule_has_a_message(crd):
    leaves_something_out(
        crd, lambda path, field: any(
            not rule.get("message") for rule in field.get("x-kubernetes-validations", [])))


def test_conditions_are_a_map_by_type(crd):
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    conditions = schema["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert conditions["items"]["required"] == ["type", "status", "lastTransitionTime", "reason", "message"]


def test_kinds_have_a_category_and_a_status_subresource(crd):
    version, = crd["spec"]["versions"]
    assert crd["spec"]["names"]["categories"] == ["stoker"]
    assert crd["spec"]["names"]["shortNames"]
    assert version["subresources"] == {"status": {}}
    assert "phase" not in version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]


def test_every_column_is_described(crd):
    columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
    assert all(column["description"].endswith(".") for column in columns)


def test_always_rejected_fields_say_so_in_their_description(crd):
    """The description of a field that a rule always rejects says so; `kubectl explain` shows it."""
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    found = []
    for path, field in walk(schema):
        for rule in field.get("x-kubernetes-validations", []):
            text = rule["rule"].strip()
            if text.startswith("!has(self.") and text.endswith(")") and text.count("has(") == 1 and "||" not in text:
                name = text[len("!has(self."):-1]
                if not field["properties"][name]["description"].startswith("Refused today."):
                    found.append(f"{path}.{name}")
    assert not found, found


def test_reference_page_is_up_to_date():
    subprocess.run([sys.executable, ROOT / "tools/generate_crd_reference.py", "--check"], check=True)


def texts_of_the_operator():
    """All strings of the operator's rules, with adjacent literals joined as the compiler does."""
    source = "".join(path.read_text() for path in sorted((ROOT / "operator/core/spec").glob("validate*.cc")))
    return re.sub(r'"\s*\n\s*"', "", source)


# Rules about changes, which only the API server can see, and about values that the operator's structs cannot hold.
ONLY_IN_THE_CRD = [
    "set exactly one of secretKeyRef", "minBytes must be 0 or more", "nominalQuota must be ", "borrowingLimit must be ",
    "lendingLimit must be ", "capacityPerNode must be less than", "originBandwidth must be less than",
    "rateLimit must be less than",
    "maxBytes must be less than", "minBytes must be less than", "path must not have .. as a part",
]
# Rules that the operator derives from common/domain/contract_table.h.
FROM_THE_TABLE = ["windowed belongs to", "importance belongs to", "replicate belongs to", "beta, warmupEpochs, ",
                  "outRate, minFraction, "]


def test_operators_rules_use_the_crds_messages(crd):
    texts = texts_of_the_operator()
    missing = []
    for path, field in walk(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        for rule in field.get("x-kubernetes-validations", []):
            message = " ".join(rule["message"].split())
            exempt = "oldSelf" in rule["rule"] or message.startswith(tuple(ONLY_IN_THE_CRD + FROM_THE_TABLE))
            if not exempt and message not in texts:
                missing.append(f"{path}: {message}")
    assert not missing, "\n".join(missing)
