"""Stochastic EP by moment matching: against the factors of ``network``, minima of the energy and closed forms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from ep_bench.methods import dgp_ep
from ep_bench.methods.dgp_ep import stochastic_ep, whitened_factor
from ep_bench.methods.dgp_ep.energy import DGPProblem, energy, log_evidence, model_of, moments, sampled_moments
from ep_bench.methods.dgp_ep.initialisation import start
from ep_bench.methods.dgp_ep.layout import Structure, layers, size
from ep_bench.methods.dgp_ep.likelihoods import LikelihoodTerm
from ep_bench.methods.dgp_ep.outputs import allocate_parameters
from ep_bench.types import Rows
from tests.twins.plain_networks import check_gradient

every_depth = pytest.mark.parametrize("hidden", [(), (2,), (2, 1)], ids=str)


class Case(NamedTuple):
    """A network with initial parameters and factors R' R, and data."""

    structure: Structure
    theta: np.ndarray
    X: np.ndarray
    y: np.ndarray

    @property
    def problem(self):
        return DGPProblem(self.structure, "gaussian", len(self.y))

    @property
    def whitened(self):
        return self.problem._replace(structure=self.structure._replace(whitened=True))

    @property
    def white(self):
        """The same parameters with whitened factors."""
        theta = self.theta.copy()
        model = model_of(self.problem)
        whitened_factor.whiten(model, theta, allocate_parameters(model, 1))
        return theta


