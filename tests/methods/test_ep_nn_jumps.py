"""EP for networks: extrapolation steps of the last stage that diverge are rolled back."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.methods.ep_nn import schedule
from ep_bench.methods.ep_nn.acceleration import Accelerator
from tests.methods.ep_nn_support import PLAN, approximation, stub, tiny


class TestAJumpThatLeadsAstray:
    def run(self, monkeypatch, thrown_after, throw, sweeps=20):
        """Sweep with one extrapolation after a given sweep; return history, final state and sweeps of restarts."""
        ours, history, restarts = approximation(tiny()), schedule.ConvergenceHistory(), []

        def moved(approximation, *_):
            if len(history.sizes) != thrown_after:
                return False
            throw(approximation.sites)
            return approximation.refresh()

        monkeypatch.setattr(schedule, "accelerate", moved)
        monkeypatch.setattr(Accelerator, "restart", lambda *_: restarts.append(len(history.sizes)))
        plan = PLAN._replace(sweeps=sweeps, final_damping=0.1, tolerance=1e-12, accelerate=True)
        schedule.converge(ours, plan, history)
        return history, ours, restarts

    def test_it_is_rolled_back_and_costs_one_sweep(self, monkeypatch):
        plain_history, expected, _ = self.run(monkeypatch, None, None)

        def throw(sites):
            sites.beta[:] *= 30.0

        history, ours, restarts = self.run(monkeypatch, 4, throw)
        assert history.trace["log_evidence"][4] < history.trace["log_evidence"][3] - schedule.MAX_LOSS
        assert restarts == [5]
        np.testing.assert_allclose(history.sizes[5:], plain_history.sizes[4:-1], rtol=1e-6)
        np.testing.assert_allclose(
            history.trace["log_evidence"][-1], plain_history.trace["log_evidence"][-2], rtol=1e-9
        )
        assert not np.array_equal(ours.vector, expected.vector)  # one sweep behind

    def test_evidence_may_fall_in_a_later_sweep(self):
        """All sweeps up to the next extrapolation are checked."""
        history = schedule.ConvergenceHistory()
        jump = schedule.Extrapolation((np.zeros(1), np.ones(1)), 5.0, 1)
        for value, lost in (
            (5.0 - schedule.MAX_LOSS, False),
            (4.9 - schedule.MAX_LOSS, True),
            (np.nan, True),
            (9.0, False),
        ):
            history.trace["log_evidence"].append(value)
            assert jump.has_diverged(history) is lost
        assert not jump._replace(log_evidence=np.nan).has_diverged(history)

    def test_a_fit_that_ends_there_reports_it(self, monkeypatch):
        monkeypatch.setattr(schedule, "LAST", 0)
        history, ours, _ = self.run(monkeypatch, 9, lambda sites: np.multiply(sites.beta, 30.0, out=sites.beta), 10)
        assert history.restored == 9
        assert history.reason().endswith("; returned to sweep 9; more sweeps, another damping or restarts may help")
        assert ours.evidence()[0] == pytest.approx(history.trace["log_evidence"][8], rel=1e-9)

    def test_a_start_without_a_proper_posterior_is_not_restored(self, monkeypatch):
        """The sites remain those of the last sweep."""

        def throw(sites):
            sites.beta[:] *= 30.0

        expected, _, restarts = self.run(monkeypatch, 4, throw)
        whole, asked = schedule.LastStage._rolled_back, []

        def without(stage):
            there = stage.approximation.snapshot()
            stage.approximation.restore = lambda point: asked.append(point) is None and len(asked) > 1
            found = whole(stage)
            asked.append(there)
            return found

        monkeypatch.setattr(schedule.LastStage, "_rolled_back", without)
        history, _, restarts = self.run(monkeypatch, 4, throw)
        assert restarts == []
        np.testing.assert_array_equal(asked[1][0], asked[2][0])  # restores the sites of the last sweep
        assert history.sizes[:5] == expected.sizes[:5]

    def test_a_small_loss_is_accepted(self, monkeypatch):
        def throw(sites):
            sites.beta[:] *= 1.0 + 1e-6

        history, _, restarts = self.run(monkeypatch, 4, throw)
        assert restarts == []
        assert np.abs(np.diff(history.trace["log_evidence"][3:])).max() < schedule.MAX_LOSS

    @pytest.mark.parametrize("jumped", [True, False])
    def test_a_sweep_without_a_proper_posterior(self, monkeypatch, jumped):
        """After an extrapolation it is rolled back; otherwise the fit ends at the best sweep and reports it."""
        one, calls = stub(lambda turn: 0.5**turn)
        history, restored, whole = schedule.ConvergenceHistory(), [], one.sweep

        def sweep(*damping):
            if len(calls) == 3 and len(restored) == 0:
                raise FloatingPointError("lost")
            return whole(*damping)

        one.sweep, one.restore = sweep, lambda point: restored.append(point) or True
        monkeypatch.setattr(schedule, "accelerate", lambda *_: jumped and len(history.sizes) == 3)
        found = schedule.converge(one, PLAN._replace(sweeps=30, accelerate=True), history)
        assert len(restored) == 1
        assert found is jumped
        assert history.restored == (None if jumped else 3)
        assert len(history.sizes) == (14 if jumped else 3)
