"""Cards: descriptions of data sets, for built-in ones read from `datasets/<name>/card.yaml`."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ep_bench.errors import UserError
from ep_bench.resources import read_yaml, shipped_folder
from ep_bench.types import Task

CARD_FILE = "card.yaml"


class Card(BaseModel):
    """Description of a data set, available without its file.

    ``path`` is the path of the original file in a data folder; ``other_paths`` are alternatives. Columns count from 0.
    ``sha256`` is the checksum of the original bytes, or of the arrays of an embedded set
    (`ep_bench.data.embedded.checksum`). It is None if no copy was available when the card was written.

    ``paper_constants`` are the values of constant inputs after standardisation with ``constant_inputs: paper``.
    ``classes`` are in the order of their indices. ``masks`` are the checksums of the stored test sets, by
    split scheme (`splits.stored_mask`).

    The layouts of files are:

    - ``table``: numbers without a header;
    - ``communities``: the file of that data set;
    - ``classes``: a table with labels and possibly a ``header``; lines with a missing value (?) are omitted;
    - ``libsvm``: lines of ``label index:value ...``;
    - ``bits``: a NumPy file with one record per data point, the packed bits of the inputs and the target.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    n: int  # data points
    d: int  # inputs
    target: str
    inputs: tuple[str, ...] = ()  # names; if empty x1 to xd, or those of the file's header
    task: Task = "regression"
    n_splits: int = 20  # standard splits
    hidden: int | None = None  # hidden units in Hernandez-Lobato and Adams (2015)
    holdout_rows: int | None = None  # number of test points at the end of each part under the scheme `holdout`
    parts: int = 1  # consecutive data sets of equal size from one distribution; `holdout` has one split per part
    target_values: int | None = None  # number of different target values if there are few, see `few_values`
    embedded: bool = False
    path: str | None = None
    other_paths: tuple[str, ...] = ()
    layout: Literal["table", "communities", "classes", "libsvm", "bits"] = "table"
    header: bool = False
    input_columns: tuple[int, ...] = ()  # for the layout ``classes``; if empty all columns except the target
    target_column: int | None = None
    suspect_rows: tuple[int, ...] = ()  # data points that are probably wrong, see `oddities`
    leak_inputs: tuple[int, ...] = ()  # inputs that determine the target
    unranked: str | None = None  # why rankings leave the data set out, unless its leak inputs are dropped
    masks: dict[Literal["folds", "gap"], str] = Field(default_factory=dict)
    classes: dict[str, str] = Field(default_factory=dict)  # label in the file -> name
    sha256: str | None = None
    bytes: int | None = None  # size of the original file
    urls: tuple[str, ...] = ()
    paper_constants: dict[int, float] = Field(default_factory=dict)
    source: str
    licence: str
    citation: str
    oddities: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_fit_inputs(self) -> Card:
        if self.inputs and len(self.inputs) != self.d:
            raise ValueError(f"`inputs` has {len(self.inputs)} names, and `d` is {self.d}; every input needs a name.")
        return self

    def input_names(self) -> tuple[str, ...]:
        """Return the names of the d inputs."""
        return self.inputs or tuple(f"x{j + 1}" for j in range(self.d))


@lru_cache(maxsize=1)
def card_names() -> tuple[str, ...]:
    """Return the sorted names of the built-in data sets."""
    return tuple(sorted(path.parent.name for path in shipped_folder("datasets").glob(f"*/{CARD_FILE}")))


def card(name: str) -> Card:
    """Return the card of a data set. Raises UserError, with the most similar name, if there is none of this name."""
    if not isinstance(name, str) or name not in card_names():
        nearest = name if isinstance(name, str) else None
        raise UserError(f"there is no data set {name!r}", where="data", allowed=card_names(), name=nearest)
    return _read(name)


@cache
def _read(name: str) -> Card:
    file = shipped_folder("datasets") / name / CARD_FILE
    return Card.model_validate(read_yaml(file.read_text(encoding="utf-8")))