def case_of(hidden=(), n=40, d=2, M=4, noise=0.5, shared=True, residual=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sin(X.sum(axis=1)) + residual * rng.standard_normal(n)
    structure = Structure((d, *hidden, 1), M, shared)
    theta = start(structure, X, rng.standard_normal((M, d)), rng)
    layers(structure, theta)[-1].log_noise[:] = np.log(noise)
    return Case(structure, theta, X, y)


def factors_of(structure):
    """Return which parameters belong to the factors (P,)."""
    marks = np.zeros(size(structure))
    for layer in layers(structure, marks):
        layer.factor[:] = layer.linear[:] = 1.0
    return marks > 0.0


def outputs_of(case, theta):
    model = model_of(case.problem)
    outputs = [(i, o) for i, width in enumerate(case.structure.dims[1:]) for o in range(width)]
    return [
        (i, o, whitened_factor.unpack_output(model, theta, i, o, allocate_parameters(model, 1), 0)) for i, o in outputs
    ]


def matching(case, rate):
    """Return moment-matching steps for the case."""
    return stochastic_ep.MomentMatching(
        model_of(case.problem), LikelihoodTerm("gaussian", case.problem.n, case.problem.alpha), rate
    )


def rooted(case, theta):
    """Return the parameters with R' R in place of whitened factors, which must be positive definite."""
    found, upper = theta.copy(), np.triu_indices(case.structure.inducing)
    for i, o, gp in outputs_of(case, theta):
        L = np.linalg.cholesky(gp.K)
        R = np.linalg.qr(np.linalg.solve(L.T, np.linalg.cholesky(gp.R)).T, mode="r")
        R *= np.sign(np.diag(R))[:, None]
        R[np.diag_indices(len(R))] = np.log(np.diag(R))
        layer = layers(case.structure, found)[i]
        layer.factor[o], layer.linear[o] = R[upper], np.linalg.solve(L.T, gp.theta_2)
    return found


def settle(case, theta, rate=0.1, limit=4000):
    """Match moments on all data until the factors have converged; return the energy there and its gradient."""
    step, gradient, draws = matching(case, rate), np.empty(len(theta)), np.zeros((0, 1))
    for _ in range(limit):
        before = theta.copy()
        value = step(theta, case.X, case.y, draws, gradient)
        assert np.isfinite(value)
        if np.abs(theta - before).max() < 1e-13 * np.abs(theta).max():
            break
    return value, gradient


def minimum(case, theta):
    """Minimise the energy over the factors R and theta_2 from those in ``theta``."""
    free = factors_of(case.structure)

    def function(part):
        whole = theta.copy()
        whole[free] = part
        value, gradient = energy(case.problem, whole, case.X, case.y)
        return value, gradient[free]

    options = {"maxiter": 20000, "maxfun": 20000, "ftol": 0.0, "gtol": 1e-9, "maxcor": 60}
    found = minimize(function, theta[free], jac=True, method="L-BFGS-B", options=options)
    whole = theta.copy()
    whole[free] = found.x
    return float(found.fun), whole


@pytest.mark.exhaustive  # stochastic EP compiles for ten seconds
class TestKernels:
    @every_depth
    def test_same_factors_same_energy_and_predictions(self, hidden):
        case = case_of(hidden, shared=False)
        value, gradient = energy(case.whitened, case.white, case.X, case.y)
        assert value == pytest.approx(energy(case.problem, case.theta, case.X, case.y)[0], rel=1e-12)
        assert not gradient[factors_of(case.structure)].any()
        for beta in (1.0, 0.975):
            wanted = moments(case.structure, case.theta, case.X, beta)
            found = moments(case.whitened.structure, case.white, case.X, beta)
            for layer, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(layer, other, atol=1e-12)

    def test_same_samples(self):
        case = case_of((2,))
        found, wanted = (
            sampled_moments(structure, theta, case.X, 5, np.random.default_rng(1))
            for structure, theta in ((case.whitened.structure, case.white), (case.structure, case.theta))
        )
        np.testing.assert_allclose(found, wanted, atol=1e-12)

    def test_fifty_close_inducing_inputs(self):
        """K has a condition number of 5e7."""
        case = case_of((1,), M=50)
        gp = outputs_of(case, case.white)[-1][2]
        assert np.linalg.cond(gp.K) > 1e7
        wanted = moments(case.structure, case.theta, case.X)
        for layer, other in zip(moments(case.whitened.structure, case.white, case.X), wanted, strict=True):
            np.testing.assert_allclose(layer, other, atol=1e-9)

    @pytest.mark.parametrize(
        ("hidden", "likelihood"),
        [
            *(pytest.param(hidden, "gaussian", id=f"{hidden}-gaussian") for hidden in [(), (2,), (2, 1)]),
            *(pytest.param(hidden, "probit", id=f"{hidden}-probit") for hidden in [(), (2,), (2, 1)]),
        ],
    )
    def test_gradient(self, hidden, likelihood):
        case = case_of(hidden, shared=False)
        problem = case.whitened._replace(likelihood=likelihood)
        theta, y = case.white, case.y if likelihood == "gaussian" else case.y > 0.0
        free = ~factors_of(case.structure)

        def function(part):
            whole = theta.copy()
            whole[free] = part
            return energy(problem, whole, case.X, y)[0]

        gradient = energy(problem, theta, case.X, y)[1][free]
        check_gradient(function, theta[free], gradient, np.random.default_rng(2), directions=4, step=1e-4, rel=1e-7)


@pytest.mark.exhaustive
class TestFixedPoints:
    @pytest.mark.parametrize(("hidden", "noise"), [((), 0.3), ((1,), 0.8), ((2,), 0.8)])
    def test_energy_is_stationary(self, hidden, noise):
        case = case_of(hidden, noise=noise)
        theta, free = case.white, factors_of(case.structure)
        value, gradient = settle(case, theta)
        root = rooted(case, theta)
        wanted, whole = energy(case.problem, root, case.X, case.y)
        at_start = energy(case.problem, case.theta, case.X, case.y)[1][free]
        assert np.abs(whole[free]).max() < 1e-7 * np.abs(at_start).max()
        # The gradient of hyperparameters does not depend on the parametrisation of the fixed factors.
        np.testing.assert_allclose(gradient[~free], whole[~free], atol=1e-7 * np.abs(whole).max())
        assert value == pytest.approx(wanted, abs=1e-9)
        found, expected = moments(case.whitened.structure, theta, case.X), moments(case.structure, root, case.X)
        for layer, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(layer, other, atol=1e-9)

    def test_minimum_of_the_energy(self):
        case = case_of(noise=0.3)
        theta = case.white
        value, _ = settle(case, theta)
        root = rooted(case, theta)
        away = np.where(factors_of(case.structure), 0.2 * np.random.default_rng(3).standard_normal(len(root)), 0.0)
        best, other = minimum(case, root + away)
        assert energy(case.problem, root + away, case.X, case.y)[0] > value + 0.1
        assert best == pytest.approx(value, abs=1e-8)
        for found, wanted in zip(
            moments(case.structure, other, case.X), moments(case.structure, root, case.X), strict=True
        ):
            np.testing.assert_allclose(found, wanted, atol=1e-5)

    def test_outliers_have_indefinite_factors(self):
        """Residuals beyond the prior variance: T is not positive definite, and its energy below that of any R' R."""
        case = case_of(noise=0.1, residual=1.5)
        theta = case.white
        value, _ = settle(case, theta, rate=0.02)
        gp = outputs_of(case, theta)[0][2]
        lowest = np.linalg.eigvalsh(gp.R)[0]
        assert -1.0 < lowest < -0.1
        starts = (case.theta, np.where(factors_of(case.structure), 0.0, case.theta))
        assert value < min(minimum(case, start)[0] for start in starts) - 0.1
        m, v = moments(case.whitened.structure, theta, case.X)[-1]
        assert np.isfinite(m).all()
        assert (v > 0.0).all()

    def test_one_repeated_data_point_is_exact(self):
        case = case_of(n=30, M=3)
        same = case._replace(X=np.repeat(case.X[:1], 30, axis=0), y=np.full(30, 0.7))
        theta = same.white
        value, _ = settle(same, theta)
        k, s, T, t = row_of(same, theta)
        np.testing.assert_allclose(T, 30 * np.outer(k, k) / s, atol=1e-9)
        np.testing.assert_allclose(t, 30 * 0.7 * k / s, atol=1e-9)
        evidence = multivariate_normal(np.zeros(30), k @ k + s * np.eye(30)).logpdf(same.y)
        assert -value == pytest.approx(evidence, abs=1e-9)

    def test_one_data_point_is_exact_after_one_step(self):
        case = case_of(n=1)
        theta = case.white
        theta[factors_of(case.structure)] = 0.0
        step = matching(case, 1.0)
        value = step(theta, case.X, case.y, np.zeros((0, 1)), np.empty(len(theta)))
        k, s, T, t = row_of(case, theta)
        assert step.halvings == [0]
        np.testing.assert_allclose(T, np.outer(k, k) / s, atol=1e-12)
        np.testing.assert_allclose(t, case.y[0] * k / s, atol=1e-12)
        evidence = multivariate_normal(0.0, k @ k + s).logpdf(case.y[0])
        assert -value == pytest.approx(evidence, abs=1e-12)
        assert log_evidence(case.whitened, theta, case.X, case.y) == pytest.approx(evidence, abs=1e-12)

    def test_average_of_moments_and_of_natural_parameters(self):
        """Factors of single data points are exact; that of averaged moments is smaller by the covariance of a."""
        case = case_of(n=200, M=3)
        old, rate = case.white, 1e-6
        settle(case, old)
        model, step, gradient = model_of(case.problem), matching(case, rate), np.empty(len(old))

        def new_factor(rows):
            theta = old.copy()
            step(theta, case.X[rows], case.y[rows], np.zeros((0, 1)), gradient)
            return row_of(case, old)[2] + (row_of(case, theta)[2] - row_of(case, old)[2]) / rate

        for row in (0, 7):
            k, s, *_ = row_of(case._replace(X=case.X[row : row + 1]), old)
            np.testing.assert_allclose(new_factor([row]), 200 * np.outer(k, k) / s, rtol=1e-6, atol=1e-5)
        single = np.mean([new_factor([row]) for row in range(200)], axis=0)
        m, v = moments(case.whitened.structure, old, case.X, model.power.beta)[-1]
        variance = v[:, 0] + 0.25
        white = np.array([row_of(case._replace(X=case.X[i : i + 1]), old)[0] for i in range(200)])
        a = white * ((case.y - m[:, 0]) / variance)[:, None]
        expected = 200 * np.cov(a.T, bias=True)
        whole = new_factor(np.arange(200))
        gap = single - whole
        assert np.linalg.norm(gap - expected) < 0.1 * np.linalg.norm(expected)
        parts = [np.random.default_rng(i).permutation(200).reshape(20, 10) for i in range(60)]
        # 60 partitions: a standard error of 0.003
        batches = np.mean([new_factor(rows) for part in parts for rows in part], axis=0)
        assert np.sum((batches - whole) * gap) / np.sum(gap * gap) == pytest.approx(1 / 10 - 1 / 200, rel=0.1)


def row_of(case, theta):
    """Return whitened covariances k (M,) and conditional variance of the first data point, and T, t."""
    gp = outputs_of(case, theta)[0][2]
    squares = ((case.X[0][:, None] - gp.Zt) ** 2 / gp.l2[:, None]).sum(axis=0)
    k = np.linalg.solve(np.linalg.cholesky(gp.K), gp.s2 * np.exp(-0.5 * squares))
    noise = float(np.exp(2.0 * layers(case.structure, theta)[-1].log_noise[0]))
    return k, gp.s2 - k @ k + noise, gp.R, gp.theta_2


@pytest.mark.exhaustive
class TestDamping:
    def test_steps_are_halved_to_limit_the_change_of_precisions(self):
        case = case_of(noise=0.02, residual=1.5)
        theta = np.where(factors_of(case.structure), 0.0, case.white)
        step, gradient = matching(case, 1.0), np.empty(len(theta))
        for _ in range(30):
            before = outputs_of(case, theta)[0][2].R + np.eye(4)
            value = step(theta, case.X, case.y, np.zeros((0, 1)), gradient)
            after = outputs_of(case, theta)[0][2].R + np.eye(4)
            assert np.isfinite(value)
            assert np.linalg.eigvalsh(after - whitened_factor.MIN_PRECISION_RATIO * before)[0] > -1e-9 * np.linalg.norm(
                before
            )
        assert max(step.halvings) > 0


def fit(case, classes=0, **options):
    config = dgp_ep.Config(optimizer="sep", alpha=1, inducing=5, batch_size=10, **options)
    y = case.y if classes == 0 else targets_of(case.y, classes)
    return dgp_ep.fit(Rows(case.X, y, classes), config, np.random.default_rng(0))


def targets_of(y, classes):
    return np.minimum((y - y.min()) / np.ptp(y) * classes, classes - 1).astype(int).astype(float)


class TestMethod:
    @pytest.mark.exhaustive
    def test_fit_learns_and_reports(self):
        case = case_of(n=60)
        state, trace = fit(case, hidden=(1,), steps=600, start="random")
        prediction = dgp_ep.predict(state, case.X, np.random.default_rng(0))
        assert np.sqrt(np.mean((prediction.mean() - case.y) ** 2)) < 0.4
        assert trace["objective"][-1] < trace["objective"][0] - 0.5
        assert len(trace["halved_steps"]) == len(trace["objective"])
        problem = case.whitened._replace(structure=state.structure, n=60)
        assert state.structure.whitened
        assert state.log_evidence == pytest.approx(-energy(problem, state.theta, case.X, case.y)[0], rel=1e-9)
        assert state.theta.size == size(state.structure)  # nothing is stored per data point
        again, _ = fit(case, hidden=(1,), steps=600, start="random")
        np.testing.assert_array_equal(state.theta, again.theta)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("classes", [2, 3])
    def test_classes(self, classes):
        case = case_of(n=60)
        state, _ = fit(case, classes, hidden=(), steps=300, draws=20)
        found = dgp_ep.predict(state, case.X, np.random.default_rng(0)).probabilities
        assert np.mean(found.argmax(axis=1) != targets_of(case.y, classes)) < 0.35
