"""Deep GPs by approximate EP: the start from sparse processes, the settings of the released program, convergence."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.covariances import sparse_bound as bound
from ep_bench.covariances.inducing import centres
from ep_bench.methods import dgp_ep, sgp
from ep_bench.methods.dgp_ep import fitc_start, initialisation
from ep_bench.methods.dgp_ep.energy import DGPProblem, energy, evaluator, log_evidence, moments
from ep_bench.methods.dgp_ep.fitc_start import SparseProcess
from ep_bench.methods.dgp_ep.layout import Structure, layers, size
from ep_bench.methods.dgp_ep.outputs import JITTER
from ep_bench.numerics.adam import adam_step
from ep_bench.numerics.adam import moments as adam_moments
from ep_bench.types import Rows
from tests.twins.plain_networks import check_gradient

PROCESS = SparseProcess(np.array([[-1.2, 0.3], [0.1, -0.8], [0.9, 1.0]]), np.array([0.7, 1.6]), 1.3, 0.04)


def rows_of(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=n)
    return Rows(X, (f - f.mean()) / f.std())


def written(train, alpha, process=PROCESS):
    """Return the problem and the parameters of a network without hidden layers at a sparse process."""
    structure = Structure((process.Z.shape[1], 1), len(process.Z))
    theta = np.empty(size(structure))
    fitc_start._write_layer(layers(structure, theta)[0], process, train.X, [(train.y, process.noise)], alpha)
    return DGPProblem(structure, "gaussian", len(train.y), alpha), theta


def of_sgp(train, approximation, monkeypatch, process=PROCESS):
    """Return the fit of ``sgp`` at the same process, with the same jitter, there relative to s2."""
    monkeypatch.setattr(bound, "JITTER", JITTER / process.s2)
    config = sgp.Config(
        approximation=approximation, inducing=len(process.Z), optimize=False, lengthscale=tuple(process.lengthscales),
        magnitude=process.s2, noise_variance=process.noise,
    )  # fmt: skip
    return sgp.fit(train, config, np.random.default_rng(0), process.Z)[0]


def test_fewer_data_points_than_inducing_inputs():
    """The factor is singular; its diagonal has a positive minimum, whose logarithm is finite."""
    _, theta = written(rows_of(2), 1.0)
    assert np.all(np.isfinite(theta))


class TestSparseProcess:
    def test_predictions_are_those_of_fitc(self, monkeypatch):
        train = rows_of()
        problem, theta = written(train, 1.0)
        mean, variance = moments(problem.structure, theta, 1.5 * train.X)[-1]
        expected = sgp.latent(of_sgp(train, "fitc", monkeypatch), 1.5 * train.X)
        np.testing.assert_allclose(mean[:, 0], expected[0], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(variance[:, 0], expected[1], rtol=1e-9)

    def test_the_evidence_of_fitc_if_all_sites_are_equal(self, monkeypatch):
        """At repeated data points the tied factor is the site of each."""
        train = Rows(np.tile([[0.4, -0.2]], (7, 1)), np.full(7, 0.6))
        process = PROCESS._replace(Z=PROCESS.Z[1:2])
        problem, theta = written(train, 1.0, process)
        expected = of_sgp(train, "fitc", monkeypatch, process).log_evidence
        assert log_evidence(problem, theta, train.X, train.y) == pytest.approx(expected, rel=1e-9)

    def test_the_variational_bound_at_alpha_0(self, monkeypatch):
        train = rows_of()
        problem, theta = written(train, 0.0)
        expected = of_sgp(train, "vfe", monkeypatch).log_evidence
        assert log_evidence(problem, theta, train.X, train.y) == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("approximation", ["fitc", "vfe"])
    def test_gradient_with_this_jitter(self, approximation):
        """The inducing inputs are so close that the jitter matters."""
        problem = sgp.problem_of(rows_of(), sgp.Config(approximation=approximation))._replace(jitter=1e-3)
        Z, rng = np.array([[0.1, 0.2], [0.13, 0.2], [0.1, 0.24]]), np.random.default_rng(0)
        point = np.append(problem.hyper.start(), Z)
        _, gradient = bound.evidence_by_bound(problem, point)
        check_gradient(lambda at: bound.evidence_by_bound(problem, at)[0], point, gradient, rng)

    def test_the_factor_is_stationary_at_alpha_0(self):
        train = rows_of()
        problem, theta = written(train, 0.0)
        _, gradient = energy(problem, theta, train.X, train.y)
        part = layers(problem.structure, gradient)[0]
        np.testing.assert_allclose(part.factor, 0.0, atol=1e-7)
        np.testing.assert_allclose(part.linear, 0.0, atol=1e-7)


class TestStart:
    @pytest.mark.parametrize("hidden", [(), (1,), (2,), (3, 2)])
    @pytest.mark.parametrize("shared", [True, False])
    def test_the_energy_is_below_that_of_random_factors(self, hidden, shared):
        train, rng = rows_of(80), np.random.default_rng(0)
        Z = centres(train.X, 8, rng)
        structure = Structure((2, *hidden, 1), 8, shared)
        problem = DGPProblem(structure, "gaussian", 80)
        ours = fitc_start.start(structure, train.X, train.y, Z, 1.0, rng)
        theirs = initialisation.start(structure, train.X, Z, rng)
        found, random = (log_evidence(problem, theta, train.X, train.y) for theta in (ours, theirs))
        assert found > random + 80.0
        for mean, _ in moments(structure, ours, train.X):
            assert np.corrcoef(mean[:, 0], train.y)[0, 1] > 0.9

    def test_further_hidden_outputs_are_principal_components(self):
        rng = np.random.default_rng(1)
        H, y = rng.normal(size=(60, 2)) * [1.0, 3.0], rng.normal(size=60)
        (first, noise), (second, _), (third, _) = fitc_start._hidden_targets(H, y, PROCESS, 3)
        assert first is y
        assert noise == PROCESS.noise
        scaled = (H - H.mean(axis=0)) / PROCESS.lengthscales
        assert second.std() == pytest.approx(1.0)
        variance = np.linalg.eigvalsh(np.cov(scaled.T, ddof=0))[::-1]
        for column, expected in zip((second, third), variance, strict=True):
            assert np.linalg.norm(scaled.T @ column / 60) ** 2 == pytest.approx(expected)

    def test_spread_inducing_inputs(self):
        H = np.random.default_rng(2).normal(size=(31, 2))
        found = fitc_start.spread(H, 7)
        np.testing.assert_array_equal(found, H[np.argsort(H[:, 0])][::5])

    def test_classifiers_start_from_random_factors(self):
        train = rows_of()
        classes = Rows(train.X, (train.y > 0).astype(float), 2)
        one, other = (
            dgp_ep.fit(classes, dgp_ep.Config(inducing=5, steps=2, start=start), np.random.default_rng(0))[0].theta
            for start in ("fitc", "random")
        )
        np.testing.assert_array_equal(one, other)


class TestReleasedProgram:
    def test_bits(self):
        """Adam with steps of constant size from random factors."""
        train, steps = rows_of(), 30
        config = dgp_ep.Config(alpha=1, inducing=5, steps=steps, batch_size=10, schedule="constant", start="random")
        state, _ = dgp_ep.fit(train, config, np.random.default_rng(3))
        rng = np.random.default_rng(3)
        Z = centres(train.X, 5, rng)
        structure = Structure((2, 2, 1), 5)
        theta = initialisation.start(structure, train.X, Z, rng)
        evaluate, gradient = evaluator(DGPProblem(structure, "gaussian", 40)), np.empty(size(structure))
        adam, taken = adam_moments(len(theta)), 0
        while taken < steps:
            order = rng.permutation(40)
            for first in range(0, 40, 10):
                if taken < steps:
                    batch = order[first : first + 10]
                    evaluate(theta, train.X[batch], train.y[batch], rng.standard_normal((0, 1)), gradient)
                    adam_step(theta, gradient, adam, 0.005)
                    taken += 1
        np.testing.assert_array_equal(state.theta, theta)

    def test_its_name_stands_for_all_its_options(self):
        released = dgp_ep.Config(alpha=1, schedule="constant", start="random", steps=6000, learning_rate=0.005)
        named = dgp_ep.Config(training="released program")
        assert named == released.model_copy(update={"training": "released program"})
        assert dgp_ep.Config(**named.model_dump()) == named


def test_of_several_starts_that_of_lowest_energy_is_trained(monkeypatch):
    trained, train, evidences = [], dgp_ep._train, iter([-3.0, -1.0, -2.0, -1.5])

    def noted(problem, config, theta, *data):
        trained.append((config.steps, theta))
        return train(problem, config, theta, *data)

    monkeypatch.setattr(dgp_ep, "_train", noted)
    monkeypatch.setattr(dgp_ep, "log_evidence", lambda *_: next(evidences))
    config = dgp_ep.Config(inducing=5, steps=40, batch_size=10, start="random", starts=3)
    state, _ = dgp_ep.fit(rows_of(), config, np.random.default_rng(0))
    assert [steps for steps, _ in trained] == [4, 4, 4, 40]
    assert not np.array_equal(trained[0][1], trained[2][1])
    assert state.theta is trained[3][1] is trained[1][1]


class TestConvergence:
    def test_a_falling_energy(self):
        config = dgp_ep.Config(inducing=5, steps=40, batch_size=10, start="random", learning_rate=0.02)
        with pytest.warns(UserWarning, match="the energy decreased by .* nats per data point"):
            state, _ = dgp_ep.fit(rows_of(), config, np.random.default_rng(0))
        assert state.converged is False

    def test_a_flat_energy(self):
        config = dgp_ep.Config(inducing=5, steps=400, batch_size=40, learning_rate=1e-12)
        state, _ = dgp_ep.fit(rows_of(), config, np.random.default_rng(0))
        assert state.converged is True
