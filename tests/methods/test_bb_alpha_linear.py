"""Linear regression by black-box alpha: the supplement's closed forms, its equations solved slowly, and identities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, root
from scipy.stats import multivariate_normal

from ep_bench import Estimator
from ep_bench.methods.bb_alpha.linear import fit_linear
from tests.twins.linear_energy import linear_energy

EXAMPLE_1 = np.eye(2)
EXAMPLE_2 = np.array([[1.0, -1.0], [-1.0, 1.0]])
ALPHAS = [1e-6, 0.25, 0.5, 1.0, 1.5, 1.9]
NOISES = [0.04, 0.5, 1.0, 9.0]
FAMILIES = ["diagonal", "full"]


def closed_form_1(alpha, noise):
    """Section B.2.2: precision of the factor."""
    square = alpha**2 - 2 * alpha + (noise + 1) ** 2
    return (np.sqrt(square) - alpha - noise + 1) / (2 * noise * (2 - alpha))


def closed_form_2(alpha, noise):
    """Section B.4.2."""
    square = 4 * alpha**2 - 8 * alpha + noise**2 + 4 * noise + 4
    return (np.sqrt(square) - (2 * alpha + noise - 2)) / (2 * noise * (2 - alpha))


def rows(n, d, noise=0.3, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * rng.standard_normal((d, d)))
    return X, X @ rng.standard_normal(d) + np.sqrt(noise) * rng.standard_normal(n)


def tilted_moments(X, y, mean, covariance, alpha, prior, noise):
    """Yield mean and covariance of the tilted distributions, from the natural parameters of (8b)."""
    n, d = X.shape
    precision = np.linalg.inv(covariance)
    factor, shift = (precision - np.eye(d) / prior) / n, precision @ mean / n
    for x, target in zip(X, y, strict=True):
        Lambda = np.eye(d) / prior + (n - alpha) * factor + alpha / noise * np.outer(x, x)
        eta = (n - alpha) * shift + alpha / noise * target * x
        tilted = np.linalg.inv(Lambda)
        yield tilted @ eta, tilted


def moment_gap(X, y, mean, covariance, alpha, prior, noise):
    """Return equation (5), left minus right: first moments (d,) and second (d, d)."""
    tilted = list(tilted_moments(X, y, mean, covariance, alpha, prior, noise))
    first = mean - np.mean([m for m, _ in tilted], axis=0)
    second = covariance + np.outer(mean, mean) - np.mean([V + np.outer(m, m) for m, V in tilted], axis=0)
    return first, second


def slow_energy(X, y, mean, covariance, alpha, prior, noise):
    """Return E by definition: log normalisers, and one integral per data point by Gauss-Hermite quadrature."""
    n, d = X.shape
    precision = np.linalg.inv(covariance)

    def log_z(Lambda, eta):
        return 0.5 * (d * np.log(2 * np.pi) - np.linalg.slogdet(Lambda)[1] + eta @ np.linalg.solve(Lambda, eta))

    q = precision, precision @ mean
    share = alpha / n
    cavity = (1 - share) * q[0] + share * np.eye(d) / prior, (1 - share) * q[1]
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    total = log_z(np.eye(d) / prior, np.zeros(d)) - log_z(*q)
    for x, target in zip(X, y, strict=True):
        centre, spread = np.linalg.solve(*cavity), np.sqrt(x @ np.linalg.solve(cavity[0], x))
        log_density = -0.5 * np.log(2 * np.pi * noise) - (target - x @ centre - spread * nodes) ** 2 / (2 * noise)
        mean_power = np.sum(weights * np.exp(alpha * log_density)) / np.sqrt(2 * np.pi)
        # log E_q[(p / f)^alpha]: normalisers of cavity and q, and the mean of p^alpha under the cavity
        total -= (log_z(*cavity) - log_z(*q) + np.log(mean_power)) / alpha
    return total


def some_q(d, seed=2):
    rng = np.random.default_rng(seed)
    root_ = 0.2 * rng.standard_normal((d, d)) + 0.3 * np.eye(d)
    return rng.standard_normal(d), root_ @ root_.T


@pytest.mark.parametrize("covariance", FAMILIES)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_example_1_agrees_with_its_closed_form(alpha, noise, covariance):
    fit = fit_linear(
        EXAMPLE_1, np.zeros(2), alpha=alpha, prior_variance=1.0, noise_variance=noise, covariance=covariance
    )
    expected = np.eye(2) / (1 + 2 * closed_form_1(alpha, noise))
    np.testing.assert_allclose(fit.covariance, expected, rtol=1e-11, atol=1e-14)
    np.testing.assert_array_equal(fit.mean, 0.0)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_example_2_agrees_with_its_closed_form(alpha, noise):
    fit = fit_linear(
        EXAMPLE_2, np.zeros(2), alpha=alpha, prior_variance=1.0, noise_variance=noise, covariance="diagonal"
    )
    np.testing.assert_allclose(fit.covariance, np.eye(2) / (1 + 2 * closed_form_2(alpha, noise)), rtol=1e-11)


@pytest.mark.parametrize("noise", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("alpha", [0.25, 1.0, 1.9])
def test_example_1_with_targets_solves_the_printed_equations(alpha, noise):
    y = np.array([1.3, -0.4])
    fit = fit_linear(EXAMPLE_1, y, alpha=alpha, prior_variance=1.0, noise_variance=noise, covariance="diagonal")
    ratio = alpha / noise
    for i, target in enumerate(y):

        def shift(lam, target=target):  # section B.2.1: eta_i in terms of lambda_i
            wide, narrow = 1 + (2 - alpha) * lam, 1 + (2 - alpha) * lam + ratio
            return (target * ratio / narrow) / (4 / (1 + 2 * lam) - (2 - alpha) / narrow - (2 - alpha) / wide)

        def gap(lam, target=target):  # section B.2.2: the diagonal of (7b)
            eta, wide, narrow = shift(lam), 1 + (2 - alpha) * lam, 1 + (2 - alpha) * lam + ratio
            left = 1 / (1 + 2 * lam) + 4 * eta**2 / (1 + 2 * lam) ** 2
            means = ((2 - alpha) * eta + ratio * target) / narrow, (2 - alpha) * eta / wide
            return left - 0.5 * (1 / narrow + means[0] ** 2) - 0.5 * (1 / wide + means[1] ** 2)

        found = (1 / fit.covariance[i, i] - 1) / 2
        width = 1e-3 * (1 + abs(found))
        lam = brentq(gap, found - width, found + width, xtol=1e-15, rtol=1e-14)
        assert found == pytest.approx(lam, rel=1e-9)
        assert fit.mean[i] == pytest.approx(2 * shift(lam) / (1 + 2 * lam), rel=1e-9)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.7])
def test_example_2_with_equal_targets_solves_the_corrected_equation(alpha):
    """The equation before the closed form of B.4.2 lacks a square in each denominator."""
    y, noise = 0.8, 0.5
    fit = fit_linear(
        EXAMPLE_2, np.full(2, y), alpha=alpha, prior_variance=1.0, noise_variance=noise, covariance="diagonal"
    )
    lam, b = (1 / fit.covariance[0, 0] - 1) / 2, alpha / noise
    a = 1 + (2 - alpha) * lam + b
    corrected = a / (a**2 - b**2) + y**2 * b**2 * (a - b) ** 2 / (a**2 - b**2) ** 2
    printed = a / (a - alpha**2 / noise) + y**2 * b**2 * (a - b) ** 2 / (a**2 - b**2)
    assert 1 / (1 + 2 * lam) == pytest.approx(corrected, rel=1e-11)
    assert abs(1 / (1 + 2 * lam) / printed - 1) > 0.05
    np.testing.assert_allclose(fit.mean, 0.0, atol=1e-12)


@pytest.mark.parametrize("covariance", FAMILIES)
@pytest.mark.parametrize("alpha", [-2.0, 0.5, 1.0, 3.0])
def test_moments_match_those_of_the_tilted_distributions(alpha, covariance):
    X, y = rows(7, 3)
    fit = fit_linear(X, y, alpha=alpha, prior_variance=2.0, noise_variance=0.4, covariance=covariance)
    first, second = moment_gap(X, y, fit.mean, fit.covariance, alpha, 2.0, 0.4)
    np.testing.assert_allclose(first, 0.0, atol=1e-11)
    np.testing.assert_allclose(np.diagonal(second) if covariance == "diagonal" else second, 0.0, atol=1e-11)
    assert fit.gradient_norm < 1e-11


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5])
def test_full_covariance_agrees_with_an_independent_solution(alpha):
    """Equations (6a) and (6b), whitened by q; as printed, they are also solved by a q of variance 0."""
    X, y = rows(5, 2, seed=4)
    noise = 0.5
    fit = fit_linear(X, y, alpha=alpha, prior_variance=1.0, noise_variance=noise, covariance="full")

    def gaps(z):
        triangle = np.array([[np.exp(z[2]), 0.0], [z[3], np.exp(z[4])]])
        first, second = moment_gap(X, y, z[:2], triangle @ triangle.T, alpha, 1.0, noise)
        about_mean = second - np.outer(first, z[:2]) - np.outer(z[:2], first)
        whiten = np.linalg.inv(triangle)
        spread = whiten @ about_mean @ whiten.T
        return [*(whiten @ first), spread[0, 0], spread[1, 0], spread[1, 1]]

    posterior = np.linalg.inv(np.eye(2) + X.T @ X / noise)
    triangle = np.linalg.cholesky(posterior)
    start = [*(posterior @ X.T @ y / noise), np.log(triangle[0, 0]), triangle[1, 0], np.log(triangle[1, 1])]
    solved = root(gaps, start, tol=1e-14)
    np.testing.assert_allclose(gaps(solved.x), 0.0, atol=1e-13)
    triangle = np.array([[np.exp(solved.x[2]), 0.0], [solved.x[3], np.exp(solved.x[4])]])
    np.testing.assert_allclose(fit.mean, solved.x[:2], rtol=1e-11)
    np.testing.assert_allclose(fit.covariance, triangle @ triangle.T, rtol=1e-11)
    assert np.abs(fit.covariance / posterior - 1).max() > 0.1  # section B.1: not the posterior


@pytest.mark.parametrize("alpha", [-1e-12, 0.0, 1e-12, 1e-6])
def test_the_limit_is_the_posterior_and_its_evidence(alpha):
    X, y = rows(30, 4)
    noise, prior = 0.3, 1.7
    fit = fit_linear(X, y, alpha=alpha, prior_variance=prior, noise_variance=noise, covariance="full")
    posterior = np.linalg.inv(np.eye(4) / prior + X.T @ X / noise)
    tolerance = 1e-11 + 10 * abs(alpha)
    np.testing.assert_allclose(fit.covariance, posterior, rtol=tolerance)
    np.testing.assert_allclose(fit.mean, posterior @ X.T @ y / noise, rtol=tolerance)
    evidence = multivariate_normal(np.zeros(30), prior * X @ X.T + noise * np.eye(30)).logpdf(y)
    assert fit.energy == pytest.approx(-evidence, rel=tolerance)


def test_diagonal_limit_is_the_mean_field_posterior():
    X, y = rows(30, 4)
    fit = fit_linear(X, y, alpha=0.0, prior_variance=1.0, noise_variance=0.3, covariance="diagonal")
    precision = np.eye(4) + X.T @ X / 0.3
    np.testing.assert_allclose(fit.covariance, np.diag(1 / np.diagonal(precision)), rtol=1e-12)
    np.testing.assert_allclose(fit.mean, np.linalg.solve(precision, X.T @ y / 0.3), rtol=1e-11)


@pytest.mark.parametrize("alpha", [-0.5, 0.5, 1.0, 2.5])
def test_energy_agrees_with_quadrature(alpha):
    X, y = rows(4, 2)
    mean, covariance = some_q(2)
    value, _ = linear_energy(
        X, y, alpha=alpha, prior_variance=1.5, noise_variance=1.2, mean=mean, covariance=covariance
    )
    assert value == pytest.approx(slow_energy(X, y, mean, covariance, alpha, 1.5, 1.2), rel=1e-10)


def test_energy_of_any_q_in_the_limit_is_the_negative_evidence_bound():
    X, y = rows(6, 3)
    mean, covariance = some_q(3)
    noise, prior = 0.7, 1.5
    spread = np.einsum("ni,ij,nj->n", X, covariance, X)
    likelihood = -0.5 * np.sum(np.log(2 * np.pi * noise) + ((y - X @ mean) ** 2 + spread) / noise)
    kl = 0.5 * (np.trace(covariance) / prior + mean @ mean / prior - 3)
    kl += 0.5 * (3 * np.log(prior) - np.linalg.slogdet(covariance)[1])
    for alpha in (0.0, 1e-12, -1e-12, 1e-300):
        value, _ = linear_energy(
            X, y, alpha=alpha, prior_variance=prior, noise_variance=noise, mean=mean, covariance=covariance
        )
        assert value == pytest.approx(kl - likelihood, rel=1e-10)


@pytest.mark.parametrize("alpha", [-0.1, 0.0, 1e-6, 1.0, 3.0])
def test_gradient_agrees_with_differences(alpha):
    X, y = rows(6, 3)
    mean, covariance = some_q(3)
    rng = np.random.default_rng(5)
    turn = rng.standard_normal((3, 3))
    step, by_covariance, by_noise = rng.standard_normal(3), 0.05 * (turn + turn.T), 0.6

    def value(t):
        return linear_energy(
            X, y, alpha=alpha, prior_variance=1.5, noise_variance=1.3 + t * by_noise,
            mean=mean + t * step, covariance=covariance + t * by_covariance,
        )  # fmt: skip

    slope = value(0.0)[1]
    analytic = slope.mean @ step + np.sum(slope.covariance * by_covariance) + slope.noise * by_noise
    h = 1e-5
    assert analytic == pytest.approx((value(h)[0] - value(-h)[0]) / (2 * h), rel=1e-7)


def test_gradient_is_the_gap_of_the_moments():
    """For natural parameters it is (N / alpha - 1) times the gap of (5); here for mean and covariance."""
    X, y = rows(6, 3)
    mean, covariance = some_q(3)
    alpha, prior, noise = 0.9, 1.5, 1.1
    slope = linear_energy(
        X, y, alpha=alpha, prior_variance=prior, noise_variance=noise, mean=mean, covariance=covariance
    )[1]
    first, second = moment_gap(X, y, mean, covariance, alpha, prior, noise)
    scale, precision = len(y) / alpha - 1, np.linalg.inv(covariance)
    # natural parameters: precision mean for w, minus half the precision for w w'
    np.testing.assert_allclose(slope.mean, scale * precision @ first, rtol=1e-9)
    by_natural = 0.5 * precision @ second @ precision
    turned = precision @ first
    by_natural -= 0.5 * (np.outer(turned, precision @ mean) + np.outer(precision @ mean, turned))
    np.testing.assert_allclose(slope.covariance, scale * by_natural, rtol=1e-8)


@pytest.mark.parametrize("covariance", FAMILIES)
def test_learned_noise_is_that_of_the_data(covariance):
    X, y = rows(4000, 5, noise=0.49)
    options = {"prior_variance": 1.0, "noise_variance": None, "covariance": covariance}
    for alpha in (-5.0, 0.0, 0.5):
        fit = fit_linear(X, y, alpha=alpha, **options)
        assert fit.noise_variance == pytest.approx(0.49, rel=0.08)
        slope = linear_energy(
            X, y, alpha=alpha, prior_variance=1.0, noise_variance=fit.noise_variance,
            mean=fit.mean, covariance=fit.covariance,
        )[1]  # fmt: skip
        assert abs(slope.noise) < 1e-8
    energies = [
        fit_linear(X, y, alpha=0.5, **(options | {"noise_variance": factor * fit.noise_variance})).energy
        for factor in (0.99, 1.01)
    ]
    assert min(energies) > fit.energy


@pytest.mark.parametrize("covariance", FAMILIES)
@pytest.mark.parametrize("shape", [(20, 30), (40, 20), (3, 2), (1, 1)])
def test_large_negative_alpha_stays_proper(shape, covariance):
    X, y = rows(*shape)
    fit = fit_linear(X, y, alpha=-1000.0, prior_variance=1.0, noise_variance=0.3, covariance=covariance)
    assert fit.gradient_norm < 1e-8
    for _, tilted in tilted_moments(X, y, fit.mean, fit.covariance, -1000.0, 1.0, 0.3):
        assert np.linalg.eigvalsh(0.5 * (tilted + tilted.T)).min() > 0


@pytest.mark.parametrize("covariance", FAMILIES)
def test_predictions_are_those_of_the_marginal(covariance):
    X, y = rows(30, 3)
    fit = fit_linear(X, y, alpha=0.5, prior_variance=1.0, noise_variance=0.3, covariance=covariance)
    predictive = fit.predict(X[:4], np.random.default_rng(0))
    mean, variance = predictive.mean(), predictive.variance()
    for i in range(4):
        assert mean[i] == pytest.approx(X[i] @ fit.mean)
        assert variance[i] == pytest.approx(X[i] @ fit.covariance @ X[i] + 0.3)
    with pytest.raises(ValueError, match=r"shape \(n, 3\), found \(30, 2\)"):
        fit.predict(X[:, :2], np.random.default_rng(0))


def test_the_energy_decreases_along_the_trace():
    X, y = rows(60, 5)
    fit = fit_linear(X, y, alpha=1.0, prior_variance=1.0, noise_variance=0.3, covariance="full")
    assert len(fit.trace) > 2
    assert np.all(np.diff(fit.trace) < 1e-10)
    assert fit.trace[-1] == fit.energy


def test_a_power_of_the_number_of_data_points_has_no_minimum():
    with pytest.raises(ValueError, match="below the number of data points, 3, found 3"):
        fit_linear(*rows(3, 2), alpha=3.0, prior_variance=1.0, noise_variance=1.0, covariance="full")


def test_zero_targets_with_learned_noise_raise():
    X, _ = rows(3, 2)
    options = {"alpha": 0.5, "prior_variance": 1.0, "covariance": "full"}
    with pytest.raises(FloatingPointError, match=r"all targets are 0.*set noise_variance"):
        fit_linear(X, np.zeros(3), noise_variance=None, **options)
    np.testing.assert_array_equal(fit_linear(X, np.zeros(3), noise_variance=0.1, **options).mean, 0.0)


@pytest.mark.parametrize(("alpha", "exact"), [(0.0, True), (1.5, False)])
def test_vanishing_noise_raises(alpha, exact):
    X, y = rows(40, 2)
    with pytest.raises(FloatingPointError, match=r"no stationary point found.*noise variance"):
        fit_linear(
            X, X @ [1.0, 2.0] if exact else y, alpha=alpha, prior_variance=1.0, noise_variance=None, covariance="full"
        )


def test_an_improper_q_raises():
    X, y = rows(4, 2)
    with pytest.raises(FloatingPointError, match="improper"):
        linear_energy(X, y, alpha=-3.0, prior_variance=1.0, noise_variance=0.1, mean=np.zeros(2), covariance=np.eye(2))


class TestEvidence:
    """``log_evidence_`` of the scikit-learn interface, against the marginal of the standardised targets."""

    def fitted(self, **options):
        X, y = rows(30, 3, noise=0.25)
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
