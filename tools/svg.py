"""Writes the repository's drawings as SVG: boxes, arrows, lines and text. Coordinates are pixels from the top left."""

import html

FONT = "font-family: 'DejaVu Sans', Verdana, sans-serif"


class Drawing:
    """Shapes in the order in which they were added; later ones are drawn on top."""

    def __init__(self, width, height, title):
        self._size = (width, height)
        self._title = title
        self._shapes = []

    def box(self, x, y, width, height, fill="#ffffff", stroke="#333333", dashed=False, radius=6):
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self._shapes.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}" '
                            f'fill="{fill}" stroke="{stroke}" stroke-width="1.5"{dash}/>')

    def text(self, x, y, words, size=13, anchor="middle", fill="#222222", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self._shapes.append(f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" '
                            f'fill="{fill}"{weight}>{html.escape(words)}</text>')

    def lines_of_text(self, x, y, lines, size=13, **style):
        for row, words in enumerate(lines):
            self.text(x, y + row * (size + 4), words, size, **style)

    def line(self, points, stroke="#333333", width=1.5, arrow=False, dashed=False):
        path = " ".join(f"{x},{y}" for x, y in points)
        end = f' marker-end="url(#arrow-{stroke[1:]})"' if arrow else ""
        dash = ' stroke-dasharray="3 3"' if dashed else ""
        self._shapes.append(f'<polyline points="{path}" fill="none" stroke="{stroke}" '
                            f'stroke-width="{width}"{end}{dash}/>')

    def arrow(self, points, stroke="#333333", width=1.8):
        self.line(points, stroke, width, arrow=True)

    def dot(self, x, y, radius=5, fill="#333333"):
        self._shapes.append(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{fill}"/>')

    def render(self):
        width, height = self._size
        body = "\n".join(self._shapes)
        colours = sorted({part.split(")")[0] for part in body.split("url(#arrow-")[1:]})
        markers = "\n".join(
            f'<marker id="arrow-{colour}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="#{colour}"/></marker>'
            for colour in colours)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                f'height="{height}" role="img" style="{FONT}">\n<title>{html.escape(self._title)}</title>\n'
                f'<defs>\n{markers}\n</defs>\n<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n')
