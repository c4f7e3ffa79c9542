"""Checks of predictive distributions: original units, noise included, a normalised density.

The tolerances are wide, so that methods with poor but valid predictions pass, such as a constant predictor.
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

SCALE, SHIFT = 1000.0, 1e4  # scale and shift of the targets in the check of units
_MIN_STD, _MIN_COVERAGE = 0.5, 0.75  # relative to the standard deviation of the noise; coverage of 95 % intervals
_EXPONENTS = (0.4, 1.6)  # allowed growth of standard deviations as powers of SCALE; 0 is no growth, 2 that of variances
_PANELS = (-np.inf, -30.0, -8.0, -3.0, -1.0, -0.3, 0.0, 0.3, 1.0, 3.0, 8.0, 30.0, np.inf)  # of the quadrature
_LEVELS = (0.01, 0.05, *np.linspace(0.1, 0.9, 9).tolist(), 0.95, 0.99)
_LIKE_VARIANCES = ", so they scale like variances"


def original_units(subject: MethodUnderTest) -> Iterator[Finding]:
    """Compare fits to the same data with the original and with shifted and scaled targets."""
    test, scaled, (one, other) = in_two_units(subject)
    if np.corrcoef(one.mean, test.y)[0, 1] > 0.5 and (words := wrong_means(one.mean, other.mean, scaled.y)):
        yield Finding(
            words,
            "means in the units of the targets passed to fit",
            "transform the means back in predict: mean * y_scale + y_shift",
        )
    if one.std is not None and other.std is not None:
        yield from _wrong_stds(float(np.median(one.std)), float(np.median(other.std)))


def in_two_units(subject: MethodUnderTest) -> tuple[ExampleRows, ExampleRows, list[Answer]]:
    """Return test data, shifted and scaled training data, and predictions of fits to the original and these targets."""
    plain, test = ordinary(80, seed=5, d=2), ordinary(60, seed=6, d=2)
    scaled = ExampleRows(plain.X, SHIFT + SCALE * plain.y)
    return test, scaled, [subject.answer(subject.fitted(rows), test.X) for rows in (plain, scaled)]


def wrong_means(one: Array, other: Array, y: Array) -> str:
    """Return a description of means in wrong units: standardised, centred or not rescaled; empty if there is none.

    ``one`` (n,) are means of a fit to the original targets, ``other`` (n,) those of a fit to the scaled targets y.
    """
    size, unit = float(np.std(y)), 0.25 * float(np.std(one))
    off = abs(float(np.median(other)) - float(np.mean(y))) > size
    numbers = (
        f"targets with mean {np.mean(y):.5g} and standard deviation {size:.4g} have predictions with mean "
        f"{np.mean(other):.5g} and standard deviation {np.std(other):.3g}"
    )
    if off and _median_distance(other, one) < unit:
        return f"{numbers}; these are predictions of standardised targets"
    if off and _median_distance(other, SCALE * one) < SCALE * unit:
        return f"{numbers}; these are predictions of centred targets, the mean is not added"
    if not off and _median_distance(other - np.median(other), one - np.median(one)) < unit:
        return f"{numbers}; the mean is right, but predictions are not multiplied by the scale of the targets"
    return ""


def _median_distance(one: Array, other: Array) -> float:
    return float(np.median(np.abs(one - other)))


def wrong_growth(what: str, one: float, other: float) -> str:
    """Return a description of a quantity that does not scale with the targets, from ``one`` to ``other`` by SCALE."""
    low, high = (SCALE**power for power in _EXPONENTS)
    growth = other / one if np.isfinite(one) and np.isfinite(other) else SCALE
    grew = f"targets multiplied by {SCALE:g} multiply the {what} by {growth:.3g} (medians {one:.3g}, {other:.3g})"
    if growth > high:
        return f"{grew}{_LIKE_VARIANCES}"
    return grew if growth < low else ""


def _wrong_stds(one: float, other: float) -> Iterator[Finding]:
    if words := wrong_growth("standard deviations", one, other):
        yield Finding(
            words,
            "standard deviations in the units of the targets, which scale with the targets",
            "return the square root of the variance"
            if words.endswith(_LIKE_VARIANCES)
            else "multiply the standard deviation by the scale of y; if an option fixes it, learn it from the data or "
            "standardise the targets (--option standardize=true, or standardize: true in a study)",
        )


def _available(answer: Answer) -> str:
    """Return the kind of a prediction without a density or without a standard deviation."""
    if answer.std is not None:
        return "the method gives no density"
    only = "quantiles" if hasattr(answer.distribution, "quantile") else "points"
    return f"the method gives {only} only"


class _NoisyExample(NamedTuple):
    """Training data with noise of known standard deviation, and two sets of test data."""

    what: str
    train: ExampleRows
    fresh: ExampleRows  # at other inputs
    repeated: ExampleRows  # further observations at the training inputs
    noise: float  # standard deviation


def noisy(what: str, slope: float, noise: float, seed: int) -> _NoisyExample:
    """Return 200 data points of a linear function with noise; targets have mean 0 and standard deviation about 1."""
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
    """Compare standard deviations with that of known noise; 200 data points determine the function well."""
    for case in (noisy("a linear function", 0.6, 0.8, 1), noisy("a constant", 0.0, 1.0, 2)):
        wrapped = subject.fitted(case.train)
        for rows, which in ((case.fresh, "new inputs"), (case.repeated, "the training inputs")):
            answer = subject.answer(wrapped, rows.X)
            if answer.std is None:
                raise Skip(_available(answer))
            ratio = float(np.median(answer.std)) / case.noise
            covered = float(np.mean(np.abs(rows.y - answer.mean) <= 1.96 * answer.std))
            if ratio < _MIN_STD and covered < _MIN_COVERAGE:
                yield Finding(
                    f"for {case.what} with noise of standard deviation {case.noise:g}, at {which}, the median "
                    f"standard deviation is {ratio * case.noise:.2g}; {covered:.0%} of the targets are within 1.96 "
                    "standard deviations of the mean",
                    f"a standard deviation of about {case.noise:g} or more, and about 95% of the targets",
                    "return sqrt(function_variance + noise_variance); if the noise is included, its estimate is far "
                    "too small",
                )
                return


def density(subject: MethodUnderTest) -> Iterator[Finding]:
    """Integrate the density of a few test points; compare density and ``predict`` with mean and standard deviation."""
    rows = ordinary(60, seed=7)
    rows = ExampleRows(rows.X, 50.0 + 7.0 * rows.y)
    wrapped = subject.fitted(rows)
    X = ordinary(3, seed=8).X
    answers = [subject.answer(wrapped, X[i : i + 1]) for i in range(len(X))]
    if not hasattr(answers[0].distribution, "logpdf"):
        raise Skip(_available(answers[0]))
    for answer in answers:
        if finding := wrong_density(answer):
            yield finding
            break
    yield from _other_answers(subject, wrapped, X)


def wrong_density(answer: Answer) -> Finding | None:
    """Return the finding for a wrong density at one test point: its integral or its moments."""
    mean, std = float(answer.mean[0]), _unit(answer)
    total, first, second = _moments(answer.distribution, mean, std)
    if not abs(total - 1.0) < 0.05:
        return Finding(
            f"exp(logpdf) integrates to {total:.3g}",
            "1, in the units of the targets",
            "divide the density of standardised targets by their scale: subtract log(scale) from logpdf",
        )
    integrated = float(np.sqrt(max(second / total - (first / total) ** 2, 0.0))) * std
    has_std = answer.std is not None and np.isfinite(answer.std[0])
    if abs(first / total) > 0.2 or (has_std and not 0.8 < integrated / std < 1.25):
        return Finding(
            f"the density has mean {mean + std * first / total:.4g} and standard deviation {integrated:.3g}; "
            f"mean() and std() return {mean:.4g} and {std:.3g}",
            "logpdf, mean and std of the same distribution",
            "compute logpdf, mean and std from the same parameters",
        )
    return None


def _unit(answer: Answer) -> float:
    """Return the length unit of the quadrature: the standard deviation if it is finite, else half the middle 50 %."""
    if answer.std is not None and np.isfinite(answer.std[0]):
        return float(answer.std[0])
    low, high = _quantiles(answer.distribution, (0.25, 0.75))
    return (high - low) / 2.0


def _quantiles(distribution: Any, levels: tuple[float, ...]) -> list[float]:
    return [float(np.ravel(distribution.quantile(p))[0]) for p in levels]


def _moments(distribution: Any, mean: float, unit: float) -> tuple[float, float, float]:
    """Return the integrals of 1, t and t^2 for the density of t = (y - mean) / unit; in the tails only that of 1.

    Panels are also divided at quantiles, if there are any, so that narrow components of a mixture are not missed.
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


def _other_answers(subject: MethodUnderTest, wrapped: Any, X: Array) -> Iterator[Finding]:
    """Compare all predictions of the instance itself with the distribution that is scored."""
    if not subject.registered and subject.options.get("standardize"):
        return  # the predictions of the instance are in standardised units
    answer = subject.answer(wrapped, X)
    if answer.std is None or not np.all(np.isfinite(answer.std)):
        return
    for what, part, value in subject.raw_answers(subject.model(wrapped), X):
        scored = answer.mean if part == "mean" else answer.std
        distance = float(np.max(np.abs(np.asarray(value, float) - scored) / answer.std))
        if not distance < 0.2:
            yield Finding(
                f"{what} and the distribution that is scored differ by up to {distance:.2g} standard deviations",
                "all predictions from the same distribution",
                "compute predict from the same parameters as predict_dist",
            )
            return
