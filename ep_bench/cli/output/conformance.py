"""Output of `methods test`: one line per check with its findings below, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.padding import Padding

from ep_bench.cli.output.text import Item, fields
from ep_bench.conformance.checks import ALL_CHECKS, DEMANDS, CheckOutcome

_STATUS, _NAME = 7, max(len(check.name) for check in ALL_CHECKS)


def outcome_items(outcome: CheckOutcome) -> Iterator[Item]:
    """Yield the line of a check and, below it, its findings: what was found, what is expected, and the remedy."""
    text = f"({outcome.reason})" if outcome.status == "skipped" else DEMANDS[outcome.check]
    yield fields([(f"{outcome.status:<{_STATUS}}  {outcome.check:<{_NAME}}", text)])
    for one in outcome.findings:
        parts = [("found   ", one.found), ("expected", one.expected), ("remedy", one.remedy)]
        yield Padding(fields(parts), (0, 0, 0, _STATUS + 2))


def summary(target: str, outcomes: Iterable[CheckOutcome], seconds: float) -> str:
    """Return the last line: the verdict and the number of checks per status."""
    counts = Counter(outcome.status for outcome in outcomes)
    parts = [f"{counts[status]} {status}" for status in ("ok", "FAULT", "advice", "skipped") if counts[status]]
    verdict = "does not conform" if counts["FAULT"] else "conforms"
    return f"{target} {verdict}: {counts.total()} checks, {', '.join(parts)}; {seconds:.1f} s"
