"""Expectations of the covariance function over Gaussian inputs: against slow twins; gradients against differences."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.numerics import psi
from tests.twins import plain_dgp
from tests.twins.plain_networks import check_gradient

every_size = pytest.mark.parametrize(("D", "M", "B"), [(1, 1, 1), (1, 4, 3), (2, 5, 4), (3, 9, 2)])


class Case:
    """Random inputs and points, all in one vector, with the logarithms of l (D,) and s."""

    def __init__(self, D, M, B, shift=0.0, seed=0):
        self.rng = np.random.default_rng(seed)
        self.shapes = (B, D), (B, D), (D, M), (D,), ()
        x, Zt = self.rng.normal(size=(B, D)) + shift, self.rng.normal(size=(D, M)) + shift
        v, log_l = self.rng.gamma(1.0, size=(B, D)), 0.3 * self.rng.normal(size=D)
        self.point = self.join(x, v, Zt, log_l, np.array(0.2))

    def join(self, *parts):
        return np.concatenate([np.ravel(part) for part in parts])

    def split(self, point=None):
        parts, at = [], 0
        for shape in self.shapes:
            count = int(np.prod(shape))
            parts.append((self.point if point is None else point)[at : at + count].reshape(shape).copy())
            at += count
        x, v, Zt, log_l, log_s = parts
        return x, v, Zt, np.exp(2 * log_l), float(np.exp(2 * log_s))

    def zeros(self):
        return [np.zeros(shape) for shape in self.shapes[:4]]

    def output(self):
        _, _, Zt, l2, s2 = self.split()
        return plain_dgp.Output(np.sqrt(l2), np.sqrt(s2), 0.0, Zt.T, None, None)


def covariance(case, point=None):
    _, _, Zt, l2, s2 = case.split(point)
    K = np.empty((Zt.shape[1],) * 2)
    psi.covariance(Zt, l2, s2, K)
    return K


def psi1(case, point=None):
    x, v, Zt, l2, s2 = case.split(point)
    out = np.empty((len(x), Zt.shape[1]))
    psi.psi1(x, v, Zt, l2, s2, out)
    return out


def spread(x, v, Zt, l2, mean, Q):
    """Return the contraction and its terms for the backward pass."""
    excesses = np.empty((len(x), len(Q) * (len(Q) + 1) // 2))
    return psi.contract_spread(x, v, Zt, l2, mean, Q, excesses), excesses


def contracted(case, Q, point=None):
    x, v, Zt, l2, _ = case.split(point)
    return spread(x, v, Zt, l2, psi1(case, point), Q)[0]


def symmetric(rng, M):
    A = rng.normal(size=(M, M))
    return A + A.T


@every_size
class TestValues:
    def test_covariance(self, D, M, B):
        case = Case(D, M, B)
        expected = plain_dgp.gram(case.output()) - plain_dgp.JITTER * np.eye(M)
        np.testing.assert_allclose(covariance(case), expected.astype(float), rtol=1e-13)

    def test_psi1(self, D, M, B):
        case, out = Case(D, M, B), Case(D, M, B).output()
        x, v, *_ = case.split()
        expected = [[plain_dgp.psi1(*one, z, out) for z in out.Z] for one in zip(x, v, strict=True)]
        np.testing.assert_allclose(psi1(case), np.array(expected), rtol=1e-12)

    def test_known_inputs_give_the_covariance_function(self, D, M, B):
        case, out = Case(D, M, B), Case(D, M, B).output()
        x, v, *rest = case.split()
        found = np.empty((B, M))
        psi.psi1(x, np.zeros_like(v), *rest, found)
        np.testing.assert_allclose(found, [[plain_dgp.kernel(one, z, out) for z in out.Z] for one in x], rtol=1e-13)

    def test_contraction_of_the_covariances(self, D, M, B):
        case, out = Case(D, M, B), Case(D, M, B).output()
        Q = symmetric(case.rng, M)
        x, v, *_ = case.split()
        expected = []
        for one in zip(x, v, strict=True):
            whole = np.array([[plain_dgp.psi2(*one, a, b, out) for b in out.Z] for a in out.Z])
            mean = np.array([plain_dgp.psi1(*one, z, out) for z in out.Z])
            expected.append(np.sum(Q * (whole - np.outer(mean, mean))))
        np.testing.assert_allclose(contracted(case, Q), expected, rtol=1e-12, atol=1e-13)


@every_size
class TestGradients:
    def test_covariance(self, D, M, B):
        case = Case(D, M, B)
        weights = symmetric(case.rng, M)
        dx, dv, dZt, dlog_l = case.zeros()
        _, _, Zt, l2, _ = case.split()
        dlog_s = psi.covariance_back(Zt, l2, weights * covariance(case), dZt, dlog_l)
        gradient = case.join(dx, dv, dZt, dlog_l, dlog_s)
        check_gradient(
            lambda point: np.sum(weights * covariance(case, point)), case.point, gradient, case.rng, step=1e-4, rel=1e-8
        )

    def test_psi1(self, D, M, B):
        case = Case(D, M, B)
        weights = case.rng.normal(size=(B, M))
        x, v, Zt, l2, _ = case.split()
        into = case.zeros()
        dlog_s = psi.psi1_back(x, v, Zt, l2, weights * psi1(case), *into)
        gradient = case.join(*into, dlog_s)
        check_gradient(
            lambda point: np.sum(weights * psi1(case, point)), case.point, gradient, case.rng, step=1e-4, rel=1e-8
        )

    def test_contraction_of_the_covariances(self, D, M, B):
        case = Case(D, M, B)
        Q, g = symmetric(case.rng, M), case.rng.normal(size=B)
        x, v, Zt, l2, _ = case.split()
        into, dpsi, dQ, mean = case.zeros(), np.empty((B, M)), np.empty((M, M)), psi1(case)
        _, excesses = spread(x, v, Zt, l2, mean, Q)
        psi.contract_spread_back(x, v, Zt, l2, mean, Q, excesses, g, *into, dpsi, dQ)
        dlog_s = psi.psi1_back(x, v, Zt, l2, dpsi * mean, *into)
        check_gradient(
            lambda point: g @ contracted(case, Q, point),
            case.point, case.join(*into, dlog_s), case.rng, step=1e-4, rel=1e-8,
        )  # fmt: skip
        other = symmetric(case.rng, M)
        # linear in Q
        assert np.sum(dQ * other) == pytest.approx(g @ contracted(case, other), rel=1e-11)


class TestEdges:
    def test_zeros_far_away(self):
        case = Case(2, 5, 4)
        x, v, Zt, l2, s2 = case.split()
        x += 1e5
        out = np.empty((4, 5))
        psi.psi1(x, v, Zt, l2, s2, out)
        sums, _ = spread(x, v, Zt, l2, out, symmetric(case.rng, 5))
        np.testing.assert_allclose(out, 0.0, atol=1e-300)
        np.testing.assert_allclose(sums, 0.0, atol=1e-300)

    @pytest.mark.parametrize("log_l", [-20.0, 20.0])
    def test_lengthscales_of_any_size(self, log_l):
        case = Case(2, 5, 4)
        case.point[-3:-1] = log_l
        out, (x, v, *_) = case.output(), case.split()
        expected = [[plain_dgp.psi1(*one, z, out) for z in out.Z] for one in zip(x, v, strict=True)]
        np.testing.assert_allclose(psi1(case), np.array(expected), rtol=1e-10, atol=1e-300)
        Q = np.eye(5)
        expected = [sum(plain_dgp.psi2(*one, z, z, out) for z in out.Z) for one in zip(x, v, strict=True)]
        found = contracted(case, Q) + np.sum(psi1(case) ** 2, axis=1)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-300)

    def test_small_variances_lose_no_digits(self):
        """They are v k'(z) k'(z') to first order, 1e-17 of psi2: a difference would have no digit left."""
        case = Case(1, 5, 4)
        x, _, Zt, l2, _ = case.split()
        v = np.full((4, 1), 1e-17)
        case.point = case.join(x, v, Zt, 0.5 * np.log(l2), np.array(0.2))
        k, Q = psi1(case), symmetric(case.rng, 5)
        slopes = k * (Zt[0] - x) / l2[0]
        expected = 1e-17 * np.einsum("na,ab,nb->n", slopes, Q, slopes)
        np.testing.assert_allclose(contracted(case, Q), expected, rtol=1e-9)
