"""The model with its options, and the approximate inference and evidence at fixed hyperparameters."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ep_bench.covariances import Covariance, matrix
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.map_search import prepared
from ep_bench.methods.gp_t import ep, kl, laplace, variational
from ep_bench.methods.gp_t.posterior import InferenceResult
from ep_bench.methods.gp_t.student_t_config import CHECK_FRACTION, UNRELIABLE, Config
from ep_bench.methods.gp_t.warm_start import WarmStartPath
from ep_bench.types import Array, Rows

START_NU = 4.0  # first value of nu if it is integrated over
PAPER_SCALE = (
    0.5  # sigma at the start of the paper's searches (section 6.2); its magnitude of 1 and nu of 4 are ours, too
)
SEARCH_LIMITS = ep.EPLimits(1e-6, 60)  # of EP within a search: the error of the evidence is quadratic in the mismatch
WARM_STARTED = {"laplace": laplace.infer, "kl": kl.infer}  # accept the sites of an earlier inference
COLD_STARTED = {"vb": variational.bounds, "fvb": variational.factors}


class StudentTProblem(NamedTuple):
    """Training data, covariance, hyperparameters (log sigma and log nu last) and options."""

    X: Array  # (N, d)
    y: Array  # (N,)
    covariance: Covariance
    hyper: Hyperparameters
    config: Config


def problem_of(train: Rows, config: Config) -> StudentTProblem:
    """Return the data X (n, d), y (n,) with covariance and hyperparameters. Raises as ``prepared`` does."""
    learned = config.nu == "optimize" or (config.nu == "integrate" and config.inference == "mcmc")
    nu = None if learned else START_NU if config.nu == "integrate" else float(config.nu)
    X, y, covariance, hyper = prepared(train, config, "scale", "nu", nu=nu)
    hyper = hyper.starting_at("scale", PAPER_SCALE, "lengthscale") if config.start == "paper" else hyper
    return StudentTProblem(X, y, covariance, hyper, config)


def infer(
    problem: StudentTProblem, theta: Array, start: ep.Start | None = None, limits: ep.EPLimits = ep.LIMITS
) -> InferenceResult:
    """Return the approximate posterior at logarithms theta (P,).

    ``start`` are sites that EP, Laplace's method and KL try first. ``limits`` are those of EP. Raises
    FloatingPointError, with the hyperparameters, if the inference does not converge or its evidence is not finite.
    """
    X, y, covariance, hyper, config = problem
    scale, nu = np.exp(theta[-2:])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        K = matrix(covariance, theta[:-2], X)
        try:
            if config.inference == "ep":
                found = ep.infer(K, y, nu, scale, config.fraction, config.damping, config.scheme, start, limits)
            elif config.inference in WARM_STARTED:
                found = WARM_STARTED[config.inference](K, y, nu, scale, start)
            else:
                found = COLD_STARTED[config.inference](K, y, nu, scale)
        except FloatingPointError as error:
            raise FloatingPointError(f"{error}; at {hyper.words(theta)}") from None
    if not np.isfinite(found.log_evidence):
        raise FloatingPointError(f"the evidence is not finite at {hyper.words(theta)}")
    return found


def evidence(problem: StudentTProblem, theta: Array) -> tuple[float, Array]:
    """Return the approximate log evidence (nats) and its gradient (P,) with respect to the logarithms theta (P,)."""
    return Evidence(problem, ep.LIMITS)(theta)


def at_check_fraction(problem: StudentTProblem) -> StudentTProblem | None:
    """Return the problem with CHECK_FRACTION, or None if inference is not EP or its fraction is not larger."""
    config = problem.config
    if config.inference != "ep" or config.fraction <= CHECK_FRACTION:
        return None
    return problem._replace(config=config.model_copy(update={"fraction": CHECK_FRACTION}))


class Evidence:
    """The log evidence (nats) and its gradient (P,) at the points theta (P,) of a search, with warm starts.

    Points where EP's evidence differs by more than ``evidence_check`` have none: they raise FloatingPointError.
    """

    def __init__(self, problem: StudentTProblem, limits: ep.EPLimits) -> None:
        self._problem, self._path = problem, WarmStartPath(partial(infer, problem), limits)
        other = None if problem.config.evidence_check is None else at_check_fraction(problem)
        self._other = None if other is None else WarmStartPath(partial(infer, other), limits)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        X, covariance = self._problem.X, self._problem.covariance
        found = self._path.follow(theta)
        self._check(theta, found)
        by_covariance = 0.5 * covariance.contract(theta[:-2], X, np.ascontiguousarray(found.by_covariance))
        return found.log_evidence, np.append(by_covariance, found.by_likelihood)

    def final(self, theta: Array) -> InferenceResult:
        """Return the inference that is reported, as ``WarmStartPath.final`` does."""
        return self._path.final(theta)

    def _check(self, theta: Array, found: InferenceResult) -> None:
        limit = self._problem.config.evidence_check
        if self._other is None or limit is None:
            return
        difference = found.log_evidence - self._other.follow(theta).log_evidence
        if abs(difference) > limit:
            words = f"{_comparison(self._problem, difference)}, more than evidence_check: {limit:g}; try fraction: 0.5"
            raise FloatingPointError(f"{words}; at {self._problem.hyper.words(theta)}")


def unreliable_evidence(problem: StudentTProblem, theta: Array, found: InferenceResult) -> str:
    """Return a message if EP's evidence differs by more than UNRELIABLE from that with CHECK_FRACTION, else ''."""
    other = at_check_fraction(problem)
    if other is None:
        return ""
    try:
        difference = found.log_evidence - infer(other, theta).log_evidence
    except FloatingPointError:
        return (
            f"expectation propagation does not converge with fraction {CHECK_FRACTION:g}: its evidence is not checked"
        )
    return _comparison(problem, difference) if abs(difference) > UNRELIABLE else ""


def _comparison(problem: StudentTProblem, difference: float) -> str:
    fractions = f"fraction {problem.config.fraction:g} and that with fraction {CHECK_FRACTION:g}"
    return f"the log evidence of expectation propagation with {fractions} differ by {difference:.3g} nats"
