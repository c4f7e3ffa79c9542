"""The study after reading, and the pydantic models that check the parts of its file."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from ep_bench.types import DatasetRef, SplitScheme, Task


def _matching(pattern: str, description: str) -> Callable[[str], str]:
    """Return a validator of text; ``description`` is part of the message for text that does not match."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text, re.DOTALL):
            raise ValueError(f"must be {description}")
        return text

    return check


_one_line = AfterValidator(_matching(r"\S([^\n]*\S)?", "one line of text without spaces at its ends"))
_not_blank = AfterValidator(_matching(r".*\S.*", "text that is not blank"))
_folder_name = AfterValidator(
    _matching(
        r"[A-Za-z0-9]([A-Za-z0-9 ._+-]*[A-Za-z0-9_+-])?",
        "a folder's name: letters, digits and . _ + - or a space, with a letter or digit first",
    )
)

Text = Annotated[str, StringConstraints(max_length=200), _one_line]
Label = Annotated[str, StringConstraints(max_length=80), _one_line]
Sentence = Annotated[str, StringConstraints(max_length=2000), _not_blank]
FolderName = Annotated[str, StringConstraints(max_length=100), _folder_name]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Fraction = Annotated[float, Field(gt=0.0, lt=1.0)]


class Strict(BaseModel):
    """A frozen model without unknown keys, conversion of types, or non-finite numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Limits(Strict):
    """Limits of one cell; None is no limit. Times cover the search and the final fit of a tuned cell.

    ``seconds`` is wall time. ``cpu_seconds`` is the CPU time of all processes of the cell. It does not increase while a
    run is stopped, and hardly depends on other work of the machine.
    """

    seconds: Annotated[float, Field(gt=0.0, le=1e8)] | None = None
    cpu_seconds: Annotated[float, Field(gt=0.0, le=1e8)] | None = None
    memory_gb: Annotated[float, Field(gt=0.0, le=1e6)] | None = None


class Tune(Strict):
    """Search for options on a validation part of the training data of each split.

    The first of ``trials`` uses the options of the entry, else the method's defaults, even if they are outside
    ``space``. Failed trials count. ``fraction`` of the training points are validation points. Each trial is fitted to
    the other points and scored on these by ``score``: mean log density (``ll``), ``rmse``, ``crps``, the mean pinball
    loss over levels (``pinball``) or, for classes, ``error_rate``. The best options are fitted to all training points.
    After reading, ``space`` is in the canonical form of ``spec.space``; if the file has none, it is the space that the
    method declares.

    A trial fails if its fit takes more than ``cpu_seconds``. ``budgets`` are numbers of trials, instead of ``trials``;
    with 1, nothing is searched. The entry becomes one entry per budget, and their searches have the same first trials.
    """

    trials: Annotated[int, Field(ge=1, le=100_000)] = 30
    budgets: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2)] | None = Field(None, exclude=True)
    fraction: Fraction = 0.2
    space: Annotated[dict[str, Any], Field(min_length=1)] | None = None
    score: Literal["ll", "rmse", "crps", "pinball", "error_rate"] = "ll"
    cpu_seconds: Annotated[float, Field(gt=0.0)] | None = None

    @model_serializer(mode="wrap")
    def _without_limit(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the limit of searches without one, which are older than this key."""
        return {key: value for key, value in handler(self).items() if key != "cpu_seconds" or value is not None}


