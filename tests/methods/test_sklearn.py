"""The estimators of the registry pass scikit-learn's checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from ep_bench import Estimator, methods
from ep_bench.estimator import MethodEstimator
from tests.conformance.support import FAST, UNITS, quick

pytestmark = pytest.mark.usefixtures("short_search")

ESTIMATORS = [
    Estimator(name, task, **methods.get(name).warmup, **UNITS.get(name, {}), random_state=0)
    for name in methods.REGISTRY
    for task in methods.get(name).tasks
]


# Checks that require a good fit; all others use the shortest one.
DEMANDS_A_GOOD_FIT = frozenset({"check_regressors_train", "check_classifiers_train", "check_classifiers_classes"})


def check_name(check: Callable[..., Any]) -> str:
    return str(getattr(check, "func", check).__name__)


def passes(estimator: MethodEstimator, check: Callable[[MethodEstimator], None]) -> None:
    if check_name(check) in DEMANDS_A_GOOD_FIT:
        estimator = type(estimator)(random_state=estimator.random_state, **quick(estimator.method.name))
    check(estimator)


@parametrize_with_checks([model for model in ESTIMATORS if model.method.name in FAST])
def test_scikit_learns_checks(estimator: MethodEstimator, check: Callable[[MethodEstimator], None]) -> None:
    passes(estimator, check)


@pytest.mark.exhaustive
@parametrize_with_checks([model for model in ESTIMATORS if model.method.name not in FAST])
def test_scikit_learns_checks_of_other_methods(
    estimator: MethodEstimator, check: Callable[[MethodEstimator], None]
) -> None:
    passes(estimator, check)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_every_fit_states_whether_it_has_converged(model: MethodEstimator) -> None:
    fitted = clone(model).fit(np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0) % 2.0)
    assert fitted.converged_ is None or type(fitted.converged_) is bool


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_checks_of_the_fit_pass_with_default_options(model: MethodEstimator) -> None:
    """Memory-mapped arrays and single precision, the variants of a check, are tested above."""
    checks = {
        check_name(check): (estimator, check) for estimator, check in reversed([*estimator_checks_generator(model)])
    }
    for name in DEMANDS_A_GOOD_FIT & checks.keys():
        estimator, check = checks[name]
        check(type(estimator)(random_state=estimator.random_state))
