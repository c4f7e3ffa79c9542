"""Deep GPs by approximate EP: layout and initial values of the parameters, and the training loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from ep_bench.covariances.energy_training import run
from ep_bench.covariances.inducing import centres
from ep_bench.methods.dgp_ep.energy import DGPProblem, model_of
from ep_bench.methods.dgp_ep.initialisation import MAX_PAIRWISE, median_distance, start
from ep_bench.methods.dgp_ep.layout import Structure, layers, offsets, size
from ep_bench.methods.dgp_ep.network import allocate_pass
from ep_bench.numerics.minibatch import AdamSchedule

STRUCTURES = [
    Structure((2, 1), 3),
    Structure((3, 2, 1), 4),
    Structure((3, 2, 1), 4, shared=False),
    Structure((1, 2, 3, 2), 1, shared=False),
]
every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=str)


def bytes_of(arrays):
    return arrays.nbytes if isinstance(arrays, np.ndarray) else sum(map(bytes_of, arrays))


def memory(hidden=(2,), inducing=100, n=1000):
    """Return the bytes of the parameters, and of the arrays of a step on 50 data points."""
    structure = Structure((5, *hidden, 1), inducing)
    return 8 * size(structure) + bytes_of(allocate_pass(model_of(DGPProblem(structure, "gaussian", n)), 50))


def test_memory_grows_with_layers_and_the_square_of_the_inducing_inputs_only():
    """The claim of Bui et al. (2015), section 3: O(L M^2), not a function of the number of data points."""
    assert 3.9 < memory(inducing=800) / memory(inducing=400) < 4.0
    two, three, four = (memory(hidden=(2,) * count) for count in (2, 3, 4))
    assert four - three == pytest.approx(three - two, rel=1e-3)
    assert memory(n=10**6) == memory()


@every_structure
class TestLayout:
    def test_views_cover_the_vector_once_in_order(self, structure):
        theta = np.arange(float(size(structure)))
        parts = [part.ravel() for layer in layers(structure, theta) for part in layer]
        np.testing.assert_array_equal(np.concatenate(parts), theta)

    def test_offsets_are_the_starts_of_the_views(self, structure):
        theta = np.arange(float(size(structure)))
        begins = [[part.flat[0] for part in layer] for layer in layers(structure, theta)]
        np.testing.assert_array_equal(offsets(structure), begins)


class TestStart:
    @pytest.mark.parametrize("n", [2, 3, 4, 5, 30, 31])
    @pytest.mark.parametrize("d", [1, 4])
    def test_median_distance(self, n, d):
        """The median of the whole matrix, including its diagonal."""
        rng = np.random.default_rng(n)
        X = rng.normal(size=(n, d))
        expected = np.median(cdist(X, X))
        assert median_distance(X, rng) == pytest.approx(expected, rel=1e-12)
        assert median_distance(X, rng) < np.median(cdist(X, X)[np.triu_indices(n, 1)])

    def test_mostly_identical_inputs(self):
        """More than half of the distances, and so their median, are 0."""
        X = np.zeros((10, 2))
        X[0] = 5.0
        for rows in (X, X[1:], X[:1]):
            assert median_distance(rows, np.random.default_rng(0)) == 1.0

    def test_a_random_subset_of_many_inputs(self):
        X = np.random.default_rng(1).normal(size=(MAX_PAIRWISE + 1500, 2))
        found = [median_distance(X, np.random.default_rng(seed)) for seed in (0, 0, 1)]
        assert found[0] == found[1] != found[2]
        assert found[0] == pytest.approx(np.median(cdist(X, X)), rel=0.03)

    def test_inducing_inputs_are_cluster_means(self):
        """Each is the mean of the data points that are nearest to it."""
        X = np.random.default_rng(2).normal(size=(200, 3))
        Z = centres(X, 7, np.random.default_rng(0))
        assert Z.shape == (7, 3)
        nearest = cdist(X, Z).argmin(axis=1)
        for index, centre in enumerate(Z):
            np.testing.assert_allclose(centre, X[nearest == index].mean(axis=0), atol=1e-3)

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
        for layer, std in zip((first, *later), (1.0, 0.1, 0.1), strict=True):
            for part in (layer.factor, layer.linear):
                # four standard errors of a standard deviation, and of a mean
                assert part.std() == pytest.approx(std, rel=4 / np.sqrt(2 * part.size))
                assert abs(part.mean()) < 4 * std / np.sqrt(part.size)


class TestRun:
    def recorded(self, steps, noise_shape=(5, 4), n=10):
        """Run with an energy of 1 and a gradient of 0; return the minibatches and the noise of each step."""
        batches, noises = [], []

        def evaluate(theta, X, y, noise, gradient):
            np.testing.assert_array_equal(X[:, 0], y)
            batches.append(y)
            noises.append(noise)
            gradient[:] = 0.0
            return 1.0

        X = np.arange(2.0 * n).reshape(n, 2)
        schedule = AdamSchedule(steps, 3, 0.1, None)
        history = run(evaluate, np.zeros(3), X, X[:, 0].copy(), schedule, noise_shape, np.random.default_rng(0), dict)
        return history, batches, np.array(noises)

    def test_noise_of_each_step_is_standard_normal(self):
        _, _, noises = self.recorded(200)
        assert noises.shape == (200, 5, 4)
        assert len(np.unique(noises)) == noises.size
        assert abs(noises.mean()) < 4 / np.sqrt(noises.size)
        assert noises.std() == pytest.approx(1.0, abs=4 / np.sqrt(2 * noises.size))

    def test_minibatches_and_history(self):
        history, batches, _ = self.recorded(7)
        assert [len(batch) for batch in batches] == [3] * 7
        assert history.steps == 7
        assert not history.settled
        assert history.trace == {"objective": [0.1] * 3}
