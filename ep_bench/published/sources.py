"""Descriptions of the published tables, from ``sources.yaml``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from ep_bench.resources import read_yaml

Trust = Literal["sound", "disputed", "unexamined", "indicative", "yardstick"]
Spread = Literal["standard error", "standard deviation", "points", "none"]
Scheme = Literal["standard", "folds", "kfold", "contiguous", "shuffle", "gap", "holdout"]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class OneScheme(_Strict):
    """A split scheme and the number of splits of a published mean; without a scheme nothing is comparable."""

    scheme: Scheme | None
    count: PositiveInt
    files: Literal["public"] | None = None
    folds: PositiveInt | None = None
    test_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None


class ComparableScheme(_Strict):
    """A scheme with other random splits of the same kind, and the number of splits that our mean requires."""

    scheme: Scheme
    count: PositiveInt
    counts: dict[str, PositiveInt] = Field(default_factory=dict)


class Splits(OneScheme):
    """The split scheme of a table, with exceptions for single data sets.

    ``kindred`` is a comparable scheme if the table has its own random splits, which cannot be drawn again.
    """

    counts: dict[str, PositiveInt] = Field(default_factory=dict)
    others: dict[str, OneScheme] = Field(default_factory=dict)
    kindred: ComparableScheme | None = None

    def of(self, dataset: str) -> OneScheme:
        """Return the scheme and number of splits of one data set, named as in the table."""
        if dataset in self.others:
            return self.others[dataset]
        count = self.counts.get(dataset, self.count)
        return OneScheme(
            scheme=self.scheme, count=count, files=self.files, folds=self.folds, test_fraction=self.test_fraction
        )

    def kindred_of(self, dataset: str) -> tuple[str, int]:
        """Return the kindred scheme and its number of splits of one data set, an empty name and 0 if there is none."""
        if self.kindred is None or dataset in self.others:
            return "", 0
        return self.kindred.scheme, self.kindred.counts.get(dataset, self.kindred.count)


class Alias(_Strict):
    """The data set of ep-bench that a data set of a table corresponds to."""

    name: str
    irrelevant_inputs: int = 0
    target_transforms: tuple[str, ...] = ("none",)  # with which our cells are compared


class PublishedColumn(_Strict):
    """Trust in single methods of a table, their spread if it differs, and the earlier source that the table repeats.

    A description with ``datasets`` is that of these data sets only. ``scored_by`` has the column of results.csv that is
    comparable with a metric, if it is not the one of this name.
    """

    methods: tuple[str, ...]
    datasets: tuple[str, ...] = ()
    trust: Trust
    why: str
    spread: Spread | None = None
    repeats: str = ""
    scored_by: dict[str, str] = Field(default_factory=dict)


class ExchangedDatasets(_Strict):
    """Two data sets whose printed values are exchanged.

    With ``disputed``, the values are also compared as printed, with the verdict `disputed`.
    """

    methods: tuple[str, ...]
    datasets: tuple[str, str]
    text: str
    disputed: str = ""


class CellOptions(_Strict):
    """Options of a cell: of its data set and of its method."""

    dataset: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)


class Remark(_Strict):
    """A remark on a comparison, for one data set or all, unless the cells have certain options.

    With ``use``, it is on entries of this method only.
    """

    methods: tuple[str, ...]
    use: str = ""
    dataset: str | None = None
    unless: CellOptions | None = None
    text: str


class ComparedEntries(_Strict):
    """Columns of a table with which the entries of one of our methods are compared."""

    methods: tuple[str, ...]
    use: str
    hidden_layers: int | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    def fits(self, use: str, options: Mapping[str, Any]) -> bool:
        """Return whether an entry with a registry name and resolved options is compared with these columns."""
        layers = self.hidden_layers in {None, len(options.get("hidden") or ())}
        return use == self.use and layers and all(options.get(key) == value for key, value in self.options.items())


class PublishedTable(_Strict):
    """One table of one source."""

    source: str
    table: str
    citation: str
    protocol: str
    splits: Splits
    spread: Spread
    trust: Trust
    why: str
    units: Literal["original", "normalised"] = "original"
    decimals: PositiveInt | None = None
    point_spreads: dict[str, str] = Field(default_factory=dict)
    points: dict[str, PositiveInt] = Field(default_factory=dict)
    absent: dict[str, str] = Field(default_factory=dict)
    time_unit: str = ""
    columns: tuple[PublishedColumn, ...] = ()
    exchanged: tuple[ExchangedDatasets, ...] = ()
    compared: tuple[ComparedEntries, ...] = ()
    remarks: tuple[Remark, ...] = ()
    aliases: dict[str, Alias] = Field(default_factory=dict)
    experiment: str = ""  # that computes the table, if it is no grid of cells

    def column(self, method: str, dataset: str) -> PublishedColumn:
        """Return trust, spread and origin of one method's column on a data set."""
        plain = PublishedColumn(methods=(method,), trust=self.trust, why=self.why)
        ordered = sorted(self.columns, key=lambda column: not column.datasets)
        found = (one for one in ordered if method in one.methods and dataset in (one.datasets or (dataset,)))
        return next(found, plain)


class Sources(_Strict):
    """All tables, and the names of data sets common to all of them."""

    aliases: dict[str, Alias]
    tables: tuple[PublishedTable, ...]

    def table(self, source: str, table: str) -> PublishedTable:
        """Return the description of one table. Raises KeyError if there is none."""
        for candidate in self.tables:
            if (candidate.source, candidate.table) == (source, table):
                return candidate
        raise KeyError((source, table))

    def alias(self, table: PublishedTable, dataset: str) -> Alias:
        """Return the data set of ep-bench that a data set of a table corresponds to."""
        return table.aliases.get(dataset) or self.aliases.get(dataset) or Alias(name=dataset)


@cache
def load_sources() -> Sources:
    """Return the validated content of ``sources.yaml``."""
    text = resources.files("ep_bench.published").joinpath("sources.yaml").read_text(encoding="utf-8")
    return Sources.model_validate_json(json.dumps(read_yaml(text)))  # strict validation accepts lists as tuples in JSON
