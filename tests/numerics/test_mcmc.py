"""The loop over Markov chains, its records and diagnostics."""

from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base import array_stats
from sklearn.exceptions import ConvergenceWarning

from ep_bench.numerics import mcmc, mcmc_diagnostics


class Counter:
    """A chain whose state is the number of its iterations, plus an offset."""

    def __init__(self, offset=0.0):
        self.value, self.warmed = offset, []

    def warm_up(self, iteration):
        self.warmed.append(iteration)
        self.value += 1.0

    def step(self):
        self.value += 1.0

    def trace(self):
        return {"log_joint": -self.value}

    def monitor(self):
        return {"pair": np.array([self.value, 2.0 * self.value]), "predictions": np.full(3, self.value)}

    def draw(self):
        return {"x": np.array([self.value]), "y": self.value}


def prediction_diagnostics(*chains):
    """Return the diagnostics of predictions (draws, M), one array per chain."""
    return mcmc.diagnose({"predictions": np.array(chains)})[1]


class TestLoop:
    def test_records(self):
        chains, adapted = [Counter(), Counter(100.0)], []
        schedule = mcmc.Schedule(warmup=3, samples=5, stored=6)
        records = mcmc.run(chains, schedule, adapted.append)
        assert adapted == chains[0].warmed == [1, 2, 3]
        np.testing.assert_array_equal(records[0].trace["log_joint"], -np.arange(1.0, 9.0))
        np.testing.assert_array_equal(records[0].after_warmup["log_joint"], -np.arange(4.0, 9.0))
        assert records[0].monitored["pair"].shape == (5, 2)
        np.testing.assert_array_equal(records[1].draws["y"], [104.0, 106.0, 108.0])

    def test_summary(self):
        schedule = mcmc.Schedule(warmup=2, samples=8, stored=4)
        found = mcmc.summarise(mcmc.run([Counter(), Counter(1.0)], schedule), schedule, {"divergences": 8.0})
        assert found.draws["x"].shape == (4, 1)
        np.testing.assert_array_equal(found.chain, [0, 0, 1, 1])
        assert list(found.chains) == ["log_joint", "pair_1", "pair_2", "prediction"]
        assert {series.shape for series in found.chains.values()} == {(2, 8)}
        np.testing.assert_allclose(found.trace["log_joint"], -np.arange(1.5, 11.0))
        assert found.diagnostics["divergences"] == 8.0
        assert "2 chains of 8 draws, 50% of them divergent; a longer warm-up" in found.problem

    @pytest.mark.parametrize(("samples", "stored", "expected"), [(5, 0, {0}), (5, 2, {0, 4}), (3, 9, {0, 1, 2})])
    def test_stored_draws(self, samples, stored, expected):
        assert mcmc.stored_draws(samples, stored) == expected

    def test_warning(self):
        mcmc.warn("", 2)
        with pytest.warns(ConvergenceWarning, match="no convergence"):
            mcmc.warn("no convergence", 2)


class TestDiagnostics:
    @pytest.mark.parametrize("apart", [1e-3, 1.0, 1e6])
    def test_different_constants_have_not_converged(self, apart):
        found = prediction_diagnostics(np.full((50, 3), 0.5), np.full((50, 3), 0.5 + apart))
        assert found["r_hat_predictions"] == mcmc_diagnostics.LARGEST

    def test_a_chain_that_is_constant_up_to_rounding_errors(self):
        alone = 1.0 + 1e-15 * np.random.default_rng(0).normal(size=(50, 3))
        assert prediction_diagnostics(alone)["r_hat_predictions"] == mcmc_diagnostics.LARGEST

    def test_one_constant_chain(self):
        draws = np.random.default_rng(0).normal(size=(200, 3))
        found = prediction_diagnostics(draws, np.full((200, 3), 0.3))
        assert mcmc_diagnostics.LIMIT < found["r_hat_predictions"] < np.inf

    def test_chains_that_move_once(self):
        once = [np.repeat([[a], [b]], 25, axis=0) for a, b in ((0.0, 1.0), (2.0, 3.0))]
        for chains in (once, once[:1]):
            assert prediction_diagnostics(*chains)["r_hat_predictions"] == mcmc_diagnostics.LARGEST

    def test_a_single_chain_is_split(self):
        draws = np.random.default_rng(0).normal(size=(301, 1))
        found = prediction_diagnostics(draws)
        halves = draws[:300, 0].reshape(2, 150)
        assert found["r_hat_predictions"] == pytest.approx(float(array_stats.rhat(halves, chain_axis=0, draw_axis=1)))
        assert found["r_hat_predictions"] < mcmc_diagnostics.LIMIT
        assert prediction_diagnostics(draws + np.linspace(0, 5, 301)[:, None])["r_hat_predictions"] > 1.5

    def test_the_worst_series_of_predictions_counts(self):
        draws = np.random.default_rng(0).normal(size=(2, 200, 4))
        draws[1, :, 2] += 1.0
        series, found = mcmc.diagnose({"predictions": draws})
        np.testing.assert_array_equal(series["prediction"], draws[:, :, 2])
        alone = [prediction_diagnostics(*draws[:, :, m : m + 1]) for m in range(4)]
        assert found["r_hat_predictions"] == max(one["r_hat_predictions"] for one in alone)
        for name in ("ess_bulk_predictions", "ess_tail_predictions"):
            assert found[name] == min(one[name] for one in alone)

    def test_chains_with_different_means_have_a_problem(self):
        draws = np.random.default_rng(0).normal(size=(50, 2))
        found = prediction_diagnostics(draws, draws + 3.0)
        assert mcmc.convergence_problem(found, 2, 50).startswith("R-hat of predictions ")
        assert mcmc.convergence_problem({"r_hat_predictions": 1.01}, 2, 50) == ""
        assert mcmc.convergence_problem({}, 1, 2).startswith("too few draws for R-hat; 1 chain of 2 draws;")
