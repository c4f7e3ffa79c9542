"""The double loop of expectation propagation by moment matching, Jylanki et al. (2011), section 4.

Notation and objective F are those of ``double_loop``, without its barrier. An inner step moves the sites by a fraction
delta of the moment-matching update (12), so that cavities stay proper (modification 2). It must increase F
(modification 1); otherwise delta is found by cubic interpolation of F (modification 4). After at most two inner steps,
or if the moments agree, the fixed marginals become those of the posterior (modification 3).

Deviation: delta is adjusted until F increases, where the paper stops after two adjustments. An outer step that would
leave a cavity improper is shortened, where the paper turns to fractional updates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ep_bench.methods.gp_t.double_loop import EDGE, FixedMarginals, fixed_marginals, natural
from ep_bench.methods.gp_t.sites import SiteModel, SitePosterior, sites
from ep_bench.types import Array

INNER_STEPS = 2  # the paper's limit
HALVINGS = 30  # of a step that leaves a cavity or the posterior improper
CONSISTENT = 1e-4  # difference of moments at which the inner loop ends, the paper's


def moment_matching(
    model: SiteModel, start: SitePosterior, damping: float, inner_steps: int = INNER_STEPS
) -> Iterator[SitePosterior]:
    """Yield the state after each round, until no outer step leaves proper cavities."""
    now = fixed_marginals(model, natural(start.posterior), start.tau, start.b)
    while now is not None:
        for _ in range(inner_steps):
            after = inner_step(model, now, damping)
            if after is None:
                break
            now = after
            if _mismatch(now) < CONSISTENT:
                break
        state = sites(model, now.tau, now.b)
        if state is None:
            return
        yield state
        now = _outer_step(model, now)


def _outer_step(model: SiteModel, now: FixedMarginals) -> FixedMarginals | None:
    """Return the state with marginals moved as far as possible towards those of the posterior, None if impossible."""
    target = natural(now.posterior)
    for halved in range(HALVINGS):
        part = 0.5**halved
        precision, shift = (old + part * (new - old) for new, old in zip(target, now.outer, strict=True))
        after = fixed_marginals(model, (precision, shift), now.tau, now.b)
        if after is not None:
            return after
    return None


def inner_step(model: SiteModel, now: FixedMarginals, damping: float) -> FixedMarginals | None:
    """Return the state after a moment-matching step that increases F, None if no length does."""
    mean, variance = now.posterior.mean, now.posterior.variance
    by_tau = (1.0 / now.tilted[2] - 1.0 / variance) / model.eta
    by_b = (now.tilted[1] / now.tilted[2] - mean / variance) / model.eta
    nearest = float((model.eta * by_tau / now.cavity[0]).max())
    length = min(damping, EDGE / nearest) if nearest > 0.0 else damping
    slope = _slope(now, by_tau, by_b)
    for _ in range(HALVINGS):
        after = fixed_marginals(model, now.outer, now.tau + length * by_tau, now.b + length * by_b)
        if after is None:
            length *= 0.5
        elif after.value > now.value:
            return after
        else:
            length = interpolated(length, (now.value, after.value), (slope, _slope(after, by_tau, by_b)))
    return None


def interpolated(length: float, values: tuple[float, float], slopes: tuple[float, float]) -> float:
    """Return the maximum in (0, length) of the cubic with values and slopes at both ends; half if there is none."""
    first, last = slopes
    middle = 3.0 * (values[1] - values[0]) / length - first - last
    root = math.sqrt(max(middle**2 - first * last, 0.0))
    bottom = first - last + 2.0 * root
    # the root of the derivative at which the curvature is negative
    found = length * (1.0 - (root - middle - last) / bottom) if bottom else math.inf
    return found if root and 0.0 < found < length else 0.5 * length


def _slope(now: FixedMarginals, by_tau: Array, by_b: Array) -> float:
    """Return the derivative of F along a change of the sites: differences of moments."""
    mean, variance = now.posterior.mean, now.posterior.variance
    by_square = now.tilted[2] + now.tilted[1] ** 2 - variance - mean**2
    return float(by_b @ (now.tilted[1] - mean) - 0.5 * by_tau @ by_square)


def _mismatch(now: FixedMarginals) -> float:
    mean, variance = now.posterior.mean, now.posterior.variance
    by_mean = np.abs(now.tilted[1] - mean) / np.sqrt(variance)
    return float(np.maximum(by_mean, np.abs(now.tilted[2] / variance - 1.0)).max())
