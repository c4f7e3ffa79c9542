"""Tables on splits with a gap, next to those on the standard splits.

Tied values of an input are divided in the order of the file, so that an input of few values has no gap. Only the splits
are used in which most test points have values that no training point has, and one of several with the same test set.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ep_bench import data
from ep_bench.convergence import count
from ep_bench.types import SplitScheme

from .convergence_blocks import mark_on
from .markdown import enumerated, table, with_error
from .stored import FIVE, Cells, board_cells, cells, planned

FOLDER = "gap"


def _entries() -> list[str]:
    return list(dict.fromkeys(method for method, _ in planned(FOLDER)))


@cache
def inputs_with_gap(dataset: str) -> frozenset[int]:
    """Return the inputs of which more than half of the test points have values that no training point has.

    Of inputs with the same test set, only the first one is returned.
    """
    known = data.load_dataset(dataset)
    found: dict[frozenset[int], int] = {}
    for split in data.make_splits(SplitScheme("gap"), known):
        values = known.X[:, split.index]
        if np.isin(values[split.test], values[split.train]).mean() < 0.5:
            found.setdefault(frozenset(split.test.tolist()), split.index)
    return frozenset(found.values())


def _in_gaps(method: str, dataset: str) -> Cells:
    return [row for row in cells(FOLDER, method, dataset) if row["split"] in inputs_with_gap(dataset)]


def _head() -> list[str]:
    return [f"{name} ({len(inputs_with_gap(name))} of {data.load_dataset(name).X.shape[1]})" for name in FIVE]


def gap_ll() -> list[str]:
    """Return the log-likelihoods on splits with a gap."""
    body = [[method, *(_score(method, dataset) for dataset in FIVE)] for method in _entries()]
    return table(["LL", *_head()], body)


def _score(method: str, dataset: str) -> str:
    rows = _in_gaps(method, dataset)
    return with_error([row["ll"] for row in rows], len(inputs_with_gap(dataset)), count(rows).mark)


def gap_coverage() -> list[str]:
    """Return the coverage of the central 95 % intervals with a gap, and on the standard splits in brackets."""
    body = [[method, *(_coverage(method, d) for d in FIVE)] for method in _entries()]
    return table(["95 % coverage", *_head()], body)


def _coverage(method: str, dataset: str) -> str:
    gap, standard = (
        [row["coverage95"] for row in rows] for rows in (_in_gaps(method, dataset), board_cells(method, dataset))
    )
    mark = count(_in_gaps(method, dataset)).mark
    text = f"{np.mean(gap):.2f} {mark}".rstrip() if len(gap) == len(inputs_with_gap(dataset)) else "–"
    on_standard = f"{np.mean(standard):.2f} {mark_on(method, dataset)}".rstrip() if standard else ""
    return f"{text} ({on_standard})" if standard else text


def _means(dataset: str, score: str) -> dict[str, float]:
    return {method: float(np.mean([row[score] for row in _in_gaps(method, dataset)])) for method in _entries()}


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


def above_constant() -> str:
    """Return how many entries have a higher log-likelihood than Constant in each gap of energy."""
    counts = []
    for gap in sorted(inputs_with_gap("energy")):
        found = {m: row["ll"] for m in _entries() for row in cells(FOLDER, m, "energy") if row["split"] == gap}
        better = sum(ll > found["Constant"] for ll in found.values())
        counts.append(f"{better} of {len(found) - 1} entries in the gap of input {gap + 1}")
    return f"The log-likelihood is higher than that of Constant for {enumerated(counts)}"


TABLES: dict[str, Callable[[], list[str]]] = {"gap-ll": gap_ll, "gap-coverage": gap_coverage}
FACTS: list[tuple[str, Callable[[], str]]] = [
    ("findings.md", lowest_coverage), ("findings.md", highest_coverage), ("findings.md", above_constant),
]  # fmt: skip