class Recalibrate(Strict):
    """Recalibration with points held out of the training data of each split.

    ``fraction`` of the training points calibrate the model that is fitted to the others; with ``cross``, every point
    calibrates one of several models. By default there are several if one would have fewer than 199 such points. With
    ``refit``, a model that is fitted to all points predicts, and a search uses all points.

    ``budgets`` are some of those of ``tune``: the entry is not recalibrated, and becomes one more entry, which is, for
    each of them. With ``refit``, their searches are those of the entries without recalibration, and not run again.
    """

    method: Literal["isotonic", "conformal"]
    fraction: Fraction = 0.2
    cross: bool | None = None
    refit: bool = False
    budgets: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)] | None = Field(None, exclude=True)

    @model_serializer(mode="wrap")
    def _without_refit(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out ``refit`` of entries without it, which are older than this key."""
        return {key: value for key, value in handler(self).items() if key != "refit" or value}


class Accept(Strict):
    """Known differences from published numbers, with the reason for them; by default on all data sets and metrics."""

    method: Label
    dataset: Label | None = None
    metric: Literal["rmse", "ll", "lpd-mean", "se-mean"] | None = None
    reason: Sentence


class LeftOut(Strict):
    """A method that is not run on a data set, with the reason, such as its time. A file may have a list of sets."""

    method: Label
    dataset: Label
    reason: Sentence


class Compare(Strict):
    """Labels of reference methods: ``rows`` for scores of single test points, ``times`` for times."""

    rows: Label | None = None
    times: Label | None = None


class RankGroup(Strict):
    """Methods that a report ranks together.

    ``methods`` are labels of this study, or of studies reported with it. ``beside`` is a source of published tables
    whose ranks of the same methods are shown for comparison. For each of the ``pairs``, the report states whether our
    ranks have this order. Groups of included files are not included.
    """

    name: Label
    methods: Annotated[list[Label], Field(min_length=2, max_length=100)]
    beside: Text | None = None
    pairs: list[Annotated[list[Label], Field(min_length=2, max_length=2)]] = Field(default_factory=list)


class MethodEntry(Strict):
    """One method of a study: a registry name or an external class, with its label and options."""

    use: Text
    label: Label
    options: dict[str, Any] = Field(default_factory=dict)
    tune: Tune | None = None
    recalibrate: Recalibrate | None = None
    published: Text | None = None

    def by_budget(self) -> list[MethodEntry]:
        """Return one entry per budget of the search, recalibrated ones last; the entry itself if it has none."""
        tune, recalibrate = self.tune, self.recalibrate
        if tune is None or tune.budgets is None:
            return [self]
        searches = {n: tune.model_copy(update={"trials": n}) if n > 1 else None for n in sorted(set(tune.budgets))}
        labels = {n: f"{self.label}, {n} trials" if n > 1 else self.label for n in searches}
        entries = {n: self.model_copy(update={"label": labels[n], "tune": one}) for n, one in searches.items()}
        if recalibrate is None or recalibrate.budgets is None:
            return list(entries.values())
        plain = [entry.model_copy(update={"recalibrate": None}) for entry in entries.values()]
        again = [entry for n, entry in entries.items() if n in recalibrate.budgets]
        return plain + [entry.model_copy(update={"label": f"{entry.label}, recalibrated"}) for entry in again]


class StandardSplits(Strict):
    """The generated splits; ``count`` selects the first of the data set's 20, 5 or 1."""

    scheme: Literal["standard"] = "standard"
    count: Annotated[int, Field(ge=1, le=20)] | None = None


class FoldSplits(Strict):
    """The ten published folds of a data set; one without them has its standard splits.

    ``count`` selects the first ones, of data sets with more than ``above`` points only.
    """

    scheme: Literal["folds"]
    count: Annotated[int, Field(ge=1, le=20)] | None = None
    above: Annotated[int, Field(ge=0, le=10**9)] = 0


class KFoldSplits(Strict):
    """Cross-validation: each data point is a test point once."""

    scheme: Literal["kfold"]
    folds: Annotated[int, Field(ge=2, le=1_000_000)] = 10
    seed: Seed = 0


class ContiguousSplits(Strict):
    """Cross-validation of blocks of consecutive data points, of the first ``rows`` or of all."""

    scheme: Literal["contiguous"]
    folds: Annotated[int, Field(ge=2, le=1_000_000)] = 10
    rows: Annotated[int, Field(ge=2, le=10**9)] | None = None


class ShuffleSplits(Strict):
    """Independent random splits."""

    scheme: Literal["shuffle"]
    count: Annotated[int, Field(ge=1, le=10_000)] = 20
    test_fraction: Fraction = 0.1
    seed: Seed = 0


class GapSplits(Strict):
    """One split per input: the middle third of its sorted values is the test set.

    ``public`` takes the test sets of the files that papers use, which divide ties differently, if there are any.
    """

    scheme: Literal["gap"]
    files: Literal["public", "sorted"] = "public"


class TailSplits(Strict):
    """One split per input: the outer sixths of its sorted values are the test set."""

    scheme: Literal["tails"]


class HoldoutSplits(Strict):
    """The last data points are the test set; the default of ``test_rows`` is in the data set's card."""

    scheme: Literal["holdout"]
    test_rows: Annotated[int, Field(ge=1, le=10**9)] | None = None


SPLITS: dict[str, type[Strict]] = {
    "standard": StandardSplits,
    "folds": FoldSplits,
    "kfold": KFoldSplits,
    "contiguous": ContiguousSplits,
    "shuffle": ShuffleSplits,
    "gap": GapSplits,
    "tails": TailSplits,
    "holdout": HoldoutSplits,
}


class CardEntry(Strict):
    """A data set with a card."""

    name: Text
    label: Label | None = None
    constant_inputs: Literal["zero", "paper"] = "zero"
    irrelevant_inputs: Annotated[int, Field(ge=0, le=10_000)] = 0
    target_transform: Literal["none", "log", "square_root", "cube_root"] = "none"
    drop_rows: Literal["none", "suspect"] = "none"
    drop_inputs: Literal["none", "leak"] = "none"
    train_points: Annotated[int, Field(ge=1, le=10**9)] | None = None


Missing = Literal["error", "median", "most_frequent", "keep"]
Categories = Literal["error", "onehot", "ordinal"]
Dates = Literal["error", "days"]


class FileEntry(Strict):
    """A user's CSV file; the choices for missing values, categories and dates are for all inputs or by their names."""

    name: Label
    csv: Text
    target: Text
    label: Label | None = None
    task: Task = "regression"
    missing: Missing | dict[str, Missing | Literal["drop"]] = "error"
    categories: Categories | dict[str, Categories | Literal["drop"]] = "error"
    dates: Dates | dict[str, Dates] = "error"


class StudyFile(Strict):
    """The keys of a study file; entries of lists and mappings with fixed keys are checked separately."""

    study: FolderName
    include: Annotated[list[Text], Field(min_length=1)] = Field(default_factory=list)
    seed: Seed = 0
    seeds: Annotated[int, Field(ge=1)] = 1
    datasets: Annotated[list[Any], Field(min_length=1)] = Field(default_factory=list)
    splits: Any = None
    methods: Annotated[list[Any], Field(min_length=1)] = Field(default_factory=list)
    overrides: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    limits: Any = None
    compare: Any = None
    ranks: list[Any] = Field(default_factory=list)
    accept: list[Any] = Field(default_factory=list)
    left_out: list[Any] = Field(default_factory=list)
    experiment: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)


