"""The rule of convergence: R-hat of test predictions, a method's own criterion, and warnings of older rows."""

from __future__ import annotations

import math

import pytest

from ep_bench import convergence

R_HAT_WARNING = "not converged: R-hat of predictions 1.2, at most 1.05 is taken for mixed; 4 chains of 750 draws"
DRIFT = "not converged: log joint density drifts by -0.4 nats per data point"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"r_hat": 1.01, "converged": "true"}, "converged"),
        ({"r_hat": "1.0101"}, "nearly"),
        ({"r_hat": 1.05}, "nearly"),
        ({"r_hat": 1.0501, "converged": "true"}, "not"),
        ({"r_hat": math.inf}, "not"),
        ({"r_hat": 1.007, "converged": "false", "reason": R_HAT_WARNING}, "converged"),  # of training inputs
        ({"r_hat": 1.007, "converged": "false", "reason": DRIFT}, "not"),
        ({"r_hat": math.nan, "converged": "true"}, "converged"),
        ({"converged": "false"}, "not"),
        ({"converged": False}, "not"),
        ({"r_hat": "", "converged": "", "reason": DRIFT}, "not"),
        ({"reason": "no density"}, "unknown"),
        ({"reason": math.nan, "converged": math.nan}, "unknown"),
    ],
)
def test_the_rule(row, expected):
    assert convergence.judge(row) == expected


def test_counts_marks_and_fractions():
    rows = [{"r_hat": value} for value in (1.0, 1.005, 1.02, 1.3)]
    found = convergence.count(rows)
    assert found == convergence.ConvergedSplits(2, 1, 1)
    assert (found.mark, found.shortfall) == ("†", "2 of 4 converged, 1 nearly, 1 not")
    assert convergence.count(rows[:3]).mark == "°"
    assert (convergence.count(rows[:2]).mark, convergence.count(rows[:2]).shortfall) == ("", "")
    assert (convergence.count([{}]).judged, convergence.count([{}]).shortfall) == (0, "")
    warned = {"reason": DRIFT}
    found = convergence.count([warned, {}, {}])  # a method without a criterion states nothing unless it warns
    assert found == convergence.ConvergedSplits(0, 0, 1)
    assert (found.mark, found.shortfall) == ("†", "0 of 1 converged, 1 not")
    assert convergence.count(rows[:2]) + convergence.count(rows[2:]) == convergence.count(rows)
