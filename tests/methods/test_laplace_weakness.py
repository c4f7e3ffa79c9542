"""The Laplace approximation: known weaknesses, warnings and failures."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from ep_bench import Estimator, data
from ep_bench.methods import laplace
from ep_bench.methods.laplace import evidence, mode_search
from ep_bench.models import mlp
from ep_bench.types import Rows
from tests.methods.laplace_support import FORMS, fitted, wave


class TestWeakness:
    """Hernandez-Lobato and Adams (2015), 5.4: the hyperparameters of the diagonal form are wrong."""

    @pytest.fixture(scope="class")
    @classmethod
    def both(cls):
        return {form: fitted(wave(120), hidden=(30,), hessian=form, updates=100) for form in ("diag", "full")}

    def test_gamma_and_noise_are_too_large(self, both):
        (diag, _), (full, _) = both["diag"], both["full"]
        assert diag.well_determined > 1.5 * full.well_determined
        assert diag.noise_variance > 1.5 * full.noise_variance
        assert np.sqrt(full.noise_variance) == pytest.approx(0.1, rel=0.25)

    def test_predictions_are_worse(self, both):
        test = wave(500, seed=9)
        ll = {form: laplace.predict(state, test.X, np.random.default_rng(0)).logpdf(test.y).mean()
              for form, (state, _) in both.items()}  # fmt: skip
        assert ll["diag"] < ll["full"] - 0.1

    def test_the_update_is_positive_if_gamma_exceeds_the_number_of_data_points(self):
        rng, layers = np.random.default_rng(11), mlp.layout(4, (19,))
        problem, w = mode_search.ModeProblem(rng.normal(size=(6, 4)), rng.normal(size=6), layers), rng.normal(size=115)
        settings = evidence.UpdateSettings("diag", True, False, False, 1, 1)
        found = evidence.approximate(problem, w, evidence.Precisions(np.full(2, 0.1), 1e3), "diag")
        assert found.gamma.sum() > 6
        at = evidence.updated(found, problem, settings)
        assert 0 < at.beta < 1e3

    @pytest.mark.slow
    def test_on_boston(self):
        boston = data.load_dataset("boston")
        train, test = data.standard_split(len(boston.y), 0)
        scores = {}
        for form in ("diag", "full"):
            model = Estimator("laplace", hessian=form, updates=15, starts=1, random_state=0).fit(
                boston.X[train], boston.y[train]
            )
            scores[form] = model.predict_dist(boston.X[test]).logpdf(boston.y[test]).mean()
            assert model.log_evidence_ == model.state_.log_evidence
        assert scores["diag"] < scores["full"]


class TestFailure:
    @pytest.mark.parametrize("form", FORMS)
    def test_an_unfinished_fit_warns(self, form):
        warned = (
            r"after 1 updates, one more would change the prior precision by [+-]\d.* and the noise precision by [+-]\d"
        )
        with pytest.warns(
            ConvergenceWarning, match=warned + ".* of its value, over the tolerance of 0.001: raise updates$"
        ):
            fitted(wave(), hidden=(8,), hessian=form, updates=1, steps=1000)

    def test_the_reported_change_is_that_of_one_more_update(self):
        with pytest.warns(ConvergenceWarning, match="would change") as warned:
            fitted(wave(), hidden=(8,), updates=1)
        with warnings.catch_warnings(action="ignore"):
            trace = fitted(wave(), hidden=(8,), updates=2)[1]
        for name in ("prior", "noise"):
            _, before, after = trace[f"{name}_deviation"]
            found = re.search(rf"{name} precision by ([-+.e\d]+) of its value", str(warned[0].message))
            assert float(found[1]) == pytest.approx((before / after) ** 2 - 1, rel=6e-3)  # three digits

    def test_a_search_at_its_limit_warns(self):
        fixed = {"prior_variance": 1.0, "noise_variance": 0.01}
        with pytest.warns(ConvergenceWarning, match="^the search .* ended at its limit of 3 steps: raise steps$"):
            fitted(wave(), hidden=(8,), updates=2, steps=3, **fixed)

    def test_negligible_changes_do_not_warn(self):
        """The updates of the linear model end at a change of 1e-9, but much larger changes are already negligible."""
        rng, rows = np.random.default_rng(4), wave()
        rows = Rows(np.column_stack([rows.X, rng.normal(size=60)]), rows.y)
        with warnings.catch_warnings(action="error", category=ConvergenceWarning):
            short, long = (fitted(rows, hidden=(), updates=updates)[1] for updates in (6, 60))
        assert len(short["objective"]) == 7 < len(long["objective"])
        with pytest.warns(ConvergenceWarning, match="raise updates"):
            fitted(rows, hidden=(), updates=1)

    def test_a_search_that_ends_at_a_kink_does_not_warn(self, monkeypatch):
        """L-BFGS then reports that it finds no lower point."""
        minimize = optimize.minimize

        def without_a_lower_point(*arguments, **options):
            found = minimize(*arguments, **options)
            found.status, found.success = 2, False
            return found

        monkeypatch.setattr(optimize, "minimize", without_a_lower_point)
        with warnings.catch_warnings(action="error", category=ConvergenceWarning):
            fitted(wave(), hidden=(4,), updates=60, steps=1000)

    def test_a_precision_at_its_limit_warns(self):
        rows = Rows(wave().X, np.zeros(60))
        with pytest.warns(ConvergenceWarning, match="the prior precision tends to infinity"):
            state, _ = fitted(rows, hidden=(8,))
        assert np.all(np.isfinite(state.weights))

    def test_the_warning_describes_a_collapsed_network(self):
        """The targets are pure noise."""
        rng = np.random.default_rng(0)
        rows = Rows(rng.normal(size=(60, 2)), 0.5 * rng.normal(size=60))
        with pytest.warns(
            ConvergenceWarning, match="to a constant; its predictive standard deviation is that of the noise"
        ):
            state, _ = fitted(rows, hidden=(8,))
        predicted = laplace.predict(state, rows.X, rng)
        assert np.ptp(predicted.mean()) < 1e-6
        np.testing.assert_allclose(predicted.std(), np.sqrt(state.noise_variance), rtol=1e-5)

    def test_a_matrix_that_is_too_large_raises(self):
        with pytest.raises(ValueError, match="matrix of 22,501 weights"):
            fitted(wave(), hidden=(7500,))
