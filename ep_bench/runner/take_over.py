"""Cells that another study below the same results folder has finished: their rows are copied, not computed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ep_bench.results import curves, row_scores, store
from ep_bench.runner.plan import Plan


def take_over(plan: Plan, lock: Mapping[str, Any]) -> Counter[str]:
    """Copy the finished cells of ``plan`` from other folders; return their number by the name of the folder.

    Rows keep their provenance. Their curves and their scores of single test points are copied too. ``lock`` is the lock
    file of the study.
    """
    found = {planned.job.cell.key: planned.source for planned in plan.cells if planned.source is not None}
    if not found:
        return Counter()
    for key, source in found.items():
        plan.finished.origins[key] = source.finished.origins[key]
        plan.finished.rows[key] = source.finished.rows[key]
    rows = store.export(plan.folder, plan.finished)
    sources: list[Path] = sorted({source.folder for source in found.values()})
    curves.update(plan.folder, rows, sources)
    row_scores.update(plan.folder, lock, rows, sources)
    return Counter(source.folder.name for source in found.values())
