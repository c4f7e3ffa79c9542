"""Expectation propagation by the robust scheme of Jylanki et al. (2011), section 4, with powers eta of the likelihood.

The scheme starts from empty sites, or first from sites passed by the caller. Its stages, until the mismatch is below
``CLOSE``:

1. damped parallel sweeps (``sweeps``): about ten, and more while the mismatch decreases. They end if the posterior or a
   cavity is improper, and restart once with a quarter of the damping factor;
2. the double loop (``double_loop``), with F and G verified at each step;
3. the same at half the power. Then eta is raised step by step; the fixed point at eta itself counts.

Close to a fixed point, Newton's method (``newton``) takes over, because the last digits would need hundreds of rounds.
It is also tried at the sites of the caller if sweeps do not converge from there. If the noise is so small that rounding
errors prevent the required mismatch, the end of Newton's method counts.

EP may have several fixed points, and other starting sites may lead to another one than empty sites. Reported values
should come from empty sites: over 105 hyperparameters they did not depend on the damping. Only the double loop is known
to converge to other fixed points than the sweeps.

Deviation: the double loop starts from empty sites. In the paper it starts where the sweeps ended, which depends on the
damping. Newton's method is ours. ``scheme: paper`` has the paper's: ten damped parallel sweeps, then the double loop by
moment matching (``moment_matching``), to a mismatch of 1e-5; fractional updates are left to the caller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from ep_bench.methods.gp_t.double_loop import double_loop
from ep_bench.methods.gp_t.moment_matching import moment_matching
from ep_bench.methods.gp_t.newton import polish
from ep_bench.methods.gp_t.posterior import InferenceResult
from ep_bench.methods.gp_t.sites import CLOSE, SiteModel, SitePosterior, empty, inferred, sites
from ep_bench.methods.gp_t.sweeps import parallel, sequential
from ep_bench.types import Array

Scheme = Literal["robust", "parallel", "sequential", "double_loop", "paper"]
Start = tuple[Array, Array]  # tau and b

FIRST = 8.0  # minimum number of sweeps, divided by the damping factor
WINDOW = 2.0  # sweeps, divided by the damping factor, over which the mismatch has to decrease by the factor PROGRESS
PROGRESS = 0.3
RETRY = 0.25  # factor of the damping factor in the second attempt
SWEEPS = 1000  # maximum of the plain schemes
PAPER_SWEEPS, PAPER_CLOSE = 10, 1e-5  # of scheme paper; below, rounding errors hide the increase of F
ROWS, FEWEST = 250, 30  # data points up to which the double loop has all its rounds, and its minimum number of rounds
NEAR = 0.3  # mismatch below which Newton's method is tried
NEARER = 0.5  # factor of that threshold after a failure
ROUNDING = 1e-7  # mismatch that suffices if Newton's method makes no more progress
LOWEST_POWER = 0.5  # relative to eta, at which stage 3 starts
LONGEST, SHORTEST = 0.1, 0.01  # steps of the power


class EPLimits(NamedTuple):
    """The largest mismatch of a fixed point, and the maximum number of rounds of the double loop.

    With 0 rounds the robust scheme ends after its sweeps.
    """

    close: float
    rounds: int


LIMITS = EPLimits(CLOSE, 1000)


class StageEnd(NamedTuple):
    """The state at the end of a stage, and its number of sweeps, rounds and Newton steps."""

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
    """Return a fixed point for full covariances K (N, N) and targets y (N,).

    The robust scheme first tries the sites ``start``. Raises FloatingPointError, with the mismatch of each stage, if no
    stage converges.
    """
    model = SiteModel(K, y, nu, scale, eta)
    tried, total = [], 0
    limits = limits._replace(close=max(limits.close, PAPER_CLOSE)) if scheme == "paper" else limits
    close = max(limits.close, ROUNDING) if scheme == "robust" else limits.close
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for stage, (now, steps) in _stages(model, damping, scheme, start, limits):
            total += steps
            if now.mismatch < close:
                return inferred(now, model, total, stage)
            tried.append(f"{stage}: mismatch {now.mismatch:.2g} after {steps} steps")
    raise FloatingPointError(f"expectation propagation did not converge; {', '.join(tried)}")


def _stages(
    model: SiteModel, damping: float, scheme: Scheme, start: Start | None, limits: EPLimits
) -> Iterator[tuple[str, StageEnd]]:
    if scheme == "double_loop":
        yield "double loop", _double_loop(model, empty(model), limits)
    elif scheme == "paper":
        first = _first_sweeps(model, damping, limits)
        yield f"parallel {damping:g}", first
        yield "moment matching", _plain(moment_matching(model, first.sites, damping), limits)
    elif scheme != "robust":
        sweeps = (parallel if scheme == "parallel" else sequential)(model, empty(model), damping)
        yield f"{scheme} {damping:g}", _plain(sweeps, limits)
    else:
        yield from _robust(model, damping, start, limits)


def _robust(model: SiteModel, damping: float, start: Start | None, limits: EPLimits) -> Iterator[tuple[str, StageEnd]]:
    warm = None if start is None else sites(model, *start)
    if warm is not None and math.isfinite(warm.mismatch):
        yield f"parallel {damping:g} from earlier sites", _parallel(model, warm, damping, limits)
        yield "Newton's method from earlier sites", StageEnd(*polish(model, warm, limits.close))
    for factor in (damping, RETRY * damping):
        yield f"parallel {factor:g}", _parallel(model, empty(model), factor, limits)
    if limits.rounds > 0:
        yield "double loop", _double_loop(model, empty(model), limits)
        yield "fractional", _from_smaller_power(model, damping, limits)


def _first_sweeps(model: SiteModel, damping: float, limits: EPLimits) -> StageEnd:
    """Return the last of the paper's first parallel sweeps with proper cavities."""
    now, steps = empty(model), 0
    for after in islice(parallel(model, now, damping), PAPER_SWEEPS):
        if not math.isfinite(after.mismatch):
            break
        now, steps = after, steps + 1
        if now.mismatch < limits.close:
            break
    return StageEnd(now, steps)


