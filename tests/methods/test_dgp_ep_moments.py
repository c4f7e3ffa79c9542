"""Deep GPs by approximate EP: the gradient of the factors is the change by moment matching (appendix C)."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods.dgp_ep.energy import DGPProblem, energy
from tests.methods.dgp_ep_support import network, rows, structure_of, unpacked, vector
from tests.twins import plain_dgp, plain_dgp_moments, plain_dgp_sites

CASES = [(dims, "gaussian", alpha) for dims in [(2, 1), (2, 2, 1), (2, 1, 2, 1)] for alpha in (1.0, 0.5)]
every_case = pytest.mark.parametrize(("dims", "likelihood", "alpha"), [*CASES, ((2, 2, 1), "probit", 1.0)], ids=str)


def places(net):
    return [(l, o) for l, layer in enumerate(net) for o in range(len(layer["Z"]))]


class TestTheTwin:
    @pytest.mark.parametrize(("likelihood", "alpha"), [("gaussian", 1.0), ("gaussian", 0.5), ("probit", 1.0)])
    def test_one_layer_in_closed_form(self, likelihood, alpha):
        net = network((2, 1))
        X, y = rows(4, 2, likelihood)
        means, covariances = plain_dgp_moments.matched(net, (0, 0), X, y, 10, alpha, likelihood)
        out, _, a, r = plain_dgp_sites.projection(net[0], X)
        m, V = (part.astype(float) for part in plain_dgp.gaussian(out, (10 - alpha) / 10))
        for i in range(4):
            _, mean, covariance = plain_dgp_sites.tilted(m, V, a[i], r[i], likelihood, y[i], alpha, float(out.sn))
            np.testing.assert_allclose(means[i].astype(float), mean, atol=1e-10)
            np.testing.assert_allclose(covariances[i].astype(float), covariance, atol=1e-10)


@every_case
def test_the_gradient_is_the_difference_from_the_average_of_the_matched_moments(dims, likelihood, alpha):
    net = network(dims, 3)
    X, y = rows(3, 2, likelihood)
    structure = structure_of(net)
    _, gradient = energy(DGPProblem(structure, likelihood, 3, alpha), vector(net), X, y)
    found = unpacked(structure, gradient)
    for l, o in places(net):
        by_theta2, by_Theta1 = plain_dgp_moments.by_theta(net, (l, o), X, y, 3, alpha, likelihood)
        np.testing.assert_allclose(found[l]["theta2"][o], by_theta2.astype(float), atol=1e-9)
        R = plain_dgp.outputs(net[l])[o].R
        by_R = 2 * R @ by_Theta1
        by_R[np.diag_indices(3)] *= R.diagonal()
        np.testing.assert_allclose(found[l]["R"][o], by_R[np.triu_indices(3)].astype(float), atol=1e-9)
