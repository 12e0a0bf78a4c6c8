#!/usr/bin/env python3
"""Builds all pages of the repository as one site with search: build/site/html.

Usage: tools/build_site.py     (`make docs`: in a virtual environment with mkdocs-material)
Copies every Markdown file, and every file that one links to, into build/site/pages at its own path. Takes the
navigation from the headings and links of docs/README.md, in their order. Runs `mkdocs build --strict`, which fails on
broken links."""

import pathlib
import re
import shutil
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
PAGES = SITE / "pages"
MAP = ROOT / "docs" / "README.md"
LINK = re.compile(r"\]\(([^()\s#]+)(?:#[^()\s]*)?\)")
TEMPLATES = {"e2e/experiments/three_jobs/page.md"}  # templates of generated pages


def tracked(pattern):
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern], cwd=ROOT,
                         capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in out.splitlines() if (ROOT / name).exists() and name not in TEMPLATES]


def linked_files(page):
    targets = {(page.parent / target).resolve() for target in LINK.findall(page.read_text()) if ":" not in target}
    return {target for target in targets if target.is_file()}


def copy_pages():
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = tracked("*.md")
    for source in sorted(set(pages).union(*map(linked_files, pages))):
        target = PAGES / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def navigation():
    """[{title: page}], with one nested list per heading of docs/README.md."""
    nav, at = [{"Stoker": "README.md"}, {"All pages": "docs/README.md"}], None
    for line in MAP.read_text().splitlines():
        heading = re.match(r"(##+) (.+)", line)
        entry = re.match(r"- \[([^]]+)\]\(([^)]+)\)", line)
        if heading:
            at = []
            nav.append({heading.group(2): at})
        elif entry:
            page = (MAP.parent / entry.group(2)).resolve().relative_to(ROOT)
            at.append({entry.group(1): str(page)})
    return nav


def main():
    copy_pages()
    # Appends to mkdocs.yml as text: it names a Python function, which only mkdocs' own loader can read.
    places = {"docs_dir": str(PAGES), "site_dir": str(SITE / "html"), "nav": navigation()}
    config = SITE / "mkdocs.yml"
    config.write_text((ROOT / "mkdocs.yml").read_text() + yaml.safe_dump(places, sort_keys=False))
    return subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", config],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
