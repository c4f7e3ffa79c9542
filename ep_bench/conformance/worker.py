"""The process that runs checks, a child of a fork server that has imported this module."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ep_bench import adapters
from ep_bench.conformance import (
    basics,
    calibration,
    classifiers,
    edge_cases,
    leakage,
    quantiles,
    side_effects,
)
from ep_bench.conformance.checks import DEMANDS, CheckOutcome, Finding, Skip
from ep_bench.conformance.method_under_test import MethodError, MethodUnderTest
from ep_bench.errors import UserError
from ep_bench.types import Task

MODULES = (basics, calibration, classifiers, edge_cases, leakage, quantiles, side_effects)


def prepare() -> None:
    """Import in the fork server what most methods use."""
    adapters.preload()


class ServedChecks:
    """The checks of one method."""

    def __init__(self, target: str, options: Mapping[str, Any], base: Path, cwd: Path, task: Task | None) -> None:
        os.chdir(cwd)
        self._subject = MethodUnderTest(target, options, base, task)

    def prepare(self) -> Task | UserError:
        """Import and construct the target; return the task of the checks, or the error if this fails."""
        try:
            with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
                self._subject.prepare()
        except UserError as error:
            return error
        return self._subject.task or "regression"

    def perform(self, name: str) -> CheckOutcome:
        """Return the outcome of a check."""
        return perform(self._subject, name)


def perform(subject: MethodUnderTest, name: str) -> CheckOutcome:
    """Run a check and return its outcome; an exception of the method is a fault."""
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            return CheckOutcome.of(name, tuple(function_of(name)(subject)))
    except Skip as why:
        return CheckOutcome.skipped(name, str(why))
    except (MethodError, UserError) as error:
        remedy = "run the same call on similar data to see the complete traceback"
        return CheckOutcome.of(name, (Finding(str(error), DEMANDS[name], remedy),))
    except Exception as error:  # noqa: BLE001 an error in the check itself is reported as such
        traceback.print_exc()
        found = f"the check itself failed: {type(error).__name__}: {error}"
        return CheckOutcome.of(name, (Finding(found, DEMANDS[name], "report this error of ep-bench"),))


def function_of(name: str) -> Callable[[MethodUnderTest], Iterator[Finding]]:
    """Return the function of a check, which has the same name."""
    attribute = name.replace("-", "_")
    function: Callable[[MethodUnderTest], Iterator[Finding]]
    function = next(getattr(module, attribute) for module in MODULES if hasattr(module, attribute))
    return function
