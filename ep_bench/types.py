"""The words that the rooms of the house share: data, splits, cells, records, predictive distributions, methods.

Imports nothing from ep_bench, so that everything may import it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Task = Literal["regression", "classification"]
TASKS: tuple[Task, ...] = ("regression", "classification")

STATUSES = ("ok", "failed", "timeout", "memory", "skipped")
UNCONVERGED = "not converged"  # how the reason begins of a cell that is ok and whose method warned of this

# The columns of results.csv: the fixed head, then those that may be empty.
HEAD_COLUMNS = (
    "study", "method", "dataset", "split", "status", "rmse", "mae", "ll", "crps", "coverage95",
    "fit_seconds", "predict_seconds", "n_train", "n_test", "seed", "cell", "reason",
)  # fmt: skip
MORE_COLUMNS = (
    "ll_gaussian", "ll_median", "ll_std", "ll_prct1", "se_std", "se_prct99", "coverage50", "coverage90",
    "width50", "width90", "width95", "pit_error", "train_rmse", "train_ll", "target_std", "error_rate", "brier",
    "compile_seconds", "tune_seconds", "peak_mb",
)  # fmt: skip
COLUMNS = HEAD_COLUMNS + MORE_COLUMNS
TEXT_COLUMNS = frozenset({"study", "method", "dataset", "status", "cell", "reason"})
COUNT_COLUMNS = frozenset({"split", "n_train", "n_test", "seed"})
SCORE_COLUMNS = tuple(c for c in COLUMNS if c not in TEXT_COLUMNS | COUNT_COLUMNS)


class UserError(Exception):
    """Bad usage, study, data or method: one message for the user, exit code 2, no traceback.

    ``where`` is a file, or ``file:line``; ``field`` the place inside it.
    """

    def __init__(
        self,
        problem: str,
        *,
        where: str | None = None,
        field: str | None = None,
        found: Any = None,
        allowed: str | Iterable[str] | None = None,
        name: str | None = None,
    ) -> None:
        choices = None if allowed is None or isinstance(allowed, str) else sorted(allowed)
        parts = [": ".join(part for part in (where, field, problem) if part)]
        if found is not None:
            parts.append(f"found {found!r}")
        if allowed is not None:
            parts.append(f"allowed: {allowed if choices is None else ', '.join(choices)}")
        near = nearest(name, choices) if name is not None and choices else None
        if near:
            parts.append(f"did you mean {near!r}?")
        super().__init__("; ".join(parts))


@dataclass(frozen=True)
class OptionProblem:
    """One problem found in the options of a method or an experiment.

    ``path`` holds the keys inside the options, or ``("use",)`` if the method itself is not available. The other fields
    are those of `UserError`.
    """

    path: tuple[str | int, ...]
    problem: str
    found: Any = None
    allowed: str | Collection[str] | None = None
    name: str | None = None

    def error(self, where: str | None = None) -> UserError:
        """Return the problem as an error; ``where`` is a file or the name of a method."""
        field = spell(self.path) or None
        return UserError(self.problem, where=where, field=field, found=self.found, allowed=self.allowed, name=self.name)


class UnquotedText(str):
    """Text that shows itself without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def spell(path: Iterable[str | int]) -> str:
    """Return the place in a study or among options as ``datasets[1].name``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice most like ``name``, or None if nothing is like it."""
    folded = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return folded[close[0]] if close else None


class _Pair(NamedTuple):
    X: Array  # (n, d)
    y: Array  # (n,)


class Rows(_Pair):
    """Inputs X (n, d) and targets y (n,) that a method is fitted to, a pair; in its ``fit`` both are standardised.

    In classification y holds class indices, 0 to classes - 1, as they are; ``classes`` counts all classes of the data
    set, of which these rows may lack some; 0 in regression.
    """

    classes: int = 0

    def __new__(cls, X: Array, y: Array, classes: int = 0) -> Self:
        """Return the pair."""
        self = super().__new__(cls, X, y)
        self.classes = classes
        return self


