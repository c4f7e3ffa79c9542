"""The check of quantiles: finite, ascending, in the units of the targets, calibrated for known noise.

Tolerances are wide: quantiles fitted separately per level may cross, and extreme levels are inaccurate for few data.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from ep_bench.conformance.calibration import in_two_units, noisy, wrong_growth, wrong_means
from ep_bench.conformance.checks import Finding, Skip
from ep_bench.conformance.method_under_test import MethodUnderTest
from ep_bench.types import Array

_LEVELS = (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975)
_MIN_DISTANCE = 0.25  # of two levels that are compared
_MAX_CROSSED = 0.2  # fraction of data points for which two levels may cross
_MIN_COVERAGE = {0.5: 0.15, 0.9: 0.45, 0.95: 0.5}  # of the central interval of each level
_MAX_MEDIAN_ERROR = 0.35  # difference of the fraction of targets below the median from 0.5
_MAX_WIDTH = 10.0  # of the central 50 % interval, relative to that of the noise
_WIDTH_OF_HALF = 1.349  # of the central 50 % interval of a Gaussian, in standard deviations
_REMEDY = "return the quantiles of the requested levels, one column per level, in the order of the levels"


def quantiles(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check order and coverage at test inputs for known noise, and the units with shifted and scaled targets."""
    case = noisy("a linear function", 0.6, 0.8, 1)
    distribution = subject.answer(subject.fitted(case.train), case.fresh.X).distribution
    if not hasattr(distribution, "quantile"):
        raise Skip("the method gives points only")
    levels, values = _stated_quantiles(distribution)
    if bad := int(np.sum(~np.isfinite(values))):
        yield Finding(f"{bad} of {values.size} quantiles are not finite", "finite numbers", _REMEDY)
        return
    if words := _crossing(levels, values):
        yield Finding(words, "quantiles that ascend with the level", _REMEDY)
        return
    yield from _miscalibrated(distribution, case.fresh.y, case.noise)
    yield from _wrong_unit(subject)


def _stated_quantiles(distribution: Any) -> tuple[Array, Array]:
    """Return levels (Q,) and quantiles (Q, n) as predicted; for a density those at a few levels."""
    if hasattr(distribution, "given"):
        return distribution.levels, distribution.given
    with np.errstate(all="ignore"):
        return np.array(_LEVELS), np.stack([distribution.quantile(p) for p in _LEVELS])


def _crossing(levels: Array, values: Array) -> str:
    """Return a description of the two levels that cross most often; empty if they cross rarely."""
    pairs = [(i, j) for i, j in combinations(range(len(levels)), 2) if levels[j] - levels[i] >= _MIN_DISTANCE]
    crossed = [(float(np.mean(values[j] < values[i])), levels[i], levels[j]) for i, j in pairs]
    fraction, low, high = max(crossed, default=(0.0, 0.0, 1.0))
    if fraction <= _MAX_CROSSED:
        return ""
    return f"the quantile at {high:g} is below that at {low:g} for {fraction:.0%} of the data points"


def _central(distribution: Any, level: float) -> tuple[Array, Array] | None:
    """Return the ends (n,) of the central interval of a level, or None if they are not available."""
    low, high = round(0.5 - level / 2.0, 12), round(0.5 + level / 2.0, 12)
    if hasattr(distribution, "answers") and not (distribution.answers(low) and distribution.answers(high)):
        return None
    return distribution.quantile(low), distribution.quantile(high)


def _miscalibrated(distribution: Any, y: Array, noise: float) -> Iterator[Finding]:
    about = f"for a linear function with noise of standard deviation {noise:g}, at new inputs,"
    for level, minimum in _MIN_COVERAGE.items():
        ends = _central(distribution, level)
        if ends is None:
            continue
        covered = float(np.mean((ends[0] <= y) & (y <= ends[1])))
        if covered < minimum:
            words = f"{about} the central {level:.0%} interval covers {covered:.0%} of the targets"
            yield Finding(words, f"about {level:.0%}", "return quantiles of an observation, noise included")
            return
        width = float(np.median(ends[1] - ends[0])) / (_WIDTH_OF_HALF * noise)
        if level == 0.5 and width > _MAX_WIDTH:
            words = f"{about} the central 50% interval is {width:.3g} times as wide as that of the noise"
            yield Finding(words, "about 50% of the targets in it", _REMEDY)
            return
    if not hasattr(distribution, "answers") or distribution.answers(0.5):
        below = float(np.mean(y <= distribution.quantile(0.5)))
        if abs(below - 0.5) > _MAX_MEDIAN_ERROR:
            yield Finding(f"{about} {below:.0%} of the targets are below the median", "about 50%", _REMEDY)


def _wrong_unit(subject: MethodUnderTest) -> Iterator[Finding]:
    """Compare fits to the same data with the original and with shifted and scaled targets."""
    test, scaled, answers = in_two_units(subject)
    one, other = (_middle_and_width(answer.distribution) for answer in answers)
    if one is None or other is None:
        return
    unit = "quantiles in the units of the targets passed to fit"
    undo = "transform the quantiles back: quantile * y_scale + y_shift"
    learnt = np.std(one[0]) > 0.0 and np.corrcoef(one[0], test.y)[0, 1] > 0.5
    if learnt and (words := wrong_means(one[0], other[0], scaled.y)):
        yield Finding(f"the middle of a central interval: {words}", unit, undo)
    widths = float(np.median(one[1])), float(np.median(other[1]))
    if widths[0] > 0.0 and (words := wrong_growth("widths between quantiles", *widths)):
        yield Finding(words, unit, undo)


def _middle_and_width(distribution: Any) -> tuple[Array, Array] | None:
    """Return the middle (n,) and the width (n,) of the narrowest available central interval, or None."""
    for level in _MIN_COVERAGE:
        ends = _central(distribution, level)
        if ends is not None:
            return 0.5 * (ends[0] + ends[1]), ends[1] - ends[0]
    return None
