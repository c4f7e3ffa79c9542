"""Expectation propagation by the robust scheme of Jylanki et al. (2011), section 4, with powers eta of the likelihood.

From empty sites, or first from those that are given, until the mismatch is below ``CLOSE``:

1. damped parallel sweeps (``sweeps``), some ten and as many more as go on to shrink the mismatch; one that leaves the
   posterior or a cavity improper ends them, and they begin anew with a quarter of the damping factor;
2. the double loop (``double_loop``), of which F and G are verified at each step;
3. the same at half the power, from where eta is raised again step by step. What counts is the last step, at eta itself.

Where either has come near, Newton's method (``newton``) ends it: the others' last digits take hundreds of rounds. It is
tried at given sites too where sweeps do not converge. Where next to no noise leaves too few digits for the mismatch
that is asked for, what it ends at counts.

EP may have several fixed points, and given sites may lead to another one than empty sites. A number that is reported
should come from empty ones: over 105 points of a ladder it did not hang on the damping. The double loop alone is known
to come to other points than the sweeps where both converge.

Deviations: the double loop begins at empty sites, not where the sweeps were left, which the damping decides. Newton's
method is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from ep_bench.methods.gp_t.double_loop import double_loop
from ep_bench.methods.gp_t.newton import polish
from ep_bench.methods.gp_t.posterior import InferenceResult
from ep_bench.methods.gp_t.sites import CLOSE, SiteModel, SitePosterior, empty, inferred, log_evidence, sites
from ep_bench.methods.gp_t.sweeps import parallel, sequential
from ep_bench.types import Array

Scheme = Literal["robust", "parallel", "sequential", "double_loop"]
Start = tuple[Array, Array]  # tau and b

FIRST = 8.0  # sweeps at least, times the damping factor
WINDOW = 2.0  # sweeps, times the damping factor, that shrink the mismatch to PROGRESS of itself, or are the last
PROGRESS = 0.3
RETRY = 0.25  # of the damping factor
SWEEPS = 1000  # of plain schemes
ROWS, FEWEST = 250, 30  # rows up to which the double loop is given all its rounds, rounds that it is given in any case
NEAR = 0.3  # mismatch from which on Newton's method is tried
NEARER = 0.5  # of that, after it failed
ROUNDING = 1e-7  # mismatch that is taken for one where Newton's method gets no further
LEAST_POWER = 0.5  # of eta, where fractional updates begin
LONGEST, SHORTEST = 0.1, 0.01  # steps of the power


class EPLimits(NamedTuple):
    """The largest mismatch that counts as a fixed point, and rounds of the double loop at most.

    Without rounds the robust scheme ends after its sweeps.
    """

    close: float
    rounds: int


LIMITS = EPLimits(CLOSE, 1000)


class SchemeTrace(NamedTuple):
    """A scheme, one row a sweep, or a round of the outer loop."""

    mismatch: Array  # (T,) infinite where a cavity was improper
    log_evidence: Array  # (T,) nats, NaN where a cavity was improper
    precisions: Array  # (T, N) of the sites


class StageEnd(NamedTuple):
    """Where a stage was left, and the number of its sweeps, rounds and Newton's steps."""

    sites: SitePosterior
    steps: int


def infer(
    K: Array,
    y: Array,
    nu: float,
    scale: float,
    eta: float,
    damping: float,
    scheme: Scheme = "robust",
    start: Start | None = None,
    limits: EPLimits = LIMITS,
) -> InferenceResult:
    """Return a fixed point for covariances K (N, N), in full; the robust scheme seeks it first from ``start``.

    Raises FloatingPointError, with the state reached by each stage, where none converges.
    """
    model = SiteModel(K, y, nu, scale, eta)
    tried, total = [], 0
    close = max(limits.close, ROUNDING) if scheme == "robust" else limits.close
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for stage, (now, steps) in _stages(model, damping, scheme, start, limits):
            total += steps
            if now.mismatch < close:
                return inferred(now, model, total, stage)
            tried.append(f"{stage}: mismatch {now.mismatch:.2g} after {steps} steps")
    raise FloatingPointError(f"expectation propagation did not converge; {', '.join(tried)}")


def trace(
    K: Array, y: Array, nu: float, scale: float, eta: float, scheme: Scheme, damping: float, rounds: int,
    before: int = 0,
) -> SchemeTrace:  # fmt: skip
    """Return what a plain scheme does from empty sites in so many rounds, the first ``before`` parallel sweeps.

    It is shorter where a state cannot be left.
    """
    model = SiteModel(K, y, nu, scale, eta)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        path = list(islice(parallel(model, empty(model), damping), before))
        last = path[-1] if path else empty(model)
        path += islice(_scheme(model, last, scheme, damping), rounds - before)
        evidence = [log_evidence(now, eta) for now in path]
    return SchemeTrace(
        np.array([now.mismatch for now in path]), np.array(evidence), np.array([now.tau for now in path])
    )


