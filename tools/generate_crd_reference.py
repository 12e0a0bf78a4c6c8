#!/usr/bin/env python3
"""Writes docs/reference/crds.md from the CRDs, so that the page agrees with the API server.

    tools/generate_crd_reference.py           writes the page
    tools/generate_crd_reference.py --check   fails if the page is out of date
"""

import argparse
import json
import pathlib
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "crds.md"
ORDER = ["trainingjobs", "datasets", "datasetwarmups", "cachepools", "cachequotas"]

HEAD = """# The kinds of stoker.dev/v1alpha1

<!-- Written by tools/generate_crd_reference.py from crds/; do not edit. -->

A user writes a [TrainingJob](#trainingjob), a team its [Datasets](#dataset) and
[DatasetWarmups](#datasetwarmup), an administrator
[CachePools](#cachepool) and [CacheQuotas](#cachequota). `kubectl explain tj.spec --recursive` shows the
same text. All five are in the category `stoker`: `kubectl get stoker`.

A field marked *Refused today* is not implemented yet. The API server rejects it with a message that names the supported
alternative; no field is silently ignored.
"""


def type_of(schema):
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity" if "pattern" in schema else "int or string"
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {type_of(schema['items'])}"
    if kind == "object" and "additionalProperties" in schema:
        return f"map to {type_of(schema['additionalProperties'])}"
    if schema.get("format") == "date-time":
        return "time"
    return kind


def limits(schema):
    """Constraints of a value in words: required by the caller, choices, default, range."""
    words = []
    if "enum" in schema:
        words.append(" \\| ".join(f"`{choice}`" for choice in schema["enum"]))
    if "default" in schema and not isinstance(schema["default"], dict):
        words.append(f"default `{json.dumps(schema['default']).strip(chr(34))}`")
    if "minimum" in schema and "maximum" in schema:
        words.append(f"{schema['minimum']} to {schema['maximum']}")
    elif "minimum" in schema:
        words.append(f"at least {schema['minimum']}")
    if "maxItems" in schema:
        words.append(f"at most {schema['maxItems']}")
    return ", ".join(words)


def rows(schema, path, required):
    """One table row per field below `schema`, depth first."""
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        inner = field
        if field.get("type") == "array":
            here, inner = here + "[]", field["items"]
        must = "required" if name in required else ""
        extra = ", ".join(part for part in (must, limits(field)) if part)
        text = " ".join(field["description"].split()).replace("|", "\\|")
        yield f"| `{here}` | {type_of(field)} | {text}{f' ({extra})' if extra else ''} |"
        yield from rows(inner, here, inner.get("required", []))


def rules(schema, path):
    """One line per CEL rule: its place and its message."""
    for rule in schema.get("x-kubernetes-validations", []):
        place = f"`{path}`: " if path else ""
        yield f"- {place}{' '.join(rule['message'].split())}."
    for name, field in schema.get("properties", {}).items():
        yield from rules(field, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from rules(schema["items"], path + "[]")


def section(crd):
    spec = crd["spec"]
    version = spec["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    scope = "Cluster-scoped" if spec["scope"] == "Cluster" else "Namespaced"
    short = spec["names"]["shortNames"][0]
    yield f"\n## {spec['names']['kind']}\n"
    yield f"{' '.join(schema['description'].split())}\n"
    yield f"{scope}, short name `{short}`.\n"
    columns = version["additionalPrinterColumns"]
    yield f"`kubectl get {short}` prints, with `-o wide` also the ones marked *wide*:\n"
    yield "| Column | Meaning |\n| --- | --- |"
    for column in columns:
        wide = " *(wide)*" if column.get("priority") else ""
        yield f"| {column['name'].upper()}{wide} | {column['description']} |"
    for part in ("spec", "status"):
        yield f"\n### {spec['names']['kind']} {part}\n"
        yield f"{' '.join(schema['properties'][part]['description'].split())}\n"
        yield "| Field | Type | Meaning |\n| --- | --- | --- |"
        inner = schema["properties"][part]
        yield from rows(inner, part, inner.get("required", []))
    found = list(rules(schema, ""))
    yield f"\n### {spec['names']['kind']} rules\n"
    yield "Checked by the API server, also while the operator is down:\n"
    yield from found


def render():
    crds = {}
    for path in (ROOT / "crds").glob("stoker.dev_*.yaml"):
        crd = yaml.safe_load(path.read_text())
        crds[crd["spec"]["names"]["plural"]] = crd
    lines = [HEAD]
    for plural in ORDER:
        lines.extend(section(crds[plural]))
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date")
    text = render()
    if parser.parse_args().check:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit(f"{PAGE.relative_to(ROOT)} is out of date; run tools/generate_crd_reference.py")
        return
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
