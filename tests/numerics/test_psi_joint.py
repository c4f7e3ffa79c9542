"""Moments of covariance functions over correlated Gaussian inputs: against twins, Gauss-Hermite sums, `psi`."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.numerics import psi, psi_joint
from tests.twins import plain_dgp, plain_dgp_full
from tests.twins.plain_networks import check_gradient

pytestmark = pytest.mark.exhaustive  # the kernels of full propagation only, as in test_dgp_ep_joint.py

every_size = pytest.mark.parametrize(("D", "M", "B"), [(1, 1, 1), (1, 4, 3), (2, 5, 4), (3, 6, 2)])


class Case:
    """Random inputs, points and logarithms of l (D,) and s of two functions, all in one vector."""

    def __init__(self, D, M, B, seed=0):
        self.rng = np.random.default_rng(seed)
        self.shapes = (B, D), (B, D, D), *((D, M), (D,), ()) * 2
        root = self.rng.normal(size=(B, D, D))
        C = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(D)
        functions = [
            (self.rng.normal(size=(D, M)), shift + 0.3 * self.rng.normal(size=D), np.array(0.2 + shift))
            for shift in (0.0, 0.4)
        ]
        self.point = self.join(self.rng.normal(size=(B, D)), C, *functions[0], *functions[1])
        self.B, self.M = B, M

    def join(self, *parts):
        return np.concatenate([np.ravel(part) for part in parts])

    def split(self, point=None):
        """Return x, C, symmetrised, and (Zt, l2, s2) of both functions."""
        parts, at = [], 0
        for shape in self.shapes:
            count = int(np.prod(shape))
            parts.append((self.point if point is None else point)[at : at + count].reshape(shape).copy())
            at += count
        x, C, *functions = parts
        one, other = (
            (Zt, np.exp(2 * log_l), float(np.exp(2 * log_s))) for Zt, log_l, log_s in (functions[:3], functions[3:])
        )
        return x, (C + C.transpose(0, 2, 1)) / 2, one, other

    def zeros(self):
        return [np.zeros(shape) for shape in self.shapes]

    def twins(self):
        """Return both functions in the form of the twins."""
        return [plain_dgp.Output(np.sqrt(l2), np.sqrt(s2), 0.0, Zt.T, None, None) for Zt, l2, s2 in self.split()[2:]]


def psi1(case, point=None):
    x, C, (Zt, l2, s2), _ = case.split(point)
    out = np.empty((case.B, case.M))
    psi_joint.psi1(x, C, Zt, l2, s2, out)
    return out


def contracted(case, T, point=None, *, same=False):
    """Return the contraction of the first function with the second, or with itself."""
    x, C, one, other = case.split(point)
    (Za, la, sa), (Zb, lb, sb) = one, one if same else other
    return psi_joint.contract(x, C, psi_joint.point_pairs(Za, la, Zb, lb, sa * sb), T)


def psi1_gradient(case, weights):
    """Return the gradient of sum(weights o psi1)."""
    x, C, (Zt, l2, _), _ = case.split()
    dx, dC, dZt, dlog_l, *rest = case.zeros()
    dlog_s = psi_joint.psi1_back(x, C, Zt, l2, weights * psi1(case), dx, dC, dZt, dlog_l)
    return case.join(dx, dC, dZt, dlog_l, dlog_s, *rest[1:])


def contract_gradient(case, T, g, *, same=False):
    """Return the gradient of g @ contract, and that with respect to T."""
    x, C, one, other = case.split()
    (Za, la, sa), (Zb, lb, sb) = one, one if same else other
    pairs = psi_joint.point_pairs(Za, la, Zb, lb, sa * sb)
    dx, dC, dZa, dlog_la, _, dZb, dlog_lb, _ = case.zeros()
    dT = np.empty((case.M, case.M))
    if same:
        dZb, dlog_lb = dZa, dlog_la
    slope = psi_joint.contract_back(x, C, Za, la, Zb, lb, pairs, T, g, dx, dC, dZa, dlog_la, dZb, dlog_lb, dT)
    if same:
        return case.join(dx, dC, dZa, dlog_la, 2 * slope, np.zeros(dZb.size + dlog_lb.size + 1)), dT
    return case.join(dx, dC, dZa, dlog_la, slope, dZb, dlog_lb, slope), dT


same_or_two = pytest.mark.parametrize("same", [False, True], ids=["two functions", "one function"])


@every_size
class TestValues:
    def test_psi1(self, D, M, B):
        case = Case(D, M, B)
        x, C, *_ = case.split()
        out = case.twins()[0]
        expected = [[plain_dgp_full.psi1(*one, z, out) for z in out.Z] for one in zip(x, C, strict=True)]
        np.testing.assert_allclose(psi1(case), expected, rtol=1e-11)

    @same_or_two
    def test_contraction(self, D, M, B, same):
        case = Case(D, M, B)
        x, C, *_ = case.split()
        one, other = case.twins()
        other = one if same else other
        T = case.rng.normal(size=(M, M))
        expected = []
        for row in zip(x, C, strict=True):
            whole = [[plain_dgp_full.psi2(*row, a, one, b, other) for b in other.Z] for a in one.Z]
            expected.append(np.sum(T * np.array(whole)))
        np.testing.assert_allclose(contracted(case, T, same=same), expected, rtol=1e-10, atol=1e-12)

    def test_independent_inputs_agree_with_psi(self, D, M, B):
        case = Case(D, M, B)
        x, C, (Zt, l2, s2), _ = case.split()
        v = np.einsum("njj->nj", C).copy()
        C[:] = v[:, :, None] * np.eye(D)
        case.point = case.join(x, C, case.point[x.size + C.size :])
        first = np.empty((B, M))
        psi.psi1(x, v, Zt, l2, s2, first)
        np.testing.assert_allclose(psi1(case), first, rtol=1e-12)
        Q = case.rng.normal(size=(M, M))
        Q += Q.T
        spread = psi.contract_spread(x, v, Zt, l2, first, Q, np.empty((B, M * (M + 1) // 2)))
        expected = spread + np.einsum("na,ab,nb->n", first, Q, first)
        np.testing.assert_allclose(contracted(case, Q, same=True), expected, rtol=1e-11, atol=1e-12)

    def test_known_inputs_give_products_of_the_functions(self, D, M, B):
        case = Case(D, M, B)
        x, C, *_ = case.split()
        case.point = case.join(x, np.zeros_like(C), case.point[x.size + C.size :])
        k, other = (np.array([[plain_dgp.kernel(one, z, out) for z in out.Z] for one in x]) for out in case.twins())
        np.testing.assert_allclose(psi1(case), k, rtol=1e-12)
        T = case.rng.normal(size=(M, M))
        expected = np.einsum("na,ab,nb->n", k, T, other)
        np.testing.assert_allclose(contracted(case, T), expected, rtol=1e-11, atol=1e-13)

    def test_columns_beyond_the_inputs_are_not_read(self, D, M, B):
        case = Case(D, M, B)
        x, C, (Zt, l2, s2), _ = case.split()
        wide, wide_C = np.full((B, D + 2), np.nan), np.full((B, D + 2, D + 2), np.nan)
        wide[:, :D], wide_C[:, :D, :D] = x, C
        T, g = case.rng.normal(size=(M, M)), case.rng.normal(size=B)
        found = []
        for at, cov in ((x, C), (wide, wide_C)):
            first, dT = np.empty((B, M)), np.empty((M, M))
            psi_joint.psi1(at, cov, Zt, l2, s2, first)
            pairs = psi_joint.point_pairs(Zt, l2, Zt, l2, s2 * s2)
            dx, dC, dZt, dlog_l = np.zeros(at.shape), np.zeros(cov.shape), np.zeros(Zt.shape), np.zeros(D)
            psi_joint.psi1_back(at, cov, Zt, l2, first, dx, dC, dZt, dlog_l)
            psi_joint.contract_back(at, cov, Zt, l2, Zt, l2, pairs, T, g, dx, dC, dZt, dlog_l, dZt, dlog_l, dT)
            assert not dx[:, D:].any()
            assert not dC[:, D:].any()
            assert not dC[:, :, D:].any()
            sums = psi_joint.contract(at, cov, pairs, T)
            found.append((first, sums, dx[:, :D], dC[:, :D, :D], dZt, dlog_l, dT))
        for narrow, broad in zip(*found, strict=True):
            np.testing.assert_array_equal(broad, narrow)


def hermite(mean, covariance, count=100):
    """Return points (count^2, 2) and weights of the Gauss-Hermite rule."""
    t, w = np.polynomial.hermite_e.hermegauss(count)
    grid = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)
    return mean + grid @ np.linalg.cholesky(covariance).T, np.outer(w, w).ravel() / (2 * np.pi)


def test_gauss_hermite_sums():
    """The closed forms of the twins against the integrals, for two inputs with correlation 0.9."""
    case = Case(2, 4, 1)
    x, _, *functions = case.split()
    C = np.array([[[0.5, 0.36], [0.36, 0.32]]])
    case.point = case.join(x, C, case.point[6:])
    points, w = hermite(x[0], C[0])
    k, other = (
        s2 * np.exp(-0.5 * ((points[:, :, None] - Zt) ** 2 / l2[:, None]).sum(axis=1)) for Zt, l2, s2 in functions
    )
    np.testing.assert_allclose(psi1(case)[0], w @ k, rtol=1e-10)
    T = case.rng.normal(size=(4, 4))
    assert contracted(case, T)[0] == pytest.approx(w @ np.einsum("pa,ab,pb->p", k, T, other), rel=1e-10)
    assert contracted(case, T, same=True)[0] == pytest.approx(w @ np.einsum("pa,ab,pb->p", k, T, k), rel=1e-10)


@every_size
class TestGradients:
    def test_psi1(self, D, M, B):
        case = Case(D, M, B)
        weights = case.rng.normal(size=(B, M))
        gradient = psi1_gradient(case, weights)
        check_gradient(
            lambda point: np.sum(weights * psi1(case, point)), case.point, gradient, case.rng, step=1e-4, rel=1e-8
        )

    @same_or_two
    def test_contraction(self, D, M, B, same):
        case = Case(D, M, B)
        T, g = case.rng.normal(size=(M, M)), case.rng.normal(size=B)
        gradient, dT = contract_gradient(case, T, g, same=same)
        check_gradient(
            lambda point: g @ contracted(case, T, point, same=same),
            case.point, gradient, case.rng, step=1e-4, rel=1e-8,
        )  # fmt: skip
        other = case.rng.normal(size=(M, M))
        # linear in T
        assert np.sum(dT * other) == pytest.approx(g @ contracted(case, other, same=same), rel=1e-10, abs=1e-12)

    def test_independent_inputs_agree_with_psi(self, D, M, B):
        case = Case(D, M, B)
        x, C, (Zt, l2, s2), _ = case.split()
        v = np.einsum("njj->nj", C).copy()
        C[:] = v[:, :, None] * np.eye(D)
        k = np.empty((B, M))
        psi_joint.psi1(x, C, Zt, l2, s2, k)
        weights = case.rng.normal(size=(B, M)) * k
        dx, dC, dZt, dlog_l, *_ = case.zeros()
        slope = psi_joint.psi1_back(x, C, Zt, l2, weights, dx, dC, dZt, dlog_l)
        ex, ev, eZt, elog_l = np.zeros(x.shape), np.zeros(v.shape), np.zeros(Zt.shape), np.zeros(D)
        assert slope == pytest.approx(psi.psi1_back(x, v, Zt, l2, weights, ex, ev, eZt, elog_l), rel=1e-12)
        for found, expected in ((dx, ex), (np.einsum("njj->nj", dC), ev), (dZt, eZt), (dlog_l, elog_l)):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


class TestEdges:
    def test_zeros_far_away(self):
        case = Case(2, 5, 4)
        case.point[:8] += 1e5
        np.testing.assert_allclose(psi1(case), 0.0, atol=1e-300)
        np.testing.assert_allclose(contracted(case, np.ones((5, 5))), 0.0, atol=1e-300)

    @pytest.mark.parametrize("correlation", [0.999999, -0.999999, 1.0])
    def test_almost_collinear_inputs(self, correlation):
        """The lengthscales make the matrix regular."""
        case = Case(2, 5, 2)
        x, C, *_ = case.split()
        C[:] = [[0.8, correlation * 0.4], [correlation * 0.4, 0.2]]
        case.point = case.join(x, C, case.point[x.size + C.size :])
        out, other = case.twins()
        expected = [[plain_dgp_full.psi1(*one, z, out) for z in out.Z] for one in zip(x, C, strict=True)]
        np.testing.assert_allclose(psi1(case), expected, rtol=1e-11)
        whole = [plain_dgp_full.psi2(x[0], C[0], a, out, b, other) for a in out.Z for b in other.Z]
        assert contracted(case, np.ones((5, 5)))[0] == pytest.approx(sum(whole), rel=1e-11)

    def test_an_invalid_covariance_gives_nan(self):
        """The result must not be finite if L + C has no Cholesky factor."""
        case = Case(2, 3, 1)
        x, C, *_ = case.split()
        C[0] = [[1.0, 0.0], [0.0, -50.0]]
        case.point = case.join(x, C, case.point[x.size + C.size :])
        assert np.all(np.isnan(psi1(case)))
        assert np.all(np.isnan(contracted(case, np.ones((3, 3)))))

    @pytest.mark.parametrize("log_l", [-12.0, 12.0])
    def test_lengthscales_of_any_size(self, log_l):
        case = Case(2, 5, 4)
        x, C, (Zt, _, s2), _ = case.split()
        l2 = np.full(2, np.exp(2 * log_l))
        found = np.empty((4, 5))
        psi_joint.psi1(x, C, Zt, l2, s2, found)
        out = plain_dgp.Output(np.sqrt(l2), np.sqrt(s2), 0.0, Zt.T, None, None)
        expected = [[plain_dgp_full.psi1(*one, z, out) for z in out.Z] for one in zip(x, C, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)
