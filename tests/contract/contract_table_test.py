"""The CRD and docs/reference/sampling-contracts.md agree with the table of contract parameters."""

import re

import pytest
import yaml

from crd_server import ROOT

TABLE = (ROOT / "common/domain/contract_table.h").read_text()
NARROWER = {"kLess": "smaller", "kMore": "larger", "kSame": ""}


def rows():
    """{(contract, name): (bounds and step, default, narrower, which side sets it, family, words)}."""
    result = {}
    for text in re.findall(r"Row\{(.*?)\}(?:\}|,\n)", TABLE.partition("return std::array{")[2], re.DOTALL):
        fields, _, words = text.replace("{}", '""').partition("{")
        contract, name, *numbers = [field.strip().strip('"') for field in fields.split(",") if field.strip()]
        *bounds, standard = map(float, numbers[:4])
        narrower, set_by, family = (numbers[4:] + ["kTrainingJob", ""][len(numbers) - 5:])[:3]
        result[contract[1:].lower(), name] = (
            tuple(bounds), standard, NARROWER[narrower], set_by, family, re.findall(r'"(\w+)"', words))
    return result


ROWS = rows()
OF_THE_JOB = {key: row for key, row in ROWS.items() if row[3] == "kTrainingJob"}
MEMBERS = ("windowed", "importance", "replicate")


@pytest.fixture(scope="module")
def dataset():
    """Schemas of the members of spec.datasets[]."""
    crd = yaml.safe_load((ROOT / "crds/stoker.dev_trainingjobs.yaml").read_text())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return spec["datasets"]["items"]["properties"]


def test_table_is_parsed_completely():
    assert len(ROWS) == TABLE.count("Row{") > 15


def test_crd_contracts_match_the_table(dataset):
    (names,) = re.findall(r"kContracts\{\s*(.*?)\}", TABLE)
    assert [name.lower() for name in dataset["contract"]["enum"]] == re.findall(r"\w+", names)


def test_crd_bounds_match_the_table(dataset):
    ours = {key: row[0] for key, row in OF_THE_JOB.items() if not row[5]}
    theirs = {(member, name): (float(field["minimum"]), float(field["maximum"]),
                               1.0 if field["type"] == "integer" else field.get("multipleOf", 0))
              for member in MEMBERS
              for name, field in dataset[member]["properties"].items() if field["type"] != "string"}
    assert ours == theirs


def test_crd_enums_match_the_table(dataset):
    ours = {key: row[5] for key, row in OF_THE_JOB.items() if row[5]}
    theirs = {(member, name): field["enum"] for member in MEMBERS
              for name, field in dataset[member]["properties"].items() if field["type"] == "string"}
    assert ours == theirs
    assert all(row[0] == (0, len(row[5]) - 1, 1) for row in OF_THE_JOB.values() if row[5])


def test_crd_rule_of_each_importance_family_names_its_parameters_of_the_table(dataset):
    rules = dataset["importance"]["x-kubernetes-validations"]
    for family in ("ICache", "Iowa"):
        (rule,) = [rule["rule"] for rule in rules if " ".join(rule["message"].split()).endswith(f"family {family}")]
        ours = {name for (_, name), row in OF_THE_JOB.items() if row[4] == family}
        assert set(re.findall(r"!has\(self\.(\w+)\)", rule)) - {"family"} == ours, family


def snake(name):
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def test_page_defaults_match_the_table():
    page = (ROOT / "docs/reference/sampling-contracts.md").read_text()
    listed = {name: (float(default), narrower.strip())
              for name, default, narrower in re.findall(r"^\| `(\w+)` \| ([\d.]+) \| (smaller|larger|) ?\|", page, re.MULTILINE)}
    expected = {snake(name): row[1:3] for (contract, name), row in ROWS.items()
                if contract == "importance" and row[4] != "Iowa" and not row[5]}
    assert listed == expected
    in_prose = {snake(name): row[1] for (_, name), row in ROWS.items()
                if row[4] == "Iowa" and not row[5] or name in ("drift", "replication", "bias")}
    for name, default in in_prose.items():
        assert re.search(rf"`{name}` \({default:g}\b", page), name
