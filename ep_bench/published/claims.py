"""Claims of the papers that are no entries of a table: orderings, ratios of times, convergence (``claims.yaml``)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveFloat, PositiveInt

from ep_bench.published.sources import Scheme
from ep_bench.resources import read_yaml

FILE = Path(__file__).with_name("claims.yaml")

Metric = Literal["ll", "rmse", "mae", "crps"]
Name = Annotated[str, Field(min_length=1)]


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


class _Claim(_Strict):
    """Where a claim is, in words, and the data sets on which it can be decided."""

    source: Name
    place: Name
    claim: Name
    datasets: Datasets


class DatasetsWon(_Claim):
    """Each of ``first`` is better than each of ``second`` on at least ``threshold`` of the data sets."""

    statistic: Literal["data sets won"]
    first: Methods
    second: Methods
    metric: Metric
    threshold: PositiveInt

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the labels of all methods."""
        return self.first + self.second


class TimeRatio(_Claim):
    """On each data set, ``first`` takes at least, or at most, ``threshold`` times as long as ``second``."""

    statistic: Literal["ratio of times"]
    first: Name
    second: Name
    limit: Literal["at least", "at most"] = "at least"
    threshold: PositiveFloat

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the labels of both methods."""
        return (self.first, self.second)


class FractionOk(_Claim):
    """At least the fraction ``threshold`` of the cells of the methods has ended without an error."""

    statistic: Literal["fraction ok"]
    methods: Methods
    threshold: Annotated[float, Field(gt=0.0, le=1.0)]


Claim = Annotated[DatasetsWon | TimeRatio | FractionOk, Field(discriminator="statistic")]


class _ClaimsFile(_Strict):
    claims: tuple[Claim, ...]


@cache
def load_claims(path: Path = FILE) -> tuple[DatasetsWon | TimeRatio | FractionOk, ...]:
    """Return the claims of a file."""
    return _ClaimsFile.model_validate(read_yaml(path.read_text(encoding="utf-8"))).claims