def _scheme(model: SiteModel, start: SitePosterior, scheme: Scheme, damping: float) -> Iterator[SitePosterior]:
    if scheme == "double_loop":
        return double_loop(model, start)
    if scheme in ("parallel", "sequential"):
        return (parallel if scheme == "parallel" else sequential)(model, start, damping)
    raise ValueError(f"no plain scheme: {scheme}")


def _stages(
    model: SiteModel, damping: float, scheme: Scheme, start: Start | None, limits: EPLimits
) -> Iterator[tuple[str, StageEnd]]:
    if scheme == "double_loop":
        yield "double loop", _double_loop(model, empty(model), limits)
    elif scheme != "robust":
        yield f"{scheme} {damping:g}", _plain(_scheme(model, empty(model), scheme, damping), limits)
    else:
        yield from _robust(model, damping, start, limits)


def _robust(model: SiteModel, damping: float, start: Start | None, limits: EPLimits) -> Iterator[tuple[str, StageEnd]]:
    given = None if start is None else sites(model, *start)
    if given is not None and math.isfinite(given.mismatch):
        yield f"parallel {damping:g} from given sites", _parallel(model, given, damping, limits)
        yield "Newton's method from given sites", StageEnd(*polish(model, given, limits.close))
    for factor in (damping, RETRY * damping):
        yield f"parallel {factor:g}", _parallel(model, empty(model), factor, limits)
    if limits.rounds > 0:
        yield "double loop", _double_loop(model, empty(model), limits)
        yield "fractional", _from_smaller_power(model, damping, limits)


def _plain(scheme: Iterator[SitePosterior], limits: EPLimits) -> StageEnd:
    steps = 0
    for now in islice(scheme, SWEEPS):
        steps += 1
        if now.mismatch < limits.close:
            break
    return StageEnd(now, steps)


def _parallel(model: SiteModel, start: SitePosterior, damping: float, limits: EPLimits) -> StageEnd:
    """Sweep as long as it helps; then polish what is near."""
    now, path, window = start, [start.mismatch], math.ceil(WINDOW / damping)
    for after in parallel(model, now, damping):
        path.append(after.mismatch)
        if not math.isfinite(after.mismatch):
            break
        now = after
        slow = len(path) > FIRST / damping and path[-1] > PROGRESS * path[-1 - window]
        if now.mismatch < limits.close or slow:
            break
    now, polishing = _polish(model, now, limits, NEAR)
    return StageEnd(now, len(path) - 1 + polishing)


def _double_loop(model: SiteModel, start: SitePosterior, limits: EPLimits) -> StageEnd:
    now, steps, near = start, 0, NEAR
    for now in islice(double_loop(model, start), _round_limit(limits.rounds, len(model.y))):
        ended, polishing = _polish(model, now, limits, near)
        steps += 1 + polishing
        if ended.mismatch < limits.close:
            return StageEnd(ended, steps)
        if polishing:
            near = NEARER * now.mismatch
    return StageEnd(now, steps)


def _round_limit(rounds: int, n: int) -> int:
    """Return how many rounds n rows are given: each takes some ten solves of 2n equations."""
    return max(int(rounds * min(1.0, ROWS / n) ** 2), min(rounds, FEWEST))


def _polish(model: SiteModel, now: SitePosterior, limits: EPLimits, near: float) -> StageEnd:
    """Polish what is near but not there."""
    if limits.close <= now.mismatch < near:
        return StageEnd(*polish(model, now, limits.close))
    return StageEnd(now, 0)


def _from_smaller_power(model: SiteModel, damping: float, limits: EPLimits) -> StageEnd:
    """Find the fixed point at LEAST_POWER of eta, and follow it to eta."""
    now, total = _at_power(model, empty(model), LEAST_POWER, damping, limits)
    power, step = LEAST_POWER, LONGEST
    brief = limits._replace(rounds=limits.rounds // 10)
    while now.mismatch < limits.close and power < 1.0 and step >= SHORTEST:
        onward = min(power + step, 1.0)
        after, steps = _at_power(model, now, onward, damping, brief)
        total += steps
        if after.mismatch < limits.close:
            now, power = after, onward
        else:
            step *= 0.5
    return StageEnd(sites(model, now.tau, now.b) or now, total)


def _at_power(model: SiteModel, start: SitePosterior, power: float, damping: float, limits: EPLimits) -> StageEnd:
    """Return where sweeps or the double loop come to at a part of eta."""
    eased = model._replace(eta=power * model.eta)
    begun = sites(eased, start.tau, start.b)
    if begun is None or not math.isfinite(begun.mismatch):
        return StageEnd(start._replace(mismatch=math.inf), 0)
    now, steps = _parallel(eased, begun, damping, limits)
    if not now.mismatch < limits.close:
        now, rounds = _double_loop(eased, begun, limits)
        steps += rounds
    return StageEnd(now, steps)
