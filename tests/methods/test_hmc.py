"""Hamiltonian Monte Carlo as a method: seeds, chains, diagnostics, warnings, options, edge cases."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from arviz_stats.base import array_stats
from sklearn.exceptions import ConvergenceWarning

from ep_bench.methods import hmc
from ep_bench.methods.hmc.adaptation import WINDOW, StepSize, windows
from ep_bench.numerics import mcmc_diagnostics
from ep_bench.types import Rows
from tests.twins import plain_networks as plain

QUICK = {"hidden": [5], "samples": 50, "warmup": 50, "steps": 15, "stored": 50}  # options of the conformance tests

TRACED = ("log_joint", "noise_deviation", "prior_deviation", "acceptance")
SHORT = {"hidden": (3,), "chains": 2, "samples": 40, "warmup": 30, "steps": 10, "stored": 80}


def rows(n=25, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return Rows(X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=n))


def fitted(train=None, seed=0, **options):
    with warnings.catch_warnings(action="error"):  # only the warning about convergence is allowed
        warnings.simplefilter("ignore", ConvergenceWarning)
        return hmc.fit(train or rows(), hmc.Config(**{**SHORT, **options}), np.random.default_rng(seed))


ALL = pytest.mark.exhaustive
USUAL_NETWORKS = [("relu", ()), ("tanh", (9, 4))]
EDGES = ["plain", "one row", "constant input", "constant target", "more inputs than rows"]
EDGE_OPTIONS = [
    {"samples": 1, "warmup": 0, "chains": 1, "stored": 1}, {"warmup": 0}, {"warmup": 1}, {"hidden": ()},
    {"hidden": (), "prior": "ard"}, {"prior": "ard"}, {"prior_scales": "layer", "hidden": (4, 3)},
    {"noise_variance": 0.1}, {"prior_variance": 2.0, "prior": "ard"}, {"steps": 1},
    {"masses": "pooled", "gradients": "single"}, {"masses": "pooled", "gradients": "single", "hidden": (4, 3)},
]  # fmt: skip


class TestDraws:
    def test_chains_differ(self):
        first, _ = fitted()
        np.testing.assert_array_equal(first.chain, np.repeat([0, 1], 40))
        assert not np.any(first.W[first.chain == 0] == first.W[first.chain == 1])

    @pytest.mark.parametrize(
        ("chains", "stored", "kept"), [(2, 80, 80), (2, 1000, 80), (2, 21, 20), (3, 10, 9), (1, 7, 7), (2, 1, 2)]
    )
    def test_draws_are_thinned_evenly(self, chains, stored, kept):
        whole, _ = fitted(chains=chains, stored=1000)
        state, trace = fitted(chains=chains, stored=stored)
        assert len(state.W) == len(state.noise_variance) == len(state.prior_variance) == len(state.chain) == kept
        assert kept <= max(stored, chains)
        for c in range(chains):
            mine, all_ = state.W[state.chain == c], whole.W[whole.chain == c]
            places = [int(np.flatnonzero((all_ == w).all(axis=1))[0]) for w in mine]
            assert len(places) < 2 or (places[-1] == 39 or whole.diagnostics["acceptance"] < 1)
            assert np.all(np.diff(places) <= 2 * np.ceil(40 / len(mine)))
        assert {name: len(values) for name, values in trace.items()} == dict.fromkeys(TRACED, 70)
        assert state.diagnostics == whole.diagnostics  # diagnostics use all draws, also those not stored

    @pytest.mark.parametrize(
        ("activation", "hidden"),
        [
            pytest.param(activation, hidden, marks=() if (activation, hidden) in USUAL_NETWORKS else ALL)
            for activation in ("relu", "tanh", "probit")
            for hidden in ((), (3,), (9, 4), (2, 3, 2))
        ],
    )
    def test_predictions_are_the_mixture_of_the_draws(self, activation, hidden):
        state, _ = fitted(activation=activation, hidden=hidden, samples=5, warmup=10, steps=3)
        X = rows(6, seed=5).X
        found = hmc.predict(state, X, np.random.default_rng(0))
        for s in range(10):
            f = plain.outputs(X, state.W[s], (2, *hidden, 1), activation=activation)
            np.testing.assert_allclose(found.means[s], f, rtol=1e-11, atol=1e-12)
            np.testing.assert_array_equal(found.variances[s], state.noise_variance[s])

    @pytest.mark.parametrize(
        ("case", "options"),
        [
            pytest.param(case, options, marks=() if "prior_scales" in options else ALL)
            for case in EDGES
            for options in EDGE_OPTIONS
        ],
    )
    def test_edges(self, case, options):
        train = rows()
        if case == "one row":
            train = Rows(np.zeros((1, 2)), np.zeros(1))  # as after standardisation
        elif case == "constant input":
            train.X[:, 1] = 0.0
        elif case == "constant target":
            train.y[:] = 0.0
        elif case == "more inputs than rows":
            train = rows(4, 9)
        state, trace = fitted(train, **options)
        for part in (state.W, state.noise_variance, state.prior_variance, *trace.values(), *state.diagnostics.values()):
            assert np.isfinite(part).all()
        for name in ("noise_variance", "prior_variance"):
            if name in options:
                assert np.all(getattr(state, name) == options[name])
            else:
                assert np.all(getattr(state, name) > 0.0)

    def test_divergences_are_counted_and_rejected(self, monkeypatch):
        monkeypatch.setattr(StepSize, "averaged", 1e4)
        with pytest.warns(ConvergenceWarning, match="R-hat of predictions"):
            state, _ = hmc.fit(rows(), hmc.Config(**SHORT), np.random.default_rng(0))
        assert state.diagnostics["divergences"] == 80.0
        assert state.diagnostics["acceptance"] == 0.0
        monkeypatch.undo()
        assert fitted(warmup=200, target_acceptance=0.95)[0].diagnostics["divergences"] == 0.0

    @pytest.mark.slow
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("target", [0.5, 0.9])
    @pytest.mark.parametrize(("warmup", "samples"), [(400, 100), (2000, 500)])
    def test_the_acceptance_is_close_to_the_target(self, target, warmup, samples):
        """Single chains differ by 0.1, as curvature varies; the mean of eight runs has an error of 0.035."""
        runs = [fitted(seed=seed, warmup=warmup, samples=samples, target_acceptance=target)[0] for seed in range(8)]
        assert abs(np.mean([state.diagnostics["acceptance"] for state in runs]) - target) < 0.1


class TestDiagnostics:
    def test_diagnostics_are_those_of_arviz(self):
        state, _ = fitted(samples=100, stored=200)
        for name in ("log_joint", "noise_deviation", "prior_deviation"):
            series, axes = state.chains[name], {"chain_axis": 0, "draw_axis": 1}
            assert series.shape == (2, 100)
            expected = {
                "r_hat": array_stats.rhat(series, **axes),
                "ess_bulk": array_stats.ess(series, method="bulk", **axes),
                "ess_tail": array_stats.ess(series, method="tail", prob=(0.05, 0.95), **axes),
            }
            for measure, value in expected.items():
                assert state.diagnostics[f"{measure}_{name}"] == pytest.approx(float(value), rel=1e-12)
        np.testing.assert_allclose(by_chain(state.noise_variance), state.chains["noise_deviation"] ** 2)
        worst = array_stats.rhat(state.chains["prediction"], chain_axis=0, draw_axis=1)
        assert state.diagnostics["r_hat_predictions"] == pytest.approx(float(worst), rel=1e-12)

    def test_r_hat_of_training_inputs_and_midpoints_is_reported_apart(self):
        found = fitted(samples=100, chains=3)[0].diagnostics
        apart = [found["r_hat_training_inputs"], found["r_hat_midpoints"]]
        assert max(apart) == found["r_hat_predictions"]
        assert min(apart) < max(apart)

    def test_monitored_inputs_are_training_inputs_and_midpoints(self):
        X = rows(40).X
        monitored = mcmc_diagnostics.monitored_inputs(X, np.random.default_rng(0))
        assert monitored.shape == (64, 2)
        assert all((row == X).all(axis=1).any() for row in monitored[:32])
        middles = 0.5 * (X[:, None] + X[None]).reshape(-1, 2)
        assert all(np.isclose(middles, row).all(axis=1).any() for row in monitored[32:])


def by_chain(values):
    return values.reshape(2, -1)


class TestWarnings:
    def test_a_run_without_convergence_warns_once_and_keeps_its_draws(self):
        with pytest.warns(ConvergenceWarning, match=r"R-hat of predictions \d.*1\.05.*2 chains of 10 draws") as warned:
            state, _ = hmc.fit(
                rows(), hmc.Config(**{**SHORT, "warmup": 0, "samples": 10, "steps": 1}), np.random.default_rng(0)
            )
        assert len(warned) == 1
        assert state.converged is False
        assert state.diagnostics["r_hat_predictions"] > mcmc_diagnostics.LIMIT
        assert len(state.W) == 20

    def test_too_few_draws_warn_too(self):
        with pytest.warns(ConvergenceWarning, match="too few draws for R-hat; 2 chains of 3 draws"):
            hmc.fit(rows(), hmc.Config(**{**SHORT, "samples": 3}), np.random.default_rng(0))

    def test_a_converged_run_does_not_warn(self):
        with warnings.catch_warnings(action="error"):
            state, _ = hmc.fit(
                rows(), hmc.Config(**{**SHORT, "hidden": (), "samples": 500, "warmup": 100}), np.random.default_rng(0)
            )
        assert state.converged is True
        assert state.diagnostics["r_hat_predictions"] <= mcmc_diagnostics.LIMIT


class TestWindows:
    @pytest.mark.parametrize("warmup", range(0, 400, 3))
    def test_no_window_is_shorter_than_the_first_and_the_end_adapts_the_step_only(self, warmup):
        closes, end = windows(warmup)
        assert np.all(np.diff([0, *closes]) >= WINDOW)
        assert closes[-1:] == ([end] if end >= WINDOW else [])
        assert end <= max(1, 0.85 * warmup)
