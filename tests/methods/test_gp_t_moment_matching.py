"""The double loop by moment matching: its objective, the interpolation of steps, and its fixed points."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from ep_bench.experiments.gp_t_2011.conflict_examples import ExampleHyperparameters, covariances, example
from ep_bench.methods.gp_t import ep, moment_matching
from ep_bench.methods.gp_t.double_loop import fixed_marginals, natural
from ep_bench.methods.gp_t.sites import SiteModel, empty

UNIMODAL = ExampleHyperparameters(1.93, 4.3, 0.095, 1.2)
BIMODAL = ExampleHyperparameters(0.9, 4.3, 0.095, 1.2)


def model_of(hyper, eta=1.0):
    data = example(1)
    return SiteModel(covariances(data.x, hyper), data.y, hyper.nu, hyper.scale, eta)


def test_the_interpolation_is_the_maximum_of_a_cubic():
    rng = np.random.default_rng(0)
    checked = 0
    while checked < 20:
        cubic = np.polynomial.Polynomial([0.0, abs(rng.normal()), *rng.normal(size=2)])
        slope, length = cubic.deriv(), 1.7
        maxima = [t.real for t in slope.roots() if abs(t.imag) < 1e-12 and cubic.deriv(2)(t.real) < 0.0]
        if maxima and 0.0 < maxima[0] < length:
            ends = (cubic(0.0), cubic(length)), (slope(0.0), slope(length))
            assert moment_matching.interpolated(length, *ends) == pytest.approx(maxima[0], rel=1e-9)
            checked += 1
    assert moment_matching.interpolated(2.0, (0.0, 5.0), (1.0, 4.0)) == 1.0  # no maximum inside


@pytest.mark.parametrize("eta", [1.0, 0.5])
def test_the_slope_of_the_objective_by_differences(eta):
    model = model_of(UNIMODAL, eta)
    start = empty(model)
    now = fixed_marginals(model, natural(start.posterior), start.tau, start.b)
    by_tau, by_b = np.random.default_rng(1).normal(size=(2, len(model.y))) * 1e-3

    def value(part):
        return fixed_marginals(model, now.outer, now.tau + part * by_tau, now.b + part * by_b).value

    step = 1e-3
    numeric = (value(step) - value(-step)) / (2.0 * step)
    assert moment_matching._slope(now, by_tau, by_b) == pytest.approx(numeric, rel=1e-5)


def test_an_inner_step_increases_the_objective():
    model = model_of(BIMODAL)
    start = empty(model)
    now = fixed_marginals(model, natural(start.posterior), start.tau, start.b)
    for _ in range(5):
        after = moment_matching.inner_step(model, now, 0.8)
        assert after.value > now.value
        now = after


@pytest.mark.parametrize("eta", [1.0, 0.5])
def test_it_converges_to_the_fixed_point_of_the_robust_scheme(eta):
    model = model_of(UNIMODAL, eta)
    robust, paper = (ep.infer(*model[:4], eta, 0.8, scheme) for scheme in ("robust", "paper"))
    assert paper.log_evidence == pytest.approx(robust.log_evidence, abs=1e-8)
    np.testing.assert_allclose(paper.precisions, robust.precisions, rtol=1e-3, atol=1e-3)


def test_it_approaches_the_fixed_point_where_sweeps_fail():
    model = model_of(BIMODAL)
    robust = ep.infer(*model[:4], 1.0, 0.8)
    assert robust.stage == "double loop"
    *_, last = islice(moment_matching.moment_matching(model, empty(model), 0.8, 20), 60)
    assert last.mismatch < 0.05
    np.testing.assert_allclose(last.tau, robust.precisions, rtol=0.05, atol=0.05)