@dataclass(frozen=True)
class DatasetRef:
    """How a study names a data set: a card's name or a CSV file, and what is done to its columns.

    ``label`` is the name in the results; ``csv`` an absolute path, whose ``task`` the study says (a card says its own).
    """

    name: str
    label: str
    csv: str | None = None
    target: str | None = None
    constant_inputs: Literal["zero", "paper"] = "zero"
    irrelevant_inputs: int = 0
    target_transform: Literal["none", "log", "square_root", "cube_root"] = "none"
    task: Task = "regression"

    def options(self) -> dict[str, Any]:
        """Return what differs from the plain data set; part of a cell's factors."""
        return {each.name: value for each in fields(self)[3:] if (value := getattr(self, each.name)) != each.default}


@dataclass(frozen=True)
class DatasetInfo:
    """What a plan needs to know of a data set; known without its file where the card says it."""

    n: int  # rows
    d: int  # inputs
    checksum: str  # sha256 of the file on disk if there is one, else the card's
    splits: int  # how many standard splits it has
    parts: int = 1  # of as many rows each, one after the other: a holdout has a split for each
    task: Task = "regression"
    present: bool = True  # False: the file must be fetched before a cell can run


@dataclass(frozen=True)
class Dataset:
    """A data set in original units.

    ``constants`` maps a constant input to the value that it takes after standardisation (0 where it is not named).
    ``classes`` are the names of a classification set's classes; its y holds their indices 0 to C - 1, as floats.
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


@dataclass(frozen=True)
class SplitScheme:
    """Which rows train and which test; the parameters that a scheme does not have are None."""

    scheme: Literal["standard", "kfold", "shuffle", "gap", "holdout"] = "standard"
    count: int | None = None
    folds: int | None = None
    seed: int | None = None
    test_fraction: float | None = None
    test_rows: int | None = None

    def factors(self) -> dict[str, Any]:
        """Return what decides the rows of one split: everything but ``count``, which takes the first so many."""
        known = {key: getattr(self, key) for key in ("folds", "seed", "test_fraction", "test_rows")}
        return {"scheme": self.scheme} | {key: value for key, value in known.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Split:
    """Row indices of one split."""

    index: int
    train: Indices
    test: Indices


@dataclass(frozen=True)
class Cell:
    """One method on one split of one data set.

    ``factors`` is all that decides the numbers; ``key`` is its hash, the ``cell`` column of the results.
    """

    method: str  # label
    dataset: str  # label
    split: int
    seed: int
    factors: Mapping[str, Any]
    key: str


@dataclass
class Record:
    """What is kept of a finished cell: its row of results.csv and everything around it."""

    row: dict[str, Any]  # keys among COLUMNS; absent means empty
    factors: dict[str, Any]
    provenance: dict[str, Any] = field(default_factory=dict)  # versions, revision, machine, data checksum, time
    traceback: str = ""
    trace: dict[str, list[float]] = field(default_factory=dict)  # a method's curves: name -> values
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return str(self.row["cell"])


class Predictive:
    """Predictive distribution of N observations, noise included: a weighted mixture of Gaussians each.

    EP and Gaussian processes have S = 1, samplers S draws, an integral over the noise its quadrature nodes.

    Parameters
    ----------
    weights : (S,) array, positive, summing to 1
    means : (S, N) array
    variances : (S, N) array, variances (not deviations), in the squared unit of the means
    beyond : what the mixture leaves out of the variance where it stands for a law of longer tails, the same unit; inf
        where that law has none, as a Student-t with 2 degrees of freedom
    """

    def __init__(self, weights: ArrayLike, means: ArrayLike, variances: ArrayLike, beyond: float = 0.0) -> None:
        self.beyond = beyond
        self.weights: Array = np.atleast_1d(np.asarray(weights, dtype=np.float64))
        self.means: Array = np.atleast_2d(np.asarray(means, dtype=np.float64))
        self.variances: Array = np.atleast_2d(np.asarray(variances, dtype=np.float64))
        if self.means.shape != self.variances.shape or self.means.shape[0] != self.weights.size:
            raise ValueError(
                f"weights (S,), means (S, N) and variances (S, N) do not fit: "
                f"{self.weights.shape}, {self.means.shape}, {self.variances.shape}"
            )
        if np.any(self.weights < 0.0) or abs(self.weights.sum() - 1.0) > 1e-8:
            raise ValueError(f"weights must be 0 or above and sum to 1, found a sum of {self.weights.sum():g}")
        if np.any(self.variances < 0.0):
            raise ValueError(f"variances must be 0 or above, found {self.variances.min():g}")

    @classmethod
    def gaussian(cls, mean: ArrayLike, variance: ArrayLike) -> Predictive:
        """Return one Gaussian an observation, from means (N,) and variances (N,)."""
        return cls(np.ones(1), np.asarray(mean)[None, :], np.asarray(variance)[None, :])

    @classmethod
    def equal_mixture(cls, means: Array, variance: float | Array) -> Predictive:
        """Return the mixture of S equally weighted Gaussians an observation, from means (S, N).

        ``variance`` is one for all, or one a Gaussian, (S,).
        """
        variances = np.broadcast_to(np.reshape(variance, (-1, 1)), means.shape).copy()
        return cls(np.full(len(means), 1.0 / len(means)), means, variances)

    def rescale(self, shift: float, scale: float) -> Predictive:
        """Return the distribution of ``shift + scale * y``."""
        return Predictive(self.weights, shift + scale * self.means, scale**2 * self.variances, scale**2 * self.beyond)

    def mean(self) -> Array:
        """Return the means (N,)."""
        return np.asarray(self.weights @ self.means)

    def variance(self) -> Array:
        """Return the variances (N,), noise included; inf where there is none."""
        spread = self.means - self.mean()
        return np.asarray(self.weights @ (self.variances + spread**2)) + self.beyond

    def std(self) -> Array:
        """Return the standard deviations (N,), noise included; inf where there is none."""
        return np.asarray(np.sqrt(self.variance()))

    def logpdf(self, y: ArrayLike) -> Array:
        """Return the log density (N,) of one observation each, y (N,)."""
        from scipy.special import logsumexp

        parts = self._component_logpdf(np.asarray(y, dtype=np.float64))
        if len(self.weights) == 1:
            return np.asarray(parts[0])
        return np.asarray(logsumexp(parts, axis=0, b=self.weights[:, None]))

    def logpdf_gaussian(self, y: ArrayLike) -> Array:
        """Return the log density (N,) of the Gaussian with the same mean and variance."""
        return Predictive.gaussian(self.mean(), self.variance()).logpdf(y)

    def cdf(self, y: ArrayLike) -> Array:
        """Return the probability (N,) of an observation at or below y (N,)."""
        from scipy.special import ndtr

        return np.asarray(self.weights @ ndtr((np.asarray(y, dtype=np.float64) - self.means) / self._deviations))

    def quantile(self, p: float) -> Array:
        """Return the points (N,) at or below which an observation lies with probability p in (0, 1)."""
        from scipy.special import ndtri

        if not 0.0 < p < 1.0:
            raise ValueError(f"a quantile's probability must lie strictly between 0 and 1, found {p}")
        points = self.means + self._deviations * ndtri(p)
        if len(self.weights) == 1:
            return np.asarray(points[0])
        return bisect_quantile(self.cdf, p, points.min(axis=0), points.max(axis=0))

    def sample(self, rng: np.random.Generator, size: int = 1) -> Array:
        """Return draws (size, N)."""
        n = self.means.shape[1]
        component = rng.choice(len(self.weights), p=self.weights, size=(size, n))
        columns = np.arange(n)
        noise = rng.standard_normal((size, n))
        return self.means[component, columns] + self._deviations[component, columns] * noise

    @cached_property
    def _deviations(self) -> Array:
        return np.asarray(np.sqrt(self.variances))

    def _component_logpdf(self, y: Array) -> Array:
        squares = (y - self.means) ** 2 / self.variances
        return np.asarray(-0.5 * (squares + np.log(2.0 * np.pi * self.variances)))


def bisect_quantile(cdf: Callable[[Array], Array], p: float, low: Array, high: Array) -> Array:
    """Halve brackets (N,) of the quantiles at p until they are down to rounding."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        below = cdf(middle) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
        if np.all(high - low <= 4e-16 * np.maximum(np.abs(low), np.abs(high))):
            break
    return np.asarray(0.5 * (low + high))


