"""docs/design/attacks.md has one row per attack, and the tests and mutants that it names exist."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = [ROOT / "e2e" / "tests" / "test_f_attacks.py", *sorted((ROOT / "e2e" / "attacks").glob("test_*.py"))]
ROWS = [line.strip("| ").split("|") for line in (ROOT / "docs" / "design" / "attacks.md").read_text().splitlines()
        if line.startswith("| ") and "`test_" in line]


def names(text):
    return re.findall(r"`([^`]+)`", text)


def test_every_attack_has_one_row():
    tests = re.findall(r"^def (test_\w+)", "\n".join(path.read_text() for path in FILES), re.MULTILINE)
    assert sorted(names(row[-1])[0] for row in ROWS) == sorted(tests)


def test_named_mutants_exist():
    mutants = {path.stem for path in (ROOT / "tests" / "mutants").glob("*.patch")}
    named = {name for row in ROWS for name in names(row[-2])}
    assert len(named) > 8 and named <= mutants, named - mutants


def test_every_row_names_a_mutant_or_the_reason_for_none():
    for row in ROWS:
        assert names(row[-2]) or row[-2].strip() in ("Kubernetes' wall", "the wall is missing"), row
