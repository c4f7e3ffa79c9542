"""Covariances compared with slow twins, definitions, finite differences and reference values."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erf

from ep_bench.covariances import Constant, Linear, NetworkCovariance, Product, Stationary, Sum, matrix
from tests.twins import plain_covariances as plain
from tests.twins.plain_networks import check_gradient

VALUES = json.loads((Path(__file__).parents[1] / "reference_values" / "gp.json").read_text(encoding="utf-8"))
D = 3
STATIONARY = {kind: getattr(plain, kind) for kind in ("se", "matern32", "matern52")}


def compounds():
    se, line = Stationary("se", D), Linear(D)
    return {
        "sum": Sum((se, Stationary("matern32", D, ard=False), NetworkCovariance(D, ard=False))),
        "product": Product((Stationary("matern52", D), line, NetworkCovariance(D))),
        "nested": Sum((Constant(), Product((se, Sum((line, Constant())))), NetworkCovariance(D))),
        "square": Product((line, line)),
    }


COVARIANCES = {
    **{f"{kind}{'' if ard else ' of one'}": Stationary(kind, D, ard) for kind in STATIONARY for ard in (True, False)},
    "nn": NetworkCovariance(D),
    "nn of one": NetworkCovariance(D, ard=False),
    "linear": Linear(D),
    "linear of one": Linear(D, ard=False),
    "constant": Constant(),
    **compounds(),
}
every_covariance = pytest.mark.parametrize("name", COVARIANCES)


class Case:
    """A covariance with random parameters, and two sets of points."""

    def __init__(self, name, n=21, m=13, seed=1):
        rng = self.rng = np.random.default_rng(seed)
        self.covariance = COVARIANCES[name]
        self.theta = rng.normal(0.0, 0.5, len(self.covariance.names))
        self.X, self.Z = rng.normal(size=(n, D)), rng.normal(size=(m, D))
        self.X[3] = self.X[11]

    def twin(self):
        return twin_of(self.covariance, list(np.exp(self.theta)))

    def weights(self, symmetric):
        if not symmetric:
            return self.rng.normal(size=(len(self.X), len(self.Z)))
        A = self.rng.normal(size=(len(self.X), len(self.X)))
        return A + A.T


def twin_of(covariance, values):
    """Return k(x, z) of the twin, which removes its parameters from the front of ``values``."""

    def take(ard=True):
        return [values.pop(0) for _ in range(D)] if ard else [values.pop(0)] * D

    if isinstance(covariance, Stationary):
        scales, magnitude = take(covariance.ard), values.pop(0)
        return lambda x, z: STATIONARY[covariance.kind](x, z, scales, magnitude)
    if isinstance(covariance, NetworkCovariance):
        bias, weights, magnitude = values.pop(0), take(covariance.ard), values.pop(0)
        return lambda x, z: plain.nn(x, z, bias, weights, magnitude)
    if isinstance(covariance, Linear):
        variances = take(covariance.ard)
        return lambda x, z: plain.linear(x, z, variances)
    if isinstance(covariance, Constant):
        magnitude = values.pop(0)
        return lambda _x, _z: magnitude
    parts, together = [twin_of(part, values) for part in covariance.parts], {Sum: sum, Product: math.prod}
    return lambda x, z: together[type(covariance)](part(x, z) for part in parts)


@every_covariance
class TestEach:
    @pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 30])
    def test_matrices_are_those_of_the_twin(self, name, n):
        case = Case(name, n=max(n, 12), m=n)
        X, Z, twin = case.X[:n], case.Z, case.twin()
        for found, other in (
            (matrix(case.covariance, case.theta, X), X),
            (matrix(case.covariance, case.theta, X, Z), Z),
        ):
            np.testing.assert_allclose(found, plain.matrix(twin, X, other), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(
            case.covariance.diagonal(case.theta, X), [twin(x, x) for x in X], rtol=1e-13
        )  # fmt: skip

    @pytest.mark.parametrize("symmetric", [True, False])
    def test_contracted_derivatives(self, name, symmetric):
        case = Case(name)
        A, Z = case.weights(symmetric), None if symmetric else case.Z
        gradient = case.covariance.contract(case.theta, case.X, np.tril(A) if symmetric else A, Z)
        check_gradient(
            lambda theta: (A * matrix(case.covariance, theta, case.X, Z)).sum(), case.theta, gradient, case.rng,
            step=1e-3, rel=1e-8,
        )  # fmt: skip

    def test_contracted_derivatives_of_the_diagonal(self, name):
        case = Case(name)
        a = case.rng.normal(size=len(case.X))
        gradient = case.covariance.contract_diagonal(case.theta, case.X, a)
        check_gradient(
            lambda theta: a @ case.covariance.diagonal(theta, case.X), case.theta, gradient, case.rng, step=1e-3,
            rel=1e-8,
        )  # fmt: skip

    def test_contracted_derivatives_by_the_other_points(self, name):
        case = Case(name)
        A = case.weights(symmetric=False)
        by_theta, gradient = case.covariance.contract_both(case.theta, case.X, A, case.Z)
        expected = case.covariance.contract(case.theta, case.X, A, case.Z)
        np.testing.assert_allclose(by_theta, expected, rtol=1e-11, atol=1e-12)
        assert gradient.shape == case.Z.shape
        check_gradient(
            lambda Z: (A * matrix(case.covariance, case.theta, case.X, Z.reshape(-1, D))).sum(), case.Z.ravel(),
            gradient.ravel(), case.rng, step=1e-3, rel=1e-7,
        )  # fmt: skip
        one = np.ascontiguousarray(A[:, 4:5])
        _, alone = case.covariance.contract_both(case.theta, case.X, one, case.Z[4:5])
        np.testing.assert_allclose(alone[0], gradient[4], rtol=1e-11, atol=1e-13)

    def test_entries_above_the_diagonal_are_not_changed(self, name):
        case = Case(name)
        above = np.triu(case.weights(symmetric=True), 1)
        out, A = np.ones_like(above), np.tril(case.weights(symmetric=True))
        case.covariance.fill(case.theta, case.X, out)
        with_more = case.covariance.contract(case.theta, case.X, A + above)
        np.testing.assert_array_equal(with_more, case.covariance.contract(case.theta, case.X, A))
        np.testing.assert_allclose(np.tril(out), np.tril(matrix(case.covariance, case.theta, case.X)), rtol=1e-15)

    def test_no_negative_eigenvalue(self, name):
        case = Case(name, n=40)
        values = np.linalg.eigvalsh(matrix(case.covariance, case.theta, case.X))
        assert values.min() > -1e-13 * values.max()


@pytest.mark.parametrize("kind", STATIONARY)
class TestStationary:
    def test_near_neighbours_lose_no_digits(self, kind):
        """1 - k of points 1e-6 apart and far from the origin: s / 2, 3 s / 2, 5 s / 6, up to rounding errors of 1."""
        X = 1e3 + np.array([[0.0], [2.0**-20]])
        near = matrix(Stationary(kind, 1), np.zeros(2), X)[0, 1]
        factor = {"se": 0.5, "matern32": 1.5, "matern52": 5 / 6}[kind]
        assert 1 - near == pytest.approx(factor * 2.0**-40, rel=1e-3)

    def test_the_slope_at_equal_points(self, kind):
        gradient = Stationary(kind, 1).contract(np.zeros(2), np.zeros((3, 1)), np.ones((3, 3)))
        np.testing.assert_allclose(gradient, [0.0, 9.0])

    def test_covariance_is_zero_at_extreme_distances(self, kind):
        K = matrix(Stationary(kind, 1), np.zeros(2), np.array([[0.0], [1e200], [-1e200]]))
        np.testing.assert_allclose(K, np.eye(3), atol=1e-290)


class TestNetwork:
    @pytest.mark.parametrize("case", VALUES["neural_network"])
    def test_reference_values(self, case):
        X = np.array(case["X"])
        theta = np.log([case["bias_variance"], *case["weight_variance"], 1.0])
        np.testing.assert_allclose(matrix(NetworkCovariance(X.shape[1]), theta, X), case["K"], rtol=2e-11)

    @pytest.mark.parametrize("scale", [0.1, 0.5, 1.5])
    def test_the_mean_of_products_of_hidden_units(self, scale):
        """E erf(w'x) erf(w'z) by quadrature over the two sums, which are Gaussian."""
        rng = np.random.default_rng(3)
        X, S = np.column_stack([np.ones(4), rng.normal(size=(4, 2))]), scale * np.array([0.5, 2.0, 0.3])
        found = matrix(NetworkCovariance(2), np.log([*S, 1.0]), X[:, 1:])
        nodes = np.linspace(-9.0, 9.0, 501)  # equal steps are exact to double precision for such smooth functions
        weights = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()
        for i, j in np.ndindex(4, 4):
            V = np.array([X[i], X[j]]) @ np.diag(S) @ np.array([X[i], X[j]]).T
            a = math.sqrt(V[0, 0]) * nodes[:, None]
            b = (
                V[0, 1] / math.sqrt(V[0, 0]) * nodes[:, None]
                + math.sqrt(max(V[1, 1] - V[0, 1] ** 2 / V[0, 0], 0)) * nodes
            )
            assert weights @ (erf(a) * erf(b)) @ weights == pytest.approx(found[i, j], abs=1e-12)

    def test_steep_units_lose_no_digits(self):
        """Close to an angle of 90 degrees, k is 1 - 2 h / (pi p), p = 1 + 2 x'Sx, h^2 = 2 p - 1."""
        theta, x = np.log([1e-12, 1e8, 1.0]), np.array([[1.0]])
        p = 1 + 2e8
        assert 1 - matrix(NetworkCovariance(1), theta, x)[0, 0] == pytest.approx(
            2 / np.pi * np.arcsin(np.sqrt(2 * p - 1) / p), rel=1e-9
        )
        assert NetworkCovariance(1).diagonal(theta, x)[0] == pytest.approx(
            matrix(NetworkCovariance(1), theta, x)[0, 0], rel=1e-15
        )
