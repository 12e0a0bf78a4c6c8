"""The table of promises in e2e/README.md names tests that exist."""

import re

from harness.kube import ROOT


def sources(pattern, *folders):
    return "\n".join(path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob(pattern)))


def test_every_test_that_the_readme_names_is_there():
    names = re.findall("`([^`]+)`", (ROOT / "e2e" / "README.md").read_text().split("## Where each promise")[1])
    python = sources("test_*.py", "e2e/tests", "e2e/attacks", "client/tests", "tests/contract")
    cases = {".".join(pair) for pair in re.findall(r"TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", sources("*_test.cc", "tests"))}
    checked = 0
    for name in names:
        if re.fullmatch(r"test_\w+…?", name):
            assert f"def {name.rstrip('…')}" in python, name
        elif re.fullmatch(r"[\w/]+\.py", name):
            places = [ROOT / folder / name for folder in ("e2e/tests", "e2e/attacks", "tests/contract", "")]
            assert any(place.exists() for place in places), name
        elif re.fullmatch(r"[A-Z]\w+\.[A-Z]\w+", name):
            assert name in cases, name
        else:
            continue
        checked += 1
    assert checked > 40
