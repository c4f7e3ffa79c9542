"""What a page consists of: sections of lines, figures and tables. Renderers write them as HTML or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = dict[str, Any]  # text, value to sort by, strong, small, kind (a class of the style sheet)


def item(
    text: str, value: float | str | None = None, *, strong: bool = False, small: str = "", kind: str = "number"
) -> Item:
    """Return one cell of a table."""
    return {"text": text, "value": value, "strong": strong, "small": small, "kind": kind}


@dataclass(frozen=True)
class Picture:
    """A finished figure: its file name without ending, caption, SVG text, and the figure itself."""

    name: str
    caption: str
    svg: str
    figure: Figure

    def write(self, folder: Path, *, pdf: bool = False) -> list[Path]:
        """Write ``<name>.svg`` and, if asked, ``<name>.pdf``; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{self.name}.svg"]
        paths[0].write_text(self.svg, encoding="utf-8")
        if pdf:
            paths.append(folder / f"{self.name}.pdf")
            import matplotlib as mpl

            from ep_bench.plotting.style import STYLE

            with mpl.rc_context(STYLE):
                self.figure.savefig(paths[1], format="pdf", metadata={"CreationDate": None})
        return paths


@dataclass(frozen=True)
class Table:
    """A table; an entry of a row is a text or an ``Item``."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a page: its anchor, its title, sentences, figures and tables."""

    id: str
    title: str
    lines: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
