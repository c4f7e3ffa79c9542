"""report.html: one file that contains its style, script and figures and needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from urllib.parse import quote

from jinja2 import Environment, PackageLoader

from ep_bench.plotting.numbers import with_minus
from ep_bench.plotting.page import Picture, Section
from ep_bench.report.folding import folded_sections

SCRIPTS = ("data", "state", "elements", "filters", "charts", "leaderboard", "trace", "cell", "main")  # in this order
_UNQUOTED = ' "!$()*+,-./:;<=>?@[]^{|}~'  # neither a quote, nor a reference, nor a sign that ends or escapes an address


def page(title: str, summary: str, sections: Sequence[Section], cells: str = "") -> str:
    """Return the page of a report; ``cells`` is the JSON of ``page_data``, empty for a page without an explorer."""
    folder = resources.files("ep_bench.report") / "page"
    environment = Environment(loader=PackageLoader("ep_bench.report"), autoescape=True, trim_blocks=True)
    environment.filters |= {"uri": _uri, "short": _short, "minus": with_minus}
    style = (folder / "report.css").read_text(encoding="utf-8")
    script = "\n".join((folder / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    return environment.get_template("report.html.j2").render(
        title=title,
        summary=summary,
        sections=sections,
        folded=folded_sections(sections),
        cells=cells,
        style=style,
        script=f'"use strict";\n{script}',
    )


def _short(value: float | str) -> str:
    """Return a value to sort by with six digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _uri(picture: Picture) -> str:
    """Return the SVG of a figure as a data address for an attribute in single quotes."""
    return "data:image/svg+xml," + quote(picture.svg.strip(), safe=_UNQUOTED)
