"""Half the squared residuals over all data points and their gradient: chunks, activations, infinite and NaN values."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods.hmc.trajectory import NetworkRows, potential
from ep_bench.models import mlp, residuals
from ep_bench.models.residuals import ACTIVATIONS, CHUNK
from tests.models.test_mlp import SHAPES, network
from tests.twins import plain_networks as plain
from tests.twins.plain_networks import check_gradient

each = pytest.mark.parametrize("activation", ACTIVATIONS)


def evaluated(X, y, w, layers, activation, work=None):
    g = np.full(len(w), np.nan)
    kind = ACTIVATIONS[activation]
    return residuals.half_squares(X, y, w, layers, kind, work or residuals.workspace(layers, kind, len(y)), g), g


def expected(X, y, w, sizes, activation):
    return 0.5 * np.sum((plain.outputs(X, w, sizes, activation=activation) - y) ** 2)


@each
@pytest.mark.parametrize("hidden", SHAPES)
def test_value_and_gradient(activation, hidden):
    X, w, layers, rng = network(4, hidden, 11, 1)
    y, sizes = rng.normal(size=11), (4, *hidden, 1)
    value, g = evaluated(X, y, w, layers, activation)
    assert value == pytest.approx(expected(X, y, w, sizes, activation), rel=1e-12)
    step = 1e-7 if activation == "relu" else 1e-4  # small, so that no kink of a rectified unit is crossed
    check_gradient(lambda at: expected(X, y, at, sizes, activation), w, g, rng, step=step, rel=2e-6)


@each
@pytest.mark.parametrize("hidden", [(), (5,), (9, 17)])
@pytest.mark.parametrize("rows", [1, 7, 8, CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 8, 3 * CHUNK, 3 * CHUNK + 50])
def test_values_do_not_depend_on_chunks(activation, hidden, rows):
    X, w, layers, rng = network(3, hidden, rows, 2)
    y = rng.normal(size=rows)
    value, g = evaluated(X, y, w, layers, activation)
    assert value == pytest.approx(expected(X, y, w, (3, *hidden, 1), activation), rel=1e-11)
    single = [evaluated(X[b : b + 1], y[b : b + 1], w, layers, activation)[1] for b in range(rows)]
    np.testing.assert_allclose(g, np.sum(single, axis=0), rtol=1e-9, atol=1e-10)


@each
def test_earlier_contents_of_scratch_have_no_effect(activation):
    X, w, layers, rng = network(3, (9, 17), CHUNK + 5, 3)
    y, work = rng.normal(size=len(X)), residuals.workspace(layers, ACTIVATIONS[activation], 7)
    for part in work[:-1]:
        if part is not None:
            part[:] = np.nan
    assert work.rectified is None  # only for one rectified layer; tested there
    first = evaluated(X, y, w, layers, activation, work)
    evaluated(X[:7], y[:7], 3.0 * w, layers, activation, work)
    again = evaluated(X, y, w, layers, activation, work)
    assert np.isfinite(first[0])
    assert first[0] == again[0]
    np.testing.assert_array_equal(first[1], again[1])


@each
@pytest.mark.parametrize("hidden", [(), (5,), (4, 3)])
@pytest.mark.parametrize("rows", [0, 1, CHUNK, CHUNK + 1, 300])
def test_outputs_of_many_networks(activation, hidden, rows):
    X, _, layers, rng = network(3, hidden, rows, 4)
    W = rng.normal(size=(3, mlp.count(layers)))
    found = residuals.outputs(np.asfortranarray(X), np.asfortranarray(W), layers, ACTIVATIONS[activation])
    assert found.shape == (3, rows)
    for k in range(3):
        expected = plain.outputs(X, W[k], (3, *hidden, 1), activation=activation)
        np.testing.assert_allclose(found[k], expected, rtol=1e-11, atol=1e-12)


@each
@pytest.mark.parametrize("hidden", [(), (5,), (8,), (9, 17)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_infinite_weight_makes_the_log_joint_infinite_or_nan(activation, hidden, bad):
    """A saturated unit can hide an infinite weight in the outputs, but not in the term of the prior."""
    X, w, layers, rng = network(3, hidden, 20, 6)
    rows = NetworkRows(X, rng.normal(size=20), layers, ACTIVATIONS[activation])
    for place in range(len(w)):
        broken = w.copy()
        broken[place] = bad
        work = residuals.workspace(layers, rows.kind, 20)
        energy, _ = potential(rows, broken, 2.0, np.ones(len(w)), work, np.empty(len(w)))
        assert not energy < np.inf, place


@each
@pytest.mark.parametrize("hidden", [(), (5,), (8,), (9, 17)])
def test_nan_outputs_and_targets_reach_the_residuals(activation, hidden):
    X, w, layers, rng = network(3, hidden, CHUNK + 3, 7)
    y = rng.normal(size=len(X))
    for row in (0, CHUNK + 2):
        broken = y.copy()
        broken[row] = np.nan
        assert np.isnan(evaluated(X, broken, w, layers, activation)[0])
    broken = w.copy()
    broken[-1] = np.nan
    assert np.isnan(evaluated(X, y, broken, layers, activation)[0])


@each
@pytest.mark.parametrize("hidden", [(), (5,), (9, 17)])
def test_the_potential_follows_its_formula(activation, hidden):
    X, w, layers, rng = network(3, hidden, 20, 8)
    y, tau, g = rng.normal(size=20), rng.gamma(2.0, size=len(w)), np.empty(len(w))

    def formula(at):
        return 1.7 * expected(X, y, at, (3, *hidden, 1), activation) + 0.5 * np.sum(tau * at**2)

    rows = NetworkRows(X, y, layers, ACTIVATIONS[activation])
    energy, error = potential(rows, w, 1.7, tau, residuals.workspace(layers, rows.kind, 20), g)
    assert energy == pytest.approx(formula(w), rel=1e-12)
    assert error == pytest.approx(expected(X, y, w, (3, *hidden, 1), activation), rel=1e-12)
    check_gradient(formula, w, g, rng, step=1e-7 if activation == "relu" else 1e-4, rel=2e-6)
