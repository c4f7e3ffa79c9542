"""Content of a page: sections of sentences, figures and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = dict[
    str, Any
]  # text, value to sort by, strong, small, kind (classes of the style sheet; `folded`: small folded)


def item(
    text: str, value: float | str | None = None, *, strong: bool = False, small: str = "", kind: str = "number"
) -> Item:
    """Return one entry of a table: its text, the value to sort by, and a second, smaller text."""
    return {"text": text, "value": value, "strong": strong, "small": small, "kind": kind}


@dataclass(frozen=True)
class Picture:
    """A finished figure: its file name without ending, caption, SVG text, the figure itself, and what it shows."""

    name: str
    caption: str
    svg: str
    figure: Figure
    alt: str = ""

    @property
    def size(self) -> tuple[float, float]:
        """Return width and height in CSS pixels."""
        width, height = (float(inches) * 96.0 for inches in self.figure.get_size_inches())
        return width, height


@dataclass(frozen=True)
class Table:
    """A table. An entry of a row is a text or an ``Item``; any other raises TypeError.

    Attributes
    ----------
    folded : title of a table that is collapsed until the reader opens it; empty for all others
    filters : columns by whose values a reader can filter the rows
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    folded: str = ""
    filters: Sequence[str] = ()

    def __post_init__(self) -> None:
        wrong = [entry for row in self.rows for entry in row if not isinstance(entry, str | dict)]
        if wrong:  # a bare number would be aligned and sorted as text
            title = self.caption or self.folded
            raise TypeError(f"table {title!r}: an entry must be a text or item(text, value); found {wrong[0]!r}")


@dataclass(frozen=True)
class Section:
    """A section of a page.

    Attributes
    ----------
    id : anchor of the section
    lines : sentences above the figures and tables; a single one is a paragraph, several are a list
    notes : sentences below the figures and tables
    tables_first : whether the tables come before the figures
    parts : subsections
    summary : the content in one line, shown where the section is folded; by default the page counts figures and tables
    files : further files by name, such as a table in LaTeX; the report writes them to ``tables/``
    """

    id: str
    title: str
    lines: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    tables_first: bool = False
    parts: Sequence[Section] = ()
    summary: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def figures_and_tables(self) -> list[Picture | Table]:
        """Return figures and tables in the order of the page; folded tables are last."""
        tables = [table for table in self.tables if not table.folded]
        folded = [table for table in self.tables if table.folded]
        if self.tables_first:
            return [*tables, *self.pictures, *folded]
        return [*self.pictures, *tables, *folded]

    def with_parts(self) -> Iterator[Section]:
        """Yield the section and all subsections."""
        yield self
        for part in self.parts:
            yield from part.with_parts()
