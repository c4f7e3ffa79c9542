"""Checks of what the numbers mean: original units, noise included, a density that is one.

Each accuses on a wide margin alone: a poor method is no dishonest one, and a constant predictor passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ep_bench.conformance.checks import Finding, Skip
from ep_bench.conformance.example_data import ordinary, standard_noise
from ep_bench.conformance.method_under_test import Answer, ExampleRows, MethodUnderTest
from ep_bench.types import Array

SCALE, SHIFT = 1000.0, 1e4  # of the targets in the check of units
_LEAST_NOISE, _LEAST_COVERAGE = 0.5, 0.75  # share of the noise's deviation; of targets in intervals of 95 percent
_EXPONENTS = (0.4, 1.6)  # deviations may grow by SCALE to these powers; 0 is no growth, 2 that of a variance
_PANELS = (-np.inf, -30.0, -8.0, -3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0, 8.0, 30.0, np.inf)  # of the quadrature
_LEVELS = (0.01, 0.05, *np.linspace(0.1, 0.9, 9).tolist(), 0.95, 0.99)


def original_units(subject: MethodUnderTest) -> Iterator[Finding]:
    """Compare a fit with one to the same rows whose targets are shifted and scaled."""
    plain, test = ordinary(80, seed=5, d=2), ordinary(60, seed=6, d=2)
    scaled = ExampleRows(plain.X, SHIFT + SCALE * plain.y)
    one, other = (subject.answer(subject.fitted(rows), test.X) for rows in (plain, scaled))
    if np.corrcoef(one.mean, test.y)[0, 1] > 0.5 and (words := wrong_means(one.mean, other.mean, scaled.y)):
        yield Finding(
            words,
            "means in the unit of the targets that fit was given",
            "undo in predict what fit did to y: mean * y_scale + y_shift",
        )
    if one.deviation is not None and other.deviation is not None:
        yield from _wrong_deviations(float(np.median(one.deviation)), float(np.median(other.deviation)))


def wrong_means(one: Array, other: Array, y: Array) -> str:
    """Tell standardised, centred and unscaled means by their marks.

    ``one`` are the means of a fit that has learnt something, ``other`` those for the scaled and shifted targets y. A
    method that standardises has seen the same numbers twice; one that cannot cope with the unit has not.
    """
    size, unit = float(np.std(y)), 0.25 * float(np.std(one))
    off = abs(float(np.median(other)) - float(np.mean(y))) > size
    numbers = (
        f"targets of mean {np.mean(y):.5g} and deviation {size:.4g} get predictions of mean {np.mean(other):.5g} "
        f"and deviation {np.std(other):.3g}"
    )
    if off and _median_distance(other, one) < unit:
        return f"{numbers}, as standardised targets would"
    if off and _median_distance(other, SCALE * one) < SCALE * unit:
        return f"{numbers}, as centred targets would: the mean is not added back"
    if not off and _median_distance(other - np.median(other), one - np.median(one)) < unit:
        return f"{numbers}: the mean is right, but the deviation of the targets is not multiplied back"
    return ""


def _median_distance(one: Array, other: Array) -> float:
    return float(np.median(np.abs(one - other)))


def wrong_growth(what: str, one: float, other: float) -> str:
    """Tell where what should grow about as the targets do, from ``one`` to ``other`` by SCALE, does not."""
    low, high = (SCALE**power for power in _EXPONENTS)
    growth = other / one if np.isfinite(one) and np.isfinite(other) else SCALE
    grew = f"targets multiplied by {SCALE:g} multiply the {what} by {growth:.3g} (medians {one:.3g}, {other:.3g})"
    if growth > high:
        return f"{grew}, as variances would"
    return grew if growth < low else ""


def _wrong_deviations(one: float, other: float) -> Iterator[Finding]:
    if words := wrong_growth("deviations", one, other):
        yield Finding(
            words,
            "deviations in the unit of the targets, which grow about as the targets do",
            "return the root: std, not std ** 2"
            if words.endswith("variances would")
            else "multiply the deviation by the scale of y too; if its size is fixed by an option, learn it from the "
            "rows or standardise them (--option standardize=true, or standardize: true in a study)",
        )


def _instead(answer: Answer) -> str:
    """Return what a method without a density, or without a deviation, gives."""
    if answer.deviation is not None:
        return "gives no density"
    return "gives quantiles only" if hasattr(answer.distribution, "quantile") else "gives points only"


class _NoisyExample(NamedTuple):
    """Rows with noise of a known deviation, and test rows of two kinds."""

    what: str
    train: ExampleRows
    fresh: ExampleRows  # other inputs
    repeated: ExampleRows  # the training inputs, observed once more
    noise: float


def noisy(what: str, slope: float, noise: float, seed: int) -> _NoisyExample:
    """Return rows whose targets have mean 0 and deviation 1, so that no unit enters."""
    rng = np.random.default_rng([20, seed])
    n = 200
    X, Z = rng.normal(size=(2, n, 2))
    weights = np.full(2, slope / np.sqrt(2.0))

    def targets(inputs: Array) -> Array:
        return np.asarray(inputs @ weights + noise * standard_noise(rng, n))

    return _NoisyExample(
        what, ExampleRows(X, targets(X)), ExampleRows(Z, targets(Z)), ExampleRows(X, targets(X)), noise
    )


def noise_included(subject: MethodUnderTest) -> Iterator[Finding]:
    """Compare deviations with a known noise, where 200 rows leave little else to be unsure of."""
    for case in (noisy("a linear function", 0.6, 0.8, 1), noisy("a constant", 0.0, 1.0, 2)):
        face = subject.fitted(case.train)
        for rows, which in ((case.fresh, "new inputs"), (case.repeated, "the training inputs, observed once more")):
            answer = subject.answer(face, rows.X)
            if answer.deviation is None:
                raise Skip(_instead(answer))
            share = float(np.median(answer.deviation)) / case.noise
            covered = float(np.mean(np.abs(rows.y - answer.mean) <= 1.96 * answer.deviation))
            if share < _LEAST_NOISE and covered < _LEAST_COVERAGE:
                yield Finding(
                    f"for {case.what} with noise of deviation {case.noise:g}, at {which}, the median deviation is "
                    f"{share * case.noise:.2g}; {covered:.0%} of the targets lie within 1.96 deviations of the mean",
                    f"a deviation of about {case.noise:g} or more, and about 95% of the targets",
                    "add the noise's variance before taking the root: sqrt(function_variance + noise_variance); "
                    "if it is in, the noise is estimated far too small",
                )
                return


def density(subject: MethodUnderTest) -> Iterator[Finding]:
    """Integrate the density of a few rows, and hold it and ``predict`` against the mean and deviation."""
    rows = ordinary(60, seed=7)
    rows = ExampleRows(rows.X, 50.0 + 7.0 * rows.y)
    face = subject.fitted(rows)
    X = ordinary(3, seed=8).X
    answers = [subject.answer(face, X[i : i + 1]) for i in range(len(X))]
    if not hasattr(answers[0].distribution, "logpdf"):
        raise Skip(_instead(answers[0]))
    for answer in answers:
        if finding := wrong_density(answer):
            yield finding
            break
    yield from _other_answers(subject, face, X)


def wrong_density(answer: Answer) -> Finding | None:
    """Return what is wrong with the density of one row: its integral, or the moments that go with it."""
    mean, deviation = float(answer.mean[0]), _unit(answer)
    total, first, second = _moments(answer.distribution, mean, deviation)
    if not abs(total - 1.0) < 0.05:
        return Finding(
            f"exp(logpdf) integrates to {total:.3g}",
            "1, in the unit of the targets",
            "a density of standardised targets must be divided by their scale: subtract log(scale) from logpdf",
        )
    spread = float(np.sqrt(max(second / total - (first / total) ** 2, 0.0))) * deviation
    given = answer.deviation is not None and np.isfinite(answer.deviation[0])
    if abs(first / total) > 0.2 or (given and not 0.8 < spread / deviation < 1.25):
        return Finding(
            f"the density has mean {mean + deviation * first / total:.4g} and deviation {spread:.3g}; "
            f"mean() and std() say {mean:.4g} and {deviation:.3g}",
            "one distribution behind all three",
            "compute logpdf, mean and std from the same parameters",
        )
    return None


def _unit(answer: Answer) -> float:
    """Return a length for the quadrature: the deviation, or where it is infinite or absent half the middle half."""
    if answer.deviation is not None and np.isfinite(answer.deviation[0]):
        return float(answer.deviation[0])
    low, high = _quantiles(answer.distribution, (0.25, 0.75))
    return (high - low) / 2.0


def _quantiles(distribution: Any, levels: tuple[float, ...]) -> list[float]:
    return [float(np.ravel(distribution.quantile(p))[0]) for p in levels]


def _moments(distribution: Any, mean: float, unit: float) -> tuple[float, float, float]:
    """Return the integrals of 1, t and t^2 over the density of t = (y - mean) / unit, beyond the panels only of 1.

    Quantiles, where there are any, break the panels up, so that no narrow part of a mixture is stepped over.
    """
    from scipy.integrate import quad

    def pdf(t: float) -> float:
        return float(unit * np.exp(np.ravel(distribution.logpdf(np.array([mean + unit * t])))[0]))

    edges = set(_PANELS)
    if hasattr(distribution, "quantile"):
        edges |= {(y - mean) / unit for y in _quantiles(distribution, _LEVELS)}
    sums = np.zeros(3)
    with np.errstate(all="ignore"):
        for low, high in pairwise(sorted(edges)):
            for power in range(3 if np.isfinite(low) and np.isfinite(high) else 1):
                sums[power] += quad(lambda t, power=power: t**power * pdf(t), low, high, epsabs=1e-6, limit=60)[0]
    return float(sums[0]), float(sums[1]), float(sums[2])


def _other_answers(subject: MethodUnderTest, face: Any, X: Array) -> Iterator[Finding]:
    """Hold every answer that the instance itself gives against the distribution that the runner scores."""
    if not subject.registered and subject.options.get("standardize"):
        return  # the instance itself speaks in other units than its face
    answer = subject.answer(face, X)
    if answer.deviation is None or not np.all(np.isfinite(answer.deviation)):
        return
    for what, part, value in subject.raw_answers(subject.model(face), X):
        ours = answer.mean if part == "mean" else answer.deviation
        apart = float(np.max(np.abs(np.asarray(value, float) - ours) / answer.deviation))
        if not apart < 0.2:
            yield Finding(
                f"{what} and the distribution that is scored differ by up to {apart:.2g} of its deviations",
                "one distribution behind all answers",
                "compute predict from the same parameters as predict_dist",
            )
            return
