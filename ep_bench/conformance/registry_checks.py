"""Checks of registry methods only: documentation, and the estimator checks of scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from ep_bench import methods
from ep_bench.conformance.checks import Finding
from ep_bench.conformance.method_under_test import MethodUnderTest
from ep_bench.errors import UserError
from ep_bench.estimator import MethodEstimator

# Checks that require a good fit use the method's own options; all others use those of the shortest fit.
DEMANDS_A_GOOD_FIT = frozenset({"check_regressors_train", "check_classifiers_train", "check_classifiers_classes"})


def documented(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check the texts that `methods list`, `methods show` and the report print."""
    method = methods.get(subject.target)
    expected, where = "texts, which are shown to users", inspect.getsourcefile(method.fit)
    missing = [f"METHOD.{name}" for name in ("title", "paper", "tasks") if not getattr(method, name)]
    if not inspect.getdoc(inspect.getmodule(method.fit)):
        missing.append("the module's docstring")
    fields = method.config.model_fields  # type: ignore[attr-defined]
    missing += [f"the description of the option {name}" for name, field in fields.items() if not field.description]
    if missing:
        remedy = f"write them in {where}; a description includes the source of the default"
        yield Finding(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} empty", expected, remedy)
    if method.name != subject.target:
        yield Finding(f"METHOD.name is {method.name!r}", f"{subject.target!r}", "use the name in the registry")


def scikit_learn(subject: MethodUnderTest) -> Iterator[Finding]:
    """Run the estimator checks of scikit-learn one by one and report all failures."""
    from sklearn.utils.estimator_checks import estimator_checks_generator

    for model, check in estimator_checks_generator(subject.instance(), mark=None):
        if words := _failure(check, fitting_well(model, check, subject)):
            yield Finding(
                f"{check_name(check)}: {words}",
                "see the documentation of this check in scikit-learn",
                "correct the estimator",
            )


def check_name(check: Callable[..., Any]) -> str:
    """Return the name of an estimator check, which may be a partial function."""
    return str(getattr(check, "func", check).__name__)


def fitting_well(
    model: MethodEstimator, check: Callable[..., Any], subject: MethodUnderTest | None = None
) -> MethodEstimator:
    """Return the estimator for a check, with the method's own options if the check requires a good fit."""
    if check_name(check) not in DEMANDS_A_GOOD_FIT:
        return model
    return type(model)(random_state=model.random_state, **(subject.options if subject else {}))


def _failure(check: Callable[..., Any], model: MethodEstimator) -> str:
    """Return the failure of a check; empty if it passes or is skipped."""
    from unittest import SkipTest

    try:
        check(model)
    except SkipTest:
        return ""
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 checks pass on all exceptions of the method
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return ""