def _plain(scheme: Iterator[SitePosterior], limits: EPLimits) -> StageEnd:
    steps = 0
    for now in islice(scheme, SWEEPS):
        steps += 1
        if now.mismatch < limits.close:
            break
    return StageEnd(now, steps)


def _parallel(model: SiteModel, start: SitePosterior, damping: float, limits: EPLimits) -> StageEnd:
    """Sweep while the mismatch decreases fast enough, then polish if it is small."""
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
    """Return the maximum number of rounds for n data points; each costs about ten solves of 2n equations."""
    return max(int(rounds * min(1.0, ROWS / n) ** 2), min(rounds, FEWEST))


def _polish(model: SiteModel, now: SitePosterior, limits: EPLimits, near: float) -> StageEnd:
    """Continue with Newton's method if the mismatch is between ``limits.close`` and ``near``."""
    if limits.close <= now.mismatch < near:
        return StageEnd(*polish(model, now, limits.close))
    return StageEnd(now, 0)


def _from_smaller_power(model: SiteModel, damping: float, limits: EPLimits) -> StageEnd:
    """Find the fixed point at LOWEST_POWER of eta, and follow it to eta."""
    now, total = _at_power(model, empty(model), LOWEST_POWER, damping, limits)
    power, step = LOWEST_POWER, LONGEST
    brief = limits._replace(rounds=limits.rounds // 10)
    while now.mismatch < limits.close and power < 1.0 and step >= SHORTEST:
        next_power = min(power + step, 1.0)
        after, steps = _at_power(model, now, next_power, damping, brief)
        total += steps
        if after.mismatch < limits.close:
            now, power = after, next_power
        else:
            step *= 0.5
    return StageEnd(sites(model, now.tau, now.b) or now, total)


def _at_power(model: SiteModel, start: SitePosterior, power: float, damping: float, limits: EPLimits) -> StageEnd:
    """Return the end of sweeps, or of the double loop, at ``power`` times eta."""
    fractional = model._replace(eta=power * model.eta)
    first = sites(fractional, start.tau, start.b)
    if first is None or not math.isfinite(first.mismatch):
        return StageEnd(start._replace(mismatch=math.inf), 0)
    now, steps = _parallel(fractional, first, damping, limits)
    if not now.mismatch < limits.close:
        now, rounds = _double_loop(fractional, first, limits)
        steps += rounds
    return StageEnd(now, steps)
