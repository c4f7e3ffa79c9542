"""Cards: what is known of each data set, one YAML file each beside this module, or made of a plugin's arrays."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ep_bench.types import Task, UserError

CARDS = Path(__file__).parent / "cards"


class Card(BaseModel):
    """What is known of a data set without its file.

    ``path`` is the file's place in a data folder and ``other_paths`` where it may lie as well; columns count from 0.
    ``sha256`` is of the file's bytes, for an embedded set of its arrays (`ep_bench.data.embedded.checksum`), and None
    where no copy was at hand to take it from. ``paper_constants`` are the values that constant inputs take after
    standardisation under ``constant_inputs: paper``. ``classes`` of a classification set are in the order of their
    indices. Its layouts are ``classes``, a table with labels, of which incomplete rows (?) are left out and which may
    begin with names of columns (``header``), and ``libsvm``, lines of ``label index:value ...``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    n: int  # rows
    d: int  # inputs
    target: str
    inputs: tuple[str, ...] = ()  # empty: x1 to xd, or the file's header
    task: Task = "regression"
    n_splits: int = 20  # standard splits
    hidden: int | None = None  # hidden units in Hernandez-Lobato and Adams (2015)
    holdout_rows: int | None = None  # the usual last rows to test on, of each part
    parts: int = 1  # data sets of one law that follow each other, of as many rows each; a holdout has a split a part
    embedded: bool = False
    path: str | None = None
    other_paths: tuple[str, ...] = ()
    layout: Literal["table", "communities", "classes", "libsvm"] = "table"
    header: bool = False
    input_columns: tuple[int, ...] = ()  # of the layout ``classes``; empty: all but the target's
    target_column: int | None = None
    classes: dict[str, str] = Field(default_factory=dict)  # label in the file -> name
    sha256: str | None = None
    urls: tuple[str, ...] = ()
    paper_constants: dict[int, float] = Field(default_factory=dict)
    source: str
    licence: str
    citation: str
    oddities: tuple[str, ...] = ()

    def input_names(self) -> tuple[str, ...]:
        """Return the names of the d inputs."""
        return self.inputs or tuple(f"x{j + 1}" for j in range(self.d))


@lru_cache(maxsize=1)
def card_names() -> tuple[str, ...]:
    """Return the names of the built-in data sets, which have a card, sorted."""
    return tuple(sorted(path.stem for path in CARDS.glob("*.yaml")))


def card(name: str) -> Card:
    """Return the card of a data set; a plugin's is made of its arrays.

    Raises
    ------
    UserError
        There is no such data set (the message gives the nearest name), or it is a plugin's that gives none.
    """
    from ep_bench.data import plugged

    plugin = plugged.find(name) if isinstance(name, str) else None
    if plugin is not None:
        return plugged.load(plugin).card
    if name not in card_names():
        raise UserError(
            f"there is no data set {name!r}",
            where="data",
            allowed=(*card_names(), *plugged.names()),
            name=name if isinstance(name, str) else None,
        )
    return _read(name)


@cache
def _read(name: str) -> Card:
    file = CARDS / f"{name}.yaml"
    try:
        return Card.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError) as error:
        raise UserError(f"the card cannot be read: {error}", where=str(file)) from error
