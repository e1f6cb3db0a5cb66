#!/usr/bin/env python3
"""Renders the diagrams of the documentation: NAME.txt becomes NAME.svg.

    docs/diagrams/render.py            writes each SVG
    docs/diagrams/render.py --check    fails if an SVG is not what its source says

A picture brings its own background, so that it is readable on light and dark pages, and follows the scheme of the
reader's system. A source has one statement per line; `#` begins a comment. Both kinds begin with

    title TEXT                         text for readers who do not see the picture

`kind sequence`: participants from left to right, then what happens, from top to bottom.

    actor ID LABEL
    FROM -> TO: LABEL                  a message; `-->` is an answer, `-x` one that does not arrive
    note ID: LABEL                     a step of one participant
    gap LABEL                          time passes

`kind graph`: boxes at columns and rows of a grid, and arrows with right angles.

    cell WIDTHxHEIGHT BOX_WIDTH        size of the grid and of its boxes
    box ID COLUMN,ROW LABEL            further lines of the label after `|`; `*` before it marks the subject
    arrow ID.SIDE -> ID.SIDE: LABEL    SIDE is l, r, t or b, with a shift along it: `r-12`; `<->` goes both ways;
                                       ` @0.8` before the colon moves the bend towards the end
"""
import html, pathlib, re, sys

FOLDER = pathlib.Path(__file__).parent
STYLE = """
  .back { fill: #ffffff; stroke: #d0d7de; }
  .box { fill: #f6f8fa; stroke: #57606a; }
  .strong { fill: #ddf4ff; stroke: #0969da; }
  .line, .life { stroke: #57606a; fill: none; }
  .life { stroke-dasharray: 3 4; stroke: #8c959f; }
  .head { fill: #57606a; }
  .lost { stroke: #cf222e; fill: none; }
  .halo { fill: #ffffff; }
  text { font: 14px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .small { font-size: 12.5px; fill: #57606a; }
  .bold { font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117; stroke: #30363d; }
    .box { fill: #161b22; stroke: #8b949e; }
    .strong { fill: #121d2f; stroke: #4493f8; }
    .line { stroke: #8b949e; }
    .life { stroke: #6e7681; }
    .head { fill: #8b949e; }
    .lost { stroke: #f85149; }
    .halo { fill: #0d1117; }
    text { fill: #e6edf3; }
    .small { fill: #9198a1; }
  }
"""
CHARACTER, LINE, MARGIN = 7.2, 18, 24


def width(text, size=CHARACTER):
    return len(text) * size


