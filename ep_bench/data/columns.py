"""Columns of a user's file: each holds numbers, dates or categories, as most of its cells do; all faults are found.

Numbers of a column are read at once. Only if this fails, its different cells are read one by one.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Literal, NamedTuple

import numpy as np

from ep_bench.data.class_labels import numbered
from ep_bench.errors import UserError
from ep_bench.types import Array, DatasetRef, Policy, Preparation, Task

Kind = Literal["number", "date", "category"]
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "-"})
MISSING_LABELS = MISSING - {"none", "-"}  # "none" and "-" can be names of categories
TRUTH_VALUES = {"true": 1.0, "false": 0.0}  # of inputs, as pandas.get_dummies writes them
MANY = 1000  # largest number of categories that become one input each
_EPOCH = date(1970, 1, 1).toordinal()
_YEAR_FIRST = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})", re.ASCII)
_YEAR_LAST = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})", re.ASCII)
_YAML_WORD = re.compile(r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[a-z_][\w-]*", re.ASCII | re.IGNORECASE)


class Choices(NamedTuple):
    """The choices for one column; ``kind`` is that of a column which is named as a category or date."""

    missing: str = "error"
    categories: str = "error"
    dates: str = "error"
    kind: Kind | None = None

    @classmethod
    def of(cls, ref: DatasetRef, name: str) -> Choices:
        """Return the choices of a data set for the column ``name``."""
        kind: Kind | None = None
        if name in named(ref.categories):
            kind = "category"
        elif name in named(ref.dates):
            kind = "date"
        return cls(_choice(ref.missing, name), _choice(ref.categories, name), _choice(ref.dates, name), kind)


class Column(NamedTuple):
    """A column: values (n,), NaN if missing; categories are indices of their ``names``; and its faults."""

    name: str
    kind: Kind
    values: Array
    preparation: Preparation = Preparation()
    names: tuple[str, ...] = ()
    faults: tuple[UserError, ...] = ()


Place = Callable[[int], str]  # file and line of a row, from 0


def named(policy: Policy) -> Mapping[str, str]:
    """Return the choices of a policy by the names of columns, none if it is one for all."""
    return {} if isinstance(policy, str) else dict(policy)


def _choice(policy: Policy, name: str) -> str:
    return policy if isinstance(policy, str) else named(policy).get(name, "error")


def entry(key: str, choices: Mapping[str, str]) -> str:
    """Return a key of a data entry and its choices by the names of columns, in YAML."""
    pairs = (
        f"{name if _YAML_WORD.fullmatch(name) else json.dumps(name, ensure_ascii=False)}: {to}"
        for name, to in choices.items()
    )
    return f"{key}: {{{', '.join(pairs)}}}"


def number(cell: str) -> float | None:
    """Return the number in a field, or None; underscores and digits of other alphabets are not accepted."""
    if "_" in cell or not cell.isascii():
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def has_value(cell: str, task: Task) -> bool:
    """Return whether a cell of the target has a value."""
    return cell.strip().lower() not in (MISSING if task == "regression" else MISSING_LABELS)


def read_input(name: str, cells: Sequence[str], place: Place, choices: Choices) -> Column:
    """Return the column of an input from its cells (n,)."""
    if choices.kind is None and (values := _all_numbers(cells)) is not None:
        return Column(name, "number", values)
    found = _Cells(name, cells, place, TRUTH_VALUES)
    kind = choices.kind or found.kind()
    return {"number": found.numbers, "date": found.dates, "category": found.categories}[kind](choices)


def read_target(name: str, cells: Sequence[str], place: Place) -> Column:
    """Return the column of a regression target from its cells (n,)."""
    values = _all_numbers(cells)
    if values is not None:
        return Column(name, "number", values)
    found = _Cells(name, cells, place, {})
    values, wrong = found.as_numbers()
    text = "finite numbers"
    remedies = {
        _MISSING: f"{text}, or `{entry('missing', {name: 'drop'})}`",
        _NOT_A_NUMBER: f"{text}; for labels of classes use `task: classification`",
    }
    return Column(name, "number", values, faults=found.faults(wrong, remedies, text))


def read_labels(name: str, cells: Sequence[str], place: Place) -> tuple[Column, Array]:
    """Return the column of a classification target from its cells (n,), and the class indices (n,)."""
    found = _Cells(name, cells, place, {})
    is_missing = found.missing(MISSING_LABELS)
    faults = found.faults({_MISSING: is_missing}, {}, f"a label, or `{entry('missing', {name: 'drop'})}`")
    labels = [found.text[cell] for cell in cells]
    numbers = [found.number_of[cell] for cell in cells]
    y, names = numbered(labels, numbers)
    is_text = None in numbers
    values = y if is_text else np.array(numbers, dtype=np.float64)
    return Column(name, "category" if is_text else "number", values, names=names, faults=faults), y


def _all_numbers(cells: Sequence[str]) -> Array | None:
    """Return the cells as finite numbers (n,), or None if one is none."""
    joined = "".join(cells)
    if "_" in joined or not joined.isascii():  # accepted by float
        return None
    try:
        values = np.array(list(map(float, cells)), dtype=np.float64)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


_MISSING, _INFINITE, _NOT_A_NUMBER = "missing value", "infinite value", "not a number"
_COMMA = f"{_NOT_A_NUMBER}; use a decimal point"
Wrong = Mapping[str, Collection[str]]  # problem -> the different cells that have it


class _Cells:
    """The different cells of a column with what each may be."""

    def __init__(self, name: str, cells: Sequence[str], place: Place, truth: Mapping[str, float]) -> None:
        self._name, self._cells, self._place, self._counts = name, cells, place, Counter(cells)
        self.text = {cell: cell.strip() for cell in self._counts}
        self.number_of = {cell: truth.get(text.lower(), number(text)) for cell, text in self.text.items()}

    def missing(self, names: Collection[str] = MISSING) -> set[str]:
        """Return the cells without a value, which are one of ``names`` or NaN."""
        numbers = self.number_of
        return {
            cell
            for cell, text in self.text.items()
            if text.lower() in names or ((value := numbers[cell]) is not None and math.isnan(value))
        }

    def kind(self) -> Kind:
        """Return what most cells are that have a value."""
        is_missing = self.missing()
        filled = [cell for cell in self._counts if cell not in is_missing]
        numbers = {cell for cell in filled if self.number_of[cell] is not None or _has_comma(cell)}
        dates = _dates({cell: self.text[cell] for cell in filled if cell not in numbers})
        count = self._count
        of_kind: dict[Kind, int] = {"number": count(numbers), "date": count(dates.days.keys() | dates.ambiguous)}
        of_kind["category"] = count(filled) - sum(of_kind.values())
        return max(of_kind, key=lambda kind: of_kind[kind])

    def as_numbers(self) -> tuple[Array, Wrong]:
        """Return the cells as numbers (n,), NaN if they are none, and what is wrong with them."""
        is_missing = self.missing()
        known = {cell: value for cell, value in self.number_of.items() if value is not None and math.isfinite(value)}
        others = self._counts.keys() - known.keys() - is_missing
        infinite = {cell for cell in others if self.number_of[cell] is not None}
        comma = {cell for cell in others - infinite if _has_comma(cell)}
        wrong = {_MISSING: is_missing, _INFINITE: infinite, _COMMA: comma, _NOT_A_NUMBER: others - infinite - comma}
        return self._values(known), wrong

    def numbers(self, choices: Choices) -> Column:
        """Return the column as numbers."""
        values, wrong = self.as_numbers()
        has_missing = bool(wrong[_MISSING])
        remedies = {
            _MISSING: f"finite numbers, or `{self._mend('missing', 'median')}`, most_frequent or keep",
            _NOT_A_NUMBER: f"finite numbers; replace it, or set `{self._mend('categories', 'onehot')}` or ordinal",
        }
        return self._column("number", values, self._unmended(wrong, choices), remedies, choices, has_missing)

    def dates(self, choices: Choices) -> Column:
        """Return the column as days since 1970."""
        is_missing = self.missing()
        found = _dates({cell: text for cell, text in self.text.items() if cell not in is_missing})
        others = self._counts.keys() - found.days.keys() - found.ambiguous - is_missing
        wrong = {_MISSING: is_missing, "not a date": others, "day and month cannot be told apart": found.ambiguous}
        if choices.dates == "error" and not found.ambiguous:
            wrong["dates, not numbers"] = set(found.days)
        remedies = {
            _MISSING: f"dates, or `{self._mend('missing', 'median')}`, most_frequent or keep",
            "dates, not numbers": f"numbers, or `{self._mend('dates', 'days')}`",
        }
        kept = self._unmended(wrong, choices)
        return self._column("date", self._values(found.days), kept, remedies, choices, bool(is_missing))

    def categories(self, choices: Choices) -> Column:
        """Return the column as indices of its categories, which are sorted by value if all are numbers."""
        is_missing = self.missing(MISSING_LABELS)
        filled = [cell for cell in self._counts if cell not in is_missing]
        indices, names = numbered([self.text[cell] for cell in filled], [self.number_of[cell] for cell in filled])
        wrong: dict[str, Collection[str]] = {_MISSING: is_missing}
        if choices.categories == "error":
            wrong["categories, not numbers"] = filled
        elif choices.categories == "onehot" and len(names) > MANY:
            wrong[f"{len(names)} categories are too many for onehot"] = filled
        remedies = {
            _MISSING: f"a text, or `{self._mend('missing', 'most_frequent')}` or keep",
            "categories, not numbers": f"numbers, or `{self._mend('categories', 'onehot')}` or ordinal",
        }
        values = self._values(dict(zip(filled, indices.tolist(), strict=True)))
        kept = self._unmended(wrong, choices)
        ordinal = f"at most {MANY} categories, or `{self._mend('categories', 'ordinal')}`"
        column = self._column("category", values, kept, remedies, choices, bool(is_missing), ordinal)
        return column._replace(names=names)

    def _column(
        self, kind: Kind, values: Array, wrong: Wrong, remedies: Mapping[str, str], choices: Choices,
        has_missing: bool, allowed: str | None = None,
    ) -> Column:  # fmt: skip
        missing = choices.missing if has_missing else "error"
        preparation = Preparation(missing, choices.categories if kind == "category" else "error")
        default = allowed or {"number": "finite numbers", "date": "dates such as 2026-11-29"}[kind]
        return Column(self._name, kind, values, preparation, faults=self.faults(wrong, remedies, default))

    def _unmended(self, wrong: Wrong, choices: Choices) -> Wrong:
        """Return what is wrong, without missing values if there is a choice for them."""
        return {key: cells for key, cells in wrong.items() if key != _MISSING or choices.missing == "error"}

    def faults(self, wrong: Wrong, remedies: Mapping[str, str], allowed: str) -> tuple[UserError, ...]:
        """Return one error for each problem that cells have, at the first of their lines."""
        found = []
        for problem, cells in wrong.items():
            if (count := self._count(cells)) and (wanted := frozenset(cells)):
                head, advice, rest = problem.partition("; ")
                first = next(row for row, cell in enumerate(self._cells) if cell in wanted)
                found.append(
                    UserError(
                        head + (f" in {count} lines" if count > 1 else "") + advice + rest,
                        where=self._place(first),
                        field=f"column {self._name}",
                        found=self.text[self._cells[first]][:80],
                        allowed=remedies.get(problem, allowed),
                    )
                )
        return tuple(found)

    def _mend(self, key: str, choice: str) -> str:
        return entry(key, {self._name: choice})

    def _count(self, cells: Iterable[str]) -> int:
        return sum(self._counts[cell] for cell in cells)

    def _values(self, known: Mapping[str, float]) -> Array:
        """Return the values (n,) of the cells, NaN for those not in ``known``."""
        table = dict.fromkeys(self._counts, math.nan) | dict(known)
        return np.array(list(map(table.__getitem__, self._cells)), dtype=np.float64)


def _has_comma(cell: str) -> bool:
    return "," in cell and number(cell.replace(",", ".")) is not None


class _Dates(NamedTuple):
    days: dict[str, float]  # cell -> days since 1970
    ambiguous: set[str]  # cells whose day and month cannot be told apart


def _dates(texts: Mapping[str, str]) -> _Dates:
    """Return the cells that are dates, or dates with a time, in ISO format or with slashes, dots or hyphens.

    With the year last, dots mean that the day is first; otherwise the other dates of the column show the order.
    """
    days: dict[str, float] = {}
    open_order: dict[str, tuple[int, int, int]] = {}
    for cell, text in texts.items():
        if (match := _YEAR_LAST.fullmatch(text)) is not None:
            first, second, year = int(match[1]), int(match[3]), int(match[4])
            if match[2] == ".":
                _keep(days, cell, year, second, first)
            else:
                open_order[cell] = year, first, second
        elif (match := _YEAR_FIRST.fullmatch(text)) is not None:
            _keep(days, cell, *map(int, match.groups()))
        elif (value := _iso_days(text)) is not None:
            days[cell] = value
    day_first = any(first > 12 for _, first, _ in open_order.values())
    if day_first == any(second > 12 for _, _, second in open_order.values()):
        return _Dates(days, set(open_order))
    for cell, (year, first, second) in open_order.items():
        _keep(days, cell, year, *((second, first) if day_first else (first, second)))
    return _Dates(days, set())


def _keep(days: dict[str, float], cell: str, year: int, month: int, day: int) -> None:
    """Add the days since 1970 of a cell, unless there is no such day."""
    try:
        days[cell] = float(date(year, month, day).toordinal() - _EPOCH)
    except ValueError:
        return


def _iso_days(text: str) -> float | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return moment.timestamp() / 86_400.0
