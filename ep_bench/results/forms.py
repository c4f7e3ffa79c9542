"""Forms of the JSON files of a results folder, so that readers need no further checks. Further keys are allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

ABSENT: Any = None  # default of a key that a file may leave out; null is no value of it
Object = dict[str, Any]
Values = list[float | None]
Finite = list[FiniteFloat]
_FOUND = 60  # characters of a value in a message


class Form(BaseModel):
    """An object with certain keys; the lists of each group of keys in ``equal`` have one length."""

    model_config = ConfigDict(strict=True)
    equal: ClassVar[Sequence[Sequence[str]]] = ()

    @model_validator(mode="after")
    def _lengths_are_equal(self) -> Self:
        for group in self.equal:
            lengths = {key: len(getattr(self, key)) for key in group if getattr(self, key) is not None}
            if len(set(lengths.values())) > 1:
                raise ValueError(", ".join(f"{key} has {n} values" for key, n in lengths.items()))
        return self


def _of_one_length(lists: list[Values]) -> list[Values]:
    if len(set(map(len, lists))) > 1:
        raise ValueError("the lists have different lengths")
    return lists


def problem(value: Any, form: type[Form]) -> str:
    """Return where and how a value differs from a form, empty if it does not."""
    try:
        form.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = _place(first["loc"]) or "the content"
        if first["type"] == "missing":
            return f"{place} is missing"
        problem = first["msg"].removeprefix("Value error, ")
        found = first["input"]
        return f"{place}: {problem}" + ("" if isinstance(found, dict) else f", found {repr(found)[:_FOUND]}")
    return ""


def _place(parts: Sequence[int | str]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")


class _Row(Form):
    cell: str
    method: str
    dataset: str
    split: int
    status: str
    reason: str = ABSENT
    study: str = ABSENT


class CellRecord(Form):
    """The record of a cell file; the numbers of its row are checked by ``cell_files``."""

    row: _Row
    factors: Object
    provenance: Object = ABSENT
    traceback: str = ABSENT
    trace: dict[str, list[Any]] = ABSENT
    notes: Object = ABSENT


class _Named(Form):
    name: str


class _Tune(Form):
    trials: int
    fraction: float
    score: str
    space: Object


class _Factors(Form):
    method: str = ABSENT
    options: Object = ABSENT
    dataset: _Named = ABSENT
    splits: Object = ABSENT
    tune: _Tune = ABSENT


class _Group(Form):
    method: str
    dataset: str
    factors: _Factors
    cells: dict[str, str]


class _Method(Form):
    use: str
    options: Object
    published: list[str] = ABSENT
    tune: Object = ABSENT
    validated: str = ABSENT


class _Origin(Form):
    method: str
    version: str | int | None
    source: str
    environment: str
    rows: dict[str, str]


class Lock(Form):
    """The file ``study.lock.json``."""

    study: str = ABSENT
    seed: int = ABSENT
    seeds: int = ABSENT
    splits: Object = ABSENT
    datasets: dict[str, _Named] = ABSENT
    methods: dict[str, _Method] = ABSENT
    compare: Object = ABSENT
    ranks: list[Object] = ABSENT
    accept: list[dict[str, str | None]] = ABSENT
    left_out: list[dict[str, str]] = ABSENT
    groups: list[_Group] = ABSENT
    superseded: list[_Group] = ABSENT
    environments: dict[str, Object] = ABSENT
    provenance: list[_Origin] = ABSENT
    environment: Object = ABSENT
    experiment: str = ABSENT
    files: dict[str, str] = ABSENT
    options: Object = ABSENT
    cell: str = ABSENT
    seconds: float = ABSENT


class GridLock(Lock):
    """The file ``study.lock.json`` of a study with cells."""

    study: str


class _Entry(Form):
    method: str
    dataset: str
    splits: list[int]
    cells: str


class _Trace(Form):
    epoch: list[Annotated[int, Field(ge=1, le=2**53)]]
    median: Values
    min: Values = ABSENT
    max: Values = ABSENT
    equal = [("epoch", "median", "min", "max")]


class _TraceEntry(_Entry):
    traces: dict[str, _Trace]


class _Panel(Form):
    grid: Annotated[Finite, Field(min_length=1)]
    mean: Finite
    std: Finite | None
    truth: Finite | None
    x_train: Annotated[Finite, Field(min_length=1)]
    y_train: Finite
    x_test: Finite
    y_test: Finite
    equal = [("grid", "mean", "std", "truth"), ("x_train", "y_train"), ("x_test", "y_test")]


class _PanelEntry(_Entry):
    panel: _Panel


class _Chain(Form):
    draws: int
    values: Annotated[list[Values], AfterValidator(_of_one_length)]


class _ChainEntry(_Entry):
    diagnostics: dict[str, Values]
    split: int | None
    chains: dict[str, _Chain]


class _StartEntry(_Entry):
    evidences: list[list[FiniteFloat | None]]
    equal = [("splits", "evidences")]


class _Search(Form):
    options: Object | None
    trials: int
    failed: int
    reason: str


class _SearchEntry(Form):
    method: str
    dataset: str
    cells: dict[str, _Search]


class Curves(Form):
    """The file ``curves.json``."""

    format: int
    traces: list[_TraceEntry]
    panels: list[_PanelEntry]
    chains: list[_ChainEntry] = ABSENT
    starts: list[_StartEntry] = ABSENT
    tuned: list[_SearchEntry] = ABSENT


class RowScores(Form):
    """The file ``rows.json``."""

    format: int
    cells: dict[str, dict[str, list[float]]]
