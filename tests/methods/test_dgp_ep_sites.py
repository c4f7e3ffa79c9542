"""Deep GPs by approximate EP without a hidden layer: the energy of the tied factor compared with untied EP.

The best tied energy is no evidence: at alpha = 1 it is below minus log Z of untied EP, which with Gaussian noise is
FITC's, exact with all inputs as inducing inputs. In the limit of small powers there is no difference.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from ep_bench.methods.dgp_ep.energy import DGPProblem, energy
from tests.methods.dgp_ep_support import network, rows, structure_of, unpacked, vector
from tests.twins import plain_dgp, plain_dgp_sites

every_likelihood = pytest.mark.parametrize("likelihood", ["gaussian", "probit"])
every_alpha = pytest.mark.parametrize("alpha", [1.0, 0.5, 0.1])


class Case:
    """The network of the reference values without a hidden layer."""

    def __init__(self, likelihood="gaussian", alpha=1.0, n=10, inducing=4):
        (self.layer,) = network((2, 1), inducing)
        self.X, self.y = rows(n, 2, likelihood)
        self.alpha, self.likelihood = alpha, likelihood

    def energy(self, layer):
        problem = DGPProblem(structure_of([layer]), likelihood=self.likelihood, n=len(self.y), alpha=self.alpha)
        return energy(problem, vector([layer]), self.X, self.y)

    def untied(self):
        return plain_dgp_sites.untied(self.layer, self.X, self.y, self.alpha, self.likelihood)

    def stationary(self):
        """Theta_1 and theta_2 at the stationary point of the tied energy."""
        return plain_dgp_sites.moments_averaged(self.layer, self.X, self.y, self.alpha, self.likelihood)

    def best(self):
        return plain_dgp_sites.with_factor(self.layer, *self.stationary())

    def smallest(self):
        """The tied energy there."""
        factor = self.stationary()
        return plain_dgp_sites.tied_energy(self.layer, *factor, self.X, self.y, self.alpha, self.likelihood)

    def minimised(self):
        """The energy after a search over R and theta_2."""
        count = self.layer["R"].shape[1]

        def value(point):
            layer = {**self.layer, "R": point[None, :count], "theta2": point[None, count:]}
            found, gradient = self.energy(layer)
            (parts,) = unpacked(structure_of([layer]), gradient)
            return found, np.append(parts["R"][0], parts["theta2"][0])

        start = np.append(self.layer["R"][0], self.layer["theta2"][0])
        return minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000}).fun


class TestTheTwins:
    @every_alpha
    def test_untied_ep_with_gaussian_noise_is_exact(self, alpha):
        case = Case(alpha=alpha)
        assert case.untied()[0] == pytest.approx(plain_dgp_sites.fitc(case.layer, case.X, case.y, alpha), rel=1e-11)

    def test_small_powers_give_the_bound_of_variational_inference(self):
        case = Case()
        bound = plain_dgp_sites.fitc(case.layer, case.X, case.y, 0)
        coarse, fine = (plain_dgp_sites.fitc(case.layer, case.X, case.y, alpha) - bound for alpha in (2e-5, 1e-5))
        assert coarse / fine == pytest.approx(2.0, abs=1e-3)

    @pytest.mark.parametrize("alpha", [1.0, 0.0])
    def test_all_inputs_as_inducing_inputs_are_exact(self, alpha):
        case = Case(inducing=10)
        layer = {**case.layer, "Z": case.X[None]}
        expected = plain_dgp_sites.exact(layer, case.X, case.y)
        # the jitter is only in K of the inducing inputs
        assert plain_dgp_sites.fitc(layer, case.X, case.y, alpha) == pytest.approx(expected, abs=2e-4)

    def test_the_best_energy_by_a_general_optimiser(self):
        case = Case()
        found = plain_dgp_sites.smallest_energy(case.layer, case.X, case.y)
        assert found == pytest.approx(float(plain_dgp.energy([case.best()], case.X, case.y, 10)), abs=1e-9)


class TestTheBestTiedFactor:
    @every_alpha
    def test_has_the_average_of_the_tilted_moments(self, alpha):
        """Section 4.2: the gradient with respect to the factor is zero."""
        case = Case(alpha=alpha)
        layer = case.best()
        value, gradient = case.energy(layer)
        assert value == pytest.approx(case.smallest(), rel=1e-12)
        (found,) = unpacked(structure_of([layer]), gradient)
        for part in ("R", "theta2"):
            np.testing.assert_allclose(found[part], 0.0, atol=1e-6, err_msg=part)

    @pytest.mark.parametrize("seed", range(3))
    def test_is_a_minimum(self, seed):
        case, rng = Case(), np.random.default_rng(seed)
        layer = case.best()
        minimum, _ = case.energy(layer)
        for size in (0.3, 0.01):
            other = {name: layer[name] + size * rng.normal(size=layer[name].shape) for name in ("R", "theta2")}
            assert case.energy({**layer, **other})[0] > minimum

    @every_likelihood
    def test_overstates_the_evidence_of_untied_ep(self, likelihood):
        case = Case(likelihood)
        assert case.minimised() < -case.untied()[0] - 0.1

    def test_may_require_an_indefinite_factor(self):
        """For a probit; a search over R ends on the border of the proper region, above the stationary point."""
        case = Case("probit")
        assert np.linalg.eigvalsh(case.stationary()[0])[0] == pytest.approx(-0.01783505, abs=1e-7)
        assert 0.0 < case.minimised() - case.smallest() < 2e-4

    def test_on_ten_data_points(self):
        """10.57 compared with 11.55."""
        case = Case()
        assert case.energy(case.best())[0] == pytest.approx(10.56977434492, abs=1e-9)
        assert case.untied()[0] == pytest.approx(-11.54862093473, abs=1e-9)

    @every_likelihood
    def test_the_gap_per_data_point_decreases_with_repeated_data(self, likelihood):
        gaps = []
        for times in (1, 2, 4):
            case = Case(likelihood, n=5)
            case.X, case.y = np.repeat(case.X, times, axis=0), np.repeat(case.y, times)
            gaps.append((-case.untied()[0] - case.smallest()) / len(case.y))
        assert gaps[0] > gaps[1] > gaps[2] > 0.0

    @every_alpha
    def test_is_exact_for_identical_data_points(self, alpha):
        """One inducing input: all untied factors are the same."""
        case = Case(alpha=alpha, inducing=1)
        case.X, case.y = np.repeat(case.X[:1], 6, axis=0), np.repeat(case.y[1:2], 6)
        value, gradient = case.energy(case.best())
        assert value == pytest.approx(-plain_dgp_sites.fitc(case.layer, case.X, case.y, alpha), rel=1e-10)
        (found,) = unpacked(structure_of([case.layer]), gradient)
        assert abs(found["R"][0, 0]) < 1e-7
        assert abs(found["theta2"][0, 0]) < 1e-7


def best_of_small_powers(layer, X, y):
    """Return the optimal q(u) of the variational bound as a factor."""
    out, _, a, _ = plain_dgp_sites.projection(layer, X)
    noise = float(out.sn) ** 2
    precision = a.T @ a / noise
    # the factor has to be positive definite
    return plain_dgp_sites.with_factor(layer, precision + 1e-9 * np.eye(len(precision)), a.T @ y / noise)


class TestSmallPowers:
    @pytest.mark.parametrize("inducing", [4, 10])
    def test_the_best_energy_is_minus_the_bound(self, inducing):
        case = Case(inducing=inducing)
        if inducing == 10:
            case.layer["Z"] = case.X[None]
        layer = best_of_small_powers(case.layer, case.X, case.y)
        expected = -plain_dgp_sites.fitc(layer, case.X, case.y, 0)
        twin = plain_dgp.variational_energy([layer], case.X, case.y, len(case.y))
        assert float(twin) == pytest.approx(expected, abs=1e-7)
        found = []
        for case.alpha in (2e-6, 1e-6):
            value, gradient = case.energy(layer)
            (parts,) = unpacked(structure_of([layer]), gradient)
            found.append((value - expected, np.abs(parts["theta2"]).max()))
        (coarse, slope), (fine, smaller) = found
        assert abs(2 * fine - coarse) < 1e-6
        assert fine < 0.01
        assert smaller < 0.6 * slope < 1e-3

    def test_all_inputs_as_inducing_inputs_are_exact(self):
        case = Case(inducing=10, alpha=1e-6)
        case.layer["Z"] = case.X[None]
        layer = best_of_small_powers(case.layer, case.X, case.y)
        assert case.energy(layer)[0] == pytest.approx(-plain_dgp_sites.exact(layer, case.X, case.y), abs=1e-3)

    def test_not_exact_at_alpha_one(self):
        """The tied energy is not exact even with all inputs as inducing inputs."""
        case = Case(inducing=10)
        case.layer["Z"] = case.X[None]
        exact = plain_dgp_sites.exact(case.layer, case.X, case.y)
        assert case.minimised() < -exact - 0.1


class TestStochasticEP:
    """The tied factor by averaging the factors of single data points (appendices B and C)."""

    def test_its_fixed_point_is_another_one(self):
        case = Case()
        factor = plain_dgp_sites.naturals_averaged(case.layer, case.X, case.y)
        layer = plain_dgp_sites.with_factor(case.layer, *factor)
        value, gradient = case.energy(layer)
        (found,) = unpacked(structure_of([layer]), gradient)
        assert value > case.energy(case.best())[0] + 0.1
        assert np.abs(found["theta2"]).max() > 1e-3

    def test_with_gaussian_noise_it_is_untied_ep(self):
        """The factor of a data point does not depend on the cavity, and the average to the power N is the product."""
        case = Case()
        factor = plain_dgp_sites.naturals_averaged(case.layer, case.X, case.y)
        (out,) = plain_dgp.outputs(plain_dgp_sites.with_factor(case.layer, *factor))
        m, V = (np.asarray(part, dtype=float) for part in plain_dgp.gaussian(out, 1.0))
        _, expected_m, expected_V = case.untied()
        np.testing.assert_allclose(m, expected_m, atol=1e-9)
        np.testing.assert_allclose(V, expected_V, atol=1e-9)
