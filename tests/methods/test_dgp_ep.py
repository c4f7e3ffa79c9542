"""Deep GPs by approximate EP: fits, and their predictions."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from ep_bench import Estimator
from ep_bench.methods import dgp_ep
from ep_bench.methods.dgp_ep.energy import DGPProblem, energy, moments, noise_variances, rounding_error
from ep_bench.methods.dgp_ep.layout import layers
from ep_bench.types import Rows

QUICK = {"inducing": 8, "steps": 600}  # options of the conformance tests

pytestmark = pytest.mark.usefixtures("short_search")

# Full propagation and stochastic EP compile for ten seconds or more each, for every likelihood.
PROPAGATIONS = ["diagonal", pytest.param("full", marks=pytest.mark.exhaustive)]


def rows_of(n=40, d=2, classes=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = np.sin(2 * X[:, 0]) + 0.3 * X[:, -1]
    if classes:
        return Rows(X, np.digitize(f, np.quantile(f, np.arange(1, classes) / classes)).astype(float), classes)
    return Rows(X, (f - f.mean()) / f.std())


def fitted(train, seed=0, **options):
    config = dgp_ep.Config(**{"alpha": 1, "inducing": 5, "steps": 20, "batch_size": 10, **options})
    return dgp_ep.fit(train, config, np.random.default_rng(seed))


def predicted(state, X, seed=0):
    return dgp_ep.predict(state, X, np.random.default_rng(seed))


class TestFit:
    def test_one_value_per_epoch(self):
        """40 data points in batches of 15: two steps per epoch; the last epoch is incomplete."""
        state, trace = fitted(rows_of(), batch_size=15, steps=7)
        assert set(trace) == {"objective", "noise_deviation"}
        assert [len(values) for values in trace.values()] == [4, 4]
        assert state.n_iterations == 7
        (last,) = state.hyperparameters["noise_deviation_2"]
        assert trace["noise_deviation"][-1] == pytest.approx(last, rel=1e-12)

    def test_the_objective_is_the_mean_energy_per_data_point(self):
        """With full batches, the energy of the second epoch is that after one step."""
        train = rows_of()
        (one, _), (_, trace) = fitted(train, batch_size=40, steps=1), fitted(train, batch_size=40, steps=2)
        value, _ = energy(DGPProblem(one.structure, "gaussian", 40), one.theta, train.X, train.y)
        assert trace["objective"][1] == pytest.approx(value / 40, rel=1e-12)

    def test_rounding_errors_of_the_energy(self, monkeypatch):
        """They are large if the factors are, as those of FITC on targets without noise; a fit names large ones."""
        train = rows_of()
        states = [fitted(train, start=start)[0] for start in ("random", "fitc")]
        problems = [DGPProblem(state.structure, "gaussian", 40) for state in states]
        low, high = (
            rounding_error(one, state.theta, train.X, train.y, np.random.default_rng(0))
            for one, state in zip(problems, states, strict=True)
        )
        assert low < 1e-10
        assert high > 1e-6
        monkeypatch.setattr(dgp_ep, "rounding_error", lambda *_: 4.0)
        with pytest.warns(UserWarning, match="change the energy by about 0.1 nats per data point"):
            fitted(train)

    @pytest.mark.parametrize("classes", [2, 3])
    def test_classes_have_no_noise(self, classes):
        _, trace = fitted(rows_of(classes=classes), batch_size=40, steps=3)
        assert {name: len(values) for name, values in trace.items()} == {"objective": 3}

    def test_the_objective_decreases(self):
        _, trace = fitted(rows_of(), steps=400, learning_rate=0.02)
        assert np.mean(trace["objective"][-10:]) < np.mean(trace["objective"][:10]) - 0.5

    def test_the_plateau_rule(self):
        """The steps are smaller than the noise of the minibatches. Without the rule, convergence is unknown."""
        state, trace = fitted(rows_of(), steps=400, batch_size=15, learning_rate=1e-12, plateau=8)
        assert state.converged
        assert 16 <= state.n_iterations == 2 * len(trace["objective"]) < 400
        falling, _ = fitted(rows_of(), steps=40, plateau=20, learning_rate=0.02)
        assert falling.n_iterations == 40
        assert falling.converged is False
        assert fitted(rows_of(), steps=1)[0].converged is None

    @pytest.mark.parametrize("hidden", [(), (2,), (2, 1)])
    @pytest.mark.parametrize("alpha", [1.0, 0.5, 0.0])
    @pytest.mark.parametrize("classes", [0, 2])
    def test_the_evidence_is_minus_the_energy_of_all_data(self, hidden, alpha, classes):
        train = rows_of(classes=classes)
        state, _ = fitted(train, hidden=hidden, alpha=alpha, steps=5)
        problem = DGPProblem(state.structure, state.likelihood, 40, alpha)
        value, _ = energy(problem, state.theta, train.X, train.y)
        assert state.log_evidence == pytest.approx(-value, rel=1e-12)

    @pytest.mark.parametrize("propagation", PROPAGATIONS)
    def test_evidence_of_three_classes_by_many_draws(self, propagation):
        train = rows_of(classes=3)
        state, _ = fitted(train, propagation=propagation)
        problem = DGPProblem(state.structure, "softmax", 40, propagation=propagation)
        noise = np.random.default_rng(1).normal(size=(20_000, 3))
        value, _ = energy(problem, state.theta, train.X, train.y, noise)
        assert state.log_evidence == pytest.approx(-value, abs=0.3)

    def test_an_estimator_reports_the_evidence(self):
        """For standardised targets, in any units. The search of ``start: fitc`` amplifies rounding errors."""
        train = rows_of()
        options = {"inducing": 5, "steps": 20, "random_state": 0, "start": "random"}
        one, other = (Estimator("dgp_ep", **options).fit(train.X, scale * train.y + 5.0) for scale in (1.0, 3.0))
        assert one.log_evidence_ == one.state_.log_evidence
        assert other.log_evidence_ == pytest.approx(one.log_evidence_, rel=1e-7)

    @pytest.mark.parametrize("rate", [1e3, 1e300])
    def test_a_huge_last_step_raises(self, rate):
        """No state with predictions of nan is returned."""
        with (
            np.errstate(over="ignore"),
            pytest.raises(FloatingPointError, match=r"^step 1: the energy of all data is not finite"),
        ):
            fitted(rows_of(), steps=1, learning_rate=rate)

    @pytest.mark.parametrize("shared", [True, False])
    def test_hyperparameters(self, shared):
        state, _ = fitted(rows_of(d=3), hidden=(2,), shared=shared)
        found, groups = state.hyperparameters, 1 if shared else 2
        shapes = {name: value.shape for name, value in found.items()}
        assert shapes == {
            "lengthscale_1": (groups, 3), "magnitude_1": (groups,), "noise_deviation_1": (groups,),
            "lengthscale_2": (1, 2), "magnitude_2": (1,), "noise_deviation_2": (1,),
        }  # fmt: skip
        for index, layer in enumerate(layers(state.structure, state.theta), start=1):
            np.testing.assert_array_equal(found[f"lengthscale_{index}"], np.exp(layer.log_lengthscales))
            np.testing.assert_array_equal(found[f"magnitude_{index}"], np.exp(2 * layer.log_magnitude))  # variance
            np.testing.assert_array_equal(found[f"noise_deviation_{index}"], np.exp(layer.log_noise))


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("learning_rate", "gain"), [(0.02, True), (1e-6, False)])
def test_a_classifier_without_gain_over_the_class_frequencies_warns(classes, learning_rate, gain):
    with warnings.catch_warnings(record=True, action="always") as found:
        state, _ = fitted(rows_of(60, classes=classes), hidden=[], steps=300, learning_rate=learning_rate)
    assert any("class frequencies" in str(each.message) for each in found) is not gain
    assert gain or state.converged is False


class TestEdgeCases:
    @pytest.mark.parametrize(
        ("hidden", "optimizer"),
        [
            ((), "energy"),
            ((2,), "energy"),
            pytest.param((), "sep", marks=pytest.mark.exhaustive),
            pytest.param((2,), "sep", marks=pytest.mark.exhaustive),
        ],
    )
    @pytest.mark.parametrize(
        ("rows", "inducing"),
        [
            (np.tile(np.arange(8.0).reshape(4, 2), (5, 1)), 4),  # fewer distinct inputs than inducing inputs
            (np.zeros((20, 2)), 1),
            (np.column_stack([np.linspace(-1, 1, 20), np.zeros(20)]), 5),
            (np.array([[0.3, -0.2]]), 1),
        ],
        ids=["few distinct", "all the same", "a constant input", "one row"],
    )
    def test_fits(self, hidden, optimizer, rows, inducing):
        y = np.sin(np.arange(len(rows)))
        state, trace = fitted(Rows(rows, y), hidden=hidden, optimizer=optimizer)
        assert state.structure.inducing == inducing
        for found in (state.theta, state.log_evidence, trace["objective"]):
            assert np.all(np.isfinite(found))
        prediction = predicted(state, np.vstack([rows, rows + 1.0]))
        assert np.all(np.isfinite(prediction.mean()))
        assert np.all(prediction.std() > 0.0)

    def test_the_evidence_of_one_data_point_is_that_of_the_prior(self):
        state, _ = fitted(Rows(np.array([[0.3, -0.2]]), np.array([0.7])))
        last = layers(state.structure, state.theta)[-1]
        variance = float(np.exp(2 * last.log_magnitude[0]) + np.exp(2 * last.log_noise[0]))
        expected = -0.5 * (np.log(2 * np.pi * variance) + 0.49 / variance)
        assert state.log_evidence == pytest.approx(expected, rel=1e-10)

    @pytest.mark.parametrize("propagation", PROPAGATIONS)
    @pytest.mark.parametrize(("classes", "present"), [(2, [1]), (3, [0, 2]), (4, [3])])
    def test_a_class_without_data(self, propagation, classes, present):
        """Its probability is positive and decreases during training."""
        train = rows_of(classes=len(present)) if len(present) > 1 else replace(rows_of(), y=np.zeros(40))
        train = Rows(train.X, np.array(present)[train.y.astype(int)].astype(float), classes)
        options = {"propagation": propagation, "steps": 150, "learning_rate": 0.02, "hidden": (1,)}
        state, trace = fitted(train, **options)
        found = predicted(state, train.X).probabilities
        assert found.shape == (40, classes)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
        assert np.all(found > 0.0)
        assert np.isfinite(trace["objective"]).all()
        missing = [c for c in range(classes) if c not in present]
        assert found[:, missing].mean() < 0.6 / classes


class TestPrediction:
    def test_samples_converge_to_the_matched_moments(self):
        """For two layers, where these are exact; the states differ only in the samples."""
        train = rows_of()
        one, _ = fitted(train, steps=150, learning_rate=0.02)
        count = 20_000
        many, _ = fitted(train, steps=150, learning_rate=0.02, prediction="sampling", samples=count)
        np.testing.assert_array_equal(one.theta, many.theta)
        X = train.X[:6]
        matched, mixture = predicted(one, X), predicted(many, X)
        assert mixture.means.shape == (count, 6)
        error = mixture.means.std(axis=0) / np.sqrt(count)
        np.testing.assert_array_less(np.abs(mixture.mean() - matched.mean()), 4.5 * error)
        squares = mixture.variances + (mixture.means - matched.mean()) ** 2
        error = squares.std(axis=0) / np.sqrt(count)
        np.testing.assert_array_less(np.abs(squares.mean(axis=0) - matched.std() ** 2), 4.5 * error)

    @pytest.mark.parametrize("propagation", PROPAGATIONS)
    def test_latent_is_the_prediction_without_noise(self, propagation):
        train = rows_of()
        state, _ = fitted(train, hidden=(2, 2), propagation=propagation)
        mean, variance = dgp_ep.latent(state, train.X)
        prediction = predicted(state, train.X)
        np.testing.assert_allclose(mean, prediction.mean(), rtol=1e-13)
        noise = noise_variances(state.structure, state.theta)[0]
        np.testing.assert_allclose(variance + noise, prediction.std() ** 2, rtol=1e-12)

    def test_latent_of_two_classes(self):
        train = rows_of(classes=2)
        state, _ = fitted(train)
        mean, variance = dgp_ep.latent(state, train.X)
        m, v = moments(state.structure, state.theta, train.X)[-1]
        np.testing.assert_array_equal(mean, m[:, 0])
        np.testing.assert_array_equal(variance, v[:, 0])

    def test_latent_of_three_classes_raises(self):
        state, _ = fitted(rows_of(classes=3), steps=1)
        with pytest.raises(ValueError, match="found 3, one per class"):
            dgp_ep.latent(state, rows_of().X)
