"""The study: what it holds once it is read, and the shapes of its file that pydantic checks."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from ep_bench.types import DatasetRef, OptionProblem, SplitScheme, Task

ACCEPT_METRICS = ("rmse", "ll", "lpd-mean", "se-mean")

_LINE = r"^\S(.*\S)?$"
_FOLDER = r"^[A-Za-z0-9]([A-Za-z0-9 ._+-]*[A-Za-z0-9_+-])?$"
PATTERNS = {  # what a message says is allowed
    _LINE: "one line of text without spaces at its ends",
    r"\S": "some text",
    _FOLDER: "a folder's name: letters, digits and . _ + - or a space, with a letter or digit first",
}

Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=_LINE)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=_LINE)]
Sentence = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"\S")]
FolderName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=_FOLDER)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Fraction = Annotated[float, Field(gt=0.0, lt=1.0)]


class Catalogue(Protocol):
    """The names that a study may use, and checks of options; ``base`` is the folder of the study."""

    datasets: Collection[str]
    methods: Collection[str]
    experiments: Collection[str]
    published: Collection[str]  # columns of the published tables
    sources: Collection[str]  # sources of the published tables

    def check_options(self, use: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:
        """Return the problems of the options of a method."""
        ...

    def check_experiment(self, name: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:
        """Return the problems of the options of an experiment."""
        ...

    def search_space(self, use: str, base: Path) -> Mapping[str, Any] | None:
        """Return the search space that a method declares, or None."""
        ...


class Strict(BaseModel):
    """Frozen, no unknown keys, no conversion of types, no infinite or undefined number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Limits(Strict):
    """Limits of one cell; None is no limit. ``seconds`` covers a tuned cell's search and its final fit together."""

    seconds: Annotated[float, Field(gt=0.0, le=1e8)] | None = None
    memory_gb: Annotated[float, Field(gt=0.0, le=1e6)] | None = None


class Tune(Strict):
    """Search on a validation part of the training rows of each split.

    The first of ``trials`` has the options that the entry gives, else the method's defaults, even where they lie
    outside ``space``; a trial that fails counts. ``fraction`` of the training rows validate: each trial is fitted to
    the others and judged there, by mean log density (``ll``), by ``rmse``, of classes by ``error_rate``, and the best
    options are fitted anew to all training rows. ``space`` is in the canonical form of ``spec.space`` once a study is
    read, the method's declared one where the file has none.
    """

    trials: Annotated[int, Field(ge=1, le=100_000)] = 30
    fraction: Fraction = 0.2
    space: Annotated[dict[str, Any], Field(min_length=1)] | None = None
    score: Literal["ll", "rmse", "error_rate"] = "ll"


class Accept(Strict):
    """A known difference from a published number, with its reason."""

    method: Label
    dataset: Label
    metric: Literal["rmse", "ll", "lpd-mean", "se-mean"]
    reason: Sentence


class Compare(Strict):
    """Labels that all methods are held against: ``rows`` in the scores of each test row, ``times`` in the times."""

    rows: Label | None = None
    times: Label | None = None


class RankGroup(Strict):
    """Methods that a report ranks together.

    ``methods`` are labels of this study or of those that are reported with it. ``beside`` is a source of published
    tables, whose ranks of the same methods stand beside; ``pairs`` are those of which the report says one by one
    whether the published order holds.
    """

    name: Label
    methods: Annotated[list[Label], Field(min_length=2, max_length=100)]
    beside: Text | None = None
    pairs: list[Annotated[list[Label], Field(min_length=2, max_length=2)]] = Field(default_factory=list)


class MethodEntry(Strict):
    """One method of a study: a registry name or a class from outside, its label and its own options."""

    use: Text
    label: Label
    options: dict[str, Any] = Field(default_factory=dict)
    tune: Tune | None = None
    published: Text | None = None


class StandardSplits(Strict):
    """The generated splits; ``count`` takes the first so many of the data set's 20, 5 or 1."""

    scheme: Literal["standard"]
    count: Annotated[int, Field(ge=1, le=20)] | None = None