class Study(Strict):
    """A checked study: every name in it exists.

    ``experiment`` is None for a grid of cells; ``options`` are those of the experiment. Every cell is run with
    ``seeds`` seeds: ``seed``, ``seed`` + 1, and so on.

    The overrides of a study that includes others have the labels of data set and method as keys (``by_label``).
    ``places`` maps ``datasets/<label>`` and ``methods/<label>`` to file and line.
    """

    name: str
    path: Path
    seed: int = 0
    seeds: int = 1
    datasets: tuple[DatasetRef, ...] = ()
    splits: SplitScheme = SplitScheme()
    methods: tuple[MethodEntry, ...] = ()
    overrides: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    limits: Limits = Limits()
    compare: Compare = Compare()
    ranks: tuple[RankGroup, ...] = ()
    accept: tuple[Accept, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    experiment: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    by_label: bool = False
    places: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_work(self) -> Self:
        if self.experiment is None and not (self.datasets and self.methods):
            raise ValueError("a study has data sets and methods, or an experiment")
        return self

    def options_for(self, method: MethodEntry, dataset: DatasetRef) -> dict[str, Any]:
        """Return the options of a method entry on a data set, with the overrides applied, the most specific one last.

        Overrides for the name of a data set are applied before those for its label. Within each, overrides for the
        method's name are applied before those for its label. With ``by_label``, there are only those for both labels.
        """
        merged = dict(method.options)
        if self.by_label:
            return copy.deepcopy(merged | self.overrides.get(dataset.label, {}).get(method.label, {}))
        for block in override_blocks(self.overrides, method, dataset):
            merged |= block
        return copy.deepcopy(merged)

    def all_seeds(self) -> range:
        """Return the seeds with which every cell is run."""
        return range(self.seed, self.seed + self.seeds)

    def reason_left_out(self, method: MethodEntry, dataset: DatasetRef) -> str:
        """Return why a method is not run on a data set, empty if it is run."""
        for each in self.left_out:
            if each.method in {method.use, method.label} and each.dataset in {dataset.name, dataset.label}:
                return each.reason
        return ""

    def accept_items(self) -> list[dict[str, str]]:
        """Return the accepted differences as plain mappings."""
        return [item.model_dump(exclude_none=True) for item in self.accept]


def override_blocks(
    overrides: Mapping[str, Mapping[str, Mapping[str, Any]]], method: MethodEntry, dataset: DatasetRef
) -> list[Mapping[str, Any]]:
    """Return the override blocks that apply to a method entry on a data set, the most specific one last."""
    found = []
    for dataset_key in dict.fromkeys((dataset.name, dataset.label)):
        by_method = overrides.get(dataset_key, {})
        found += [by_method[key] for key in dict.fromkeys((method.use, method.label)) if key in by_method]
    return found
