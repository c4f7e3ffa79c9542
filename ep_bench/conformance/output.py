"""Output of `methods test`: one line per check with its findings below, and a summary."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

from ep_bench.conformance.checks import ALL_CHECKS, CHECKS, DEMANDS, CheckOutcome

_WIDTH = 110  # columns of findings in a file
_NO_LIMIT = 1000  # columns of the other lines in a file
_NARROWEST = 20  # columns of a text in a very narrow terminal
_STATUS, _NAME = 7, max(len(check.name) for check in ALL_CHECKS)
_INDENT = " " * (_STATUS + 2)


def outcome_lines(outcome: CheckOutcome) -> Iterator[str]:
    """Yield the line of a check and, below it, its findings: what was found, what is expected, and the remedy."""
    text = f"({outcome.reason})" if outcome.status == "skipped" else DEMANDS[outcome.check]
    yield from _wrapped(f"{outcome.status:<{_STATUS}}  {outcome.check:<{_NAME}}  ", text, _NO_LIMIT)
    for finding in outcome.findings:
        yield from _paragraph("found", finding.found)
        yield from _paragraph("expected", finding.expected)
        yield from _paragraph("remedy", finding.remedy)


def summary(target: str, outcomes: Iterable[CheckOutcome], seconds: float) -> str:
    """Return the last line: the verdict and the number of checks per status."""
    counts = Counter(outcome.status for outcome in outcomes)
    parts = [f"{counts[status]} {status}" for status in ("ok", "FAULT", "advice", "skipped") if counts[status]]
    verdict = "does not conform" if counts["FAULT"] else "conforms"
    return f"{target} {verdict}: {counts.total()} checks, {', '.join(parts)}; {seconds:.1f} s"


def list_lines() -> Iterator[str]:
    """Yield one line per check: its name and its requirement."""
    for check in ALL_CHECKS:
        scope = " (registry methods)" if check.registry_only else "" if check in CHECKS else " (classifiers)"
        yield from _wrapped(f"{check.name:<{_NAME}}  ", f"{check.demands}{scope}", _NO_LIMIT)


def _paragraph(word: str, text: str) -> Iterator[str]:
    yield from _wrapped(f"{_INDENT}{word:<8}  ", text, _WIDTH)


def _wrapped(lead: str, text: str, in_a_file: int) -> Iterator[str]:
    """Yield a text after ``lead``, wrapped to the width of the terminal, or to ``in_a_file`` columns."""
    columns = max(shutil.get_terminal_size((in_a_file, 24)).columns, len(lead) + _NARROWEST)
    yield from textwrap.wrap(
        text, columns, initial_indent=lead, subsequent_indent=" " * len(lead), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
