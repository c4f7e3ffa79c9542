"""Types that the packages share: data sets, splits, cells, records and methods.

This module imports nothing from ep_bench, so every module can import it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Task = Literal["regression", "classification"]
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
    "compile_seconds", "tune_seconds", "peak_mb",
)  # fmt: skip
COLUMNS = HEAD_COLUMNS + MORE_COLUMNS
TEXT_COLUMNS = frozenset({"study", "method", "dataset", "status", "cell", "reason"})
COUNT_COLUMNS = frozenset({"split", "n_train", "n_test", "seed"})
SCORE_COLUMNS = tuple(c for c in COLUMNS if c not in TEXT_COLUMNS | COUNT_COLUMNS)


class UserError(Exception):
    """An error in the usage, a study, a data set or a method; printed without a traceback, exit status 2.

    The message is ``where: field: problem; found ...; allowed: ...; did you mean ...?``.

    Parameters
    ----------
    problem : what is wrong
    where : a file, or ``file:line``
    field : the place inside the file
    found : the value that was found
    allowed : a sentence, or the allowed names
    name : the wrong name; the message suggests the most similar name in ``allowed``
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
    """Text whose representation has no quotes."""

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
    """Return the choice most similar to ``name``, or None if no choice is similar."""
    folded = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return folded[close[0]] if close else None


@dataclass(frozen=True, eq=False)
class Rows:
    """Training data of a method, in standardised units.

    In classification y holds class indices from 0 to ``classes - 1``, not standardised.
    """

    X: Array  # (n, d) inputs
    y: Array  # (n,) targets
    classes: int = 0  # number of classes of the whole data set, some of which y may lack; 0 in regression


@dataclass(frozen=True)
class DatasetRef:
    """A data set as a study names it: the name of a card or a CSV file, and the changes to its columns.

    ``label`` is the name in the results. ``csv`` is an absolute path. ``task`` applies to a CSV file only; a card has
    its own.
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
        """Return the fields that differ from their defaults; they are part of a cell's factors."""
        return {each.name: value for each in fields(self)[3:] if (value := getattr(self, each.name)) != each.default}


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


@dataclass(frozen=True)
class Dataset:
    """A data set in original units.

    ``constants`` maps the index of a constant input to its value after standardisation, 0 by default. In
    classification ``classes`` are the names of the C classes, and y holds their indices 0 to C - 1 as floats.
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
    """How data points are split into training and test data; parameters that a scheme does not have are None."""

    scheme: Literal["standard", "kfold", "shuffle", "gap", "holdout"] = "standard"
    count: int | None = None
    folds: int | None = None
    seed: int | None = None
    test_fraction: float | None = None
    test_rows: int | None = None

    def factors(self) -> dict[str, Any]:
        """Return the parameters that determine one split: all except ``count``, the number of splits used."""
        known = {key: getattr(self, key) for key in ("folds", "seed", "test_fraction", "test_rows")}
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


class Predictive:
    """Predictive distribution of N observations, noise included: one weighted mixture of S Gaussians per observation.

    EP and Gaussian processes have S = 1. Samplers have one component per draw, quadrature over the noise one per node.

    Parameters
    ----------
    weights : (S,) array, non-negative, with sum 1
    means : (S, N) array
    variances : (S, N) array, in the squared unit of the means
    beyond : variance that is added to that of the mixture, in the same unit, if the mixture approximates a distribution
        with heavier tails; inf if that distribution has no variance, such as a Student-t with 2 degrees of freedom

    Raises
    ------
    ValueError
        The shapes do not match, the weights do not sum to 1, or a variance is negative.
    """

    def __init__(self, weights: ArrayLike, means: ArrayLike, variances: ArrayLike, beyond: float = 0.0) -> None:
        self.beyond = beyond
        self.weights: Array = np.atleast_1d(np.asarray(weights, dtype=np.float64))
        self.means: Array = np.atleast_2d(np.asarray(means, dtype=np.float64))
        self.variances: Array = np.atleast_2d(np.asarray(variances, dtype=np.float64))
        if self.means.shape != self.variances.shape or self.means.shape[0] != self.weights.size:
            raise ValueError(
                f"the shapes of weights (S,), means (S, N) and variances (S, N) do not match: "
                f"{self.weights.shape}, {self.means.shape}, {self.variances.shape}"
            )
        if np.any(self.weights < 0.0) or abs(self.weights.sum() - 1.0) > 1e-8:
            raise ValueError(f"weights must be non-negative and sum to 1, found a sum of {self.weights.sum():g}")
        if np.any(self.variances < 0.0):
            raise ValueError(f"variances must be non-negative, found {self.variances.min():g}")

    @classmethod
    def gaussian(cls, mean: ArrayLike, variance: ArrayLike) -> Predictive:
        """Return one Gaussian per observation, from means (N,) and variances (N,)."""
        return cls(np.ones(1), np.asarray(mean)[None, :], np.asarray(variance)[None, :])

    @classmethod
    def equal_mixture(cls, means: Array, variance: float | Array) -> Predictive:
        """Return a mixture of S Gaussians of equal weight per observation, from means (S, N).

        ``variance`` is a number, or one variance per component, (S,).
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
        """Return the variances (N,), noise included; inf if they do not exist."""
        spread = self.means - self.mean()
        return np.asarray(self.weights @ (self.variances + spread**2)) + self.beyond

    def std(self) -> Array:
        """Return the standard deviations (N,), noise included; inf if they do not exist."""
        return np.asarray(np.sqrt(self.variance()))

    def logpdf(self, y: ArrayLike) -> Array:
        """Return the log densities (N,) of the observations y (N,)."""
        from scipy.special import logsumexp

        parts = self._component_logpdf(np.asarray(y, dtype=np.float64))
        if len(self.weights) == 1:
            return np.asarray(parts[0])
        return np.asarray(logsumexp(parts, axis=0, b=self.weights[:, None]))

    def logpdf_gaussian(self, y: ArrayLike) -> Array:
        """Return the log densities (N,) of the Gaussians with the same means and variances."""
        return Predictive.gaussian(self.mean(), self.variance()).logpdf(y)

    def cdf(self, y: ArrayLike) -> Array:
        """Return the probabilities (N,) of an observation at or below y (N,)."""
        from scipy.special import ndtr

        return np.asarray(self.weights @ ndtr((np.asarray(y, dtype=np.float64) - self.means) / self._stds))

    def quantile(self, p: float) -> Array:
        """Return the quantiles (N,) at probability p. Raises ValueError unless 0 < p < 1."""
        from scipy.special import ndtri

        require_probability(p)
        points = self.means + self._stds * ndtri(p)
        if len(self.weights) == 1:
            return np.asarray(points[0])
        return bisect_quantile(self.cdf, p, points.min(axis=0), points.max(axis=0))

    def sample(self, rng: np.random.Generator, size: int = 1) -> Array:
        """Return draws (size, N)."""
        n = self.means.shape[1]
        component = rng.choice(len(self.weights), p=self.weights, size=(size, n))
        columns = np.arange(n)
        noise = rng.standard_normal((size, n))
        return self.means[component, columns] + self._stds[component, columns] * noise

    @cached_property
    def _stds(self) -> Array:
        return np.asarray(np.sqrt(self.variances))

    def _component_logpdf(self, y: Array) -> Array:
        squares = (y - self.means) ** 2 / self.variances
        return np.asarray(-0.5 * (squares + np.log(2.0 * np.pi * self.variances)))


