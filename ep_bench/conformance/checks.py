"""The conformance checks, their requirements and their outcomes; the names of checks are stable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ep_bench.types import Task

Status = Literal["ok", "FAULT", "advice", "skipped"]


class Finding(NamedTuple):
    """One requirement that a method does not meet; ``advice`` does not count as a fault."""

    found: str
    expected: str
    remedy: str
    advice: bool = False


class Skip(Exception):  # noqa: N818 it is no error
    """Raised by a check that does not apply; the message is the reason."""


@dataclass(frozen=True)
class Check:
    """One check: its name, its requirement in one line, and the checks that must pass before it is run."""

    name: str
    demands: str
    needs: tuple[str, ...] = ("shapes",)


@dataclass(frozen=True)
class CheckOutcome:
    """Outcome of a check: the ``reason`` if it was skipped, else its findings."""

    check: str
    status: Status
    findings: tuple[Finding, ...] = ()
    reason: str = ""

    @classmethod
    def of(cls, check: str, findings: tuple[Finding, ...]) -> CheckOutcome:
        """Return the outcome of a check that was run."""
        status: Status = "ok" if not findings else "advice" if all(f.advice for f in findings) else "FAULT"
        return cls(check, status, findings)

    @classmethod
    def skipped(cls, check: str, reason: str) -> CheckOutcome:
        return cls(check, "skipped", (), reason)


CHECKS: tuple[Check, ...] = (
    Check("builds", "has fit and a prediction method", needs=()),
    Check("fits", "a fit to 40 data points and 30 predictions raise no exception", needs=("builds",)),
    Check("shapes", "mean and standard deviation have the shape (n,), for n = 1, 7 and 40", needs=("fits",)),
    Check("finite", "means and log densities are finite, standard deviations positive"),
    Check(
        "deterministic",
        "the same seed gives the same predictions, for a new instance and for a second call",
        needs=("finite",),
    ),
    Check("refit", "a fit does not depend on a previous fit", needs=("deterministic",)),
    Check(
        "no-test-rows",
        "a prediction does not depend on the other data points predicted with it",
        needs=("deterministic",),
    ),
    Check("inputs-unchanged", "fit and predict do not change their arguments and accept read-only arrays", ("fits",)),
    Check("original-units", "means and standard deviations follow shift and scale of the targets", needs=("finite",)),
    Check(
        "noise-included",
        "the standard deviation is that of an observation, noise included",
        needs=("finite",),
    ),
    Check("density", "the density integrates to 1 and matches the mean and the standard deviation", needs=("finite",)),
    Check(
        "quantiles",
        "finite quantiles ascend, follow shift and scale of the targets, cover known noise",
        needs=("finite", "original-units", "noise-included"),
    ),
    Check("one-row", "a fit to one data point gives finite predictions (a clear error: advice)", ("finite",)),
    Check("constant-input", "a fit with one constant input gives finite predictions", needs=("finite",)),
    Check("wide", "a fit with more inputs than data points gives finite predictions", needs=("finite",)),
    Check(
        "constant-target",
        "a fit to a constant target gives finite predictions (a variance of 0: advice)",
        needs=("finite",),
    ),
    Check(
        "duplicate-rows",
        "a fit to repeated inputs with different targets gives finite predictions",
        needs=("finite",),
    ),
    Check(
        "many-scales", "a fit with inputs of scales 1e-6 and 1e6 gives finite predictions (advice)", needs=("finite",)
    ),
)


def _same(name: str, *needs: str) -> Check:
    """Return a check of regressors with the checks that must pass before it in classification."""
    return replace(next(check for check in CHECKS if check.name == name), needs=needs)


CLASSIFIER_CHECKS: tuple[Check, ...] = (
    _same("builds"),
    _same("fits", "builds"),
    Check(
        "probabilities",
        "one probability per class, with sum 1 (no probabilities, or some 0: advice)",
        needs=("fits",),
    ),
    _same("deterministic", "probabilities"),
    _same("refit", "deterministic"),
    _same("no-test-rows", "deterministic"),
    _same("inputs-unchanged", "fits"),
    Check(
        "missing-class",
        "without data of one class, probabilities of all (positive for registry methods)",
        needs=("probabilities",),
    ),
)


# All checks: those of regressors, then those of classifiers only.
ALL_CHECKS: tuple[Check, ...] = (
    *CHECKS,
    *(check for check in CLASSIFIER_CHECKS if check.name not in {c.name for c in CHECKS}),
)
DEMANDS = {check.name: check.demands for check in ALL_CHECKS}


def checks(task: Task | None = "regression") -> tuple[Check, ...]:
    """Return the checks of a method with a task."""
    return CLASSIFIER_CHECKS if task == "classification" else CHECKS
