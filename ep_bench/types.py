"""Types that the packages share: data sets, splits, cells, records and methods.

This module imports nothing from ep_bench, so every module can import it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Task = Literal["regression", "classification"]
Equality = Literal["exact", "stable", "optimised", "sampled"]
Family = Literal["EP", "variational", "sampling", "Laplace", "ensembles, point", "GP", "deep GP"]
Marker = Literal["o", "s", "D", "^", "v", "P", "X", "<", ">"]
TASKS: tuple[Task, ...] = ("regression", "classification")

STATUSES = ("ok", "failed", "timeout", "memory", "skipped")
UNCONVERGED = "not converged"  # start of the reason of an `ok` cell whose method did not meet its own criterion

# The columns of results.csv: the leading columns, then those that may be empty.
HEAD_COLUMNS = (
    "study", "method", "dataset", "split", "status", "rmse", "mae", "ll", "crps", "coverage95",
    "fit_seconds", "predict_seconds", "n_train", "n_test", "seed", "cell", "reason",
)  # fmt: skip
MORE_COLUMNS = (
    "ll_gaussian", "ll_median", "ll_std", "ll_prct1", "se_std", "se_prct99", "coverage50", "coverage90",
    "width50", "width90", "width95", "pit_error", "train_rmse", "train_ll", "target_std", "error_rate", "brier",
    "compile_seconds", "tune_seconds", "peak_mb", "fit_cpu_seconds", "predict_cpu_seconds", "tune_cpu_seconds",
    "ll_unseen", "ll_min", "r_hat", "converged",
)  # fmt: skip
COLUMNS = HEAD_COLUMNS + MORE_COLUMNS
TEXT_COLUMNS = frozenset({"study", "method", "dataset", "status", "cell", "reason", "converged"})
COUNT_COLUMNS = frozenset({"split", "n_train", "n_test", "seed"})
MEASURED_COLUMNS = (*(c for c in COLUMNS if c.endswith("_seconds")), "peak_mb")  # they differ from run to run
SCORE_COLUMNS = tuple(c for c in COLUMNS if c not in TEXT_COLUMNS | COUNT_COLUMNS)


@dataclass(frozen=True, eq=False)
class Rows:
    """Training data of a method, in standardised units.

    In classification y holds class indices from 0 to ``classes - 1``, not standardised.
    """

    X: Array  # (n, d) inputs
    y: Array  # (n,) targets
    classes: int = 0  # number of classes of the whole data set, some of which y may lack; 0 in regression


# A choice for all inputs of a user's file, or choices by the name of the input; the others have "error".
Policy = str | Mapping[str, str] | tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class DatasetRef:
    """A data set as a study names it: the name of a card or a CSV file, and the changes to its columns.

    ``label`` is the name in the results. ``csv`` is an absolute path. ``task``, ``missing``, ``categories`` and
    ``dates`` apply to a CSV file only; a card has its own task.
    """

    name: str
    label: str
    csv: str | None = None
    target: str | None = None
    constant_inputs: Literal["zero", "paper"] = "zero"
    irrelevant_inputs: int = 0
    target_transform: Literal["none", "log", "square_root", "cube_root"] = "none"
    drop_rows: Literal["none", "suspect"] = "none"
    drop_inputs: Literal["none", "leak"] = "none"
    train_points: int | None = None  # number of training points drawn from those of each split
    task: Task = "regression"
    missing: Policy = "error"  # or median, most_frequent, keep; drop for the target
    categories: Policy = "error"  # or onehot, ordinal; drop by name
    dates: Policy = "error"  # or days

    def __post_init__(self) -> None:
        for name in ("missing", "categories", "dates"):  # mappings, as studies and lock files have them, become pairs
            given = getattr(self, name)
            if not isinstance(given, str):
                pairs = tuple(sorted(pair for pair in dict(given).items() if pair[1] != "error"))
                object.__setattr__(self, name, pairs or "error")

    def options(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults; they are part of a cell's factors."""
        given = {each.name: value for each in fields(self)[3:] if (value := getattr(self, each.name)) != each.default}
        return {name: dict(value) if isinstance(value, tuple) else value for name, value in given.items()}


@dataclass(frozen=True)
class DatasetInfo:
    """Size, checksum and splits of a data set, as a plan needs them; a data set with a card is not read for it."""

    n: int  # data points
    d: int  # inputs
    checksum: str  # sha256 of the file on disk if there is one, else the card's
    splits: int  # number of standard splits
    parts: int = 1  # consecutive parts of equal size; the scheme `holdout` has one split per part
    task: Task = "regression"
    present: bool = True  # False: the file must be fetched before a cell can run
    target_values: int | None = None  # number of different target values if there are few, else None
    unranked: str | None = None  # why rankings leave the data set out
    inputs_with_missing: tuple[str, ...] = ()  # inputs whose missing values are passed to the methods


