"""Claims of the papers that are no entries of a table: orderings, ratios of times, convergence (``claims.yaml``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from ep_bench.published.sources import Scheme
from ep_bench.resources import read_yaml

FILE = Path(__file__).with_name("claims.yaml")

Metric = Literal["ll", "rmse", "mae", "crps"]
PointMetric = Literal["ll", "mae", "mse", "ll-std", "ll-low"]
Relation = Literal["better", "not worse", "no different"]
EITHER = " | "  # between the labels of an entry that is the best of several methods
ABOUT = 2.0  # factor that "about" and "roughly" allow on both sides, the same for all claims
Name = Annotated[str, Field(min_length=1)]


HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
Interval = tuple[float | None, float | None]


class Finding(NamedTuple):
    """What the results show of one claim."""

    found: str
    verdict: str
    reason: str = ""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ClaimDataset(_Strict):
    """A data set under a split scheme."""

    name: Name
    scheme: Scheme = "standard"
    irrelevant_inputs: int = 0
    target_transform: str = "none"


def _dataset(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _several(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Methods = Annotated[tuple[Name, ...], BeforeValidator(_several), Field(min_length=1)]  # one or more labels
Datasets = Annotated[tuple[Annotated[ClaimDataset, BeforeValidator(_dataset)], ...], Field(min_length=1)]


class _Statement(_Strict):
    """A claim in words, and where it is."""

    source: Name
    place: Name
    claim: Name


class _Claim(_Statement):
    """A claim on cells, and the data sets on which it can be decided."""

    datasets: Datasets


class _Comparison(_Claim):
    """A claim on the order of methods."""

    first: Methods
    second: Methods

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the labels of all methods."""
        return tuple(label for entry in self.first + self.second for label in entry.split(EITHER))


class DatasetsWon(_Comparison):
    """Each of ``first`` is better than each of ``second``, or less than ``behind`` worse, on enough data sets."""

    statistic: Literal["data sets won"]
    metric: Metric
    threshold: PositiveInt
    behind: NonNegativeFloat = 0.0


class AverageRank(_Comparison):
    """Each of ``first`` has a lower average rank over the data sets than each of ``second``, ranked among all of them.

    Ranks are those of mean scores. An entry ``A | B`` is the one with the lower average rank.
    """

    statistic: Literal["average rank"]
    metric: Metric


class PointsWon(_Comparison):
    """On at least ``threshold`` data sets, each of ``first`` is related to each of ``second``, over test points.

    An entry ``A | B`` is the better one of A and B on each data set. Metrics are the mean log density (``ll``), its
    standard deviation and 1 % point, and the mean absolute and squared errors.
    """

    statistic: Literal["points"]
    metric: PointMetric
    relation: Relation = "better"
    threshold: PositiveInt


class TimeRatio(_Claim):
    """On each data set, ``first`` takes ``threshold`` times as long as ``second``: at least, at most or about."""

    statistic: Literal["ratio of times"]
    first: Name
    second: Name
    limit: Literal["at least", "at most", "about"] = "at least"
    threshold: PositiveFloat

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the labels of both methods."""
        return (self.first, self.second)


class FractionConverged(_Claim):
    """At least, or at most, the fraction ``threshold`` of the cells of the methods has converged."""

    statistic: Literal["fraction converged"]
    methods: Methods
    limit: Literal["at least", "at most"] = "at least"
    threshold: Annotated[float, Field(gt=0.0, le=1.0)]


class Measured(_Statement):
    """Numbers of an experiment, by the names of its ``figure.measures``, are in intervals; a null end is open.

    If they are ``readings`` of the same words, they decide only together.
    """

    statistic: Literal["measure"]
    study: Name
    measures: dict[Name, Interval] = Field(min_length=1)
    readings: bool = False

    def finding(self, values: Mapping[str, float]) -> Finding:
        """Return the verdict for the numbers of the experiment by name; a missing one decides nothing."""
        found = {name: (values.get(name, math.nan), *ends) for name, ends in self.measures.items()}
        wanted = {name: _in_words(low, high) for name, (_, low, high) in found.items()}
        numbers = {name: f"{name}: {value:.3g}" for name, (value, *_) in found.items()}
        if len(set(wanted.values())) == 1:
            words = f"{'; '.join(numbers.values())}; claimed: {next(iter(wanted.values()))}"
        else:
            words = "; ".join(f"{text} (claimed: {wanted[name]})" for name, text in numbers.items())
        inside = [
            (-math.inf if low is None else low) <= value <= (math.inf if high is None else high)
            for value, low, high in found.values() if not math.isnan(value)
        ]  # fmt: skip
        if self.readings and any(inside) and not all(inside):
            return Finding(words, OPEN)
        verdict = HOLDS if all(inside) else FAILS
        unknown = len(found) - len(inside)
        return Finding(words, OPEN if unknown and verdict == HOLDS else verdict)


CellClaim = DatasetsWon | AverageRank | PointsWon | TimeRatio | FractionConverged
Claim = CellClaim | Measured


class _ClaimsFile(_Strict):
    claims: tuple[Annotated[Claim, Field(discriminator="statistic")], ...]


def _in_words(low: float | None, high: float | None) -> str:
    if low == high:
        return f"{low:g}"
    if low is None or high is None:
        return f"at most {high:g}" if low is None else f"at least {low:g}"
    return f"{low:g} to {high:g}"


@cache
def load_claims(path: Path = FILE) -> tuple[Claim, ...]:
    """Return the claims of a file."""
    return _ClaimsFile.model_validate(read_yaml(path.read_text(encoding="utf-8"))).claims
