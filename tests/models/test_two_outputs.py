"""The perceptron with two outputs against loops and differences."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.models import mlp, two_outputs
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

SHAPES = [(), (1,), (19,), (4, 3), (3, 4, 5)]
D = 3


def network(hidden, rows, seed):
    rng = np.random.default_rng(seed)
    layers = mlp.layout(D, hidden, outputs=2)
    return rng.normal(size=(rows, D)), rng.normal(size=mlp.count(layers)), layers, rng


def gradients(X, w, layers, dF):
    """Derivatives of the loss sum(dF F) by the weights (P,) and by the inputs (B, d)."""
    rows = len(X)
    Z, F = np.full(rows * mlp.units(layers), np.nan), np.empty((rows, 2))
    two_outputs.forward(X, w, layers, Z, F)
    g, dX = np.full(len(w), np.nan), np.full((rows, D), np.nan)
    two_outputs.backward(X, w, layers, Z, dF.copy(), g, np.full((2, rows * mlp.widest(layers)), np.nan), dX)
    return g, dX


@pytest.mark.parametrize("hidden", SHAPES)
class TestPasses:
    @pytest.mark.parametrize("rows", [1, 9])
    def test_outputs_equal_the_loops(self, hidden, rows):
        X, w, layers, _ = network(hidden, rows, 1)
        expected = plain.all_outputs(X, w, (D, *hidden, 2))
        np.testing.assert_allclose(two_outputs.evaluate(X, w[None], layers)[0], expected, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("rows", [1, 9])
    def test_gradients_along_random_directions(self, hidden, rows):
        X, w, layers, rng = network(hidden, rows, 2)
        dF, sizes = rng.normal(size=(rows, 2)), (D, *hidden, 2)
        g, dX = gradients(X, w, layers, dF)
        check_gradient(lambda at: np.sum(dF * plain.all_outputs(X, at, sizes)), w, g, rng, step=1e-7)

        def loss_at(x):
            return np.sum(dF * plain.all_outputs(x.reshape(rows, D), w, sizes))

        check_gradient(loss_at, X.ravel(), dX.ravel(), rng, step=1e-7)


@pytest.mark.parametrize("rows", [0, 511, 513])
def test_outputs_do_not_depend_on_chunks(rows):
    X, _, layers, rng = network((5,), rows, 3)
    W = rng.normal(size=(2, mlp.count(layers)))
    found = two_outputs.evaluate(X, W, layers)
    assert found.shape == (2, rows, 2)
    for k in range(2):
        for at in range(0, rows, 100):
            np.testing.assert_allclose(found[k, at], two_outputs.evaluate(X[at : at + 1], W[k : k + 1], layers)[0, 0])


def test_a_wrong_number_of_columns_raises():
    _, w, layers, _ = network((5,), 1, 4)
    with pytest.raises(ValueError, match=r"\(n, 3\), found \(4, 2\)"):
        two_outputs.evaluate(np.zeros((4, 2)), w[None], layers)
