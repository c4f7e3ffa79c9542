"""The checks: their names, which are stable, what each demands, and what a check says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ep_bench.types import Task

Status = Literal["ok", "FAULT", "advice", "skipped"]


class Finding(NamedTuple):
    """What is wrong with a method, in plain words; advice is no fault."""

    found: str
    expected: str
    mend: str
    advice: bool = False


class Skip(Exception):  # noqa: N818 it is no error
    """Raised by a check that has nothing to judge; says why."""


@dataclass(frozen=True)
class Check:
    """One check: a name, one line of what it demands, and the checks without which it would repeat their faults."""

    name: str
    demands: str
    needs: tuple[str, ...] = ("shapes",)
    registry_only: bool = False


@dataclass(frozen=True)
class CheckOutcome:
    """What came of a check: ``reason`` of a skipped one, findings of the others."""

    check: str
    status: Status
    findings: tuple[Finding, ...] = ()
    reason: str = ""

    @classmethod
    def of(cls, check: str, findings: tuple[Finding, ...]) -> CheckOutcome:
        """Return the outcome of a check that was run to its end."""
        status: Status = "ok" if not findings else "advice" if all(f.advice for f in findings) else "FAULT"
        return cls(check, status, findings)

    @classmethod
    def skipped(cls, check: str, reason: str) -> CheckOutcome:
        return cls(check, "skipped", (), reason)


CHECKS: tuple[Check, ...] = (
    Check("builds", "has fit and a prediction, and can be built more than once from the same options", needs=()),
    Check("fits", "a fit to 40 ordinary rows, and predictions of 30 more, end without an exception", needs=("builds",)),
    Check("shapes", "mean and deviation have the shape (n,), for 1, 7 and 40 rows", needs=("fits",)),
    Check("finite", "means and log densities are finite, deviations above 0"),
    Check(
        "deterministic",
        "the same seed gives the same numbers, from a fresh instance and when asked twice",
        needs=("finite",),
    ),
    Check("refit", "a fit forgets the one before it", needs=("deterministic",)),
    Check(
        "no-test-rows",
        "the prediction of a row hangs on no other row that is predicted with it",
        needs=("deterministic",),
    ),
    Check("inputs-unchanged", "fit and predict leave their arguments alone and take read-only arrays", needs=("fits",)),
    Check(
        "clone",
        "an unfitted copy predicts the same; parameters stay as they were given",
        needs=("deterministic",),
    ),
    Check("pickle", "a fitted model goes through pickle and predicts the same", needs=("deterministic",)),
    Check("global-rng", "leaves the global random generators alone (advice)", needs=("fits",)),
    Check("original-units", "means and deviations follow the targets' shift and scale", needs=("finite",)),
    Check(
        "noise-included",
        "the deviation is that of an observation, not of the function behind it",
        needs=("finite",),
    ),
    Check(
        "density", "the density integrates to 1 and has the mean and the deviation that are given", needs=("finite",)
    ),
    Check(
        "quantiles",
        "finite quantiles ascend, follow the targets' shift and scale, enclose about their share of known noise",
        needs=("finite", "original-units", "noise-included"),
    ),
    Check(
        "one-row", "a fit to one row gives finite predictions (refusing it in so many words: advice)", needs=("finite",)
    ),
    Check("constant-input", "a fit with one constant input gives finite predictions", needs=("finite",)),
    Check("wide", "a fit with more inputs than rows gives finite predictions", needs=("finite",)),
    Check(
        "constant-target",
        "a fit to a constant target gives finite predictions (a deviation of 0: advice)",
        needs=("finite",),
    ),
    Check(
        "duplicate-rows",
        "a fit to rows that come twice, with two targets, gives finite predictions",
        needs=("finite",),
    ),
    Check(
        "many-scales", "a fit with inputs of scales 1e-6 and 1e6 gives finite predictions (advice)", needs=("finite",)
    ),
    Check("documented", "title, paper, tasks, and a description of each option", needs=(), registry_only=True),
    Check("scikit-learn", "passes scikit-learn's own estimator checks", needs=("fits",), registry_only=True),
)


def _same(name: str, *needs: str) -> Check:
    """Return a check that regressors have too, with what it rests on in classification."""
    return replace(next(check for check in CHECKS if check.name == name), needs=needs)


CLASSIFIER_CHECKS: tuple[Check, ...] = (
    _same("builds"),
    _same("fits", "builds"),
    Check(
        "probabilities",
        "a probability for each class, each row's sum 1, for 1, 7 and 40 rows (none at all, or some of 0: advice)",
        needs=("fits",),
    ),
    Check("labels", "labels other than indices come back (from outside: advice)", needs=("fits",)),
    _same("deterministic", "probabilities"),
    _same("refit", "deterministic"),
    _same("no-test-rows", "deterministic"),
    _same("inputs-unchanged", "fits"),
    _same("clone", "deterministic"),
    _same("pickle", "deterministic"),
    Check(
        "missing-class",
        "a fit to rows that lack a class gives probabilities of all, of registry methods above 0",
        needs=("probabilities",),
    ),
    _same("documented"),
    _same("scikit-learn", "fits"),
)


# Every check once: those of regressors, then those that classifiers alone have.
ALL_CHECKS: tuple[Check, ...] = (
    *CHECKS,
    *(check for check in CLASSIFIER_CHECKS if check.name not in {c.name for c in CHECKS}),
)
DEMANDS = {check.name: check.demands for check in ALL_CHECKS}


def checks(*, registered: bool, task: Task = "regression") -> tuple[Check, ...]:
    """Return the checks of a registry method, or of one from outside."""
    known = CLASSIFIER_CHECKS if task == "classification" else CHECKS
    return tuple(check for check in known if registered or not check.registry_only)
