"""The evidence that linear regression by black-box alpha gives at alpha = 0."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from ep_bench import Estimator


def rows(n, d, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * rng.standard_normal((d, d)))
    return X, X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)


class TestEvidence:
    """``log_evidence_`` of the scikit-learn interface, against the marginal of the standardised targets."""

    def fitted(self, **options):
        X, y = rows(30, 3)
        model = Estimator("bb_alpha", hidden=[], alpha=0.0, prior_variance=0.7, **options).fit(X + 2.0, 5.0 * y - 1.0)
        A, targets = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
        noise = model.state_.noise_variance
        evidence = multivariate_normal.logpdf(targets, np.zeros(30), noise * np.eye(30) + 0.7 * A @ A.T)
        return model, evidence, np.eye(3) / 0.7 + A.T @ A / noise

    @pytest.mark.parametrize("noise", [0.2, None])
    def test_a_full_covariance_has_the_evidence_itself(self, noise):
        model, evidence, _ = self.fitted(covariance="full", noise_variance=noise)
        assert noise is None or model.state_.noise_variance == noise
        assert model.log_evidence_ == pytest.approx(evidence, rel=1e-10)

    def test_a_diagonal_one_has_the_bound(self):
        """The gap is KL(q || posterior) of the best q: half the log of Hadamard's ratio."""
        model, evidence, precision = self.fitted(covariance="diagonal", noise_variance=0.2)
        gap = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
        assert gap > 0.01
        assert model.log_evidence_ == pytest.approx(evidence - gap, rel=1e-10)

    def test_a_network_has_none(self):
        X, y = rows(20, 2)
        assert not hasattr(Estimator("bb_alpha", hidden=[3], epochs=1).fit(X, y), "log_evidence_")
