"""Probabilistic backpropagation pass by pass: the same as the method, parts left out, the error of the Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from ep_bench.experiments.pbp_2015.filtering_passes import compute
from ep_bench.experiments.pbp_2015.filtering_passes.figure import measures
from ep_bench.experiments.record import ExperimentResults
from ep_bench.methods import pbp
from ep_bench.types import Rows

rng = np.random.default_rng(3)
X = rng.normal(size=(20, 2))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=20)
START = [rng.normal(size=(4, 3)), rng.normal(size=(1, 5))]
ORDERS = np.array([rng.permutation(20) for _ in range(3)])


RUN = "filtering_passes", {"datasets": ["yacht"], "splits": 1, "hidden": 3, "passes": [2, 40, 41]}, "passes"


def test_all_parts_are_the_method() -> None:
    *_, net = compute.after_passes(X, y, START, ORDERS, (0, 3), refine=True, variances=True)
    state, _ = pbp.fit(Rows(X, y), pbp.Config(hidden=(4,), epochs=3), rng, START, ORDERS)
    expected = pbp.predict(state, X, rng)
    mean, variance = compute.function(net, X)
    np.testing.assert_array_equal(mean, expected.mean())
    np.testing.assert_allclose(variance + net.noise[1] / (net.noise[0] - 1.0), expected.variance(), rtol=1e-12)


def test_the_variances_stay_but_means_and_noise_change() -> None:
    first, last = compute.after_passes(X, y, START, ORDERS[:1], (0, 1), refine=False, variances=False)
    assert first is last
    np.testing.assert_array_equal(last.variance[last.places], 1.2)
    assert not np.isclose(last.mean[last.places], pbp.layout.flat(START)).any()
    assert last.noise[0] > 6.0


@pytest.mark.parametrize(("variance", "a"), [(1e-9, 6.0), (0.4, 6.0), (0.4, 300.0)])
def test_the_error_of_the_gaussian(variance: float, a: float) -> None:
    """Without variance of the function, Z is the density of a Student t distribution."""
    b, targets = 0.7 * a, np.array([-2.0, 0.1, 5.0])
    scale = np.sqrt(b / a)
    exact = [
        integrate.quad(
            lambda z, y=y: stats.t.pdf(y - z, 2 * a, scale=scale) * stats.norm.pdf(z, 0.3, np.sqrt(variance)),
            0.3 - 9 * np.sqrt(variance), 0.3 + 9 * np.sqrt(variance),
        )[0]
        for y in targets
    ]  # fmt: skip
    gaussian = stats.norm.logpdf(targets, 0.3, np.sqrt(variance + b / (a - 1)))
    found = compute.gaussian_error(targets, np.full(3, 0.3), np.full(3, variance), a, b)
    np.testing.assert_allclose(found, gaussian - np.log(exact), rtol=1e-5, atol=1e-7)


def test_summary_and_claims(results: ExperimentResults) -> None:
    assert [row["passes"] for row in results.summary] == 3 * ["0", "2", "40", "41"]
    found = measures(results)
    assert found["smallest variance of the function after 41 passes relative to 40"] < 1.0
    assert len(found) == 3
