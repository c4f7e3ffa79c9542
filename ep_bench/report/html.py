"""report.html: one file with style, script and figures inside, readable without a network."""

from __future__ import annotations

import base64
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader

from ep_bench.plotting.page import Picture


def embedded(picture: Picture) -> dict[str, str]:
    """Return a figure for the template: its caption and its SVG as a data address."""
    body = base64.b64encode(picture.svg.encode()).decode()
    return {"caption": picture.caption, "uri": f"data:image/svg+xml;base64,{body}"}


def page(content: dict[str, Any]) -> str:
    """Return the page of a report from the parts that the template names."""
    folder = resources.files("ep_bench.report") / "templates"
    environment = Environment(loader=PackageLoader("ep_bench.report"), autoescape=True, trim_blocks=True)
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return environment.get_template("report.html.j2").render(style=style, script=script, **content)
