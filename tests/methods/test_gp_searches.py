"""Searches for the hyperparameters of Gaussian processes, exact and sparse: traces, fixed values, warnings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ep_bench import methods
from ep_bench.types import Rows
from tests.methods.support import wave

PROCESSES = {"gp": {}, "sgp": {"inducing": 4, "approximation": "vfe"}}


def fit(name: str, rows: Rows, **options: Any) -> tuple[Any, dict[str, list[float]]]:
    method = methods.get(name)
    return method.fit(rows, method.config(**{**PROCESSES[name], **options}), np.random.default_rng(0))


@pytest.mark.parametrize("name", PROCESSES)
class TestSearch:
    def test_the_trace_ends_at_the_state(self, name: str) -> None:
        state, trace = fit(name, wave(), starts=1)
        assert trace["log_evidence"][-1] == pytest.approx(state.log_evidence, rel=1e-10 if name == "gp" else 1e-8)
        assert trace["noise_deviation"][-1] ** 2 == pytest.approx(state.hyperparameters["noise_variance"])
        assert {len(values) for values in trace.values()} == {state.n_iterations}
        assert trace["objective"] == sorted(trace["objective"], reverse=True)

    def test_fixed_hyperparameters_do_not_change(self, name: str) -> None:
        state, _ = fit(name, wave(), lengthscale=[0.5, 4.0], noise_variance=0.07, starts=2)
        np.testing.assert_allclose(state.hyperparameters["lengthscale"], [0.5, 4.0])
        assert state.hyperparameters["noise_variance"] == pytest.approx(0.07)
        assert state.hyperparameters["magnitude"] != 1.0
        assert state.converged

    def test_a_search_without_an_optimum_warns(self, name: str) -> None:
        with pytest.warns(ConvergenceWarning, match="ended after 2 of at most 2 steps"):
            state, _ = fit(name, wave(), steps=2, starts=1)
        assert not state.converged
        smooth = Rows(np.linspace(-1, 1, 12)[:, None], np.linspace(-1, 1, 12))
        with pytest.warns(ConvergenceWarning, match="noise_variance runs to 0, stopped at 1e-08"):
            state, _ = fit(name, smooth, prior="none", starts=1)
        assert not state.converged
