"""Deep GPs by approximate EP: where parameters lie and start, the steps, and what a fit makes of its rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from ep_bench import Estimator
from ep_bench.methods import dgp_ep
from ep_bench.methods.dgp_ep.energy import Problem, energy, moments, noise_variances
from ep_bench.methods.dgp_ep.layout import Layer, Structure, layers, offsets, shapes, size
from ep_bench.methods.dgp_ep.starting import PAIRWISE, first_inputs, median_distance, start
from ep_bench.methods.dgp_ep.training import Schedule, on_plateau, run
from ep_bench.types import Rows
from tests.plain_networks import adam

STRUCTURES = [
    Structure((2, 1), 3),
    Structure((3, 2, 1), 4),
    Structure((3, 2, 1), 4, shared=False),
    Structure((1, 2, 3, 2), 1, shared=False),
]
every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=str)


@every_structure
class TestLayout:
    def test_views_cover_the_vector_once_in_order(self, structure):
        theta = np.arange(float(size(structure)))
        parts = [part.ravel() for layer in layers(structure, theta) for part in layer]
        np.testing.assert_array_equal(np.concatenate(parts), theta)

    def test_offsets_are_where_the_views_begin(self, structure):
        theta = np.arange(float(size(structure)))
        begins = [[part.flat[0] for part in layer] for layer in layers(structure, theta)]
        np.testing.assert_array_equal(offsets(structure), begins)

    def test_what_is_written_to_the_views_is_in_the_vector(self, structure):
        theta, rng = np.zeros(size(structure)), np.random.default_rng(0)
        written = [Layer(*(rng.normal(size=shape) for shape in layer)) for layer in shapes(structure)]
        for views, values in zip(layers(structure, theta), written, strict=True):
            for view, value in zip(views, values, strict=True):
                view[...] = value
        for views, values in zip(layers(structure, theta.copy()), written, strict=True):
            for name in Layer._fields:
                np.testing.assert_array_equal(getattr(views, name), getattr(values, name))

    def test_shapes(self, structure):
        M = structure.inducing
        for index, layer in enumerate(layers(structure, np.zeros(size(structure)))):
            d_in, d_out = structure.dims[index : index + 2]
            groups = 1 if structure.shared else d_out
            assert layer.log_lengthscales.shape == (groups, d_in)
            assert layer.log_magnitude.shape == layer.log_noise.shape == (groups,)
            assert layer.inputs.shape == (d_out, M, d_in)
            assert layer.factor.shape == (d_out, M * (M + 1) // 2)
            assert layer.linear.shape == (d_out, M)

    def test_a_vector_of_another_length(self, structure):
        with pytest.raises(ValueError, match=rf"has {size(structure)} parameters, found \({size(structure) + 1},\)"):
            layers(structure, np.zeros(size(structure) + 1))


class TestStart:
    @pytest.mark.parametrize("n", [2, 3, 4, 5, 30, 31])
    @pytest.mark.parametrize("d", [1, 4])
    def test_median_distance(self, n, d):
        """Of the whole matrix, its diagonal with it."""
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, d))
        expected = np.median(cdist(X, X))
        assert median_distance(X, rng) == pytest.approx(expected, rel=1e-12)
        assert median_distance(X, rng) < np.median(cdist(X, X)[np.triu_indices(n, 1)])

    def test_rows_that_are_mostly_the_same(self):
        """Half of all distances are 0, and the median with them."""
        X = np.zeros((10, 2))
        X[0] = 5.0
        for rows in (X, X[1:], X[:1]):
            assert median_distance(rows, np.random.default_rng(0)) == 1.0

    def test_of_many_rows_some(self):
        X = np.random.default_rng(1).normal(size=(PAIRWISE + 1500, 2))
        found = [median_distance(X, np.random.default_rng(seed)) for seed in (0, 0, 1)]
        assert found[0] == found[1] != found[2]
        assert found[0] == pytest.approx(np.median(cdist(X, X)), rel=0.03)

    def test_inputs_are_the_centres_of_their_rows(self):
        """Each is the mean of the rows that are nearest to it."""
        X = np.random.default_rng(2).normal(size=(200, 3))
        Z = first_inputs(X, 7, np.random.default_rng(0))
        assert Z.shape == (7, 3)
        nearest = cdist(X, Z).argmin(axis=1)
        for index, centre in enumerate(Z):
            np.testing.assert_allclose(centre, X[nearest == index].mean(axis=0), atol=1e-3)

    @pytest.mark.parametrize("count", [4, 9])
    def test_no_more_inputs_than_distinct_rows(self, count):
        X = np.tile(np.arange(8.0).reshape(4, 2), (5, 1))
        Z = first_inputs(X, count, np.random.default_rng(0))
        np.testing.assert_allclose(Z[np.argsort(Z[:, 0])], X[:4])

    @pytest.mark.parametrize("shared", [True, False])
    def test_every_part(self, shared):
        structure, rng = Structure((2, 3, 2, 1), 20, shared), np.random.default_rng(3)
        X = rng.normal(size=(50, 2))
        Z = rng.normal(size=(20, 2))
        first, *later = layers(structure, start(structure, X, Z, rng))
        np.testing.assert_allclose(first.log_lengthscales, np.log(np.median(cdist(X, X))), rtol=1e-12)
        np.testing.assert_array_equal(first.inputs, [Z] * 3)
        for layer in (first, *later):
            np.testing.assert_array_equal(layer.log_magnitude, 0.0)
            np.testing.assert_array_equal(layer.log_noise, np.log(0.1))
        for layer in later:
            np.testing.assert_array_equal(layer.log_lengthscales, 1.0)
            line = np.linspace(-1.0, 1.0, 20)
            for inputs in layer.inputs:
                np.testing.assert_array_equal(inputs, np.repeat(line[:, None], inputs.shape[1], axis=1))
        for layer, deviation in zip((first, *later), (1.0, 0.1, 0.1), strict=True):
            for part in (layer.factor, layer.linear):
                # four standard errors of a deviation, and of a mean
                assert part.std() == pytest.approx(deviation, rel=4 / np.sqrt(2 * part.size))
                assert abs(part.mean()) < 4 * deviation / np.sqrt(part.size)


class Recorder:
    """Energies as told, a gradient of the parameters themselves; keeps what it was given."""

    def __init__(self, value=None, spoil=None):
        self.value, self.spoil = value, spoil
        self.batches, self.noises, self.gradients = [], [], []

    def __call__(self, theta, X, y, noise, gradient):
        self.batches.append((X.copy(), y.copy()))
        self.noises.append(noise.copy())
        gradient[:] = theta
        if self.spoil:
            self.spoil(len(self.batches), gradient)
        self.gradients.append(gradient.copy())
        return self.value(len(self.batches)) if self.value else 1.0


def trained(recorder, *, n=10, steps=7, batch=3, rate=0.1, plateau=None, noise=(2, 3), seed=0, theta=None):
    X = np.arange(2.0 * n).reshape(n, 2)
    watched = []
    theta = np.array([1.0, -2.0, 3.0]) if theta is None else theta
    path = run(
        recorder, theta, X, X[:, 0].copy(), Schedule(steps, batch, rate, plateau), noise,
        np.random.default_rng(seed), lambda: watched.append(len(recorder.batches)) or len(watched),
    )  # fmt: skip
    return path, theta, watched


class TestSteps:
    def test_passes_over_whole_minibatches(self):
        seen = Recorder(value=float)
        path, _, watched = trained(seen)
        np.testing.assert_array_equal(path.energies, np.arange(1.0, 8.0))
        assert path.epochs == watched == [3, 6, 7]
        assert path.values == [1, 2, 3]
        assert not path.settled
        for X, y in seen.batches:
            assert len(y) == 3
            np.testing.assert_array_equal(X[:, 0], y)
        for first in (0, 3):
            rows = np.concatenate([y for _, y in seen.batches[first : first + 3]])
            assert len(np.unique(rows)) == 9
        assert not np.array_equal(seen.batches[0][1], seen.batches[3][1])

    def test_a_batch_larger_than_all_rows_takes_them_all(self):
        seen = Recorder()
        path, _, _ = trained(seen, batch=50, steps=3)
        assert path.epochs == [1, 2, 3]
        for _, y in seen.batches:
            np.testing.assert_array_equal(np.sort(y), 2.0 * np.arange(10))

    def test_one_step(self):
        path, _, _ = trained(Recorder(), steps=1)
        assert len(path.energies) == 1
        assert path.epochs == [1]

    def test_the_parameters_move_as_adam_says(self):
        seen = Recorder()
        _, theta, _ = trained(seen, steps=9)
        np.testing.assert_allclose(theta, adam(np.array([1.0, -2.0, 3.0]), seen.gradients, 0.1), rtol=1e-12)

    def test_noise_is_fresh_and_standard_normal(self):
        seen = Recorder()
        trained(seen, steps=200, noise=(5, 4))
        drawn = np.array(seen.noises)
        assert drawn.shape == (200, 5, 4)
        assert len(np.unique(drawn)) == drawn.size
        assert abs(drawn.mean()) < 4 / np.sqrt(drawn.size)
        assert drawn.std() == pytest.approx(1.0, abs=4 / np.sqrt(2 * drawn.size))

    def test_the_same_generator_takes_the_same_way(self):
        one, again, other = Recorder(), Recorder(), Recorder()
        for recorder, seed in ((one, 1), (again, 1), (other, 2)):
            trained(recorder, seed=seed)
        np.testing.assert_array_equal([y for _, y in one.batches], [y for _, y in again.batches])
        np.testing.assert_array_equal(one.noises, again.noises)
        assert not np.array_equal([y for _, y in one.batches], [y for _, y in other.batches])

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("step", [1, 5])
    def test_an_energy_that_is_no_number_ends_it_and_names_the_step(self, value, step):
        seen = Recorder(value=lambda at: value if at == step else 1.0)
        theta = np.array([1.0, -2.0, 3.0])
        with pytest.raises(FloatingPointError, match=rf"^step {step}: .*not finite.*Cholesky"):
            trained(seen, theta=theta)
        assert len(seen.batches) == step
        assert np.all(np.isfinite(theta))

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_so_does_a_gradient(self, value):
        """Parameters of which one is nan may have an energy that looks fine."""

        def spoil(step, gradient):
            if step == 4:
                gradient[1] = value

        theta = np.array([1.0, -2.0, 3.0])
        with pytest.raises(FloatingPointError, match=r"^step 4: .*not finite"):
            trained(Recorder(spoil=spoil), theta=theta)
        assert np.all(np.isfinite(theta))


class TestPlateau:
    @pytest.mark.parametrize(
        ("energies", "window", "settled"),
        [
            ([1.0, 1.0], 1, True), ([1.0, 0.9], 1, False), ([0.9, 1.0], 1, True), ([1.0], 1, False), ([], 1, False),
            ([9.0, 5.0, 3.0, 4.0, 2.0], 2, False), ([0.0, 9.0, 3.0, 4.0, 8.0], 2, True),
            ([5.0, 3.0, 4.0, 4.0], 2, True), ([0.0, 5.0, 3.0, 4.0, 3.9], 2, False), ([1.0, 1.0, 1.0], 2, False),
        ],
    )  # fmt: skip
    def test_the_rule(self, energies, window, settled):
        assert on_plateau(np.array(energies), window) is settled

    def test_energies_that_stay_end_it_after_a_whole_pass(self):
        path, _, _ = trained(Recorder(), batch=5, steps=50, plateau=3)
        assert path.settled
        assert path.epochs == [2, 4, 6]
        assert len(path.energies) == 6

    def test_energies_that_fall_do_not(self):
        path, _, _ = trained(Recorder(value=lambda step: -float(step)), steps=50, plateau=3)
        assert not path.settled
        assert len(path.energies) == 50

    def test_without_the_rule_all_steps_are_taken(self):
        path, _, _ = trained(Recorder(), steps=50)
        assert not path.settled
        assert len(path.energies) == 50


def rows_of(n=40, d=2, classes=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = np.sin(2 * X[:, 0]) + 0.3 * X[:, -1]
    if classes:
        return Rows(X, np.digitize(f, np.quantile(f, np.arange(1, classes) / classes)).astype(float), classes)
    return Rows(X, (f - f.mean()) / f.std())


def fitted(train, seed=0, **options):
    config = dgp_ep.Config(**{"inducing": 5, "steps": 20, "batch_size": 10, **options})
    return dgp_ep.fit(train, config, np.random.default_rng(seed))


def predicted(state, X, seed=0):
    return dgp_ep.predict(state, X, np.random.default_rng(seed))


class TestFit:
    def test_one_value_a_pass(self):
        """40 rows in batches of 15: two a pass, and the last pass cut short."""
        state, trace = fitted(rows_of(), batch_size=15, steps=7)
        assert set(trace) == {"objective", "noise_deviation"}
        assert [len(values) for values in trace.values()] == [4, 4]
        assert state.n_iterations == 7
        (last,) = state.hyperparameters["noise_deviation_2"]
        assert trace["noise_deviation"][-1] == pytest.approx(last, rel=1e-12)

    def test_the_objective_is_the_mean_energy_a_row(self):
        """Full batches: the second pass's energy is that of the parameters after one step."""
        train = rows_of()
        (one, _), (_, trace) = fitted(train, batch_size=40, steps=1), fitted(train, batch_size=40, steps=2)
        value, _ = energy(Problem(one.structure, "gaussian", 40), one.theta, train.X, train.y)
        assert trace["objective"][1] == pytest.approx(value / 40, rel=1e-12)

    @pytest.mark.parametrize("classes", [2, 3])
    def test_classes_have_no_noise(self, classes):
        _, trace = fitted(rows_of(classes=classes), batch_size=40, steps=3)
        assert {name: len(values) for name, values in trace.items()} == {"objective": 3}

    def test_the_objective_falls(self):
        _, trace = fitted(rows_of(), steps=400, learning_rate=0.02)
        assert np.mean(trace["objective"][-10:]) < np.mean(trace["objective"][:10]) - 0.5

    def test_the_plateau_rule(self):
        """Steps so small that the choice of rows outweighs them; without the rule any end is converged."""
        state, trace = fitted(rows_of(), steps=400, batch_size=15, learning_rate=1e-12, plateau=8)
        assert state.converged
        assert 16 <= state.n_iterations == 2 * len(trace["objective"]) < 400
        falling, _ = fitted(rows_of(), steps=40, plateau=20, learning_rate=0.02)
        assert falling.n_iterations == 40
        assert not falling.converged
        assert fitted(rows_of(), steps=1)[0].converged

    @pytest.mark.parametrize("hidden", [(), (2,), (2, 1)])
    @pytest.mark.parametrize("alpha", [1.0, 0.5, 0.0])
    @pytest.mark.parametrize("classes", [0, 2])
    def test_the_evidence_is_minus_the_energy_of_all_rows(self, hidden, alpha, classes):
        train = rows_of(classes=classes)
        state, _ = fitted(train, hidden=hidden, alpha=alpha, steps=5)
        problem = Problem(state.structure, state.likelihood, 40, alpha)
        value, _ = energy(problem, state.theta, train.X, train.y)
        assert state.log_evidence == pytest.approx(-value, rel=1e-12)

    @pytest.mark.parametrize("propagation", ["diagonal", "full"])
    def test_of_three_classes_by_many_draws(self, propagation):
        train = rows_of(classes=3)
        state, _ = fitted(train, propagation=propagation)
        problem = Problem(state.structure, "softmax", 40, propagation=propagation)
        noise = np.random.default_rng(1).normal(size=(20_000, 3))
        value, _ = energy(problem, state.theta, train.X, train.y, noise)
        assert state.log_evidence == pytest.approx(-value, abs=0.3)

    def test_an_estimator_tells_the_evidence(self):
        """Of the standardised targets, whatever their units."""
        train = rows_of()
        options = {"inducing": 5, "steps": 20, "random_state": 0}
        one, other = (Estimator("dgp_ep", **options).fit(train.X, scale * train.y + 5.0) for scale in (1.0, 3.0))
        assert one.log_evidence_ == one.state_.log_evidence
        assert other.log_evidence_ == pytest.approx(one.log_evidence_, rel=1e-7)

    @pytest.mark.parametrize("rate", [1e3, 1e300])
    def test_a_last_step_beyond_all_bounds(self, rate):
        """No state whose predictions are nan."""
        with (
            np.errstate(over="ignore"),
            pytest.raises(FloatingPointError, match=r"^step 1: after it the energy of all rows is not finite"),
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
            np.testing.assert_array_equal(found[f"magnitude_{index}"], np.exp(layer.log_magnitude))
            np.testing.assert_array_equal(found[f"noise_deviation_{index}"], np.exp(layer.log_noise))


OPTIONS = [
    {"hidden": ()}, {"hidden": (2, 2)}, {"propagation": "full", "hidden": (2, 2)}, {"optimizer": "sep"},
    {"prediction": "sampling", "samples": 5}, {"inducing": 33},
]  # fmt: skip


class TestReproducible:
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    def test_same_seed_same_bits_whatever_was_allocated_before(self, options):
        """Where arrays begin in memory must not reach the sums' last bits."""
        train, found, kept = rows_of(), [], []
        for turn in range(4):
            kept.extend(np.ones(8 * k + turn) for k in range(1, 40))
            del kept[:: turn + 2]
            moved = np.empty(2 * 40 + turn)[turn:].reshape(40, 2)
            moved[:] = train.X
            state, trace = fitted(Rows(moved, train.y.copy()), **options)
            prediction = predicted(state, moved[:7])
            found.append((state.theta, state.log_evidence, trace["objective"], prediction.mean(), prediction.std()))
        for other in found[1:]:
            for one, again in zip(found[0], other, strict=True):
                np.testing.assert_array_equal(one, again)

    def test_another_seed_other_numbers(self):
        assert not np.array_equal(fitted(rows_of(), 0)[0].theta, fitted(rows_of(), 1)[0].theta)


class TestAwkwardRows:
    @pytest.mark.parametrize("hidden", [(), (2,)])
    @pytest.mark.parametrize("optimizer", ["energy", "sep"])
    @pytest.mark.parametrize(
        ("rows", "inducing"),
        [
            (np.tile(np.arange(8.0).reshape(4, 2), (5, 1)), 4),  # fewer distinct ones than inducing inputs
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

    def test_of_one_row_the_evidence_is_the_prior_s(self):
        state, _ = fitted(Rows(np.array([[0.3, -0.2]]), np.array([0.7])))
        last = layers(state.structure, state.theta)[-1]
        variance = float(np.exp(2 * last.log_magnitude[0]) + np.exp(2 * last.log_noise[0]))
        expected = -0.5 * (np.log(2 * np.pi * variance) + 0.49 / variance)
        assert state.log_evidence == pytest.approx(expected, rel=1e-10)

    @pytest.mark.parametrize("propagation", ["diagonal", "full"])
    @pytest.mark.parametrize(("classes", "present"), [(2, [1]), (3, [0, 2]), (4, [3])])
    def test_a_class_without_rows(self, propagation, classes, present):
        """It keeps a probability, the lower the further training goes."""
        train = rows_of(classes=len(present)) if len(present) > 1 else rows_of()._replace(y=np.zeros(40))
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
    def test_samples_tend_to_the_matched_moments(self):
        """Of two layers, which these have exactly; the states are the same but for the samples."""
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

    @pytest.mark.parametrize("propagation", ["diagonal", "full"])
    def test_latent_is_the_prediction_without_noise(self, propagation):
        train = rows_of()
        state, _ = fitted(train, hidden=(2, 2), propagation=propagation)
        mean, variance = dgp_ep.latent(state, train.X)
        prediction = predicted(state, train.X)
        np.testing.assert_allclose(mean, prediction.mean(), rtol=1e-13)
        noise = noise_variances(state.structure, state.theta)[0]
        np.testing.assert_allclose(variance + noise, prediction.std() ** 2, rtol=1e-12)

    def test_latent_of_two_classes_is_the_one_function_s(self):
        train = rows_of(classes=2)
        state, _ = fitted(train)
        mean, variance = dgp_ep.latent(state, train.X)
        m, v = moments(state.structure, state.theta, train.X)[-1]
        np.testing.assert_array_equal(mean, m[:, 0])
        np.testing.assert_array_equal(variance, v[:, 0])

    def test_of_three_classes_there_is_no_one_function(self):
        state, _ = fitted(rows_of(classes=3), steps=1)
        with pytest.raises(ValueError, match="3 classes have as many latent functions"):
            dgp_ep.latent(state, rows_of().X)
