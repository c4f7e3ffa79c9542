"""report.html: one file that contains its style, script and figures and needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from urllib.parse import quote

from jinja2 import Environment, PackageLoader

from ep_bench.plotting.page import Picture, Section

_UNQUOTED = ' "!$()*+,-./:;=?@[]^{|}~'  # neither markup, nor a sign that ends or escapes an address


def page(title: str, summary: str, sections: Sequence[Section]) -> str:
    """Return the page of a report."""
    folder = resources.files("ep_bench.report") / "templates"
    environment = Environment(loader=PackageLoader("ep_bench.report"), autoescape=True, trim_blocks=True)
    environment.filters["uri"] = _uri
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    template = environment.get_template("report.html.j2")
    return template.render(title=title, summary=summary, sections=sections, style=style, script=script)


def _uri(picture: Picture) -> str:
    """Return the SVG of a figure as a data address for an attribute in single quotes; it contains no markup."""
    return "data:image/svg+xml," + quote(picture.svg.strip(), safe=_UNQUOTED)
