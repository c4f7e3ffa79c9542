"""Probabilistic backpropagation against its slow twin, the authors' program and known properties."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ep_bench.data import load_dataset
from ep_bench.methods import pbp
from ep_bench.methods.pbp.filtering import filter_rows, refine_prior
from ep_bench.methods.pbp.layout import flat, matrices, network, scratch
from ep_bench.types import Rows
from tests.methods.support import rows
from tests.twins.reference import SlowPBP

REFERENCE = json.loads((Path(__file__).parents[1] / "reference_values" / "pbp.json").read_text(encoding="utf-8"))


def initial_means_and_orders(sizes, epochs, n, seed):
    """Initial means and visiting orders."""
    rng = np.random.default_rng(seed)
    start = [rng.normal(size=(o, i + 1)) / np.sqrt(i + 1) for i, o in pairwise(sizes)]
    return start, np.array([rng.permutation(n) for _ in range(epochs)])


def assert_same_state(state, twin, rtol):
    for name in ("noise_a", "noise_b", "prior_a", "prior_b"):
        assert getattr(state, name) == pytest.approx(getattr(twin, name), rel=rtol), name
    for name in ("means", "variances", "factor_precisions", "factor_a", "factor_b"):
        for ours, theirs in zip(getattr(state, name), getattr(twin, name), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max(), err_msg=name)


class TestAgainstTheTwin:
    @pytest.mark.parametrize("hidden", [(1,), (7,), (50,), (6, 9), (50, 17), (4, 8, 5)])
    def test_epochs(self, hidden):
        train = rows(150, 4, 1)
        start, orders = initial_means_and_orders((4, *hidden, 1), 4, 150, 2)
        state, trace = pbp.fit(train, pbp.Config(hidden=hidden, epochs=4), None, start, orders)
        twin = SlowPBP.begin(start).fit(train.X, train.y, orders[:3])
        before = twin.log_z
        twin.fit(train.X, train.y, orders[3:])
        assert_same_state(state, twin, 1e-9)
        assert trace["log_z"][-1] == pytest.approx((twin.log_z - before) / 150, rel=1e-9)
        assert trace["undone"] == [0.0] * 4
        X = rows(37, 4, 3).X
        ours = pbp.predict(state, X, None)
        np.testing.assert_allclose([ours.mean(), ours.variance()], twin.predict(X), rtol=1e-9)

    @pytest.mark.parametrize(("n", "d"), [(1, 3), (2, 1), (5, 40), (30, 200)])
    def test_few_data_points_and_many_inputs(self, n, d):
        train = rows(n, d, 4)
        start, orders = initial_means_and_orders((d, 10, 1), 5, n, 5)
        state, _ = pbp.fit(train, pbp.Config(hidden=(10,), epochs=5), None, start, orders)
        assert_same_state(state, SlowPBP.begin(start).fit(train.X, train.y, orders), 1e-7)

    def test_mostly_inactive_units(self):
        train = rows(60, 2, 6)
        start, orders = initial_means_and_orders((2, 40, 1), 3, 60, 7)
        start[0][5:, -1] -= 200.0
        state, _ = pbp.fit(train, pbp.Config(hidden=(40,), epochs=3), None, start, orders)
        twin = SlowPBP.begin(start)
        _, _, a, a_var = twin.forward(train.X[0])[0]
        assert np.mean(a / np.sqrt(a_var) < -30) > 0.8
        assert_same_state(state, twin.fit(train.X, train.y, orders), 1e-9)

    @pytest.mark.parametrize("hidden", [(20,), (12, 20)])
    def test_undone_updates(self, hidden):
        train = rows(50, 3, 8)
        sizes = (3, *hidden, 1)
        start, orders = initial_means_and_orders(sizes, 1, 50, 9)
        twin, net = SlowPBP.begin(start), network(start, 6.0, 6.0)
        rng = np.random.default_rng(10)
        for v in twin.variances:
            v[...] = rng.uniform(0.1, 3.0, size=v.shape)
            v[rng.uniform(size=v.shape) < 0.2] = 1e-100
        net.variance[net.places] = flat(twin.variances)
        _, undone = filter_rows(train.X, train.y, orders[0], net, *scratch(net))
        for row in orders[0]:
            twin.step(train.X[row], train.y[row])
        assert undone == twin.undone > 1000
        for ours, theirs in ((net.mean, twin.means), (net.variance, twin.variances)):
            for one, other in zip(matrices(net, ours), theirs, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("hidden", [(13,), (8, 13)])
    def test_steps_to_a_negative_variance_are_undone(self, hidden):
        """With small noise and a large residual, the approximate update can exceed the variance."""
        undone = 0
        for seed in range(20):
            train = rows(3, 2, seed)
            start, _ = initial_means_and_orders((2, *hidden, 1), 1, 3, seed)
            start = [3.0 * one for one in start]
            twin, net = SlowPBP.begin(start), network(start, 6.0, 6.0)
            twin.noise_b = net.noise[1] = 0.01
            twin.variances = [0.05 * v for v in twin.variances]
            net.variance[net.places] = flat(twin.variances)
            found = filter_rows(train.X, 3 * train.y, np.arange(1), net, *scratch(net))[1]
            twin.step(train.X[0], 3 * train.y[0])
            assert found == twin.undone
            undone += twin.undone
            for ours, theirs in ((net.mean, twin.means), (net.variance, twin.variances)):
                np.testing.assert_allclose(ours[net.places], flat(theirs), rtol=1e-9)
        assert 20 < undone < 20 * len(net.places)


class TestTheSteps:
    @pytest.mark.parametrize("hidden", [(6,), (5, 9)])
    def test_gradients_of_log_z(self, hidden):
        """The changes by one step determine the gradients of the kernel; compare them with differences of log Z."""
        train = rows(1, 3, 11)
        start, _ = initial_means_and_orders((3, *hidden, 1), 1, 1, 12)
        net, twin = network(start, 6.0, 6.0), SlowPBP.begin(start)
        filter_rows(train.X, train.y, np.zeros(1, dtype=np.int64), net, *scratch(net))
        rng = np.random.default_rng(13)
        d_m = [(after - m) / v for after, m, v in zip(matrices(net, net.mean), start, twin.variances, strict=True)]
        d_v = [
            0.5 * (g**2 - (v - after) / v**2)
            for after, g, v in zip(matrices(net, net.variance), d_m, twin.variances, strict=True)
        ]

        def log_z(step, directions, of):
            moved = SlowPBP.begin(start)
            pairs = zip(getattr(moved, of), directions, strict=True)
            setattr(moved, of, [one + step * direction for one, direction in pairs])
            mean, variance = (end[0] for end in moved.forward(train.X[0])[-1][2:])
            scale = variance + 6.0 / 5.0
            return -0.5 * (np.log(scale) + (train.y[0] - mean) ** 2 / scale)

        for of, gradients in (("means", d_m), ("variances", d_v)):
            for _ in range(5):
                directions = [rng.normal(size=one.shape) for one in start]
                ours = sum((g * one).sum() for g, one in zip(gradients, directions, strict=True))
                h = 1e-5
                theirs = (log_z(h, directions, of) - log_z(-h, directions, of)) / (2 * h)
                assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-9)

    def test_an_input_that_is_always_zero_keeps_its_prior(self):
        train = rows(60, 3, 17)
        train.X[:, 1] = 0.0
        start, orders = initial_means_and_orders((3, 10, 1), 1, 60, 18)
        net = network(start, 6.0, 6.0)
        filter_rows(train.X, train.y, orders[0], net, *scratch(net))
        np.testing.assert_array_equal(matrices(net, net.mean)[0][:, 1], start[0][:, 1])
        np.testing.assert_array_equal(matrices(net, net.variance)[0][:, 1], 1.2)


class TestPriorRefinement:
    def refined(self, **changes):
        start, _ = initial_means_and_orders((3, 8, 1), 1, 1, 19)
        net = network(start, 6.0, 6.0)
        rng = np.random.default_rng(20)
        net.variance[net.places] = rng.uniform(0.1, 1.0, size=len(net.places))
        net.factor_precision[net.places] = rng.uniform(0.5, 0.8, size=len(net.places))
        for name, value in changes.items():
            getattr(net, name)[net.places[5]] = value
        twin = SlowPBP(
            *(
                [one.copy() for one in matrices(net, part)]
                for part in (net.mean, net.variance, net.factor_precision, np.zeros_like(net.mean))
            ),
            *([one.copy() for one in matrices(net, part)] for part in (net.factor_a, net.factor_b)),
        )
        before = net.mean[net.places].copy()
        refine_prior(net)
        twin.refine()
        for ours, theirs in ((net.mean, twin.means), (net.variance, twin.variances), (net.factor_a, twin.factor_a)):
            np.testing.assert_allclose(ours[net.places], flat(theirs), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(net.prior, [twin.prior_a, twin.prior_b], rtol=1e-10)
        np.testing.assert_allclose(flat(twin.factor_shifts), 0.0, atol=1e-12)
        return np.flatnonzero(net.mean[net.places] == before)

    @pytest.mark.parametrize(
        "change",
        [
            {"variance": 3.0},  # larger than that of its factor, so the cavity has a negative variance
            {"variance": 0.5, "factor_precision": 2.0 - 1e-7},  # a cavity wider than 1e6
            {"factor_a": 50.0},  # a of the cavity is below 1
            {"factor_b": 50.0},  # b of the cavity is below 0
        ],
    )
    def test_a_factor_without_a_proper_cavity_is_not_refined(self, change):
        assert self.refined(**change).tolist() == [5]


class TestFit:
    def test_memory_does_not_grow_with_the_epochs(self):
        train = rows(3000, 2, 24)
        peaks = []
        for epochs in (2, 12):
            tracemalloc.start()
            pbp.fit(train, pbp.Config(hidden=(5,), epochs=epochs), np.random.default_rng(0))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] < peaks[0] + 8 * 3000


def split(dataset, index):
    """Standardised training data, test data, and shift and scale of the target, for a standard split."""
    loaded = load_dataset(dataset)
    X, y = loaded.X, loaded.y
    draws = np.random.RandomState(1)
    for _ in range(index + 1):
        order = draws.choice(len(y), len(y), replace=False)
    train, test = np.split(order, [round(0.9 * len(y))])
    scale = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(scale == 0, 1.0, scale)
    shift, scale = y[train].mean(), y[train].std()
    return Rows(X[train], (y[train] - shift) / scale), Rows(X[test], y[test]), shift, scale


def scores(state, test, shift, scale):
    distribution = pbp.predict(state, test.X, None).rescale(shift, scale)
    return np.sqrt(np.mean((distribution.mean() - test.y) ** 2)), distribution.logpdf(test.y).mean(), distribution


class TestAgainstTheAuthorsProgram:
    def test_golden_values(self):
        train, test, shift, scale = split("boston", 0)
        draws, n = np.random.RandomState(1), len(train.y)
        start = [draws.randn(o, i + 1) / np.sqrt(i + 1) for i, o in ((13, 50), (50, 1))]
        orders = np.array([draws.choice(range(n), n, replace=False) for _ in range(40)])
        for epochs, golden in REFERENCE["golden_boston_split0"].items():
            config = pbp.Config(epochs=int(epochs))
            state, _ = pbp.fit(train, config, None, start, orders[: int(epochs)])
            rmse, ll, distribution = scores(state, test, shift, scale)
            ours = {
                "noise_a": state.noise_a,
                "noise_b": state.noise_b,
                "prior_a": state.prior_a,
                "prior_b": state.prior_b,
                "rmse": rmse,
                "ll": ll,
                "first_weight_means": state.means[0][0, :5],
                "first_weight_variances": state.variances[0][0, :5],
                "predictive_mean_first5": distribution.mean()[:5],
                "predictive_variance_first5": distribution.variance()[:5],
            }
            assert ours.keys() == golden.keys()
            for name, value in ours.items():
                np.testing.assert_allclose(value, golden[name], rtol=1e-8, err_msg=f"{name} after {epochs} epochs")

    @pytest.mark.parametrize(("dataset", "index"), [("boston", 1), ("concrete", 0), ("energy", 3)])
    @pytest.mark.slow
    def test_scores_over_seeds(self, dataset, index):
        train, test, shift, scale = split(dataset, index)
        reference = REFERENCE["over_seeds"][dataset][str(index)]
        runs = [pbp.fit(train, pbp.Config(), np.random.default_rng(seed))[0] for seed in range(10)]
        ours = np.array([scores(state, test, shift, scale)[:2] for state in runs])
        for name, values in zip(("rmse", "ll"), ours.T, strict=True):
            error = np.hypot(values.std(ddof=1) / np.sqrt(10), reference[f"{name}_sd"] / np.sqrt(reference["n_seeds"]))
            assert abs(values.mean() - reference[f"{name}_mean"]) < 4 * error, name


def test_the_plain_kernel_of_the_benchmark_is_the_same_algorithm(monkeypatch):
    plain_pbp = pytest.importorskip("benchmarks.plain_pbp")
    for name, kernel in list(vars(plain_pbp).items()):
        if hasattr(kernel, "py_func"):
            monkeypatch.setattr(plain_pbp, name, kernel.py_func)  # compilation would take longer than Python
    train = rows(20, 3, 29)
    for hidden in ((9,), (6, 9)):
        start, orders = initial_means_and_orders((3, *hidden, 1), 2, 20, 30)
        plain = plain_pbp.PlainPBP(start).fit(train.X, train.y, orders)
        twin = SlowPBP.begin(start).fit(train.X, train.y, orders)
        np.testing.assert_allclose(
            [*plain.noise, *plain.prior], [twin.noise_a, twin.noise_b, twin.prior_a, twin.prior_b]
        )
        for ours, theirs in zip(plain.means, twin.means, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)