class PointPrediction(NamedTuple):
    """Prediction of a method that gives neither density nor deviation: its log-likelihood stays empty."""

    values: Array  # (N,)

    def mean(self) -> Array:
        """Return the predicted values (N,)."""
        return self.values


# What a method's state may offer to users beside its predictions, in standardised units.
OFFERED: Mapping[str, str] = {
    "log_evidence": "log evidence of the targets (nats)",
    "hyperparameters": "values of the learned and given hyperparameters, by name",
    "n_iterations": "iterations of the search or the scheme that gave the fit",
    "converged": "whether it reached its own criterion",
    "jitter": "of a sparse Gaussian process: what stands on the diagonal of its inducing outputs, in parts of its mean",
    "site_precisions": "precisions of the likelihood's terms (n,): EP's sites, Laplace's curvatures",
    "chains": "of a sampler: what it monitors after warm-up, by name, (chains, draws) arrays",
    "diagnostics": "of a sampler: a number by name (r_hat_predictions, ess_bulk_predictions, divergences, ...)",
}


@dataclass(frozen=True)
class Method:
    """One entry of the registry; each method's file ends with one of these, named ``METHOD``.

    ``version`` is raised whenever the method's numbers change; it is part of a cell's hash.
    ``config`` is a frozen pydantic model whose field names are the method's options.
    ``fit(train: Rows, config, rng) -> (state, trace)`` and ``predict(state, X, rng) -> Predictive`` see standardised
    data. Where ``train.classes`` is above 0, the task is classification: y holds class indices, and ``predict`` returns
    ``predictions.ClassProbabilities`` of all these classes.
    ``tasks`` are what the method can do; the first is what it does unless it is asked for another.
    A state may offer what ``OFFERED`` names, as fields or properties; the fitted estimator has it too, a ``_`` behind
    the name. The report draws a sampler's ``chains`` and ``diagnostics``. Where a state has ``chain`` (S,), of which
    chain each of S draws is, draws of a chain in order, predictions are mixtures of S parts in the same order, or of so
    many times S, those of a draw together and of one mean.
    ``latent(state, X) -> (means, variances)``, both (n,), of the function behind the noise, standardised units.
    ``seconds(config, n, d)`` is a rough time of one fit on one core, for plans made before anything was timed.
    ``warmup`` are option values under which a fit is shortest, used to compile the kernels before the clock starts.
    ``published`` says which columns of the papers' tables a configuration answers to.
    ``space`` is what ``tune`` searches where a study brings no space of its own, in the language of ``spec.space``.
    """

    name: str
    version: int
    title: str
    paper: str
    tasks: tuple[Task, ...]
    config: type
    fit: Callable[..., tuple[Any, dict[str, list[float]]]]
    predict: Callable[[Any, Array, np.random.Generator], Any]
    seconds: Callable[[Any, int, int], float] | None = None
    warmup: Mapping[str, Any] = field(default_factory=dict)
    published: Callable[[Any], tuple[str, ...]] | None = None
    latent: Callable[[Any, Array], tuple[Array, Array]] | None = None
    space: Mapping[str, Any] = field(default_factory=dict)
