"""Marginals of a finite network, and failed fits that are recorded and not raised."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from sklearn.exceptions import ConvergenceWarning

from ep_bench.experiments.ep_nn_2014 import network_fits
from ep_bench.experiments.method_entries import ExperimentMethod

UNITS, INPUTS = 3, 2


def stand_in(noise_mean: float = float(np.log(0.04))) -> Any:
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(UNITS, INPUTS + 1, INPUTS + 1))
    state = SimpleNamespace(
        weight_means=rng.normal(size=(UNITS, INPUTS + 1)),
        weight_covariances=roots @ roots.transpose(0, 2, 1),
        output_mean=rng.normal(size=UNITS + 1),
        output_covariance=np.diag([4.0, 1.0, 9.0, 0.25]),
        noise_mean=noise_mean,
        noise_variance=0.09,
        scale_means=np.array([-2.0]),
        scale_variances=np.array([0.25]),
    )
    return SimpleNamespace(state_=state, y_scaling_=SimpleNamespace(scale=np.array([5.0])))


def test_marginals_are_means_and_roots_of_the_diagonals() -> None:
    model = stand_in()
    found = network_fits.marginals(model)
    covariances = model.state_.weight_covariances
    for k in range(UNITS):
        np.testing.assert_allclose(found["weights_std"][k], np.sqrt(np.diag(covariances[k])))
    np.testing.assert_allclose(found["outputs_std"], [2.0, 1.0, 3.0, 0.5])
    np.testing.assert_allclose(found["scales_std"], [0.5])
    np.testing.assert_allclose([*found["noise"], *found["noise_std"]], [np.log(0.04), 0.3])
    np.testing.assert_array_equal(found["weights"], model.state_.weight_means)


def test_an_interval_excludes_0_beyond_two_standard_deviations() -> None:
    np.testing.assert_array_equal(
        network_fits.excludes_zero(np.array([1.95, 1.97, -1.97, 0.0]), np.ones(4)), [False, True, True, False]
    )


def test_the_noise_is_in_the_targets_unit() -> None:
    assert network_fits.noise_deviation(stand_in()) == pytest.approx(0.2 * 5.0)
    x = np.linspace(-1.0, 1.0, 30)[:, None]
    y = 50.0 * np.sin(3.0 * x[:, 0])
    entry = ExperimentMethod(use="gp", noise_variance=0.04)
    fit = network_fits.fitted(entry, x, y, standardize=True, seed=0)
    assert network_fits.noise_deviation(fit.model) == pytest.approx(0.2 * y.std())


def test_a_fit_has_the_requested_units_and_reports_convergence() -> None:
    x = np.linspace(-1.0, 1.0, 12)[:, None]
    y = 7.0 + x[:, 0]
    for standardize in (True, False):
        fit = network_fits.fitted(ExperimentMethod(use="gp"), x, y, standardize=standardize, seed=0)
        assert (fit.model.y_scaling_.shift[0] != 0.0) == standardize
        assert not network_fits.is_network(fit.model)
        mean, std = fit.latent(x)
        np.testing.assert_allclose(mean, y, atol=0.05)
        np.testing.assert_allclose(std, np.sqrt(fit.model.latent(x)[1]))
    with warnings.catch_warnings(action="error", category=ConvergenceWarning):
        fit = network_fits.fitted(
            ExperimentMethod(use="gp", steps=1, starts=1), x, np.sin(9.0 * y), standardize=True, seed=0
        )
    assert fit.converged is False
    failed = network_fits.NetworkFit(None, 0.1, "no start")
    assert network_fits.unconverged([fit, failed, failed._replace(model=stand_in())]).tolist() == [True, False, False]


def test_a_fit_that_fails_has_a_reason_and_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise FloatingPointError("no start")

    monkeypatch.setattr(network_fits, "Estimator", lambda *_, **__: SimpleNamespace(fit=fails))
    fit = network_fits.fitted(ExperimentMethod(use="gp"), np.zeros((3, 1)), np.zeros(3), standardize=True, seed=0)
    assert (fit.model, fit.reason, fit.converged) == (None, "no start", None)
    assert np.isnan(fit.latent(np.zeros((4, 1)))).all()


def test_entries_take_a_methods_options_and_refuse_others() -> None:
    assert ExperimentMethod(use="gp", label="mine").name == "mine"
    assert ExperimentMethod(use="gp").name == "gp"
    with pytest.raises(ValidationError, match="did you mean 'gp'"):
        ExperimentMethod(use="gpp")
    with pytest.raises(ValidationError, match="did you mean 'kernel'"):
        ExperimentMethod(use="gp", kernal="nn")
    with pytest.raises(ValidationError, match="noise_variance"):
        ExperimentMethod(use="gp", noise_variance=-1.0)
