"""Standardisation and the factory."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from ep_bench import Estimator, UserError, methods
from ep_bench.estimator import Scaling, estimator_class, warm_up
from ep_bench.estimator.model import convergence


def test_scaling_is_that_of_the_training_set() -> None:
    X = np.random.default_rng(0).normal(3.0, 7.0, (100, 4))
    out = Scaling.of(X).apply(X)
    np.testing.assert_allclose(out.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(out.std(axis=0), 1.0)


def test_a_constant_input_is_found_if_its_standard_deviation_is_not_zero() -> None:
    column = np.full(10_741, 0.998)
    X = np.column_stack([column, np.arange(10_741.0)])
    np.testing.assert_array_equal(Scaling.of(X).apply(X)[:, 0], 0.0)
    np.testing.assert_array_equal(Scaling.of(X, {0: 1.0}).apply(X)[:, 0], 1.0)
    assert Scaling.of(X, {1: 1.0}).apply(X)[0, 1] != 1.0  # not constant: its own values


def test_the_factory_knows_its_names() -> None:
    assert type(Estimator("pbp")) is estimator_class("pbp")
    assert type(Estimator("pbp")).__name__ == "PbpRegressor"
    with pytest.raises(UserError, match="did you mean 'pbp'"):
        Estimator("pbpp")


def test_options_are_checked_at_fit_with_the_value() -> None:
    with pytest.raises(ValueError, match=r"epochs.*found -1"):
        Estimator("pbp", epochs=-1).fit(np.zeros((3, 1)), np.arange(3.0))


def test_random_states_of_every_kind() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)
    for make in (lambda: 3, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)):
        first, again = (Estimator("pbp", epochs=1, random_state=make()).fit(X, y).predict(X) for _ in range(2))
        np.testing.assert_array_equal(first, again)
    loose = [Estimator("pbp", epochs=1).fit(X, y).predict(X) for _ in range(2)]
    assert not np.array_equal(*loose)


def test_a_samplers_predictions_are_judged_at_any_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    model = Estimator("hmc", hidden=[3], chains=2, samples=50, warmup=20, steps=5, stored=60, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(X, np.sin(X[:, 0]))
    by_chain = model.predict_dist(X[:7]).means.reshape(2, 30, 7)
    found = model.diagnose(X[:7], "seven")
    assert found.keys() == {"r_hat_seven", "ess_bulk_seven", "ess_tail_seven"}
    each = [array_stats.rhat(by_chain[:, :, i], chain_axis=0, draw_axis=1) for i in range(7)]
    assert found["r_hat_seven"] == pytest.approx(float(max(each)), rel=1e-12)
    assert Estimator("pbp", epochs=1, random_state=0).fit(X, X[:, 0]).diagnose(X) == {}


def test_a_sampler_shows_its_chains_and_diagnostics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(methods.REGISTRY, "walk", "tests.sampler")
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)
    model = Estimator("walk", chains=3, draws=50, random_state=0).fit(X, y)
    assert {name: values.shape for name, values in model.chains_.items()} == {"level": (3, 50), "log_joint": (3, 50)}
    np.testing.assert_array_equal(model.chains_["level"], model.state_.levels)
    assert model.diagnostics_["divergences"] == 0
    assert model.diagnostics_["r_hat_level"] == pytest.approx(1.0, abs=0.1)


def test_other_methods_have_neither() -> None:
    model = Estimator("pbp", epochs=1, random_state=0).fit(np.arange(6.0)[:, None], np.arange(6.0))
    assert not hasattr(model, "chains_")
    assert not hasattr(model, "diagnostics_")


def test_compiling_warns_of_nothing_that_a_fit_would_be_blamed_for() -> None:
    with warnings.catch_warnings(action="error"):
        assert warm_up("hmc", {"hidden": [3], "activation": "tanh"}) > 0.0  # four draws: they have not mixed


@pytest.mark.parametrize("stated", [None, True, np.False_, "yes", math.nan])
def test_only_a_truth_value_states_convergence(stated: object) -> None:
    assert convergence(stated) is (bool(stated) if isinstance(stated, bool | np.bool_) else None)


class TestOffers:
    """What a state has of ``OFFERED``, and the function behind the noise."""

    X, y = np.random.default_rng(0).normal(size=(20, 2)), 50.0 + 8.0 * np.sin(np.arange(20.0))

    def test_a_process_shows_its_evidence_and_search(self) -> None:
        model = Estimator("gp", starts=1, random_state=0).fit(self.X, self.y)
        assert model.log_evidence_ == model.state_.log_evidence
        assert model.n_iterations_ > 0
        assert model.converged_ is True
        assert model.hyperparameters_["lengthscale"].shape == (2,)

    @pytest.mark.parametrize("method", ["bb_alpha", "dropout", "laplace", "vi"])
    def test_a_network_shows_its_noise(self, method: str) -> None:
        short = {"updates": 1, "starts": 0} if method == "laplace" else {"epochs": 2}
        with warnings.catch_warnings(action="ignore"):  # it has not converged
            model = Estimator(method, hidden=[3], random_state=0, **short).fit(self.X, self.y)
        assert model.hyperparameters_["noise_variance"] == model.state_.noise_variance > 0.0

    def test_the_function_in_original_units(self) -> None:
        model = Estimator("gp", starts=1, random_state=0).fit(self.X, self.y)
        mean, variance = model.latent(self.X)
        noise = model.hyperparameters_["noise_variance"] * self.y.var()
        np.testing.assert_allclose(mean, model.predict(self.X))
        np.testing.assert_allclose(variance + noise, model.predict_dist(self.X).variance())

    def test_a_refit_forgets_offers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(methods.REGISTRY, "walk", "tests.sampler")
        model = Estimator("walk", random_state=0).fit(self.X, self.y)
        model.n_iterations_ = 7  # as of a fit whose state had it
        assert not hasattr(model.fit(self.X, self.y), "n_iterations_")

    def test_other_methods_have_no_latent_function(self) -> None:
        assert not hasattr(Estimator("pbp"), "latent")
        with pytest.raises(NotFittedError):
            Estimator("gp").latent(self.X)

    @pytest.mark.parametrize("wrong", [{"epochs": -1}, {"constant_inputs": {7: 1.0}}])
    def test_a_failed_refit_is_no_fit(self, wrong) -> None:
        X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)
        model = Estimator("pbp", hidden=[3], epochs=1, random_state=0).fit(X, y)
        model.set_params(**wrong)
        with pytest.raises(ValueError, match=r"-1|input 7"):
            model.fit(1000.0 * X, y)
        for call in (model.predict, model.predict_dist, model.diagnose):
            with pytest.raises(NotFittedError):
                call(X)
        assert not hasattr(model, "trace_")
