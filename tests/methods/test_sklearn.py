"""The registry's estimators pass scikit-learn's own checks; exemptions stand in ep_bench/conformance/exemptions.py."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.utils.estimator_checks import parametrize_with_checks

from ep_bench import Estimator, methods
from ep_bench.conformance.exemptions import EXEMPT
from ep_bench.conformance.registered import fitting_well
from ep_bench.estimator import MethodEstimator

ESTIMATORS = [
    Estimator(name, task, **methods.get(name).warmup, random_state=0)
    for name in methods.REGISTRY
    for task in methods.get(name).tasks
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda model: dict(EXEMPT.get(model.method.name, {})))
def test_scikit_learns_checks(estimator: MethodEstimator, check: Callable[[MethodEstimator], None]) -> None:
    check(fitting_well(estimator, check))


def test_exemptions_are_of_methods_that_exist_and_have_reasons() -> None:
    assert EXEMPT.keys() <= methods.REGISTRY.keys()
    assert all(reason.strip() for reasons in EXEMPT.values() for reason in reasons.values())
