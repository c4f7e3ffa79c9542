"""The estimators of the registry pass scikit-learn's checks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from ep_bench import Estimator, methods
from ep_bench.conformance.method_under_test import MethodUnderTest
from ep_bench.conformance.registry_checks import DEMANDS_A_GOOD_FIT, check_name, fitting_well
from ep_bench.estimator import MethodEstimator
from tests.conformance.support import FAST, HERE, UNITS, quick

pytestmark = pytest.mark.usefixtures("short_search")

ESTIMATORS = [
    Estimator(name, task, **methods.get(name).warmup, **UNITS.get(name, {}), random_state=0)
    for name in methods.REGISTRY
    for task in methods.get(name).tasks
]


def passes(estimator: MethodEstimator, check: Callable[[MethodEstimator], None]) -> None:
    name = estimator.method.name
    check(fitting_well(estimator, check, MethodUnderTest(name, quick(name), HERE)))


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
@pytest.mark.exhaustive
@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_checks_of_the_fit_pass_with_default_options(model: MethodEstimator) -> None:
    """Memory-mapped arrays and single precision, the variants of a check, are tested above."""
    checks = {
        check_name(check): (estimator, check) for estimator, check in reversed([*estimator_checks_generator(model)])
    }
    for name in DEMANDS_A_GOOD_FIT & checks.keys():
        estimator, check = checks[name]
        check(fitting_well(estimator, check))
