"""Cards: what is known about each data set, from `datasets/<name>/card.yaml` or from a plugin's arrays."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ep_bench.resources import read_yaml, shipped_folder
from ep_bench.types import Task, UserError

CARD_FILE = "card.yaml"
_REMEDY = "(restore the file, or install ep-bench again)"


class Card(BaseModel):
    """What is known about a data set without its file.

    ``path`` is the path of the original file in a data folder, and ``other_paths`` are alternatives; columns count from
    0. ``sha256`` is the checksum of the original bytes, for an embedded set of its arrays
    (`ep_bench.data.embedded.checksum`), and None if no copy was available when the card was written.

    ``paper_constants`` are the values of constant inputs after standardisation under ``constant_inputs: paper``.
    ``classes`` of a classification set are in the order of their indices.

    Layouts: ``table``, numbers without a header; ``communities``, the one file of that name; ``classes``, a table with
    labels, whose incomplete lines (?) are left out and which may have a ``header``; ``libsvm``, lines of
    ``label index:value ...``; ``bits``, a NumPy file of records, each the packed bits of the inputs and the target.
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
    layout: Literal["table", "communities", "classes", "libsvm", "bits"] = "table"
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
    return tuple(sorted(path.parent.name for path in shipped_folder("datasets").glob(f"*/{CARD_FILE}")))


def card(name: str) -> Card:
    """Return the card of a data set; a plugin's is made of its arrays.

    Raises
    ------
    UserError
        There is no such data set (the message gives the nearest name), or it is a plugin's that gives none.
    """
    from ep_bench.data import plugins

    plugin = plugins.find(name) if isinstance(name, str) else None
    if plugin is not None:
        return plugins.load(plugin).card
    if name not in card_names():
        raise UserError(
            f"there is no data set {name!r}",
            where="data",
            allowed=(*card_names(), *plugins.names()),
            name=name if isinstance(name, str) else None,
        )
    return _read(name)


@cache
def _read(name: str) -> Card:
    file = shipped_folder("datasets") / name / CARD_FILE
    try:
        found = Card.model_validate(read_yaml(file.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise UserError(f"{first['msg']} {_REMEDY}", where=str(file), field=field, found=first["input"]) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(
            f"the card cannot be read: {' '.join(str(error).split())} {_REMEDY}", where=str(file)
        ) from error
    if found.name != name:
        raise UserError(f"must be the name of the folder {_REMEDY}", where=str(file), field="name", found=found.name)
    return found
