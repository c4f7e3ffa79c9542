"""Merged data points: groups, the likelihood of repeated inputs, and the message on unbounded evidence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ep_bench.covariances.replicates import Replicates, groups, merge


def repeated(seed=0, distinct=7, n=20, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(distinct, d))
    group = np.append(np.arange(distinct), rng.integers(distinct, size=n - distinct))
    return X[group], rng.normal(size=n), group


def test_groups_keep_the_order_of_the_data():
    X = np.array([[3.0, 1.0], [1.0, 1.0], [3.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    first, group = groups(X)
    np.testing.assert_array_equal(first, [0, 1, 3])
    np.testing.assert_array_equal(group, [0, 1, 0, 2, 1])


def test_likelihood_is_that_of_all_targets():
    """For any function values and noise, with its derivative by differences."""
    X, y, group = repeated()
    distinct, means, replicates = merge(X, y)
    f = np.random.default_rng(1).normal(size=len(distinct))

    def merged(log_noise):
        noise = np.exp(log_noise) / replicates.counts
        return stats.norm.logpdf(means, f, np.sqrt(noise)).sum() + replicates.log_density(log_noise)[0]

    for log_noise in (-3.0, 0.4):
        expected = stats.norm.logpdf(y, f[group], np.exp(0.5 * log_noise)).sum()
        assert merged(log_noise) == pytest.approx(expected, rel=1e-12)
        up, down = (replicates.log_density(log_noise + step)[0] for step in (1e-5, -1e-5))
        assert replicates.log_density(log_noise)[1] == pytest.approx((up - down) / 2e-5, rel=1e-6)


def test_a_part_of_the_groups_has_its_part_of_the_squares():
    """Without it, the evidence of a part would grow without bound as the noise goes to 0."""
    X, y, _ = repeated(n=60)
    _, _, replicates = merge(X, y)
    part = replicates.part(np.array([0, 3, 4]))
    np.testing.assert_array_equal(part.counts, replicates.counts[[0, 3, 4]])
    assert part.squares / part.merged == pytest.approx(replicates.squares / replicates.merged)
    assert part.log_density(-12.0)[0] < part.log_density(-6.0)[0] < part.log_density(0.0)[0]
    assert replicates.part(np.arange(7)).squares == pytest.approx(replicates.squares)
    single = Replicates.none(5).part(np.array([1, 2]))
    assert (single.merged, single.squares) == (0.0, 0.0)
