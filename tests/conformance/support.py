"""Run all checks of a target in this process."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from ep_bench import estimator, methods
from ep_bench.conformance.checks import CheckOutcome, checks
from ep_bench.conformance.method_under_test import MethodUnderTest
from ep_bench.conformance.run_check import perform
from ep_bench.conformance.suite import in_order

HERE = Path(__file__).parent

# Units with which the kernels of a method are those of its quick settings: other numbers compile them once more.
UNITS: dict[str, dict[str, object]] = {"hmc": {"hidden": [5]}}

# Settings with which a fit takes a fraction of a second, of methods whose defaults are made for thousands of steps.
FAST = {"pbp", "gp", "bp", "vi", "laplace"}  # methods whose checks are not only exhaustive tests; all share one class
QUICK: dict[str, dict[str, object]] = {
    "vi": {"hidden": [10], "samples": 2, "epochs": 150},
    "dropout": {"hidden": [20], "epochs": 150, "passes": 100},
    "ensemble": {"hidden": [20], "epochs": 150},
    "hmc": {"hidden": [5], "samples": 50, "warmup": 50, "steps": 15, "stored": 50},
    "bb_alpha": {"hidden": [10], "samples": 5, "epochs": 150, "learning_rate": 0.01},
    "sgld": {"hidden": [5], "epochs": 300},
    "gp": {"starts": 1},
    "gp_t": {"nu": 4.0},
    "dgp_ep": {"inducing": 8, "steps": 600},
    "sgp": {"inducing": 10, "starts": 1, "steps": 100},
    "laplace": {"updates": 2, "steps": 50, "starts": 1},
    "ep_nn": {"hidden": [3], "sweeps": 52},
}


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
    chosen = checks(registered=subject.registered, task=subject.task or "regression")
    with threadpool_limits(1):
        found = in_order((check for check in chosen if check.name not in without), lambda name: perform(subject, name))
        return {outcome.check: outcome for outcome in found}


def having(found: dict[str, CheckOutcome], status: str) -> set[str]:
    return {name for name, outcome in found.items() if outcome.status == status}


def findings(found: dict[str, CheckOutcome]) -> str:
    """Return all findings, for the message of an assertion."""
    return "\n".join(f"{name}: {finding}" for name, outcome in found.items() for finding in outcome.findings)
