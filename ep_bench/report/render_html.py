"""report.html: one file that contains its style, script and figures and needs no network."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader

from ep_bench.plotting.method_style import FAMILIES
from ep_bench.plotting.numbers import with_minus
from ep_bench.plotting.page import Item, Picture, Section
from ep_bench.report.first_screen import READING, View

STATIC = ("elements", "static")  # scripts of every page, in this order
WITH_CELLS = ("charts", "cell", "view")  # after these, with cells
OPEN = 1  # sections at the top of the page; the others are folded
_UNQUOTED = ' "!$()*+,-./:;<=>?@[]^{|}~'  # neither a quote, nor a reference, nor a sign that ends or escapes an address


def page(
    title: str,
    sections: Sequence[Section],
    views: Sequence[View] = (),
    data: Mapping[str, Any] | None = None,
    source: str = "",
) -> str:
    """Return the page of a report.

    Parameters
    ----------
    views : views of the first section; without any, all sections are shown as they are
    data : content of ``page_data``, for the page's script
    source : studies, hash of the cells and version, which tables and figures show under the pointer
    """
    folder = resources.files("ep_bench.report") / "page"
    environment = Environment(loader=PackageLoader("ep_bench.report"), autoescape=True, trim_blocks=True)
    environment.filters |= {
        "base64": _base64,
        "uri": _uri,
        "packed": _packed,
        "sort_key": _sort_key,
        "minus": with_minus,
    }
    style = (folder / "report.css").read_text(encoding="utf-8")
    names = STATIC + WITH_CELLS if views else STATIC
    script = "\n".join((folder / f"{name}.js").read_text(encoding="utf-8") for name in names)
    template, macros = (environment.get_template(f"{name}.html.j2") for name in ("report", "macros"))
    reading = READING.splitlines()
    parts = [view.data() | {"html": str(macros.module.view(view, reading))} for view in views]  # type: ignore[attr-defined]
    cells = {**(data or {}), "views": parts} if views else None
    return template.render(
        title=title,
        source=source,
        sections=sections,
        folded={section.id: section.summary or _contents(section) for section in sections[OPEN:]},
        views=views,
        reading=reading,
        seconds=_slider(views),
        cells=json.dumps(cells, separators=(",", ":"), ensure_ascii=False, allow_nan=False) if cells else "",
        families=FAMILIES,
        style=style,
        script=f'"use strict";\n{script}',
    )


def _slider(views: Sequence[View]) -> list[str]:
    """Return the limits of CPU time that the page offers, in words: 1, 2, 5, ... seconds between the extremes."""
    known = [row.seconds for view in views for row in view.board.ranked if row.seconds > 0.0]
    if not known:
        return []
    powers = range(math.floor(math.log10(min(known))), math.ceil(math.log10(max(known))) + 1)
    limits = [float(f"{factor * 10.0**power:.3g}") for power in powers for factor in (1.0, 2.0, 5.0)]
    return [f"{limit:g}" for limit in limits if min(known) < limit < max(known)]


def _contents(section: Section) -> str:
    """Return the content of a section in one line: numbers of figures, tables or notes, and titles of its parts."""
    parts = list(section.with_parts())
    counts = [(sum(len(part.pictures) for part in parts), "figure"), (sum(len(part.tables) for part in parts), "table")]
    if not any(count for count, _ in counts):
        counts = [(sum(len(part.lines) for part in parts), "note")]
    words = " and ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in counts if count)
    titles = [part.title for part in section.parts]
    return words + (f": {'; '.join(titles)}" if 0 < len(titles) <= 6 else "")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _packed(text: str) -> str:
    """Return a text compressed by zlib, as base64; the page's script decompresses it."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _sort_key(entry: Item) -> str | None:
    """Return the value to sort an entry by, numbers with six digits; None if it has none."""
    value = entry["value"]
    return f"{value:.6g}" if isinstance(value, float | int) else value


def _uri(picture: Picture) -> str:
    """Return the SVG of a figure as a data address for an attribute in single quotes."""
    return "data:image/svg+xml," + quote(picture.svg.strip(), safe=_UNQUOTED)
