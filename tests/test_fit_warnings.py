"""Warnings of a fit reach the caller, and the row of a cell."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ep_bench import Estimator, methods
from ep_bench.processes.fork_server import convergence_warnings

X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(methods.REGISTRY, "restless", "tests.restless")


def test_filters_of_the_caller_hold() -> None:
    with warnings.catch_warnings(action="error"):
        with pytest.raises(ConvergenceWarning, match=r"^three sweeps$"):
            Estimator("restless").fit(X, y)
        with pytest.raises(RuntimeWarning, match=r"^overflow$"):
            Estimator("restless", unfinished=[], other="overflow").fit(X, y)
    with warnings.catch_warnings(record=True, action="ignore") as caught:
        Estimator("restless", other="overflow").fit(X, y)
    assert not caught


def test_a_fit_that_fails_has_warned_before() -> None:
    with (
        pytest.warns(ConvergenceWarning, match=r"^three sweeps$"),
        pytest.raises(FloatingPointError, match="diverged"),
    ):
        Estimator("restless", raises=True).fit(X, y)


def test_convergence_warnings_are_collected_by_their_texts() -> None:
    found: list[str] = []
    with convergence_warnings(found):
        Estimator("restless").fit(X, y)
    assert found == ["three sweeps"]


def test_help_names_what_a_fit_leaves() -> None:
    doc = Estimator.__doc__ or ""
    for word in ("state_", "trace_", "chains_", "diagnostics_", "log_evidence_", "r_hat_*", "ess_bulk_*", "ess_tail_*"):
        assert word in doc
    assert "help(ep_bench.Estimator)" in (type(Estimator("hmc")).__doc__ or "")


def test_a_fit_that_is_no_better_than_a_constant_says_so() -> None:
    inputs = np.random.default_rng(0).standard_normal((300, 3))
    with pytest.warns(UserWarning, match=r"no better than a constant .* is -1\.\d+, that of a constant -1\.\d+$"):
        Estimator("restless", unfinished=[]).fit(inputs, inputs[:, 0])
    with warnings.catch_warnings(action="error", category=UserWarning):
        Estimator("bp", epochs=50, random_state=0).fit(inputs, inputs[:, 0])
        Estimator("restless", unfinished=[]).fit(inputs, np.ones(300))


def test_too_few_data_points_are_reported() -> None:
    with pytest.warns(UserWarning, match=r"with 6 data points, the noise is hardly known"):
        Estimator("bp", epochs=5, random_state=0).fit(X, y)
