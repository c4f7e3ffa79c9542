"""Deep GPs by approximate EP: where parameters lie and start, and the steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from ep_bench.methods.dgp_ep.initialisation import PAIRWISE, first_inputs, median_distance, start
from ep_bench.methods.dgp_ep.layout import Layer, Structure, layers, offsets, shapes, size
from ep_bench.methods.dgp_ep.training import AdamSchedule, on_plateau, run
from tests.twins.plain_networks import adam

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
        recorder, theta, X, X[:, 0].copy(), AdamSchedule(steps, batch, rate, plateau), noise,
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
