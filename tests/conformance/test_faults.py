"""Each planted fault is found by the check that it breaks, and no other check accuses the method."""

from __future__ import annotations

import pytest

from tests.conformance import bad_methods
from tests.conformance.support import bad, having, outcomes, told

# Class -> the checks that must find a fault, and words that one of the findings must hold.
FAULTS = {
    "NoPrediction": ({"builds"}, "has none of predict_dist"),
    "FailsAlways": ({"fits"}, "bad_methods.py, line"),
    "ColumnOfMeans": ({"shapes"}, "has the shape (1, 1) for 1 rows"),
    "OneDeviationForAll": ({"shapes"}, "the deviation of predict(X, return_std=True)"),
    "NanSomewhere": ({"finite"}, "predicted means are not finite"),
    "NegativeDeviation": ({"finite"}, "predict gave a negative deviation"),
    "Unseeded": ({"deterministic"}, "two fresh instances with the same seed"),
    "RandomWhenAsked": ({"deterministic"}, "predicting the same rows twice"),
    "DeafToRandomState": ({"deterministic"}, "hang on numpy's global generator"),
    "WithoutNoise": ({"noise-included"}, "the median deviation is"),
    "Standardised": ({"original-units"}, "as standardised targets would"),
    "Centred": ({"original-units"}, "as centred targets would"),
    "ScaleForgotten": ({"original-units"}, "is not multiplied back"),
    "VarianceForDeviation": ({"original-units"}, "as variances would"),
    "DeviationOfStandardised": ({"original-units"}, "multiply the deviations by 1 "),
    "ConstructorAlters": ({"clone"}, "sklearn.base.clone"),
    "FitAlters": ({"clone"}, "fit alters parameters"),
    "HoldsALock": ({"clone", "pickle"}, "copy.deepcopy fails"),
    "KeepsALambda": ({"pickle"}, "pickle fails"),
    "KeepsStateElsewhere": ({"pickle"}, "after pickle it predicts other numbers"),
    "WritesIntoX": ({"inputs-unchanged"}, "fit writes into X"),
    "WritesIntoWhatItPredicts": ({"inputs-unchanged"}, "predict writes into X"),
    "RefusesReadOnly": ({"inputs-unchanged"}, "read-only arrays are refused"),
    "StandardisesTheBatch": ({"no-test-rows"}, "predicted one by one"),
    "CountsTheBatch": ({"no-test-rows"}, "the same rows get other numbers"),
    "RemembersRows": ({"refit"}, "fitted to other rows first"),
    "FailsOnOneRow": ({"one-row"}, "IndexError"),
    "NanWithConstantInput": ({"constant-input"}, "means are not finite"),
    "FailsWide": ({"wide"}, "Singular matrix"),
    "NanWithConstantTarget": ({"constant-target"}, "means are not finite"),
    "FailsOnDuplicates": ({"duplicate-rows"}, "Singular matrix"),
    "TwoAnswers": ({"density"}, "predict(X) and the distribution that is scored differ by up to 0.48"),
    "QuantilesOfNoUnit": ({"quantiles"}, "lies below that at"),
    "QuantilesOfAnotherUnit": ({"quantiles"}, "multiply the widths between quantiles by 1 "),
    "QuantilesOfTheFunction": ({"quantiles"}, "the central interval of 50% encloses"),
    "InfiniteQuantiles": ({"quantiles"}, "200 of 21000 quantiles are not finite"),
    "Reseeds": (set(), "it reseeds numpy's global generator"),
    "FailsOnManyScales": (set(), "far from standardised"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_by_name_and_nothing_else_is(name: str) -> None:
    names, words = FAULTS[name]
    found = outcomes(bad(name))
    assert having(found, "FAULT") == names, told(found)
    assert words in told(found)


def test_every_bad_method_is_tested() -> None:
    elsewhere = {
        "BaseEstimator", "Predictive", "Honest", "ConstructorAltersItsArgument", "EndlessLoop", "EndsTheProcess",
        "Segfault", "SpinsAlways", "CannotBeBuilt",
    }  # fmt: skip
    classes = {name for name, value in vars(bad_methods).items() if isinstance(value, type)}
    assert classes == FAULTS.keys() | elsewhere


def test_the_honest_one_has_neither_fault_nor_advice() -> None:
    found = outcomes(bad("Honest"))
    assert having(found, "ok") == found.keys(), told(found)


def test_a_constructor_that_writes_into_an_option() -> None:
    found = outcomes(bad("ConstructorAltersItsArgument"), sizes=[2])
    assert having(found, "FAULT") == {"clone"}
    assert "the constructor alters its arguments: sizes [2] became [2, 1]" in told(found)


def test_a_deviation_of_0_is_a_claim_that_nobody_can_keep() -> None:
    found = outcomes("sklearn.dummy:DummyRegressor")
    assert having(found, "FAULT") == {"finite"}
    assert "30 of 30 deviations are 0" in told(found)


def test_what_rests_on_a_fault_is_skipped_and_says_so() -> None:
    found = outcomes(bad("Unseeded"))
    assert {name: found[name].reason for name in having(found, "skipped")} == dict.fromkeys(
        ("refit", "no-test-rows", "clone", "pickle"), "see deterministic"
    )
    found = outcomes(bad("FailsAlways"))
    assert having(found, "ok") == {"builds"}
    assert {found[name].reason for name in having(found, "skipped")} == {"see fits"}
