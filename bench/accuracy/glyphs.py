#!/usr/bin/env python3
"""A data set of characters in many fonts: 300 classes, 12,000 PNG images of unequal sizes.

usage: glyphs.py OUT_DIR

Renders 300 characters in 40 font files of Debian's fonts-* packages into OUT_DIR/<class>/<font>.png: grey, an em square
with a margin, 40 to 128 pixels a side (drawn per image). Files are sorted by class, as most image folders are. Weights
and widths of one family give near-duplicates. A class is a character that looks like no other: of characters with the
same picture (Latin A, Greek Alpha, Cyrillic A) the first stands for all. The same packages give the same bytes.

Recipe: characters of RANGES in the order of Unicode, kept where nearly every font draws them; fonts in the order of
their names, FONTS of them spread evenly over all; sizes from random.Random(1).
"""

import functools
import pathlib
import random
import subprocess
import sys

from PIL import Image, ImageDraw, ImageFont

PACKAGES = ("fonts-dejavu-core", "fonts-dejavu-extra", "fonts-freefont-ttf", "fonts-crosextra-carlito",
            "fonts-roboto-unhinted", "fonts-open-sans", "fonts-sil-charis", "fonts-sil-doulos", "fonts-inter",
            "fonts-hack", "fonts-cmu", "fonts-croscore", "fonts-liberation")
RANGES = ((0x21, 0x7F), (0xA1, 0x180), (0x391, 0x3CA), (0x400, 0x460))
FONTS, CLASSES = 40, 300
SMALLEST, LARGEST = 40, 128  # pixels of the em square's side
SHARE_OF_FONTS = 0.95  # share of the fonts that must draw a character; the other fonts have no image of it
PROBE_SIZE = 32  # pixels at which pictures are compared
NEVER_A_CHARACTER = "\U0010fffe"  # every font draws its "missing character" box for it


def font_files():
    """FONTS font files of PACKAGES, spread evenly over all of them."""
    files = set()
    for package in PACKAGES:
        listed = subprocess.run(["dpkg", "-L", package], capture_output=True, text=True, check=True).stdout.splitlines()
        files.update(path for path in map(pathlib.Path, listed) if path.suffix in (".ttf", ".otf"))
    ordered = sorted(files, key=lambda path: path.name)
    return [ordered[index * len(ordered) // FONTS] for index in range(FONTS)]


@functools.lru_cache(maxsize=4096)
def font_of(path, size):
    return ImageFont.truetype(str(path), size)


def draw(path, character, size):
    """The character on a square of 1.5 em, centred by the font's own metrics, so that c and C differ."""
    side = size * 3 // 2
    image = Image.new("L", (side, side), 255)
    ImageDraw.Draw(image).text((side / 2, side * 0.7), character, font=font_of(path, size), fill=0, anchor="ms")
    return image


def probe(path, character):
    return draw(path, character, PROBE_SIZE).tobytes()


@functools.cache
def empty_pictures(path):
    """The font's pictures of a missing character and of a blank."""
    return probe(path, NEVER_A_CHARACTER), probe(path, " ")


def has(path, character):
    """Whether the font has a picture of the character."""
    return probe(path, character) not in empty_pictures(path)


def choose_classes(fonts):
    """CLASSES characters with the fonts that draw each: [(character, [font file])]."""
    chosen, pictures = [], set()
    for character in map(chr, (code for begin, end in RANGES for code in range(begin, end))):
        picture = probe(fonts[0], character)
        drawn_by = [font for font in fonts if has(font, character)]
        if picture in pictures or len(drawn_by) < SHARE_OF_FONTS * len(fonts):
            continue
        pictures.add(picture)
        chosen.append((character, drawn_by))
    return chosen[:CLASSES]


def write(folder):
    """Writes all images below `folder`."""
    prng = random.Random(1)
    for character, fonts in choose_classes(font_files()):
        place = folder / f"{ord(character):05x}"
        place.mkdir(parents=True, exist_ok=True)
        for font in fonts:
            draw(font, character, prng.randint(SMALLEST, LARGEST)).save(place / f"{font.stem}.png", optimize=True)


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
