#!/usr/bin/env python3
"""Draws docs/images/overview.svg, the README's picture. --check: fails if the file differs."""

import pathlib
import sys

from svg import Drawing

PICTURE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "images" / "overview.svg"
GREEN, BLUE, GREY, ORANGE = "#1a7f37", "#1f5fa8", "#666666", "#b35900"


def box(drawing, place, title, lines, fill):
    x, y, width, height = place
    drawing.box(x, y, width, height, fill)
    drawing.text(x + width / 2, y + 24, title, 15, bold=True)
    drawing.lines_of_text(x + width / 2, y + 44, lines, 12, fill="#444444")


def draw():
    drawing = Drawing(980, 560, "Stoker: operator, node program, sidecar, trainer, NVMe and origin")
    box(drawing, (20, 20, 190, 84), "You", ["kubectl apply", "TrainingJob, Dataset"], "#f6f6f6")
    box(drawing, (300, 20, 400, 84), "stoker-operator",
        ["starts the pods of each TrainingJob;", "divides cache bytes among jobs"], "#e8f0fb")

    drawing.box(20, 180, 680, 360, "#fafafa")
    drawing.text(36, 206, "GPU node", 15, anchor="start", bold=True)
    drawing.box(40, 220, 640, 150, "#ffffff", dashed=True)
    drawing.text(54, 242, "pod of a TrainingJob", 12, anchor="start", fill=GREY)
    box(drawing, (60, 256, 220, 98), "trainer", ["your training script", "import stoker.torch"], "#eef8f0")
    box(drawing, (440, 256, 220, 98), "stoker-sidecar",
        ["fetches misses ahead,", "keeps samples within", "the granted bytes"], "#fff3e6")
    drawing.box(40, 440, 360, 84, "#f0f0f0")
    drawing.text(220, 466, "NVMe: node directory", 15, bold=True)
    drawing.lines_of_text(220, 486, ["samples in segment files; they outlive pods", "and are shared by the pods of the node"],
                          12, fill="#444444")
    box(drawing, (460, 440, 220, 84), "stoker-node", ["DaemonSet: owns the directory,", "mounts views of it into pods"], "#f3ecfa")

    box(drawing, (780, 256, 180, 98), "origin", ["S3, web server, directory:", "all samples"], "#fbeeee")

    drawing.arrow([(210, 62), (298, 62)])
    drawing.arrow([(420, 104), (420, 218)], BLUE)
    drawing.text(410, 150, "creates the pods", 12, anchor="end", fill=BLUE)
    drawing.arrow([(540, 104), (540, 254)], BLUE)
    drawing.text(532, 150, "grants", 12, anchor="end", fill=BLUE)
    drawing.arrow([(580, 256), (580, 106)], BLUE)
    drawing.text(590, 150, "reports", 12, anchor="start", fill=BLUE)

    drawing.arrow([(280, 290), (438, 290)], GREY)
    drawing.text(359, 282, "order of the epoch", 12, fill=GREY)
    drawing.arrow([(438, 330), (282, 330)], GREY)
    drawing.text(359, 322, "place of each sample", 12, fill=GREY)

    drawing.arrow([(150, 440), (150, 356)], GREEN, 4)
    drawing.text(162, 394, "hit: mapped memory,", 13, anchor="start", fill=GREEN, bold=True)
    drawing.text(162, 411, "no request", 13, anchor="start", fill=GREEN, bold=True)
    drawing.arrow([(470, 354), (470, 400), (370, 400), (370, 438)], ORANGE)
    drawing.text(420, 416, "writes", 12, fill=ORANGE)
    drawing.arrow([(460, 482), (402, 482)], "#6f42a8")
    drawing.arrow([(780, 305), (662, 305)], ORANGE)
    drawing.text(740, 296, "miss", 12, fill=ORANGE)
    drawing.line([(870, 354), (870, 552), (10, 552), (10, 305), (58, 305)], GREY, arrow=True, dashed=True)
    drawing.lines_of_text(862, 520, ["no sidecar: the trainer", "reads the origin itself"], 12, anchor="end", fill=GREY)
    return drawing


def main():
    text = draw().render()
    if "--check" not in sys.argv:
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        PICTURE.write_text(text)
    elif not PICTURE.exists() or PICTURE.read_text() != text:
        sys.exit(f"{PICTURE} is out of date: run make generate")


if __name__ == "__main__":
    main()
