#!/usr/bin/env python3
"""Draws docs/images/modules.svg, ARCHITECTURE's picture of which module includes which, from layers.txt. --check: only
compares.

A box is a module. It includes the modules that its arrows lead to, directly or through others; modules of the bottom
row are available to all and have no arrows."""

import pathlib
import sys

from svg import Drawing

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "modules.svg"
BOX, ROW, GAP, TITLE = (124, 40), 84, 14, 40
GREY = "#777777"
# Title, module prefixes, colour of each group: a program's own modules and its command-line tool's.
GROUPS = [("operator, and kubectl stoker", ("operator/", "cli/kubectl_stoker"), "#e8f0fb"),
          ("sidecar, and stoker simulate", ("sidecar/", "cli/stoker"), "#fff3e6"),
          ("node program", ("node/",), "#f3ecfa"),
          ("Python client", ("client/",), "#eef8f0")]
SHARED = ("common/", "proto/", "wire/")


def read_layers():
    lines = (ROOT / "layers.txt").read_text().splitlines()
    rows = [line.split(":") for line in lines if ":" in line and not line.startswith("#")]
    return {module: [word for word in words.split() if word != "-"] for module, words in rows}


def reach(layers, module):
    """Every module that `module` includes, directly or through others."""
    found = set()
    for below in layers[module]:
        found |= {below} | reach(layers, below)
    return found


def needed_arrows(layers, module, members):
    """Modules of the group that `module` includes and that no other included member includes."""
    direct = [below for below in layers[module] if below in members]
    return [below for below in direct if not any(below in reach(layers, other) for other in direct if other != below)]


def depth(layers, module, members):
    return max((1 + depth(layers, below, members) for below in layers[module] if below in members), default=0)


def short(module):
    return module if module.startswith("cli/") else module.split("/", 1)[1].removeprefix("src/")


def spread(layers, row, places, left, width):
    """Left edges of a row's modules: each above the middle of the modules it includes, without overlaps."""
    step = BOX[0] + GAP
    middle = left + (width - BOX[0]) / 2

    def wish(module):
        below = [places[other][0] for other in needed_arrows(layers, module, places)]
        return sum(below) / len(below) if below else middle

    order = sorted(row, key=wish)
    if not places:
        return {module: left + GAP + (width - GAP - len(row) * step) / 2 + i * step for i, module in enumerate(order)}
    starts, free = {}, left + GAP
    for index, module in enumerate(order):
        last = left + width - (len(order) - index) * step
        starts[module] = min(max(wish(module), free), last)
        free = starts[module] + step
    return starts


def members_of(layers, prefixes):
    return [module for module in layers if module.startswith(prefixes)]


def width_of(layers, members):
    levels = [depth(layers, module, members) for module in members]
    widest = max(levels.count(level) for level in levels)
    return widest * (BOX[0] + GAP) + GAP + (BOX[0] if len(members) > 9 else 0)


def draw_group(drawing, layers, group, left, bottom):
    title, prefixes, fill = group
    members = members_of(layers, prefixes)
    rows = {}
    for module in members:
        rows.setdefault(depth(layers, module, members), []).append(module)
    width = width_of(layers, members)
    places = {}
    for level in sorted(rows):
        y = bottom - BOX[1] - level * ROW
        for module, x in spread(layers, rows[level], places, left, width).items():
            places[module] = (x, y)
    top = min(y for _, y in places.values()) - TITLE
    drawing.box(left, top, width, bottom - top + GAP, "#fcfcfc", "#bbbbbb", dashed=True)
    drawing.text(left + width / 2, top + 22, title, 14, bold=True)
    for module, (x, y) in places.items():
        for below in needed_arrows(layers, module, members):
            to_x, to_y = places[below]
            drawing.line([(x + BOX[0] / 2, y + BOX[1]), (to_x + BOX[0] / 2, to_y)], GREY, 1, arrow=True)
    for module, (x, y) in places.items():
        drawing.box(x, y, *BOX, fill)
        foreign = sorted({below.split("/")[0] for below in layers[module]} - {module.split("/")[0], "common", "proto", "wire"}
                         if not module.startswith("cli/") else set())
        drawing.text(x + BOX[0] / 2, y + (18 if foreign else 25), short(module), 12)
        if foreign:
            drawing.text(x + BOX[0] / 2, y + 33, "and of " + ", ".join(foreign), 10, fill=GREY)
    return width


def draw_shared(drawing, layers, top, width):
    drawing.box(16, top, width - 32, 120, "#f6f6f6", "#bbbbbb", dashed=True)
    drawing.text(32, top + 24, "shared by all programs: values, formats, messages, system access", 14, anchor="start", bold=True)
    shared = [module for module in layers if module.startswith(SHARED)]
    columns = (len(shared) + 1) // 2
    step = (width - 64) / columns
    for index, module in enumerate(shared):
        x, y = 32 + index % columns * step, top + 36 + index // columns * 40
        drawing.box(x, y, step - 12, 32, "#ffffff")
        drawing.text(x + (step - 12) / 2, y + 21, module, 12)


def draw():
    layers = read_layers()
    groups = [members_of(layers, prefixes) for _, prefixes, _ in GROUPS]
    width = 16 + sum(width_of(layers, members) + 16 for members in groups)
    highest = max(depth(layers, module, members) for members in groups for module in members)
    bottom = 16 + TITLE + highest * ROW + BOX[1]
    drawing = Drawing(width, bottom + GAP + 16 + 120 + 16, "Modules of Stoker and the modules they include")
    left = 16
    for group in GROUPS:
        left += draw_group(drawing, layers, group, left, bottom) + 16
    draw_shared(drawing, layers, bottom + GAP + 16, width)
    return drawing


def main():
    text = draw().render()
    if "--check" not in sys.argv:
        PICTURE.write_text(text)
    elif not PICTURE.exists() or PICTURE.read_text() != text:
        sys.exit(f"{PICTURE} is out of date: run make generate")


if __name__ == "__main__":
    main()