class KFoldSplits(Strict):
    """Each row is tested on once."""

    scheme: Literal["kfold"]
    folds: Annotated[int, Field(ge=2, le=1_000_000)] = 10
    seed: Seed = 0


class ShuffleSplits(Strict):
    """Independent random splits."""

    scheme: Literal["shuffle"]
    count: Annotated[int, Field(ge=1, le=10_000)] = 20
    test_fraction: Fraction = 0.1
    seed: Seed = 0


class GapSplits(Strict):
    """One split an input: the middle third of its sorted values is the test set."""

    scheme: Literal["gap"]


class HoldoutSplits(Strict):
    """The last rows are the test set; without ``test_rows`` as many as the data set's card says."""

    scheme: Literal["holdout"]
    test_rows: Annotated[int, Field(ge=1, le=10**9)] | None = None


SPLITS: dict[str, type[Strict]] = {
    "standard": StandardSplits,
    "kfold": KFoldSplits,
    "shuffle": ShuffleSplits,
    "gap": GapSplits,
    "holdout": HoldoutSplits,
}


class CardEntry(Strict):
    """A data set that has a card."""

    name: Text
    label: Label | None = None
    constant_inputs: Literal["zero", "paper"] = "zero"
    irrelevant_inputs: Annotated[int, Field(ge=0, le=10_000)] = 0
    target_transform: Literal["none", "log", "square_root", "cube_root"] = "none"


class FileEntry(Strict):
    """A user's own CSV file."""

    name: Label
    csv: Text
    target: Text
    label: Label | None = None
    task: Task = "regression"


class StudyFile(Strict):
    """The keys of a study file; its lists and the mappings with fixed keys are checked entry by entry."""

    study: FolderName
    seed: Seed = 0
    datasets: Annotated[list[Any], Field(min_length=1)] = Field(default_factory=list)
    splits: Any = None
    methods: Annotated[list[Any], Field(min_length=1)] = Field(default_factory=list)
    overrides: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    limits: Any = None
    compare: Any = None
    ranks: list[Any] = Field(default_factory=list)
    accept: list[Any] = Field(default_factory=list)
    experiment: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)


class Study(Strict):
    """A study, read and checked: everything that it names exists.

    ``experiment`` is None for a grid of cells; ``options`` are the experiment's. ``source`` is the file's text and
    ``raw`` its values, kept for provenance.
    """

    name: str
    path: Path
    seed: int = 0
    datasets: tuple[DatasetRef, ...] = ()
    splits: SplitScheme = SplitScheme()
    methods: tuple[MethodEntry, ...] = ()
    overrides: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    limits: Limits = Limits()
    compare: Compare = Compare()
    ranks: tuple[RankGroup, ...] = ()
    accept: tuple[Accept, ...] = ()
    experiment: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    source: str = ""
    raw: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_work(self) -> Self:
        if self.experiment is None and not (self.datasets and self.methods):
            raise ValueError("a study has data sets and methods, or an experiment")
        return self

    def options_for(self, method: MethodEntry, dataset: DatasetRef) -> dict[str, Any]:
        """Return a method entry's options on one data set: its own, then the overrides, the more specific last.

        Of a data set the name's overrides come before the label's, within each the method's name before its label.
        """
        merged = dict(method.options)
        for block in override_blocks(self.overrides, method, dataset):
            merged |= block
        return copy.deepcopy(merged)

    def accept_items(self) -> list[dict[str, str]]:
        """Return the accepted differences as plain mappings."""
        return [item.model_dump() for item in self.accept]


def override_blocks(
    overrides: Mapping[str, Mapping[str, Mapping[str, Any]]], method: MethodEntry, dataset: DatasetRef
) -> list[Mapping[str, Any]]:
    """Return the override blocks that meet a method entry on a data set, the more specific last."""
    found = []
    for dataset_key in dict.fromkeys((dataset.name, dataset.label)):
        by_method = overrides.get(dataset_key, {})
        found += [by_method[key] for key in dict.fromkeys((method.use, method.label)) if key in by_method]
    return found
