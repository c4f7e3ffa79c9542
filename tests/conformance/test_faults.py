"""Each fault is found by its check and by no other check."""

from __future__ import annotations

import pytest

from tests.conformance import bad_methods
from tests.conformance.support import bad, findings, having, outcomes

# Class -> the checks that must find a fault, and words that one of the findings must hold.
FAULTS = {
    "NoPrediction": ({"builds"}, "has none of predict_dist"),
    "FailsAlways": ({"fits"}, "bad_methods.py, line"),
    "ColumnOfMeans": ({"shapes"}, "has the shape (1, 1) for 1 data points"),
    "OneDeviationForAll": ({"shapes"}, "the standard deviation of predict(X, return_std=True)"),
    "NanSomewhere": ({"finite"}, "predicted means are not finite"),
    "NegativeDeviation": ({"finite"}, "predict returned a negative standard deviation"),
    "Unseeded": ({"deterministic"}, "two new instances with the same seed"),
    "RandomWhenAsked": ({"deterministic"}, "two predictions at the same inputs differ"),
    "DeafToRandomState": ({"deterministic"}, "depend on numpy's global generator"),
    "WithoutNoise": ({"noise-included"}, "the median standard deviation is"),
    "Standardised": ({"original-units"}, "predictions of standardised targets"),
    "Centred": ({"original-units"}, "predictions of centred targets"),
    "ScaleForgotten": ({"original-units"}, "are not multiplied by the scale"),
    "VarianceForDeviation": ({"original-units"}, "so they scale like variances"),
    "DeviationOfStandardised": ({"original-units"}, "multiply the standard deviations by 1 "),
    "WritesIntoX": ({"inputs-unchanged"}, "fit changes X"),
    "WritesIntoWhatItPredicts": ({"inputs-unchanged"}, "predict changes X"),
    "RefusesReadOnly": ({"inputs-unchanged"}, "read-only arrays are not accepted"),
    "StandardisesTheBatch": ({"no-test-rows"}, "together and one by one, differ"),
    "SmoothsTheOrder": ({"no-test-rows"}, "together and one by one, differ"),
    "AlwaysReturnsBoth": ({"shapes"}, "predict(X) is a tuple of 2 values"),
    "CountsTheBatch": ({"no-test-rows"}, "predictions at the same inputs, together and"),
    "RemembersRows": ({"refit"}, "fitted to other data before"),
    "FailsOnOneRow": ({"one-row"}, "IndexError"),
    "NanWithConstantInput": ({"constant-input"}, "means are not finite"),
    "FailsWide": ({"wide"}, "Singular matrix"),
    "NanWithConstantTarget": ({"constant-target"}, "means are not finite"),
    "FailsOnDuplicates": ({"duplicate-rows"}, "Singular matrix"),
    "TwoAnswers": ({"density"}, "predict(X) and the distribution that is scored differ by up to 0.48"),
    "QuantilesOfNoUnit": ({"quantiles"}, "is below that at"),
    "QuantilesOfAnotherUnit": ({"quantiles"}, "multiply the widths between quantiles by 1 "),
    "QuantilesOfTheFunction": ({"quantiles"}, "the central 50% interval covers"),
    "InfiniteQuantiles": ({"quantiles"}, "200 of 21000 quantiles are not finite"),
    "FailsOnManyScales": (set(), "far from standardised"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_by_name_and_nothing_else_is(name: str) -> None:
    names, words = FAULTS[name]
    found = outcomes(bad(name))
    assert having(found, "FAULT") == names, findings(found)
    assert words in findings(found)


def test_every_bad_method_is_tested() -> None:
    elsewhere = {
        "Predictive", "Honest", "EndlessLoop", "EndsTheProcess",
        "Segfault", "SpinsAlways", "CannotBeBuilt",
    }  # fmt: skip
    classes = {name for name, value in vars(bad_methods).items() if isinstance(value, type)}
    assert classes == FAULTS.keys() | elsewhere


def test_the_correct_method_has_neither_fault_nor_advice() -> None:
    found = outcomes(bad("Honest"))
    assert having(found, "ok") == found.keys(), findings(found)


def test_a_standard_deviation_of_0_is_a_fault() -> None:
    found = outcomes("sklearn.dummy:DummyRegressor")
    assert having(found, "FAULT") == {"finite"}
    assert "30 of 30 standard deviations are 0" in findings(found)


def test_checks_that_need_a_failed_check_are_skipped_with_the_reason() -> None:
    found = outcomes(bad("Unseeded"))
    assert {name: found[name].reason for name in having(found, "skipped")} == dict.fromkeys(
        ("refit", "no-test-rows"), "see deterministic"
    )
    found = outcomes(bad("FailsAlways"))
    assert having(found, "ok") == {"builds"}
    assert {found[name].reason for name in having(found, "skipped")} == {"see fits"}
