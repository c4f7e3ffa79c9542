"""Run all checks of a target in this process."""

from __future__ import annotations

from pathlib import Path

from threadpoolctl import threadpool_limits

from ep_bench.conformance.catalogue import Outcome, checks
from ep_bench.conformance.perform import perform
from ep_bench.conformance.subject import Subject
from ep_bench.conformance.suite import in_order

HERE = Path(__file__).parent


def bad(name: str) -> str:
    return f"./bad_methods.py:{name}"


def outcomes(target: str, **options: object) -> dict[str, Outcome]:
    subject = Subject(target, options, HERE)
    subject.prepare()
    chosen = checks(registered=subject.registered, task=subject.task or "regression")
    with threadpool_limits(1):
        return {outcome.check: outcome for outcome in in_order(chosen, lambda name: perform(subject, name))}


def having(found: dict[str, Outcome], status: str) -> set[str]:
    return {name for name, outcome in found.items() if outcome.status == status}


def told(found: dict[str, Outcome]) -> str:
    """Return all findings, for the message of an assertion."""
    return "\n".join(f"{name}: {finding}" for name, outcome in found.items() for finding in outcome.findings)