class Preparation(NamedTuple):
    """How an input of a user's file is prepared in each split; see ``data.preprocessing``."""

    missing: str = "error"  # error if the input has no missing value, else median, most_frequent or keep
    categories: str = "error"  # error if the input is no category, else onehot or ordinal

    def leaves_missing(self) -> bool:
        """Return whether methods get missing values; with onehot these are a category of their own."""
        return self.missing == "keep" and self.categories != "onehot"


@dataclass(frozen=True)
class Dataset:
    """A data set in original units.

    Parameters
    ----------
    name : str
        Its name in studies.
    X : ndarray of shape (N, d)
        Inputs.
    y : ndarray of shape (N,)
        Targets; in classification the indices 0 to C - 1 of the classes, as floats.
    names : tuple of str
        Names of the inputs.
    target : str
        Name of the target.
    card : object
        Source, licence, citation and oddities.
    checksum : str
        SHA-256 of the file, or of the arrays.
    task : str
        ``regression`` or ``classification``.
    constants : mapping of int to float
        Value of constant inputs after standardisation by their index, 0 by default.
    classes : tuple of str
        In classification, names of the C classes.
    preparation : tuple of Preparation
        Of a user's file, one per input, if an input has missing values (NaN) or categories (indices of their sorted
        names).
    dropped : tuple of int
        Data points that are left out of training and test data; the splits are otherwise those of all N.
    train_points : int, optional
        Number of training points, drawn from those of each split; by default all.
    """

    name: str
    X: Array  # (n, d)
    y: Array  # (n,)
    names: tuple[str, ...]  # of the inputs
    target: str
    card: Any
    checksum: str
    task: Task = "regression"
    constants: Mapping[int, float] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    preparation: tuple[Preparation, ...] = ()
    dropped: tuple[int, ...] = ()
    train_points: int | None = None


