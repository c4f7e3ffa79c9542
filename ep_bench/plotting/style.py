"""Style of all figures, and their SVG text."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
from matplotlib.figure import Figure

from ep_bench.plotting.page import Picture

# Colours and markers of curves. The colours are those of Okabe and Ito, dark ones first, without yellow.
LOOKS = (("#0072B2", "o"), ("#D55E00", "s"), ("#000000", "^"), ("#009E73", "D"), ("#CC79A7", "v"), ("#56B4E9", "P"))
# Colour, dash pattern and width of curves in one panel. The patterns distinguish them in greyscale.
STROKES = (
    ("#D55E00", (0, (6, 4)), 1.4),
    ("#0072B2", (0, (1, 1.2)), 1.4),
    ("#009E73", (0, (5, 1.5, 1, 1.5)), 1.2),
    ("#CC79A7", (0, (7, 1.2)), 1.2),
    ("#56B4E9", (0, (3, 1, 1, 1, 1, 1)), 1.4),
)
STYLE: dict[str, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "svg.hashsalt": "ep-bench",
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial", "sans-serif"],  # none wider than the first
    "pdf.fonttype": 3,
    "lines.linewidth": 1.0,
    "text.parse_math": False,  # labels come from the user and may contain dollar signs
}
COLUMNS = 3  # panels per row of a figure, so that it is readable at the width of a column
ROW = 0.17  # inches per method
LETTER = 0.062  # inches per letter of a label
SPOKEN = 12  # titles of panels that the description of a figure lists
ARROWS = {"lower": "{}, \N{LEFTWARDS ARROW} better", "higher": "{}, better \N{RIGHTWARDS ARROW}", "": "{}"}
# Black and greys are drawn in the colour of the text, which follows the colour scheme of the reader.
_INK = "svg:root{color:#1f2328;fill:currentColor}@media(prefers-color-scheme:dark){svg:root{color:#e6edf3}}"
_GREY = re.compile(r"(fill|stroke): #([0-9a-f]{2})\2\2\b(?:; \1-opacity: ([0-9.]+))?")
_LABELS = ("get_xlabel", "get_ylabel")
LINE = 0.18  # inches per line of a legend


def finish(figure: Figure, name: str, caption: str) -> Picture:
    """Return a figure as a ``Picture``. Equal figures have equal SVG text."""
    svg = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(svg, format="svg", metadata={"Date": None}, transparent=True)
    return Picture(re.sub(r"[^\w.-]+", "-", name), caption, with_ink(svg.getvalue()), figure, describe(figure))


def with_ink(svg: str) -> str:
    """Return an SVG text for light and dark pages: greys become black or white ink of some opacity."""
    return _GREY.sub(_opacity, svg).replace('<style type="text/css">', f'<style type="text/css">{_INK}', 1)


def _opacity(found: re.Match[str]) -> str:
    name, opacity = found[1], (1.0 - int(found[2], 16) / 255.0) * float(found[3] or 1.0)
    return f"{name}: currentColor" + (f"; {name}-opacity: {opacity:.2g}" if opacity < 1.0 else "")


def towards_better(label: str, better: str) -> str:
    """Return the label of a horizontal axis with an arrow to the side that is better: ``lower``, ``higher`` or none."""
    return ARROWS[better].format(label)


def with_source(svg: str, source: str) -> str:
    """Return an SVG text that states its source in its metadata, and under the pointer."""
    text = escape(source)
    svg = svg.replace("</cc:Work>", f" <dc:source>{text}</dc:source>\n   </cc:Work>", 1)
    return re.sub(r"<svg [^>]*>", lambda found: f"{found[0]}\n <title>{text}</title>", svg, count=1)


def write_picture(picture: Picture, folder: Path, *, pdf: bool = False, source: str = "") -> list[Path]:
    """Write ``<name>.svg`` and, on request, ``<name>.pdf``, with their source as metadata; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{picture.name}.svg"]
    paths[0].write_text(with_source(picture.svg, source) if source else picture.svg, encoding="utf-8")
    if pdf:
        paths.append(paths[0].with_suffix(".pdf"))
        with mpl.rc_context(STYLE):
            picture.figure.savefig(paths[1], format="pdf", metadata={"CreationDate": None, "Keywords": source or None})
    return paths


def describe(figure: Figure) -> str:
    """Return what a figure shows for readers who do not see it: its panels and the labels of their axes."""
    panels = [" ".join(ax.get_title().split()) for ax in figure.axes if ax.get_title()]
    labels = [dict.fromkeys(filter(None, (getattr(ax, name)() for ax in figure.axes))) for name in _LABELS]
    words = [f"{len(figure.axes)} panel{'s' * (len(figure.axes) != 1)}"]
    if panels:
        words[0] += f": {', '.join(panels[:SPOKEN])}" + (", and others" if len(panels) > SPOKEN else "")
    sides = ("Horizontal", "Vertical")
    words += [f"{side} axis: {', '.join(found)}" for side, found in zip(sides, labels, strict=True) if found]
    return ". ".join(words) + "."


def no_window() -> None:
    """Make libraries that import pyplot use a backend without windows."""
    os.environ.setdefault("MPLBACKEND", "Agg")