def bisect_quantile(cdf: Callable[[Array], Array], p: float, low: Array, high: Array) -> Array:
    """Return the quantiles (N,) at p by bisection of the brackets ``low`` to ``high`` (N,), to rounding error."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        below = cdf(middle) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
        if np.all(high - low <= 4e-16 * np.maximum(np.abs(low), np.abs(high))):
            break
    return np.asarray(0.5 * (low + high))


def require_probability(p: float) -> None:
    """Raise ValueError unless p can be the probability of a quantile."""
    if not 0.0 < p < 1.0:
        raise ValueError(f"the probability of a quantile must be strictly between 0 and 1, found {p}")


class PointPrediction(NamedTuple):
    """Prediction without density or standard deviation; it has no log-likelihood."""

    values: Array  # (N,)

    def mean(self) -> Array:
        """Return the predicted values (N,)."""
        return self.values


# Attributes of a method's state that the fitted estimator exposes, in standardised units.
OFFERED: Mapping[str, str] = {
    "log_evidence": "log evidence of the targets (nats)",
    "hyperparameters": "learned and fixed hyperparameters, by name",
    "n_iterations": "number of iterations of the fit",
    "converged": "whether the fit met its own criterion",
    "jitter": "sparse Gaussian process: jitter of the inducing covariance, relative to its mean diagonal element",
    "site_precisions": "precisions (n,) of the likelihood terms: EP sites, or curvatures of the Laplace approximation",
    "chains": "sampler: monitored quantities after warm-up, by name, arrays (chains, draws)",
    "diagnostics": "sampler: diagnostics by name (r_hat_predictions, ess_bulk_predictions, divergences, ...)",
}


@dataclass(frozen=True)
class Method:
    """One entry of the registry; the module of each method ends with one, named ``METHOD``.

    A state may have the attributes listed in ``OFFERED``; the fitted estimator exposes each with a trailing ``_``. The
    report draws the ``chains`` and ``diagnostics`` of a sampler. A sampler's state has ``chain`` (S,), the index of the
    chain of each of the S draws, in order. Its predictions are mixtures of S components in the same order, or of k S
    components: k consecutive components of equal mean per draw.

    Parameters
    ----------
    name : name in the registry
    version : raised whenever the method's results change; part of a cell's hash
    title, paper : shown by ``ep-bench methods list`` and the report
    tasks : the tasks that the method supports, the default first
    config : frozen pydantic model; its fields are the method's options
    fit : ``fit(train: Rows, config, rng) -> (state, trace)``, standardised units; classification if ``train.classes``
        is above 0
    predict : ``predict(state, X, rng) -> Predictive``, standardised units, noise included; in classification
        ``predictions.ClassProbabilities`` of all ``train.classes`` classes
    seconds : ``seconds(config, n, d)``, a rough time of one fit on one core, used by plans without timings
    warmup : option values for the shortest fit, which compiles the kernels before timing starts
    published : function of a Config to the columns of published tables that it corresponds to
    latent : ``latent(state, X) -> (means, variances)``, both (n,), of the function without noise, standardised units
    space : default search space of ``tune``, in the format of ``spec.space``
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
