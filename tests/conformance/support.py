"""Run all checks of a target in this process."""

from __future__ import annotations

from collections.abc import Container, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from ep_bench import estimator, methods
from ep_bench.conformance.checks import CheckOutcome, checks
from ep_bench.conformance.method_under_test import MethodUnderTest
from ep_bench.conformance.suite import in_order
from ep_bench.conformance.worker import perform

HERE = Path(__file__).parent

# Units with which the kernels of a method are those of its quick settings: other numbers compile them once more.
UNITS: dict[str, dict[str, object]] = {"hmc": {"hidden": [5]}}

FAST = {"pbp", "gp", "bp", "vi", "laplace"}  # methods whose checks are not only exhaustive tests; all share one class


def quick(name: str) -> dict[str, object]:
    """Return the options with which a fit takes a fraction of a second: ``QUICK`` in the test file of a method."""
    return getattr(import_module(f"tests.methods.test_{name}"), "QUICK", {})


def bad(name: str) -> str:
    return f"./bad_methods.py:{name}"


class QuickMethod(MethodUnderTest):
    """A method of the registry whose brief fits are the shortest, also where the options ask for more."""

    def _estimator(self, known: Mapping[str, Any], *, brief: bool) -> Any:
        shortest = methods.get(self.target).warmup | UNITS.get(self.target, {}) if brief else {}
        return estimator.Estimator(self.target, self.task, **{**known, **self.options, **shortest})


def outcomes(target: str, *, without: Container[str] = (), **options: object) -> dict[str, CheckOutcome]:
    """Run the checks of a target but those named in ``without``."""
    subject = QuickMethod(target, options, HERE)
    subject.prepare()
    chosen = checks(subject.task)
    with threadpool_limits(1):
        found = in_order((check for check in chosen if check.name not in without), lambda name: perform(subject, name))
        return {outcome.check: outcome for outcome in found}


def having(found: dict[str, CheckOutcome], status: str) -> set[str]:
    return {name for name, outcome in found.items() if outcome.status == status}


def findings(found: dict[str, CheckOutcome]) -> str:
    """Return all findings, for the message of an assertion."""
    return "\n".join(f"{name}: {finding}" for name, outcome in found.items() for finding in outcome.findings)
