"""The check of quantiles: finite, ascending, in the unit of the targets, true of a known noise.

Margins are wide: levels that are fitted one by one cross a little, and few rows make extreme levels poor.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from ep_bench.conformance.calibration import SCALE, SHIFT, noisy, wrong_growth, wrong_means
from ep_bench.conformance.checks import Finding, Skip
from ep_bench.conformance.example_data import ordinary
from ep_bench.conformance.method_under_test import ExampleRows, MethodUnderTest
from ep_bench.types import Array

_LEVELS = (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975)
_APART, _MOST_CROSSED = 0.25, 0.2  # levels so far apart may cross in this share of rows
_LEAST = {0.5: 0.15, 0.9: 0.45, 0.95: 0.5}  # share of the targets in the central interval of each level
_OFF = 0.35  # by which the share of targets below the median may miss a half
_WIDEST = 10.0  # the middle half's width, in widths of the noise's own
_MIDDLE_HALF = 1.349  # of a Gaussian, in deviations
_MEND = "return the quantile of each level that was asked for, a column a level, in the order of the levels"


def quantiles(subject: MethodUnderTest) -> Iterator[Finding]:
    """Judge order and coverage at new inputs of a function with known noise, the unit by targets in another one."""
    case = noisy("a linear function", 0.6, 0.8, 1)
    distribution = subject.answer(subject.fitted(case.train), case.fresh.X).distribution
    if not hasattr(distribution, "quantile"):
        raise Skip("gives points only")
    levels, values = _stated_quantiles(distribution)
    if bad := int(np.sum(~np.isfinite(values))):
        yield Finding(f"{bad} of {values.size} quantiles are not finite", "a finite number for each", _MEND)
        return
    if words := _crossing(levels, values):
        yield Finding(words, "quantiles that ascend with the level", _MEND)
        return
    yield from _miscalibrated(distribution, case.fresh.y, case.noise)
    yield from _wrong_unit(subject)


def _stated_quantiles(distribution: Any) -> tuple[Array, Array]:
    """Return levels (Q,) and quantiles (Q, n) as they were given, of a density those at a few levels."""
    if hasattr(distribution, "given"):
        return distribution.levels, distribution.given
    with np.errstate(all="ignore"):
        return np.array(_LEVELS), np.stack([distribution.quantile(p) for p in _LEVELS])


def _crossing(levels: Array, values: Array) -> str:
    """Tell of the two levels that cross in the most rows, where those are many."""
    pairs = [(i, j) for i, j in combinations(range(len(levels)), 2) if levels[j] - levels[i] >= _APART]
    crossed = [(float(np.mean(values[j] < values[i])), levels[i], levels[j]) for i, j in pairs]
    share, low, high = max(crossed, default=(0.0, 0.0, 1.0))
    if share <= _MOST_CROSSED:
        return ""
    return f"the quantile at {high:g} lies below that at {low:g} in {share:.0%} of the rows"


def _central(distribution: Any, level: float) -> tuple[Array, Array] | None:
    """Return the ends of the central interval of a level, or None where it is not among the quantiles."""
    low, high = round(0.5 - level / 2.0, 12), round(0.5 + level / 2.0, 12)
    if hasattr(distribution, "answers") and not (distribution.answers(low) and distribution.answers(high)):
        return None
    return distribution.quantile(low), distribution.quantile(high)


def _miscalibrated(distribution: Any, y: Array, noise: float) -> Iterator[Finding]:
    about = f"for a linear function with noise of deviation {noise:g}, at new inputs,"
    for level, least in _LEAST.items():
        ends = _central(distribution, level)
        if ends is None:
            continue
        covered = float(np.mean((ends[0] <= y) & (y <= ends[1])))
        if covered < least:
            words = f"{about} the central interval of {level:.0%} encloses {covered:.0%} of the targets"
            yield Finding(words, f"about {level:.0%}", "give quantiles of an observation, noise included")
            return
        share = float(np.median(ends[1] - ends[0])) / (_MIDDLE_HALF * noise)
        if level == 0.5 and share > _WIDEST:
            words = f"{about} the central interval of 50% is {share:.3g} times as wide as the noise's own"
            yield Finding(words, "about 50% of the targets in it", _MEND)
            return
    if not hasattr(distribution, "answers") or distribution.answers(0.5):
        below = float(np.mean(y <= distribution.quantile(0.5)))
        if abs(below - 0.5) > _OFF:
            yield Finding(f"{about} {below:.0%} of the targets lie below the median", "about 50%", _MEND)


def _wrong_unit(subject: MethodUnderTest) -> Iterator[Finding]:
    """Compare a fit with one to the same rows whose targets are shifted and scaled."""
    plain, test = ordinary(80, seed=5, d=2), ordinary(60, seed=6, d=2)
    scaled = ExampleRows(plain.X, SHIFT + SCALE * plain.y)
    one, other = (
        _middle_and_width(subject.answer(subject.fitted(rows), test.X).distribution) for rows in (plain, scaled)
    )
    if one is None or other is None:
        return
    unit = "quantiles in the unit of the targets that fit was given"
    undo = "undo in the quantiles what fit did to y: quantile * y_scale + y_shift"
    learnt = np.std(one[0]) > 0.0 and np.corrcoef(one[0], test.y)[0, 1] > 0.5
    if learnt and (words := wrong_means(one[0], other[0], scaled.y)):
        yield Finding(f"the middle of a central interval: {words}", unit, undo)
    widths = float(np.median(one[1])), float(np.median(other[1]))
    if widths[0] > 0.0 and (words := wrong_growth("widths between quantiles", *widths)):
        yield Finding(words, unit, undo)


def _middle_and_width(distribution: Any) -> tuple[Array, Array] | None:
    """Return the middle (n,) and the width (n,) of the narrowest central interval that the quantiles know."""
    for level in _LEAST:
        ends = _central(distribution, level)
        if ends is not None:
            return 0.5 * (ends[0] + ends[1]), ends[1] - ends[0]
    return None
