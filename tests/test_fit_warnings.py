"""Warnings of a fit: the method's name and the caller's line where it did not converge; others as they are."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from ep_bench import Estimator, methods
from ep_bench.estimator import estimator_class
from ep_bench.runner.jobs import unconverged
from tests import restless

X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(methods.REGISTRY, "restless", "tests.restless")


def test_convergence_names_the_method_at_the_callers_line() -> None:
    with pytest.warns(ConvergenceWarning) as caught:
        Estimator("restless", unfinished=["three sweeps", "at its limit"]).fit(X, y)
    assert [str(w.message) for w in caught] == ["restless: three sweeps", "restless: at its limit"]
    assert {(w.category, Path(w.filename).name) for w in caught} == {(ConvergenceWarning, Path(__file__).name)}
    assert "Estimator(" in Path(__file__).read_text().splitlines()[caught[0].lineno - 1]


def test_other_warnings_keep_their_origin() -> None:
    with pytest.warns(RuntimeWarning, match=r"^overflow$") as caught:
        Estimator("restless", unfinished=[], other="overflow").fit(X, y)
    assert [w.filename for w in caught] == [restless.__file__]


def test_a_fit_that_fails_has_warned_before() -> None:
    with (
        pytest.warns(ConvergenceWarning, match=r"^restless: three sweeps$"),
        pytest.raises(FloatingPointError, match="diverged"),
    ):
        Estimator("restless", raises=True).fit(X, y)


def test_filters_of_the_caller_hold() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning, match=r"^restless: three sweeps$"):
            Estimator("restless").fit(X, y)
        with pytest.raises(RuntimeWarning, match=r"^overflow$"):
            Estimator("restless", unfinished=[], other="overflow").fit(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        Estimator("restless", other="overflow").fit(X, y)
    assert not caught


def test_a_logger_in_the_place_of_showing_sees_both(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", lambda message, *_, **__: seen.append(str(message)))
        Estimator("restless", other="overflow").fit(X, y)
    assert seen == ["overflow", "restless: three sweeps"]


def test_a_fit_does_not_take_another_threads_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order in which two fits in threads restore what they found."""

    def fit(train, config, rng):  # the inner fit runs in a thread, and warns after this one has set its hook
        def elsewhere() -> None:
            warnings.warn("of another thread", ConvergenceWarning)  # noqa: B028

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return restless.fit(train, config, rng)

    monkeypatch.setattr(restless, "METHOD", restless.METHOD.__class__(**{**vars(restless.METHOD), "fit": fit}))
    uncached = estimator_class.__wrapped__("restless", "regression")
    with pytest.warns(ConvergenceWarning) as caught:
        uncached().fit(X, y)
    assert sorted(str(w.message) for w in caught) == ["of another thread", "restless: three sweeps"]


def test_the_reason_of_a_row_leaves_the_methods_name_out() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        Estimator("restless").fit(X, y)
    assert unconverged(caught, "restless") == "not converged: three sweeps"
    assert unconverged(caught, "walk") == "not converged: restless: three sweeps"
    assert unconverged([], "restless") == ""


def test_help_names_what_a_fit_leaves() -> None:
    doc = Estimator.__doc__ or ""
    for word in ("state_", "trace_", "chains_", "diagnostics_", "log_evidence_", "r_hat_*", "ess_bulk_*", "ess_tail_*"):
        assert f"``{word}``" in doc
    assert "help(ep_bench.Estimator)" in (type(Estimator("hmc")).__doc__ or "")
