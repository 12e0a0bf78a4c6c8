"""Pages: links and anchors have targets, docs/README.md lists every page, examples match the CRDs."""

import pathlib
import re
import subprocess

import pytest
import yaml

from crd_server import ROOT, crd_files

FENCE = re.compile(r"^( *)(```+|~~~+)[^\n]*\n.*?^\1\2", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^()\s>]+(?:\([^()\s]*\)[^()\s>]*)?)>?(?:\s+\"[^\"]*\")?\)")
YAML_BLOCK = re.compile(r"^( *)```yaml\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
NAMED_FILE = re.compile(r"`([\w./-]+/[\w.-]+\.(?:md|h|cc|py|sh|yaml|svg|proto))`")
GROUP = "stoker.dev/v1alpha1"


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT,
                         capture_output=True, text=True, check=True).stdout
    return [path for path in map(pathlib.PurePosixPath, out.splitlines()) if (ROOT / path).exists()]


TEMPLATE = pathlib.PurePosixPath("e2e/experiments/three_jobs/page.md")  # the template of docs/experiments/three-jobs.md
PAGES = [path for path in tracked("*.md") if path != TEMPLATE]
# Decisions, the changelog and experiments may name files that existed at their time.
OF_TODAY = [path for path in PAGES if path.name != "CHANGELOG.md" and path.parent.name not in ("adr", "experiments")]
FOLDERS = {path.parts[0] for path in tracked() if len(path.parts) > 1}


def prose(text):
    """The text without code, which may look like links or headings."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def anchors(text):
    """GitHub's anchors of the headings, and ids written as HTML."""
    found, seen = set(re.findall(r'<a (?:id|name)="([^"]+)"', text)), {}
    for title in re.findall(r"^#{1,6} +(.+?) *#*$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = seen[slug] = seen.get(slug, -1) + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def broken_links(page):
    text = (ROOT / page).read_text()
    for target in LINK.findall(prose(text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        if not file.exists():
            yield f"{target}: no such file"
        elif anchor and (file.suffix != ".md" or anchor not in anchors(file.read_text())):
            yield f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_has_a_target(page):
    assert not list(broken_links(page))


def test_broken_links_are_detected(tmp_path):
    page = tmp_path / "a.md"
    page.write_text("# One thing\n[a](b.md) [b](#two) [c](#one-thing) [d](https://example.com) `[e](f.md)`\n")
    assert list(broken_links(page)) == ["b.md: no such file", "#two: no such heading"]


@pytest.mark.parametrize("page", OF_TODAY, ids=str)
def test_every_file_named_in_code_style_exists(page):
    words = NAMED_FILE.findall(FENCE.sub("", (ROOT / page).read_text()))
    gone = [word for word in words if word.split("/")[0] in FOLDERS and not (ROOT / word).exists()
            and not (ROOT / page.parent / word).exists()]
    assert not gone


def modules():
    lines = (ROOT / "layers.txt").read_text().splitlines()
    return [line.split(":")[0] for line in lines if ":" in line and not line.startswith("#")]


@pytest.mark.parametrize("module", modules())
def test_every_module_has_a_short_readme(module):
    """Its own README, or the nearest one above it, which then names the module."""
    folder = pathlib.PurePosixPath(module)
    while not (ROOT / folder / "README.md").exists():
        folder = folder.parent
    text = (ROOT / folder / "README.md").read_text()
    assert folder.parts, "no README but the project's covers it"
    assert folder == pathlib.PurePosixPath(module) or f"`{module.removeprefix(f'{folder}/')}/" in text
    assert folder.parts[0] == "client" or text.count("\n") <= 10
    named = re.findall(r"`([\w/]+\.(?:h|cc|py))`", text)
    assert [name for name in named if not (ROOT / folder / name).exists() and not (ROOT / name).exists()] == []


def test_docs_readme_lists_every_page_once():
    page = pathlib.PurePosixPath("docs/README.md")
    targets = LINK.findall(prose((ROOT / page).read_text()))
    named = [((ROOT / page).parent / target).resolve().relative_to(ROOT).as_posix() for target in targets]
    others = {path.as_posix() for path in PAGES} - {page.as_posix()}
    module_pages = {path for path in others if path.endswith("/README.md") and "docs/" not in path}  # not listed: pages beside code
    assert sorted(set(named)) == sorted(named), "a page is named twice"
    assert others - module_pages <= set(named), others - module_pages - set(named)


def schemas():
    crds = [yaml.safe_load(path.read_text()) for path in crd_files()]
    return {crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in crds}


SCHEMAS = schemas()


def complaints(value, schema, path):
    """Unknown fields, values outside an enum, and missing required fields."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or not schema:
        return
    if isinstance(value, dict):
        fields, rest = schema.get("properties", {}), schema.get("additionalProperties")
        for name in sorted(set(schema.get("required", [])) - value.keys()):
            yield f"{path}.{name} is missing"
        for name, item in value.items():
            if name in fields:
                yield from complaints(item, fields[name], f"{path}.{name}")
            elif isinstance(rest, dict):
                yield from complaints(item, rest, f"{path}.{name}")
            elif schema.get("type") == "object" and path != ".metadata":
                yield f"{path}.{name} is an unknown field"
    elif isinstance(value, list):
        for item in value:
            yield from complaints(item, schema.get("items", {}), path + "[]")
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{path} may not be {value}"


def examples():
    """(path, object) of every object of group stoker.dev in a page or an example."""
    texts = [(path, (ROOT / path).read_text()) for path in tracked("docs/examples/*.yaml")]
    texts += [(page, re.sub(f"^{indent}", "", block, flags=re.MULTILINE))
              for page in PAGES for indent, block in YAML_BLOCK.findall((ROOT / page).read_text())]
    for path, text in texts:
        for item in yaml.safe_load_all(text):
            if isinstance(item, dict) and item.get("kind") in SCHEMAS:
                yield path, item


def test_every_example_object_matches_its_crd():
    found = list(examples())
    assert len(found) > 8
    wrong = [f"{path}: {item['kind']}{complaint}" for path, item in found
             for complaint in complaints(item, SCHEMAS[item["kind"]], "")]
    wrong += [f"{path}: {item['kind']} without apiVersion {GROUP}" for path, item in found if item.get("apiVersion") != GROUP]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("field, wrong, complaint", [
    ("contract", "importance", ".spec.datasets[].contract may not be importance"),
    ("datasetref", {"name": "x"}, ".spec.datasets[].datasetref is an unknown field")])
def test_misspelled_examples_are_detected(field, wrong, complaint):
    job = {"apiVersion": GROUP, "kind": "TrainingJob", "metadata": {"name": "a"},
           "spec": {"trainer": {"image": "i"}, "datasets": [{"name": "train", field: wrong}]}}
    assert complaint in list(complaints(job, SCHEMAS["TrainingJob"], ""))


def test_generated_pages_and_pictures_are_up_to_date():
    done = subprocess.run([ROOT / "tools" / "generate", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_version_is_the_same_everywhere():
    def version(path, pattern):
        return re.search(pattern, (ROOT / path).read_text(), re.MULTILINE).group(1)

    chart = "charts/stoker/Chart.yaml"
    assert len({version("CMakeLists.txt", r"project\(stoker VERSION ([\d.]+)"), version(chart, r"^version: ([\d.]+)"),
                version(chart, r'^appVersion: "([\d.]+)"'), version("client/pyproject.toml", r'^version = "([\d.]+)"'),
                version("CHANGELOG.md", r"^## ([\d.]+)")}) == 1
