"""The form of the lock file of a study. Further keys are allowed."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ep_bench.errors import spell

ABSENT: Any = None  # default of a key that a file may leave out; null is no value of it
Object = dict[str, Any]
_FOUND = 60  # characters of a value in a message


class Form(BaseModel):
    """An object with certain keys."""

    model_config = ConfigDict(strict=True)


def problem(value: Any, form: type[Form]) -> str:
    """Return where and how a value differs from a form, empty if it does not."""
    try:
        form.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = spell(first["loc"]) or "the content"
        if first["type"] == "missing":
            return f"{place} is missing"
        problem = first["msg"].removeprefix("Value error, ")
        found = first["input"]
        return f"{place}: {problem}" + ("" if isinstance(found, dict) else f", found {repr(found)[:_FOUND]}")
    return ""


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
    recalibrate: Object = ABSENT


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
    recalibrate: Object = ABSENT
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
