"""Deep GPs by approximate EP against values of another program and high precision: the kernels and their slow twins."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods.dgp_ep.energy import DGPProblem, energy
from tests.methods.dgp_ep_support import VALUES, layer_moments, network, rows, stiff, structure_of, unpacked, vector
from tests.twins import plain_dgp

N, D, M = VALUES["n"], VALUES["inputs"], VALUES["inducing"]
X_STAR = np.array(VALUES["x_star"])


def name(case):
    return f"{case['likelihood']}-{case['hidden']}-{case['alpha']}"


every_case = pytest.mark.parametrize("case", VALUES["cases"], ids=name)
every_layer_case = pytest.mark.parametrize("which", ["cavity", "posterior"])


class Case:
    """A case of the file, with its network and data."""

    def __init__(self, case):
        self.values, self.likelihood, self.alpha = case, case["likelihood"], case["alpha"]
        self.net = network((D, *case["hidden"], 1), M)
        self.X, self.y = rows(N, D, self.likelihood)
        self.structure, self.theta = structure_of(self.net), vector(self.net)
        self.problem = DGPProblem(self.structure, likelihood=self.likelihood, n=N, alpha=self.alpha)
        self.latent = self.likelihood != "gaussian"

    def inputs_and_share(self, which):
        return (self.X, (N - self.alpha) / N) if which == "cavity" else (X_STAR, 1.0)


def assert_layers_agree(found, expected, tolerance):
    assert len(found) == len(expected)
    for (mean, variance), layer in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(mean, dtype=float), layer["mean"], rtol=0, atol=tolerance)
        np.testing.assert_allclose(np.asarray(variance, dtype=float), layer["var"], rtol=tolerance)


@every_case
class TestTheTwins:
    def test_energy(self, case):
        one = Case(case)
        for count, key in ((N, "energy"), (4, "minibatch_energy")):
            found = plain_dgp.energy(one.net, one.X[:count], one.y[:count], N, one.alpha, one.likelihood)
            assert float(found) == pytest.approx(case[key], abs=1e-12)

    def test_log_z(self, case):
        one = Case(case)
        found = plain_dgp.log_zs(one.net, one.X, one.y, N, one.alpha, one.likelihood)
        np.testing.assert_allclose(found.astype(float), case["log_z"], rtol=0, atol=1e-13)

    @every_layer_case
    def test_layers(self, case, which):
        one = Case(case)
        found = plain_dgp.moments(one.net, *one.inputs_and_share(which), latent=one.latent)
        assert_layers_agree(found, case[which], 1e-13)

    def test_probability_of_the_positive_class(self, case):
        if "probability" in case:
            one = Case(case)
            found = plain_dgp.probabilities(one.net, X_STAR, one.likelihood)
            np.testing.assert_allclose(found[:, 1], case["probability"], rtol=1e-13)


@every_case
class TestTheKernels:
    def test_energy(self, case):
        one = Case(case)
        for count, key in ((N, "energy"), (4, "minibatch_energy")):
            found, _ = energy(one.problem, one.theta, one.X[:count], one.y[:count])
            assert found == pytest.approx(case[key], rel=1e-12)

    def test_gradient(self, case):
        one = Case(case)
        _, gradient = energy(one.problem, one.theta, one.X, one.y)
        for found, layer in zip(unpacked(one.structure, gradient), case["gradient"], strict=True):
            for part, expected in layer.items():
                np.testing.assert_allclose(found[part].ravel(), np.ravel(expected), rtol=0, atol=1e-10, err_msg=part)

    @every_layer_case
    def test_layers(self, case, which):
        one = Case(case)
        X, share = one.inputs_and_share(which)
        found = layer_moments(one.net, X, share, noisy=not one.latent)
        assert_layers_agree(found, case[which], 1e-12)


@pytest.mark.parametrize("values", VALUES["stiff"], ids=lambda values: str(values["alpha"]))
def test_close_inducing_inputs_lose_no_digits(values):
    """The condition number of K in the second layer is 1.3e7; with its inverse the energy has an error of 2e-9."""
    net = stiff()
    X, y = rows(N, D)
    structure = structure_of(net)
    problem = DGPProblem(structure, likelihood="gaussian", n=N, alpha=values["alpha"])
    found, gradient = energy(problem, vector(net), X, y)
    assert found == pytest.approx(values["energy"], rel=1e-13)
    layer = unpacked(structure, gradient)[1]
    for part, expected in values["gradient"].items():
        size = np.abs(expected).max()
        np.testing.assert_allclose(layer[part], expected, rtol=0, atol=1e-12 * size, err_msg=part)
