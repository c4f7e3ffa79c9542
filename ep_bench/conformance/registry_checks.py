"""Checks of registry methods alone: documentation, and scikit-learn's own checks of the class that users get."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from ep_bench import methods
from ep_bench.conformance.checks import Finding
from ep_bench.conformance.exemptions import EXEMPT
from ep_bench.conformance.method_under_test import MethodUnderTest
from ep_bench.estimator import MethodEstimator
from ep_bench.types import UserError

# Checks that demand a good fit: these get the method's own options, the others those of the shortest fit.
DEMANDS_A_GOOD_FIT = frozenset({"check_regressors_train", "check_classifiers_train", "check_classifiers_classes"})


def documented(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check the words that `methods list`, `methods show` and the report print."""
    method = methods.get(subject.target)
    expected, where = "words, since users read them", inspect.getsourcefile(method.fit)
    missing = [f"METHOD.{name}" for name in ("title", "paper", "tasks") if not getattr(method, name)]
    if not inspect.getdoc(inspect.getmodule(method.fit)):
        missing.append("the module's docstring")
    fields = method.config.model_fields  # type: ignore[attr-defined]
    missing += [f"the description of the option {name}" for name, field in fields.items() if not field.description]
    if missing:
        mend = f"write them in {where}; a description says where the default comes from"
        yield Finding(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} empty", expected, mend)
    if method.name != subject.target:
        yield Finding(f"METHOD.name is {method.name!r}", f"{subject.target!r}, as in the registry", "make them one")


def scikit_learn(subject: MethodUnderTest) -> Iterator[Finding]:
    """Run scikit-learn's checks one by one, so that each failure is told."""
    from sklearn.utils.estimator_checks import estimator_checks_generator

    exempt = EXEMPT.get(subject.target, {})
    for model, check in estimator_checks_generator(subject.instance(), mark=None):
        name = check_name(check)
        words = _failure(check, fitting_well(model, check, subject))
        if words and name not in exempt:
            yield Finding(
                f"{name}: {words}",
                "as scikit-learn's documentation of that check says",
                "mend the estimator, or write the check with a reason into ep_bench/conformance/exemptions.py",
            )
        elif not words and name in exempt:
            yield Finding(f"{name} passes, though it is exempt", "no exemption without need", "remove the exemption")


def check_name(check: Callable[..., Any]) -> str:
    """Return the name of one of scikit-learn's checks, which may come as a partial function."""
    return str(getattr(check, "func", check).__name__)


def fitting_well(
    model: MethodEstimator, check: Callable[..., Any], subject: MethodUnderTest | None = None
) -> MethodEstimator:
    """Return the estimator that a check gets: one with the method's own options if it judges the fit."""
    if check_name(check) not in DEMANDS_A_GOOD_FIT:
        return model
    return type(model)(random_state=model.random_state, **(subject.options if subject else {}))


def _failure(check: Callable[..., Any], model: MethodEstimator) -> str:
    """Return how a check fails; empty if it passes or cannot run here."""
    from unittest import SkipTest

    try:
        check(model)
    except SkipTest:
        return ""
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 checks raise whatever the method raises
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return ""
