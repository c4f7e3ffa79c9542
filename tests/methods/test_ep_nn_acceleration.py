"""EP for networks: acceleration on linear maps and on prescribed steps."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods.ep_nn.acceleration import LONGEST, NEAR, RINGING, SETTLE, TRIAL, Accelerator


class TestAccelerator:
    rng = np.random.default_rng(8)
    basis = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    A = basis @ np.diag([0.99, 0.97, 0.9, -0.5, 0.3, 0.0]) @ basis.T
    b = rng.normal(size=6)
    fixed = np.linalg.solve(np.eye(6) - A, b)

    def way(self, accelerator, turns, weights, first=1.0):
        point = self.fixed + first * np.ones(6)
        for turn in range(turns):
            step = self.A @ point + self.b - point
            size = np.linalg.norm(step)
            if size < 1e-9:
                return turn
            point = point + step if accelerator is None else accelerator.propose(point, step, weights, size)
        return turns

    def test_a_linear_map(self):
        """Mixing as many iterates as there are dimensions reaches the fixed point."""
        for weights in (np.ones(6), np.array([1.0, 10.0, 0.1, 3.0, 1.0, 0.5])):
            assert self.way(Accelerator(), 100, weights, 1e-3) <= 20
        assert self.way(None, 3000, np.ones(6), 1e-3) > 500

    def steady(self, accelerator, ratio, size=1.0, turns=SETTLE + 1):
        """Follow geometrically decreasing steps; return the last proposal, divided by the last point."""
        point = np.array([1.0, -2.0, 0.5])
        for _ in range(turns):
            last, point = point, accelerator.propose(point, (ratio - 1.0) * point, np.ones(3), size)
        parts = point / last
        np.testing.assert_allclose(parts, parts[0])
        return parts[0]

    def test_a_steady_step_is_extrapolated_to_its_limit(self):
        assert self.steady(Accelerator(), 0.75, turns=SETTLE) == pytest.approx(0.75)  # the map itself
        assert self.steady(Accelerator(), 0.75) == pytest.approx(0.0, abs=1e-15)

    def test_extrapolations_are_bounded(self):
        """The bound doubles each time, and decreases after the relative step has grown."""
        accelerator = Accelerator()
        lengths = [(1.0 - self.steady(accelerator, 0.999, size)) / 0.001 - 1.0 for size in (1.0, 1.0, 1.2, 2.0, 2.0)]
        np.testing.assert_allclose(lengths, [4.0, 8.0, 16.0, 4.0, 8.0])
        lengths = [(1.0 - self.steady(accelerator, 1.001)) / -0.001 - 1.0 for _ in range(10)]  # steps that grow
        assert max(lengths) == pytest.approx(LONGEST)

    def test_steps_that_change_direction_are_not_extrapolated(self):
        """Mixing starts instead; its failure does not change the threshold for mixing."""
        accelerator, point = Accelerator(), np.ones(2)
        for turn in range(RINGING + 1):
            step = np.array([np.cos(turn), np.sin(turn)])
            np.testing.assert_array_equal(accelerator.propose(point, step, np.ones(2), 1.0), point + step)
            assert not accelerator.mixing
        for turn in range(TRIAL + 1):
            accelerator.propose(point, np.array([np.cos(turn), np.sin(turn)]), np.ones(2), 1.0)
            assert accelerator.mixing == (turn < TRIAL)
        assert accelerator.near == NEAR

    @pytest.mark.parametrize("first", [1e-4, 1.0])
    def test_entries_of_weight_zero_follow_the_map(self, first):
        accelerator, weights = Accelerator(), np.array([1.0, 1, 1, 1, 1, 0])
        point = self.fixed + first
        for _ in range(15):
            step = self.A @ point + self.b - point
            last, point = point, accelerator.propose(point, step, weights, first * np.linalg.norm(step))
            assert point[-1] == last[-1] + step[-1]

    def test_diverging_mixing_ends(self):
        accelerator, rng = Accelerator(), np.random.default_rng(0)
        for size in (0.5 * NEAR, 0.4 * NEAR, 10 * NEAR):
            accelerator.propose(rng.normal(size=3), rng.normal(size=3), np.ones(3), size)
        assert not accelerator.mixing
        assert accelerator.near < 0.4 * NEAR
