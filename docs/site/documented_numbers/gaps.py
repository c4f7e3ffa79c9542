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


TABLES: dict[str, Callable[[], list[str]]] = {"gap-ll": gap_ll, "gap-coverage": gap_coverage}
