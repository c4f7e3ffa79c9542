"""MacKay's (1992) re-estimation of the prior and noise precisions.

    log evidence = log p(y | w, beta) + log p(w | alpha) + Q / 2 log 2 pi - log det A / 2,   at the most probable w
    gamma        = sum_l (Q_l - alpha_l tr_l A^-1)      well-determined weights, a layer each, or all together
    alpha_l     <- gamma_l / |w_l|^2
    beta        <- (N - gamma) / sum (y - f)^2

Symbols (P weights, Q of them covered by the form of A, N rows): alpha prior precisions by layer, beta noise precision,
w the most probable weights, A the precision of the posterior, ``curvature``. The prior of weights that A does not
cover enters neither the evidence nor gamma. Each update is followed by a search for the new most probable weights.
The diagonal and the Kronecker-factored form have gammas of their own, which can exceed N (the diagonal's is never less
than the full one). The update of beta then has no positive value, and takes EM's,
beta <- N / (sum (y - f)^2 + gamma / beta), which has the same fixed points. The gammas of J'J and of its last block
exceed N by rounding alone, and the updates cut them to it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.laplace.curvature import Form, Hessian, WeightPosterior, curvature, spread_over
from ep_bench.methods.laplace.mode_search import ModeProblem, most_probable
from ep_bench.methods.laplace.network import sum_of_squares
from ep_bench.types import Array

STILL = 1e-3  # largest change of a log precision that ends the updates of a network, and that no fit warns of
STILL_LINEAR = 1e-9  # and of the linear model, whose curvature hangs on no weight
PRECISIONS = (1e-8, 1e8)  # beyond these, in standardised units, an update counts as running away
COLLAPSED = ": the network has collapsed to its constant; its predictive deviation is that of the noise alone"


class UpdateSettings(NamedTuple):
    """Options of the updates."""

    form: Form
    shared: bool  # one prior precision for all layers
    fixed_prior: bool
    fixed_noise: bool
    updates: int
    steps: int  # of a search for the most probable weights


class Precisions(NamedTuple):
    """Hyperparameters."""

    alpha: Array  # (L,)
    beta: float


class LaplaceApproximation(NamedTuple):
    """The posterior at given precisions."""

    weights: Array  # (P,)
    posterior: WeightPosterior
    precisions: Precisions
    first: int  # layer from which on the form covers the weights
    gamma: Array  # (L,) 0 for layers that the form does not cover
    squares: float  # sum of squared residuals
    log_evidence: float
    log_joint: float  # log p(y | w) + log p(w), all weights


def approximate(problem: ModeProblem, w: Array, at: Precisions, form: Form) -> LaplaceApproximation:
    """Return the posterior around the most probable weights w (P,).

    Raises FloatingPointError where it is not finite.
    """
    layers, rows = problem.layers, len(problem.y)
    covered: Hessian = curvature(form, problem.X, w, layers)
    posterior, first = covered.posterior(*at), covered.first
    alphas = spread_over(layers, at.alpha)
    start = int(layers[first, 0])
    determined = np.concatenate([np.zeros(start), 1.0 - alphas[start:] * posterior.variances])
    gamma = np.add.reduceat(determined, layers[:, 0])
    squares = sum_of_squares(problem.X, problem.y, w, layers)
    log_likelihood = 0.5 * rows * math.log(at.beta / (2.0 * math.pi)) - 0.5 * at.beta * squares
    log_prior = 0.5 * (np.log(alphas) - alphas * w**2)  # but for -log(2 pi) / 2 each
    log_evidence = log_likelihood + float(log_prior[start:].sum()) - 0.5 * posterior.log_det
    log_joint = log_likelihood + float(log_prior.sum()) - 0.5 * len(w) * math.log(2.0 * math.pi)
    if not (math.isfinite(log_evidence) and math.isfinite(log_joint)):
        raise FloatingPointError(f"log evidence {log_evidence:g}, log joint density {log_joint:g}: not finite")
    return LaplaceApproximation(w, posterior, at, first, gamma, squares, log_evidence, log_joint)


class EvidenceFit(NamedTuple):
    """The last posterior, what there was at each update, and why the updates ended short of a fixed point, or ''."""

    approximation: LaplaceApproximation
    trace: dict[str, list[float]]
    unfinished: str


def maximise(problem: ModeProblem, w: Array, at: Precisions, settings: UpdateSettings) -> EvidenceFit:
    """Alternate searches for the most probable weights, from w (P,) on, and updates of the precisions.

    Raises FloatingPointError where a number is not finite.
    """
    trace: dict[str, list[float]] = {}
    still = STILL if len(problem.layers) > 1 else STILL_LINEAR
    for update in range(settings.updates + 1):
        optimum = most_probable(problem, w, spread_over(problem.layers, at.alpha), at.beta, settings.steps)
        w = optimum.weights
        found = approximate(problem, w, at, settings.form)
        _note(trace, found, problem, settings)
        to = updated(found, problem, settings)
        change = max(float(np.abs(np.log(to.alpha / at.alpha)).max()), abs(math.log(to.beta / at.beta)))
        if change <= still and optimum.converged:
            return EvidenceFit(found, trace, _at_limit(to, settings))
        if update < settings.updates:
            at = to
    return EvidenceFit(
        found, trace, _at_limit(at, settings) or _remaining_change(at, to, settings, exhausted=optimum.exhausted)
    )


def updated(found: LaplaceApproximation, problem: ModeProblem, settings: UpdateSettings) -> Precisions:
    """Return the precisions of MacKay's update, held within ``PRECISIONS``."""
    alpha, beta = found.precisions
    layers, rows, by_layer = problem.layers, len(problem.y), _effective_parameters(found, problem, settings.form)
    gamma = float(by_layer.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        if not settings.fixed_prior:
            squares = np.add.reduceat(found.weights**2, layers[:, 0])
            together = np.full(len(layers), gamma / squares[found.first :].sum())
            alpha = _clipped(together if settings.shared else by_layer / squares)
        if not settings.fixed_noise:
            plain = np.float64(rows - gamma) / found.squares
            beta = float(_clipped(plain if gamma < rows else rows / (found.squares + gamma / beta)))
    return Precisions(alpha, beta)


def _effective_parameters(found: LaplaceApproximation, problem: ModeProblem, form: Form) -> Array:
    """Return gamma (L,), of whole blocks of J'J at most N or Q together: what is beyond is rounding."""
    most = min(len(problem.y), len(found.weights) - int(problem.layers[found.first, 0]))
    beyond = form in {"full", "last"} and found.gamma.sum() > most
    return found.gamma * (most / found.gamma.sum()) if beyond else found.gamma


def _clipped(precision: Any) -> Any:
    """Return precisions within the limits; where weights or residuals are all 0, and so infinite or NaN, the upper."""
    return np.clip(np.where(np.isnan(precision), PRECISIONS[1], precision), *PRECISIONS)


def _at_limit(at: Precisions, settings: UpdateSettings) -> str:
    """Return which learned precision was stopped at a limit, or ''."""
    learned = {"prior": () if settings.fixed_prior else at.alpha, "noise": () if settings.fixed_noise else (at.beta,)}
    for name, values in learned.items():
        for value in values:
            if value in PRECISIONS:
                end = "infinity" if value == PRECISIONS[1] else "0"
                stopped = f"the {name} precision runs to {end}, stopped at {value:g} (standardised units)"
                return stopped + (COLLAPSED if (name, end) == ("prior", "infinity") else "")
    return ""


def _remaining_change(at: Precisions, to: Precisions, settings: UpdateSettings, *, exhausted: bool) -> str:
    """Return what is left after the last update, or '' where that is a matter of digits."""
    many = len(at.alpha) > 1 and not settings.shared
    prior = zip(at.alpha, to.alpha, strict=True) if many else [(at.alpha[0], to.alpha[0])]
    ratios = {"the prior precision" + (f" of layer {l + 1}" if many else ""): new / old
              for l, (old, new) in enumerate(prior)}  # fmt: skip
    ratios["the noise precision"] = to.beta / at.beta
    changes = [f"{name} by {ratio - 1.0:+.3g} of it" for name, ratio in ratios.items() if abs(math.log(ratio)) > STILL]
    parts = []
    if changes:
        moved = f"after {settings.updates} updates another would change {' and '.join(changes)}"
        parts.append(f"{moved}, over the limit of {STILL:g}: raise updates")
    if exhausted:
        parts.append(
            f"the search for the most probable weights ended at its limit of {settings.steps} steps: raise steps"
        )
    return "; ".join(parts)


def _note(
    trace: dict[str, list[float]], found: LaplaceApproximation, problem: ModeProblem, settings: UpdateSettings
) -> None:
    """Append an update's numbers."""
    alpha, beta = found.precisions
    shared = settings.shared or len(alpha) == 1
    deviations = {
        "prior_deviation" + ("" if shared else f"_{l + 1}"): 1.0 / math.sqrt(a)
        for l, a in enumerate(alpha[:1] if shared else alpha)
    }
    values = {
        "objective": -found.log_joint / len(problem.y),
        "log_evidence": found.log_evidence,
        "noise_deviation": 1.0 / math.sqrt(beta),
        "well_determined": float(found.gamma.sum()),
    }
    for name, value in (values | deviations).items():
        trace.setdefault(name, []).append(float(value))
