"""The record of an experiment, and the results that its figure reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pydantic import BaseModel

Arrays = Mapping[str, Any]
Row = dict[str, Any]  # column -> value, as in results.csv
SummaryRow = Mapping[str, str]  # column -> text, as in summary.csv
Computed = tuple[dict[str, Any], list[dict[str, Any]]]  # arrays by name, rows of the summary


EXACT = 1e-6  # tolerance of numbers that differ by rounding only


@dataclass(frozen=True)
class ExperimentResults:
    """The stored results of an experiment.

    ``arrays`` has the content of ``arrays.npz``, ``options`` those of ``study.lock.json``, ``summary`` the rows of
    ``summary.csv``.
    """

    study: str
    arrays: Arrays
    options: Mapping[str, Any] = field(default_factory=dict)
    summary: Sequence[SummaryRow] = ()


class Claim(NamedTuple):
    """A statement on an experiment, whether the stored results agree with it, and their numbers in words."""

    text: str
    holds: bool | None  # None: not decided
    found: str

    @property
    def sentence(self) -> str:
        """Return the claim and its verdict."""
        verdict = "is not decided" if self.holds is None else "holds" if self.holds else "does not hold"
        return f"Claim: {self.text}. It {verdict}: {self.found}."


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper that is not a grid of cells.

    The functions are in the modules ``compute`` and ``figure`` of ``package``, and are imported on first use: a report
    loads ``figure`` alone, without numba and scikit-learn.

    - ``compute.Config``: frozen pydantic model of the options.
    - ``compute.compute(config, seed)``: return the arrays by name, and the rows of the summary, which may be empty. The
      arrays are stored without pickle, so they hold no Python objects.
    - Or, for an experiment of several parts, which run as cells do: ``compute.calls(config, seed)`` returns the
      arguments of each part, ``compute.part(*call)`` a value of JSON types, and ``compute.combine(config, values)``
      what ``compute`` returns. A value may be a mapping with ``failure``, a reason. Optional are
      ``compute.lost(reason)``, the value of a part without one, ``compute.check(value)``, which raises UserError if no
      further part is worth computing, and ``compute.estimates(config)``, the rough seconds of each part or None.
    - ``figure.draw(results)``: return the pictures.
    - ``figure.tables(results)``, optional: return tables that come before the summary.
    - ``figure.measures(results)``, optional: return numbers by name, which the claims on the experiment in
      ``published/claims.yaml`` are about. The report opens with these claims.
    - ``figure.claims(results)``, optional: return further statements that the report opens with, and whether they hold.
    - ``figure.cells(results)``, optional: return the scores of repetitions as rows of ``results.csv``, for the
      comparison with published tables that have the name of the experiment in ``sources.yaml``.
    - ``figure.columns(results)``, with ``figure.cells``: return the columns of these tables by the labels of the
      entries that are compared with them.

    Increase ``version`` whenever the numbers change. Versions of methods count only for methods in the options
    (``method_entries.ExperimentMethod``), not for those that ``compute`` names itself. ``caption`` explains the columns
    of the summary. The summary omits the columns in ``tabulated``, which ``figure.tables`` shows, and is not shown if
    it has no others. ``tolerance`` is the largest difference of equal numbers of two summaries from different
    processors, relative to the largest absolute value of their column; None if such summaries cannot be compared,
    because they depend on single random draws or on rounding errors. ``measured`` has the columns of the summary that
    are computed from times, apart from those with ``seconds`` in their name.
    """

    name: str
    version: int
    package: str
    caption: str
    tabulated: frozenset[str] = frozenset()
    tolerance: float | None = EXACT
    measured: frozenset[str] = frozenset()

    @property
    def config(self) -> type[BaseModel]:
        """Model of the options."""
        model: type[BaseModel] = self._load("compute").Config
        return model

    @property
    def compute(self) -> Callable[[Any, int], Computed]:
        """Function of options and seed that computes arrays and summary, of an experiment without parts."""
        function: Callable[[Any, int], Computed] = self._load("compute").compute
        return function

    def optional(self, name: str) -> Callable[..., Any] | None:
        """Return a function of ``compute`` that not every experiment has."""
        return getattr(self._load("compute"), name, None)

    def show(self, name: str, results: ExperimentResults) -> Any:
        """Return what a function of ``figure`` returns for some results, an empty list without such a function."""
        return getattr(self._load("figure"), name, lambda _: [])(results)

    def _load(self, module: str) -> Any:
        return import_module(f"{self.package}.{module}")


def uses(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the names in the registry of the method entries in the options of an experiment, by label."""
    return {str(entry.get("label", "")): str(entry.get("use", "")) for entry in options.get("methods", ())}


def by_method(rows: Sequence[SummaryRow], column: str, **where: str) -> dict[str, float]:
    """Return a column of a summary as numbers, by method (or scheme), of the rows with some other values."""
    kept = [row for row in rows if all(row.get(name) == value for name, value in where.items()) and row.get(column)]
    return {row.get("method") or row["scheme"]: float(row[column]) for row in kept}
