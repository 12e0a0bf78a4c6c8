"""Writes the measured table of docs/reference/loaders.md."""

import datetime
import re

TABLE = re.compile(r"(<!-- begin table -->\n).*?(<!-- end table -->)", re.DOTALL)
HEAD = """| loader | lines changed | objects | without Stoker | room for all: epochs 1, 2, 3 | room for half: epochs 1, 2, 3 | bars |
| --- | ---: | ---: | ---: | ---: | ---: | --- |
"""


def gets(counts):
    return ", ".join(str(count["gets"]) for count in counts)


def row(name, result):
    return (f"| {name} {result['version']} | {result['changed']} | {result['objects']} | {result['direct'][0]['gets']} | "
            f"{gets(result['all'])} | {gets(result['half'])} | "
            f"{'missed' if result['missed'] else 'met'} |\n")


def write(path, results):
    """`results`: as in results.json; loaders that were not run through Stoker are left out."""
    rows = "".join(row(name, result) for name, result in results.items() if "all" in result)
    table = f"GETs at the origin per epoch. Run of {datetime.date.today()} with `make loaders`.\n\n{HEAD}{rows}"
    path.write_text(TABLE.sub(lambda found: found.group(1) + table + found.group(2), path.read_text()))
