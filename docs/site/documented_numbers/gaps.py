"""Tables on splits with a gap, next to those on the standard splits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .markdown import table, with_error
from .stored import FIVE, board_cells, cells, convergence, planned

FOLDER = "gap"


def _entries() -> list[str]:
    return list(dict.fromkeys(method for method, _ in planned(FOLDER)))


def gap_ll() -> list[str]:
    """Return the log-likelihoods on splits with a gap."""
    body = [[method, *(_score(method, dataset) for dataset in FIVE)] for method in _entries()]
    return table(["LL", *FIVE], body)


def _score(method: str, dataset: str) -> str:
    scores = [row["ll"] for row in cells(FOLDER, method, dataset)]
    return with_error(scores, planned(FOLDER)[method, dataset], convergence(FOLDER, method, dataset).mark)


def gap_coverage() -> list[str]:
    """Return the coverage of the central 95 % intervals with a gap, and on the standard splits in brackets."""
    body = [[method, *(_coverage(method, d) for d in FIVE)] for method in _entries()]
    return table(["95 % coverage", *FIVE], body)


def _coverage(method: str, dataset: str) -> str:
    gap, standard = (
        [row["coverage95"] for row in rows] for rows in (cells(FOLDER, method, dataset), board_cells(method, dataset))
    )
    text = f"{np.mean(gap):.2f}" if len(gap) == planned(FOLDER)[method, dataset] else "–"
    return f"{text} ({np.mean(standard):.2f})" if standard else text


def _means(dataset: str, score: str) -> dict[str, float]:
    return {method: float(np.mean([row[score] for row in cells(FOLDER, method, dataset)])) for method in _entries()}


def lowest_coverage() -> str:
    """Return the entry with the lowest coverage on energy."""
    found = _means("energy", "coverage95")
    method = min(found, key=lambda name: found[name])
    return f"95% intervals of {method} contain {found[method]:.0%} of the targets of energy"


def highest_coverage() -> str:
    """Return the entry with the highest coverage on energy."""
    found = _means("energy", "coverage95")
    method = max(found, key=lambda name: found[name])
    return f"those of {method}, the highest number, {found[method]:.0%}"


def best_in_gap() -> str:
    """Return the entry with the highest log-likelihood on energy, and the second one."""
    found = _means("energy", "ll")
    best, second = sorted(found, key=lambda name: -found[name])[:2]
    return f"{best} has the highest log-likelihood, {found[best]:.2f}; {second} follows with {found[second]:.1f}"


TABLES: dict[str, Callable[[], list[str]]] = {"gap-ll": gap_ll, "gap-coverage": gap_coverage}
FACTS: list[tuple[str, Callable[[], str]]] = [
    ("findings.md", lowest_coverage), ("findings.md", highest_coverage), ("findings.md", best_in_gap),
]  # fmt: skip