@dataclass(frozen=True)
class SplitScheme:
    """How data points are split into training and test data; parameters that a scheme does not have are None."""

    scheme: Literal["standard", "folds", "kfold", "contiguous", "shuffle", "gap", "tails", "holdout"] = "standard"
    count: int | None = None
    above: int | None = None  # number of data points above which ``count`` applies
    files: Literal["public", "sorted"] | None = None  # of `gap`; None is sorted
    folds: int | None = None
    seed: int | None = None
    test_fraction: float | None = None
    test_rows: int | None = None
    rows: int | None = None

    def factors(self) -> dict[str, Any]:
        """Return the parameters that determine one split: not ``count`` and ``above``, the number of splits used."""
        known = {key: getattr(self, key) for key in ("folds", "seed", "test_fraction", "test_rows", "rows")}
        known["files"] = "public" if self.files == "public" else None
        return {"scheme": self.scheme} | {key: value for key, value in known.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Split:
    """Indices of the training and test data points of one split."""

    index: int
    train: Indices
    test: Indices


@dataclass(frozen=True)
class Cell:
    """One method on one split of one data set.

    ``factors`` determine the results; ``key`` is their hash, the column ``cell`` of results.csv.
    """

    method: str  # label
    dataset: str  # label
    split: int
    seed: int
    factors: Mapping[str, Any]
    key: str


@dataclass
class Record:
    """The stored outcome of a finished cell: its row of results.csv and further information."""

    row: dict[str, Any]  # keys among COLUMNS; absent means empty
    factors: dict[str, Any]
    provenance: dict[str, Any] = field(default_factory=dict)  # versions, revision, machine, data checksum, time
    traceback: str = ""
    trace: dict[str, list[float]] = field(default_factory=dict)  # values per epoch or iteration, by name
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return str(self.row["cell"])


# Attributes of a method's state that the fitted estimator exposes, in standardised units.
OFFERED: Mapping[str, str] = {
    "log_evidence": "log evidence of the targets (nats)",
    "hyperparameters": "learned and fixed hyperparameters, by name",
    "n_iterations": "number of iterations of the fit",
    "converged": "whether the fit met its own criterion, None without one",
    "criterion": "criterion of convergence that the fit met, empty if none",
    "start_evidences": "log evidence or bound (nats) of each start, -inf if it failed",
    "jitter": "sparse Gaussian process: jitter of the inducing covariance, relative to its mean diagonal element",
    "site_precisions": "precisions (n,) of the likelihood terms: EP sites, or curvatures of the Laplace approximation",
    "chains": "sampler: monitored quantities after warm-up, by name, arrays (chains, draws)",
    "diagnostics": "sampler: diagnostics by name (r_hat_predictions, ess_bulk_predictions, divergences, ...)",
}


class Decrease(NamedTuple):
    """A criterion of convergence: the mean of the objective decreases by at most ``limit`` up to the last quarter.

    The mean is that over a quarter of the steps or epochs, and ``since`` is the quarter to compare with, from 1.
    """

    since: int
    limit: float  # in the units of the objective, usually nats per data point

    def of(self, objective: Sequence[float] | Array) -> float:
        """Return the decrease of an objective (steps,), nan for fewer than four values."""
        values, size = np.asarray(objective, dtype=np.float64), len(objective) // 4
        if size == 0:
            return math.nan
        quarters = values[:size], values[size : 2 * size], values[-2 * size : -size], values[-size:]
        return float(quarters[self.since - 1].mean() - quarters[-1].mean())

    def met(self, decrease: float) -> bool | None:
        """Return whether a decrease is that of a converged training, None for nan."""
        return None if math.isnan(decrease) else decrease <= self.limit


@dataclass(frozen=True)
class Method:
    """One entry of the registry; the module of each method ends with one, named ``METHOD``.

    A state may have the attributes listed in ``OFFERED``; the fitted estimator exposes each with a trailing ``_``. The
    report draws the ``chains`` and ``diagnostics`` of a sampler. A sampler's state has ``chain`` (S,), the index of the
    chain of each of the S draws, in order. Its predictions are mixtures of S components in the same order, or of k S
    components: k consecutive components of equal mean per draw.

    Parameters
    ----------
    name : str
        Name in the registry.
    version : int
        Raised whenever the method's results change; part of a cell's hash.
    title, paper : str
        Shown by ``ep-bench methods list`` and the report.
    tasks : tuple of str
        The tasks that the method supports, the default first.
    config : type
        Frozen pydantic model; its fields are the method's options.
    fit : callable
        ``fit(train: Rows, config, rng) -> (state, trace)``, standardised units; classification if ``train.classes`` is
        above 0.
    predict : callable
        ``predict(state, X, rng) -> Predictive``, standardised units, noise included; in classification
        ``ClassProbabilities`` of all ``train.classes`` classes.
    fit_mean : callable, optional
        Like ``fit``, for trials of a search that are scored by RMSE: the predictive means are those of ``fit`` with the
        same ``rng``, the variances may be wrong, and it takes less time.
    seconds : callable, optional
        ``seconds(config, n, d)``, a rough time of one fit on one core, used by plans without timings.
    warmup : mapping
        Option values for the shortest fit, which compiles the kernels before timing starts.
    published : callable, optional
        Function of a Config to the columns of published tables that it corresponds to.
    latent : callable, optional
        ``latent(state, X) -> (means, variances)``, both (n,), of the function without noise, standardised units.
    space : mapping
        Default search space of ``tune``, in the format of ``spec.space``.
    validated : callable, optional
        Function of a Config to the options that a fit itself chooses on validation points of its training data, in
        words, empty for none; the leaderboard has them in the column of tuning.
    version_of : callable, optional
        Function of a Config, for versions that change the results of some configurations only: the newest version that
        changed those of this configuration.
    equality : str
        How ``verify`` compares results: ``exact`` (a closed form or a deterministic iteration that does not amplify
        rounding errors), ``stable`` (an optimisation whose scores do not depend on rounding errors, with one hidden
        layer), ``optimised`` or ``sampled``.
    style : tuple of str or None
        Family of the method, which has a colour in figures, and its marker among the methods of the family. Every
        method of the registry has it. A literal, as ``bibtex``: reports read both from the source
        (``methods.literals``).
    bibtex : str
        Entries of its papers, for ``ep-bench cite``; papers that it shares with others are in CITATION.cff.
    density : str
        Kind of the predictive density, for the table of methods.
    accepts_missing : bool
        Whether inputs may be missing (NaN).
    """

    name: str
    version: int
    title: str
    paper: str
    tasks: tuple[Task, ...]
    config: type
    fit: Callable[..., tuple[Any, dict[str, list[float]]]]
    predict: Callable[[Any, Array, np.random.Generator], Any]
    fit_mean: Callable[..., tuple[Any, dict[str, list[float]]]] | None = None
    seconds: Callable[[Any, int, int], float] | None = None
    warmup: Mapping[str, Any] = field(default_factory=dict)
    published: Callable[[Any], tuple[str, ...]] | None = None
    latent: Callable[[Any, Array], tuple[Array, Array]] | None = None
    space: Mapping[str, Any] = field(default_factory=dict)
    validated: Callable[[Any], str] | None = None
    version_of: Callable[[Any], int] | None = None
    equality: Equality = "optimised"
    style: tuple[Family, Marker] | None = None
    bibtex: str = ""
    density: str = ""
    accepts_missing: bool = False
