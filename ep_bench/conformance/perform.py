"""One check on one method, in this process: from its name to its outcome."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping

from ep_bench.conformance import awkward, basics, classifiers, honesty, leaks, manners, quantiles, registered
from ep_bench.conformance.catalogue import DEMANDS, Finding, Outcome, Skip
from ep_bench.conformance.subject import MethodError, Subject, silently
from ep_bench.types import UserError

FUNCTIONS: Mapping[str, Callable[[Subject], Iterator[Finding]]] = {
    "builds": basics.builds,
    "fits": basics.fits,
    "shapes": basics.shapes,
    "finite": basics.finite,
    "deterministic": basics.deterministic,
    "refit": leaks.refit,
    "no-test-rows": leaks.no_test_rows,
    "inputs-unchanged": manners.inputs_unchanged,
    "clone": manners.clone,
    "pickle": manners.pickled,
    "global-rng": manners.global_rng,
    "original-units": honesty.original_units,
    "noise-included": honesty.noise_included,
    "density": honesty.density,
    "quantiles": quantiles.quantiles,
    "one-row": awkward.one_row,
    "constant-input": awkward.constant_input,
    "wide": awkward.wide,
    "constant-target": awkward.constant_target,
    "duplicate-rows": awkward.duplicate_rows,
    "many-scales": awkward.many_scales,
    "documented": registered.documented,
    "scikit-learn": registered.scikit_learn,
}
CLASSIFIER_FUNCTIONS: Mapping[str, Callable[[Subject], Iterator[Finding]]] = {
    "builds": basics.builds,
    "fits": classifiers.fits,
    "probabilities": classifiers.probabilities,
    "labels": classifiers.labels,
    "deterministic": classifiers.deterministic,
    "refit": classifiers.refit,
    "no-test-rows": classifiers.no_test_rows,
    "inputs-unchanged": classifiers.inputs_unchanged,
    "clone": classifiers.clone,
    "pickle": classifiers.pickled,
    "missing-class": classifiers.missing_class,
    "documented": registered.documented,
    "scikit-learn": registered.scikit_learn,
}


def perform(subject: Subject, name: str) -> Outcome:
    """Run a check and return what came of it; an exception of the method's is a fault in the check that meets it."""
    try:
        with silently():
            functions = CLASSIFIER_FUNCTIONS if subject.task == "classification" else FUNCTIONS
            return Outcome.of(name, tuple(functions[name](subject)))
    except Skip as why:
        return Outcome.skipped(name, str(why))
    except (MethodError, UserError) as error:
        mend = "call it by itself on rows like these to see the whole traceback"
        return Outcome.of(name, (Finding(str(error), DEMANDS[name], mend),))
    except Exception as error:  # noqa: BLE001 a mistake of ours must not be taken for an answer
        traceback.print_exc()
        found = f"the check itself failed: {type(error).__name__}: {error}"
        return Outcome.of(name, (Finding(found, DEMANDS[name], "report it: this is a mistake of ep-bench"),))
