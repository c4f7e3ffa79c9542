"""EP for networks: jumps of the last stage that lead astray are taken back."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods.ep_nn import schedule
from ep_bench.methods.ep_nn.acceleration import Accelerator
from tests.methods.ep_nn_support import PLAN, approximation, stub, tiny


class TestAJumpThatLeadsAstray:
    def run(self, monkeypatch, thrown_after, throw, sweeps=20):
        """Sweep from the start, with one jump after some sweep; return the path, the end, and what was restarted."""
        ours, path, restarts = approximation(tiny()), schedule.ConvergenceHistory(), []

        def moved(approximation, *_):
            if len(path.sizes) != thrown_after:
                return False
            throw(approximation.sites)
            return approximation.refresh()

        monkeypatch.setattr(schedule, "accelerate", moved)
        monkeypatch.setattr(Accelerator, "restart", lambda *_: restarts.append(len(path.sizes)))
        plan = PLAN._replace(sweeps=sweeps, final_damping=0.1, tolerance=1e-12, accelerate=True)
        schedule.converge(ours, plan, path)
        return path, ours, restarts

    def test_it_is_taken_back_and_costs_a_sweep(self, monkeypatch):
        plain_path, expected, _ = self.run(monkeypatch, None, None)

        def throw(sites):
            sites.beta[:] *= 30.0

        path, ours, restarts = self.run(monkeypatch, 4, throw)
        assert path.trace["log_evidence"][4] < path.trace["log_evidence"][3] - schedule.LOSS
        assert restarts == [5]
        np.testing.assert_allclose(path.sizes[5:], plain_path.sizes[4:-1], rtol=1e-6)
        np.testing.assert_allclose(path.trace["log_evidence"][-1], plain_path.trace["log_evidence"][-2], rtol=1e-9)
        assert not np.array_equal(ours.vector, expected.vector)  # a sweep behind

    def test_so_it_is_where_evidence_is_lost_later(self):
        """Any sweep up to the next jump counts."""
        path = schedule.ConvergenceHistory()
        jump = schedule.Jump((np.zeros(1), np.ones(1)), 5.0, 1)
        for value, lost in ((5.0 - schedule.LOSS, False), (4.9 - schedule.LOSS, True), (np.nan, True), (9.0, False)):
            path.trace["log_evidence"].append(value)
            assert jump.has_diverged(path) is lost
        assert not jump._replace(log_evidence=np.nan).has_diverged(path)

    def test_a_fit_that_ends_there_says_so(self, monkeypatch):
        monkeypatch.setattr(schedule, "LAST", 0)
        path, ours, _ = self.run(monkeypatch, 9, lambda sites: np.multiply(sites.beta, 30.0, out=sites.beta), 10)
        assert path.back == 9
        assert path.reason().endswith("; went back to sweep 9")
        assert ours.evidence()[0] == pytest.approx(path.trace["log_evidence"][8], rel=1e-9)

    def test_a_start_without_a_posterior_is_no_way_back(self, monkeypatch):
        """The sites stay where the sweep ended."""

        def throw(sites):
            sites.beta[:] *= 30.0

        expected, _, restarts = self.run(monkeypatch, 4, throw)
        whole, asked = schedule.LastStage._rolled_back, []

        def without(stage):
            there = stage.approximation.copied()
            stage.approximation.restored = lambda point: asked.append(point) is None and len(asked) > 1
            found = whole(stage)
            asked.append(there)
            return found

        monkeypatch.setattr(schedule.LastStage, "_rolled_back", without)
        path, _, restarts = self.run(monkeypatch, 4, throw)
        assert restarts == []
        np.testing.assert_array_equal(asked[1][0], asked[2][0])  # put back what the sweep had left
        assert path.sizes[:5] == expected.sizes[:5]

    def test_one_that_loses_little_stays(self, monkeypatch):
        def throw(sites):
            sites.beta[:] *= 1.0 + 1e-6

        path, _, restarts = self.run(monkeypatch, 4, throw)
        assert restarts == []
        assert np.abs(np.diff(path.trace["log_evidence"][3:])).max() < schedule.LOSS

    @pytest.mark.parametrize("jumped", [True, False])
    def test_a_sweep_that_loses_the_posterior(self, monkeypatch, jumped):
        """After a jump it is taken back; else the fit ends at the best sweep, and says so."""
        one, told = stub(lambda turn: 0.5**turn)
        path, restored, whole = schedule.ConvergenceHistory(), [], one.sweep

        def sweep(*damping):
            if len(told) == 3 and len(restored) == 0:
                raise FloatingPointError("lost")
            return whole(*damping)

        one.sweep, one.restored = sweep, lambda point: restored.append(point) or True
        monkeypatch.setattr(schedule, "accelerate", lambda *_: jumped and len(path.sizes) == 3)
        found = schedule.converge(one, PLAN._replace(sweeps=30, accelerate=True), path)
        assert len(restored) == 1
        assert found is jumped
        assert path.back == (None if jumped else 3)
        assert len(path.sizes) == (14 if jumped else 3)

    def test_a_loss_before_any_sweep_is_an_error(self):
        one, _ = stub(lambda turn: 0.5**turn)
        one.sweep = raises
        with pytest.raises(FloatingPointError, match="lost"):
            schedule.converge(one, PLAN._replace(sweeps=30), schedule.ConvergenceHistory())


def raises(*_):
    raise FloatingPointError("lost")
