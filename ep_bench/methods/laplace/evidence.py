"""Re-estimation of the prior and noise precisions by MacKay (1992).

At the most probable weights w,

    log evidence = log p(y | w, beta) + log p(w | alpha) + Q / 2 log 2 pi - log det A / 2
    gamma_l      = Q_l - alpha_l tr_l A^-1      number of well-determined weights, gamma = sum_l gamma_l
    alpha_l     <- gamma_l / |w_l|^2            or one alpha from the sums over layers
    beta        <- (N - gamma) / sum (y - f)^2

    P, Q, N        weights, weights that the form of A covers, data points
    alpha, beta    prior precisions by layer (L,), noise precision
    A              precision of the posterior (``curvature``)

The updates are not monotone in the evidence of a network: a later search can end at weights of much lower evidence.
Therefore the update of the highest evidence is returned. Each of several starts ends when PATIENCE updates have not
raised its evidence; a single start continues to a fixed point.
If a search ended at its limit of steps, the gradient g of M is not 0 at its weights. The log evidence is then, for the
full form, that of the network linearised at the weights without the term g' A^-1 g / 2: a lower bound.
At fixed precisions, and for the linear model, the last update is returned: it is the mode.

The prior of weights that A does not cover enters neither the evidence nor gamma. A search for the most probable
weights follows each update. The gammas of the diagonal and the Kronecker-factored form can exceed N (the diagonal gamma
is never below the full one). The update of beta is then not positive, and the update of the EM algorithm replaces it:
beta <- N / (sum (y - f)^2 + gamma / beta), which has the same fixed points. The gammas of J'J and of its last block
exceed N by rounding errors only; they are reduced to N.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.laplace.curvature import Form, Hessian, WeightPosterior, curvature, spread_over
from ep_bench.methods.laplace.mode_search import ModeProblem, most_probable
from ep_bench.methods.laplace.network import outputs
from ep_bench.types import Array

TOLERANCE = 1e-3  # the updates of a network end at a smaller change of every log precision
TOLERANCE_LINEAR = 1e-9  # the same for the linear model, whose curvature does not depend on the weights
PRECISIONS = (1e-8, 1e8)  # limits of an update, standardised units; a warning states which precision reached one
PATIENCE = 3  # updates of a network without a higher evidence, after which one of several starts ends
COLLAPSED = ": the network has collapsed to a constant; its predictive standard deviation is that of the noise"


class UpdateSettings(NamedTuple):
    """Options of the updates."""

    form: Form
    shared: bool  # one prior precision for all layers
    fixed_prior: bool
    fixed_noise: bool
    updates: int
    steps: int  # maximum per search for the most probable weights
    patience: int = PATIENCE  # updates of a network without a higher evidence, after which the updates end

    @property
    def fixed(self) -> bool:
        """Whether both precisions are fixed."""
        return self.fixed_prior and self.fixed_noise


class Precisions(NamedTuple):
    """Prior and noise precisions."""

    alpha: Array  # (L,)
    beta: float


class LaplaceApproximation(NamedTuple):
    """The approximate posterior at fixed precisions."""

    weights: Array  # (P,)
    posterior: WeightPosterior
    precisions: Precisions
    first: int  # index of the first layer that the form covers
    gamma: Array  # (L,), 0 for layers that the form does not cover
    squares: float  # sum of squared residuals
    log_evidence: float
    log_joint: float  # log p(y | w) + log p(w), all weights


def approximate(problem: ModeProblem, w: Array, precisions: Precisions, form: Form) -> LaplaceApproximation:
    """Return the approximate posterior around the most probable weights w (P,).

    Raises FloatingPointError if the log evidence or the log joint density is not finite.
    """
    layers, rows = problem.layers, len(problem.y)
    covered: Hessian = curvature(form, problem.X, w, layers, problem.kind)
    posterior, first = covered.posterior(*precisions), covered.first
    alphas = spread_over(layers, precisions.alpha)
    start = int(layers[first, 0])
    determined = np.concatenate([np.zeros(start), 1.0 - alphas[start:] * posterior.variances])
    gamma = np.add.reduceat(determined, layers[:, 0])
    squares = float(np.sum((outputs(problem.X, w[None], layers, problem.kind)[0] - problem.y) ** 2))
    log_likelihood = 0.5 * rows * math.log(precisions.beta / (2.0 * math.pi)) - 0.5 * precisions.beta * squares
    log_prior = 0.5 * (np.log(alphas) - alphas * w**2)  # without -log(2 pi) / 2 per weight
    log_evidence = log_likelihood + float(log_prior[start:].sum()) - 0.5 * posterior.log_det
    log_joint = log_likelihood + float(log_prior.sum()) - 0.5 * len(w) * math.log(2.0 * math.pi)
    if not (math.isfinite(log_evidence) and math.isfinite(log_joint)):
        raise FloatingPointError(f"log evidence {log_evidence:g} or log joint density {log_joint:g} is not finite")
    return LaplaceApproximation(w, posterior, precisions, first, gamma, squares, log_evidence, log_joint)


class EvidenceFit(NamedTuple):
    """The returned posterior, the trace of all updates, and why the updates were unfinished, or an empty text."""

    approximation: LaplaceApproximation
    trace: dict[str, list[float]]
    unfinished: str


def maximise(problem: ModeProblem, w: Array, precisions: Precisions, settings: UpdateSettings) -> EvidenceFit:
    """Alternate between searches for the most probable weights, starting at w (P,), and updates of the precisions.

    Returns the update of the highest evidence. Raises FloatingPointError if a number of the first update is not finite,
    or one of any update at fixed precisions.
    """
    trace: dict[str, list[float]] = {}
    network = len(problem.layers) > 1
    tolerance = TOLERANCE if network else TOLERANCE_LINEAR
    by_evidence = network and not settings.fixed
    kept: LaplaceApproximation | None = None
    for update in range(settings.updates + 1):
        alphas = spread_over(problem.layers, precisions.alpha)
        try:
            optimum = most_probable(problem, w, alphas, precisions.beta, settings.steps)
            found = approximate(problem, optimum.weights, precisions, settings.form)
        except FloatingPointError as error:
            if kept is None or not by_evidence:
                raise
            return EvidenceFit(kept, trace, f"update {update} failed: {error}")
        w = found.weights
        _append_trace(trace, found, problem, settings)
        if kept is None or not by_evidence or found.log_evidence > kept.log_evidence:
            kept, best_update = found, update
        proposed = updated(found, problem, settings)
        at_fixed_point = optimum.converged and _change(precisions, proposed) <= tolerance
        if at_fixed_point or update - best_update >= settings.patience:
            return EvidenceFit(kept, trace, _at_limit(kept.precisions, settings))
        if update < settings.updates:
            precisions = proposed
    best = kept or found
    unfinished = _at_limit(best.precisions, settings) or _remaining_change(
        precisions, proposed, settings, exhausted=optimum.exhausted
    )
    return EvidenceFit(best, trace, unfinished)


def _change(old: Precisions, new: Precisions) -> float:
    """Return the largest absolute change of a log precision."""
    return max(float(np.abs(np.log(new.alpha / old.alpha)).max()), abs(math.log(new.beta / old.beta)))


def best_of(
    problem: ModeProblem, starts: Sequence[tuple[Array, Precisions]], settings: UpdateSettings
) -> tuple[EvidenceFit, list[float]]:
    """Return the fit of the highest evidence from several starts (weights (P,), precisions), and all evidences.

    The evidence of a start whose numbers are not finite is -inf. Raises FloatingPointError if those of all starts are
    not finite.
    """
    best: EvidenceFit | None = None
    evidences: list[float] = []
    for w, precisions in starts:
        try:
            fit = maximise(problem, w, precisions, settings)
        except FloatingPointError as error:
            evidences.append(-math.inf)
            failure = error
            continue
        evidences.append(fit.approximation.log_evidence)
        if best is None or evidences[-1] > best.approximation.log_evidence:
            best = fit
    if best is None:
        raise failure
    return best, evidences


def updated(found: LaplaceApproximation, problem: ModeProblem, settings: UpdateSettings) -> Precisions:
    """Return the precisions after MacKay's update, clipped to ``PRECISIONS``."""
    alpha, beta = found.precisions
    layers, rows, by_layer = problem.layers, len(problem.y), _effective_parameters(found, problem, settings.form)
    gamma = float(by_layer.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        if not settings.fixed_prior:
            squares = np.add.reduceat(found.weights**2, layers[:, 0])
            common = np.full(len(layers), gamma / squares[found.first :].sum())
            alpha = _clipped(common if settings.shared else by_layer / squares)
        if not settings.fixed_noise:
            unconstrained = np.float64(rows - gamma) / found.squares
            beta = float(_clipped(unconstrained if gamma < rows else rows / (found.squares + gamma / beta)))
    return Precisions(alpha, beta)


def _effective_parameters(found: LaplaceApproximation, problem: ModeProblem, form: Form) -> Array:
    """Return gamma (L,), with a sum of at most min(N, Q) for ``full`` and ``last``; any excess is a rounding error."""
    limit = min(len(problem.y), len(found.weights) - int(problem.layers[found.first, 0]))
    excessive = form in {"full", "last"} and found.gamma.sum() > limit
    return found.gamma * (limit / found.gamma.sum()) if excessive else found.gamma


def _clipped(precision: Any) -> Any:
    """Return precisions clipped to the limits; NaN (all weights or residuals are 0) becomes the upper limit."""
    return np.clip(np.where(np.isnan(precision), PRECISIONS[1], precision), *PRECISIONS)


def _at_limit(precisions: Precisions, settings: UpdateSettings) -> str:
    """Return which learned precision reached a limit, or an empty string."""
    learned = {
        "prior": () if settings.fixed_prior else precisions.alpha,
        "noise": () if settings.fixed_noise else (precisions.beta,),
    }
    for name, values in learned.items():
        for value in values:
            if value in PRECISIONS:
                end = "infinity" if value == PRECISIONS[1] else "0"
                stopped = f"the {name} precision tends to {end}, clipped to {value:g} (standardised units)"
                return stopped + (COLLAPSED if (name, end) == ("prior", "infinity") else "")
    return ""


def _remaining_change(
    precisions: Precisions, proposed: Precisions, settings: UpdateSettings, *, exhausted: bool
) -> str:
    """Return how much one more update would change the precisions, or an empty string if the change is negligible."""
    many = len(precisions.alpha) > 1 and not settings.shared
    prior = zip(precisions.alpha, proposed.alpha, strict=True) if many else [(precisions.alpha[0], proposed.alpha[0])]
    ratios = {"the prior precision" + (f" of layer {l + 1}" if many else ""): new / old
              for l, (old, new) in enumerate(prior)}  # fmt: skip
    ratios["the noise precision"] = proposed.beta / precisions.beta
    changes = [
        f"{name} by {ratio - 1.0:+.3g} of its value"
        for name, ratio in ratios.items()
        if abs(math.log(ratio)) > TOLERANCE
    ]
    parts = []
    if changes:
        moved = f"after {settings.updates} updates, one more would change {' and '.join(changes)}"
        parts.append(f"{moved}, over the tolerance of {TOLERANCE:g}: raise updates")
    if exhausted:
        parts.append(
            f"the search for the most probable weights ended at its limit of {settings.steps} steps: raise steps"
        )
    return "; ".join(parts)


def _append_trace(
    trace: dict[str, list[float]], found: LaplaceApproximation, problem: ModeProblem, settings: UpdateSettings
) -> None:
    """Append the values of one update to the trace."""
    alpha, beta = found.precisions
    shared = settings.shared or len(alpha) == 1
    prior_sds = {
        "prior_deviation" + ("" if shared else f"_{l + 1}"): 1.0 / math.sqrt(a)
        for l, a in enumerate(alpha[:1] if shared else alpha)
    }
    values = {
        "objective": -found.log_joint / len(problem.y),
        "log_evidence": found.log_evidence,
        "noise_deviation": 1.0 / math.sqrt(beta),
        "well_determined": float(found.gamma.sum()),
    }
    for name, value in (values | prior_sds).items():
        trace.setdefault(name, []).append(float(value))