class Picture:
    def __init__(self, title):
        self.title, self.parts = title, []

    def add(self, part):
        self.parts.append(part)

    def text(self, x, y, label, css="", anchor="middle"):
        self.add(f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" class="{css}">{html.escape(label)}</text>')

    def label(self, x, y, label, anchor="middle"):
        """A label over lines: its own background keeps them apart."""
        lines = label.split("|")
        for number, line in enumerate(lines):
            at = y + number * 16
            left = {"middle": x - width(line, 6.5) / 2, "start": x, "end": x - width(line, 6.5)}[anchor]
            self.add(f'<rect x="{left - 3:.0f}" y="{at - 12:.0f}" width="{width(line, 6.5) + 6:.0f}" height="16" class="halo"/>')
            self.text(x, at, line, "small", anchor)

    def box(self, x, y, w, h, label):
        strong = label.startswith("*")
        lines = label.lstrip("*").split("|")
        self.add(f'<rect x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" rx="6" class="{"strong" if strong else "box"}"/>')
        top = y + h / 2 - (len(lines) - 1) * LINE / 2 + 5
        for number, line in enumerate(lines):
            self.text(x + w / 2, top + number * LINE, line, "bold" if number == 0 else "small")

    def arrow(self, x1, x2, y, dashed=False):
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self.add(f'<line x1="{x1}" y1="{y}" x2="{x2}" y2="{y}" class="line"{dash} marker-end="url(#head)"/>')

    def svg(self, w, h):
        head = '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" class="head"/></marker>'
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" width="{w:.0f}" height="{h:.0f}" role="img" aria-labelledby="title">\n'
                f'<title id="title">{html.escape(self.title)}</title>\n<style>{STYLE}</style>\n<defs>{head}</defs>\n'
                f'<rect x="0.5" y="0.5" width="{w - 1:.0f}" height="{h - 1:.0f}" rx="8" class="back"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


def sequence(title, statements):
    picture, actors, steps = Picture(title), {}, []
    for line in statements:
        if match := re.match(r"actor (\w+) (.+)", line):
            actors[match[1]] = match[2]
        else:
            steps.append(line)
    column = 250
    places = {actor: MARGIN + 95 + number * column for number, actor in enumerate(actors)}
    y, drawn = MARGIN + 44 + 34, []
    for line in steps:
        if match := re.match(r"gap (.+)", line):
            drawn.append(("gap", y, match[1])); y += 34
        elif match := re.match(r"note (\w+): (.+)", line):
            lines = match[2].split("|")
            drawn.append(("note", y, places[match[1]], lines)); y += 18 * len(lines) + 30
        elif match := re.match(r"(\w+) (-->|->|-x) (\w+): (.+)", line):
            lines = match[4].split("|")
            y += 16 * (len(lines) - 1)
            drawn.append(("message", y, places[match[1]], match[2], places[match[3]], lines)); y += 38
        else:
            sys.exit(f"not a statement of a sequence: {line}")
    bottom, right = y - 10, places[list(places)[-1]] + 95 + MARGIN
    for actor, label in actors.items():
        picture.add(f'<line x1="{places[actor]}" y1="{MARGIN + 44}" x2="{places[actor]}" y2="{bottom}" class="life"/>')
        picture.box(places[actor] - 95, MARGIN, 190, 44, label)
    for kind, y, *rest in drawn:
        if kind == "gap":
            picture.add(f'<rect x="1" y="{y - 20:.0f}" width="{right - 2:.0f}" height="24" class="halo"/>')
            picture.text(right / 2, y - 3, f"– {rest[0]} –", "small")
        elif kind == "note":
            x, lines = rest
            w = max(width(line, 6.6) for line in lines) + 24
            picture.add(f'<rect x="{x - w / 2:.0f}" y="{y - 16:.0f}" width="{w:.0f}" height="{18 * len(lines) + 10}" rx="4" class="strong"/>')
            for number, line in enumerate(lines):
                picture.text(x, y + 2 + number * 18, line, "small")
        else:
            start, arrow, end, lines = rest
            for number, line in enumerate(lines):
                picture.label((start + end) / 2, y - 7 - 16 * (len(lines) - 1 - number), line)
            if arrow == "-x":
                cut = start + (end - start) * 0.6
                picture.add(f'<line x1="{start}" y1="{y}" x2="{cut:.0f}" y2="{y}" class="line" stroke-dasharray="6 4"/>')
                picture.add(f'<path d="M{cut - 6:.0f} {y - 6}l12 12m0 -12l-12 12" class="lost" stroke-width="2"/>')
            else:
                picture.arrow(start, end, y, dashed=arrow == "-->")
    return picture.svg(right, bottom + MARGIN)


SIDES = {"l": (0, 0.5), "r": (1, 0.5), "t": (0.5, 0), "b": (0.5, 1)}


def graph(title, statements):
    picture, place, labels_of, arrows, frames = Picture(title), {}, {}, [], []
    cell_w, cell_h, box_w = 300, 130, 210
    for line in statements:
        if match := re.match(r"cell (\d+)x(\d+) (\d+)", line):
            cell_w, cell_h, box_w = map(int, match.groups())
        elif match := re.match(r"box (\w+) ([\d.]+),([\d.]+) (.+)", line):
            x, y = MARGIN + float(match[2]) * cell_w, MARGIN + float(match[3]) * cell_h
            place[match[1]] = (x, y, box_w, 30 + LINE * len(match[4].split("|")))
            labels_of[match[1]] = match[4]
        elif match := re.match(r"arrow (\w+)\.([lrtb])([+-]\d+)? (<->|->) (\w+)\.([lrtb])([+-]\d+)?(?: @([\d.]+))?(?:: (.+))?", line):
            arrows.append(match.groups())
        else:
            sys.exit(f"not a statement of a graph: {line}")

    def anchor(name, side, shift):
        x, y, w, h = place[name]
        fx, fy = SIDES[side]
        by = int(shift or 0)
        return (x + fx * w + (by if side in "tb" else 0), y + fy * h + (by if side in "lr" else 0))

    labels = []
    for start, side, shift, kind, end, to_side, to_shift, bend, label in arrows:
        (x1, y1), (x2, y2) = anchor(start, side, shift), anchor(end, to_side, to_shift)
        if side in "lr" and to_side in "lr":
            middle = x1 + (x2 - x1) * float(bend or 0.5)
            points = [(x1, y1), (middle, y1), (middle, y2), (x2, y2)]
        elif side in "tb" and to_side in "tb":
            middle = y1 + (y2 - y1) * float(bend or 0.5)
            points = [(x1, y1), (x1, middle), (x2, middle), (x2, y2)]
        else:
            points = [(x1, y1), (x2, y1) if side in "lr" else (x1, y2), (x2, y2)]
        if x1 == x2 or y1 == y2:
            points = [(x1, y1), (x2, y2)]
        ends = ' marker-end="url(#head)"' + (' marker-start="url(#head)"' if kind == "<->" else "")
        path = "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points)
        picture.add(f'<path d="{path}" class="line"{ends}/>')
        if label:
            # Beside the longest stretch: above a level one, to the right of an upright one.
            stretches = list(zip(points, points[1:]))
            (ax, ay), (bx, by) = max(stretches, key=lambda s: abs(s[0][0] - s[1][0]) + abs(s[0][1] - s[1][1]))
            lines = label.count("|")
            if ay == by:
                labels.append(((ax + bx) / 2, ay - 7 - 16 * lines, label, "middle"))
            else:
                labels.append((ax + 9, (ay + by) / 2 + 4 - 8 * lines, label, "start"))
    for name, label in labels_of.items():
        picture.box(*place[name], label)
    right = max(x + w for x, _, w, _ in place.values())
    bottom = max(y + h for _, y, _, h in place.values())
    for x, y, label, at in labels:
        picture.label(x, y, label, at)
        reach = max(width(line, 6.5) for line in label.split("|"))
        right = max(right, x + (reach if at == "start" else reach / 2))
    return picture.svg(right + MARGIN, bottom + MARGIN)


def render(source):
    lines = [line.strip() for line in source.read_text().splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    title = next(line.removeprefix("title ") for line in lines if line.startswith("title "))
    kind = next(line.removeprefix("kind ") for line in lines if line.startswith("kind "))
    rest = [line for line in lines if not line.startswith(("title ", "kind "))]
    return {"sequence": sequence, "graph": graph}[kind](title, rest)


stale = []
for source in sorted(FOLDER.glob("*.txt")):
    target, text = source.with_suffix(".svg"), render(source)
    if "--check" in sys.argv:
        if not target.exists() or target.read_text() != text:
            stale.append(target.name)
    else:
        target.write_text(text)
if stale:
    sys.exit(f"stale: {', '.join(stale)}: run docs/diagrams/render.py")
