"""Training loops over minibatches: permutations, traces, steps of Adam, finite checks and the plateau rule."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.numerics.minibatch import AdamMinibatches, AdamSchedule, hold_out, on_plateau, run_epochs
from tests.twins.plain_networks import adam

START = np.array([1.0, -2.0, 3.0])


class Recorder:
    """An objective with given values, whose gradient is a vector of the parameters; records its calls."""

    def __init__(self, theta, value, spoil):
        self.theta, self.value, self.spoil = theta, value, spoil
        self.batches, self.gradients = [], []

    def __call__(self, batch, gradient):
        self.batches.append(batch.copy())
        gradient[:] = self.theta
        if self.spoil:
            self.spoil(len(self.batches), gradient)
        self.gradients.append(gradient.copy())
        return self.value(len(self.batches))


def trained(*, value=lambda _: 1.0, spoil=None, n=10, steps=7, batch=3, plateau=None, seed=0, theta=None, cosine=False):
    """Return trace, minibatches, calls, and the number of steps after each epoch."""
    theta = START.copy() if theta is None else theta
    recorder, ends = Recorder(theta, value, spoil), []
    minibatches = AdamMinibatches(recorder, theta, n, AdamSchedule(steps, batch, 0.1, plateau, cosine))

    def monitor():
        ends.append(minibatches.steps)
        return {"steps": float(minibatches.steps)}

    rng = np.random.default_rng(seed)
    trace = run_epochs(minibatches.epochs(), minibatches.run_epoch, theta, n, rng, monitor)
    return trace, minibatches, recorder, ends


class TestRunEpochs:
    def test_a_new_permutation_per_epoch(self):
        orders = []
        trace = run_epochs(
            range(3), lambda epoch, order: orders.append(order) or float(epoch), START, 10, np.random.default_rng(0),
            lambda: {"orders": float(len(orders))},
        )  # fmt: skip
        rng = np.random.default_rng(0)
        for order in orders:
            np.testing.assert_array_equal(order, rng.permutation(10))
        assert trace == {"objective": [0.0, 1.0, 2.0], "orders": [1.0, 2.0, 3.0]}

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_an_objective_that_is_not_finite_raises(self, value):
        with pytest.raises(FloatingPointError, match=r"^epoch 2: the objective is not finite; a smaller learning_rate"):
            run_epochs(range(3), lambda epoch, _: [1.0, value][epoch], START, 10, np.random.default_rng(0), dict)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_a_parameter_that_is_not_finite_raises(self, value):
        theta = START.copy()

        def run_epoch(epoch, _order):
            theta[1] = value if epoch == 1 else 1.0
            return 1.0

        with pytest.raises(FloatingPointError, match=r"^epoch 2: a parameter is not finite"):
            run_epochs(range(3), run_epoch, theta, 10, np.random.default_rng(0), dict)


class TestAdamMinibatches:
    def test_epochs_of_whole_minibatches(self):
        trace, minibatches, calls, ends = trained(value=float)
        np.testing.assert_array_equal(minibatches.objectives, np.arange(1.0, 8.0))
        assert ends == [3, 6, 7]
        assert trace == {"objective": [0.2, 0.5, 0.7], "steps": [3.0, 6.0, 7.0]}
        assert not minibatches.settled
        assert [len(batch) for batch in calls.batches] == [3] * 7
        for first in (0, 3):
            assert len(np.unique(np.concatenate(calls.batches[first : first + 3]))) == 9
        assert not np.array_equal(calls.batches[0], calls.batches[3])

    def test_a_batch_larger_than_the_data(self):
        _, _, calls, ends = trained(batch=50, steps=3)
        assert ends == [1, 2, 3]
        for batch in calls.batches:
            np.testing.assert_array_equal(np.sort(batch), np.arange(10))

    def test_one_step(self):
        _, minibatches, _, ends = trained(steps=1)
        assert minibatches.steps == 1
        assert ends == [1]

    def test_steps_are_those_of_adam(self):
        theta = START.copy()
        _, _, calls, _ = trained(steps=9, theta=theta)
        np.testing.assert_allclose(theta, adam(START, calls.gradients, 0.1), rtol=1e-12)

    def test_step_sizes_along_a_cosine(self):
        """The first has the full size, the one after half of the steps half of it; the size after the last is 0."""
        theta = START.copy()
        _, _, calls, _ = trained(steps=8, theta=theta, cosine=True)
        rates = [0.05 * (1 + np.cos(np.pi * step / 8)) for step in range(8)]
        np.testing.assert_allclose(theta, adam(START, calls.gradients, rates), rtol=1e-12)
        schedule = AdamSchedule(8, 3, 0.1, None, cosine=True)
        assert [schedule.rate_after(steps) for steps in (0, 4, 8)] == pytest.approx([0.1, 0.05, 0.0])

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("step", [1, 5])
    def test_an_objective_that_is_not_finite_raises_with_its_step(self, value, step):
        theta = START.copy()
        with pytest.raises(FloatingPointError, match=rf"^step {step}: the objective or its gradient is not finite"):
            trained(value=lambda at: value if at == step else 1.0, theta=theta)
        assert np.all(np.isfinite(theta))

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_a_gradient_that_is_not_finite_raises(self, value):
        """The objective may be finite although a parameter is nan."""

        def spoil(step, gradient):
            if step == 4:
                gradient[1] = value

        theta = START.copy()
        with pytest.raises(FloatingPointError, match=r"^step 4: .*not finite"):
            trained(spoil=spoil, theta=theta)
        assert np.all(np.isfinite(theta))


class TestPlateau:
    @pytest.mark.parametrize(
        ("objectives", "window", "settled"),
        [
            ([1.0, 1.0], 1, True), ([1.0, 0.9], 1, False), ([0.9, 1.0], 1, True), ([1.0], 1, False), ([], 1, False),
            ([9.0, 5.0, 3.0, 4.0, 2.0], 2, False), ([0.0, 9.0, 3.0, 4.0, 8.0], 2, True),
            ([5.0, 3.0, 4.0, 4.0], 2, True), ([0.0, 5.0, 3.0, 4.0, 3.9], 2, False), ([1.0, 1.0, 1.0], 2, False),
        ],
    )  # fmt: skip
    def test_the_rule(self, objectives, window, settled):
        assert on_plateau(np.array(objectives), window) is settled

    def test_constant_objectives_stop_after_a_whole_epoch(self):
        _, minibatches, _, ends = trained(batch=5, steps=50, plateau=3)
        assert minibatches.settled
        assert ends == [2, 4, 6]

    @pytest.mark.parametrize("options", [{"value": lambda step: -float(step), "plateau": 3}, {}])
    def test_decreasing_objectives_do_not_stop_and_without_the_rule_none(self, options):
        _, minibatches, _, _ = trained(steps=50, **options)
        assert not minibatches.settled
        assert minibatches.steps == 50


@pytest.mark.parametrize(
    ("n", "fraction", "size"), [(2, 0.2, 1), (10, 0.25, 2), (10, 0.3, 3), (5, 0.99, 4), (3, 0.01, 1), (442, 0.2, 88)]
)
def test_both_parts_are_disjoint_and_not_empty(n, fraction, size):
    inner, outer = hold_out(n, fraction, np.random.default_rng(0))
    assert len(outer) == size
    assert sorted([*inner, *outer]) == list(range(n))


@pytest.mark.parametrize("fraction", [0.01, 0.5, 0.99])
def test_a_single_data_point_is_in_both_parts(fraction):
    inner, outer = hold_out(1, fraction, np.random.default_rng(0))
    assert inner.tolist() == outer.tolist() == [0]


def test_data_points_are_selected_equally_often():
    rng, times = np.random.default_rng(1), 4000
    counts = sum(np.bincount(hold_out(10, 0.3, rng)[1], minlength=10) for _ in range(times))
    assert np.all(np.abs(counts / times - 0.3) < 4.5 * np.sqrt(0.3 * 0.7 / times))
