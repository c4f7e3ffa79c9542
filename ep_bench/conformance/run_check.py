"""Run one check of one method in this process."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping

from ep_bench.conformance import (
    basics,
    calibration,
    classifiers,
    edge_cases,
    leakage,
    quantiles,
    registry_checks,
    side_effects,
)
from ep_bench.conformance.checks import DEMANDS, CheckOutcome, Finding, Skip
from ep_bench.conformance.method_under_test import MethodError, MethodUnderTest, silently
from ep_bench.errors import UserError

FUNCTIONS: Mapping[str, Callable[[MethodUnderTest], Iterator[Finding]]] = {
    "builds": basics.builds,
    "fits": basics.fits,
    "shapes": basics.shapes,
    "finite": basics.finite,
    "deterministic": basics.deterministic,
    "refit": leakage.refit,
    "no-test-rows": leakage.no_test_rows,
    "inputs-unchanged": side_effects.inputs_unchanged,
    "clone": side_effects.clone,
    "pickle": side_effects.pickled,
    "global-rng": side_effects.global_rng,
    "original-units": calibration.original_units,
    "noise-included": calibration.noise_included,
    "density": calibration.density,
    "quantiles": quantiles.quantiles,
    "one-row": edge_cases.one_row,
    "constant-input": edge_cases.constant_input,
    "wide": edge_cases.wide,
    "constant-target": edge_cases.constant_target,
    "duplicate-rows": edge_cases.duplicate_rows,
    "many-scales": edge_cases.many_scales,
    "probabilities": classifiers.probabilities,
    "labels": classifiers.labels,
    "missing-class": classifiers.missing_class,
    "documented": registry_checks.documented,
    "scikit-learn": registry_checks.scikit_learn,
}


def perform(subject: MethodUnderTest, name: str) -> CheckOutcome:
    """Run a check and return its outcome; an exception of the method is a fault."""
    try:
        with silently():
            return CheckOutcome.of(name, tuple(FUNCTIONS[name](subject)))
    except Skip as why:
        return CheckOutcome.skipped(name, str(why))
    except (MethodError, UserError) as error:
        remedy = "run the same call on similar data to see the complete traceback"
        return CheckOutcome.of(name, (Finding(str(error), DEMANDS[name], remedy),))
    except Exception as error:  # noqa: BLE001 an error in the check itself is reported as such
        traceback.print_exc()
        found = f"the check itself failed: {type(error).__name__}: {error}"
        return CheckOutcome.of(name, (Finding(found, DEMANDS[name], "report this error of ep-bench"),))
