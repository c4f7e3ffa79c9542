"""What the plans of cells and of experiments have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from ep_bench.results import store
from ep_bench.results.selection import Wanted, matches, no_match, selection
from ep_bench.runner.earlier_results import PlannedCell
from ep_bench.runner.jobs import AnyJob
from ep_bench.spec import Study
from ep_bench.types import Record


@dataclass
class BasePlan:
    """The cells of a study, or the parts of an experiment, with what a run and the command line need of them."""

    study: Study
    folder: Path
    cells: list[PlannedCell]
    stamps: dict[str, int] = field(default_factory=dict)  # modification times of the cell files before they were read
    finished: store.FinishedRows = field(default_factory=store.FinishedRows)  # all finished rows in the folder
    whole: Self | None = None  # the plan before a selection

    unit: ClassVar[str] = "cells"
    table: ClassVar[str] = store.RESULTS

    def to_run(self, *, retry_failed: bool = False) -> list[AnyJob]:
        """Return the unfinished jobs, the longest first."""
        wanted = {"missing", "stale", "failed"} if retry_failed else {"missing", "stale"}
        # By hash: a configuration with two labels is run once.
        jobs = {planned.job.cell.key: planned.job for planned in self.cells if planned.state in wanted}
        return sorted(jobs.values(), key=lambda job: -(job.estimate or 0.0))

    def absent(self, *, retry_failed: bool = False) -> list[str]:  # noqa: ARG002 of those to run
        """Return the data sets of cells to run whose files are missing on this machine."""
        return []

    def warnings(self) -> list[str]:
        """Return warnings about the study and its results."""
        return []

    def left_out(self) -> list[dict[str, str]]:
        """Return the selected combinations of method and data set that the study leaves out, with reasons."""
        return []

    def select(self, patterns: Sequence[str]) -> Self:
        """Return the plan of the cells that match every ``key=glob``; several globs of one key are alternatives.

        Raises UserError for an invalid pattern, or if no cell of the study matches.
        """
        wanted, labels = selection(patterns), self.study.labels()

        def named(planned: PlannedCell) -> list[dict[str, Any]]:
            cell = vars(planned.job.cell)
            return [{**cell, "method": label} for label in labels.get(cell["method"], [cell["method"]])]

        kept = [planned for planned in self.cells if any(matches(cell, wanted) for cell in named(planned))]
        if not kept:
            raise no_match(wanted, (cell for planned in self.cells for cell in named(planned)))
        return self._restricted(kept, wanted)

    def _restricted(self, kept: list[PlannedCell], wanted: Wanted) -> Self:  # noqa: ARG002
        return replace(self, cells=kept, whole=self)

    def statuses(self) -> Counter[str]:
        """Return the number of cells by status, or ``missing``."""
        rows = (self.finished.rows.get(planned.job.cell.key) for planned in self.cells)
        return Counter(row["status"] if row else "missing" for row in rows)

    def begin(self) -> None:
        """Prepare the results folder for a run."""

    def take_over(self, *, failed: bool) -> Counter[str]:  # noqa: ARG002
        """Copy finished cells of other studies; return their number by the name of the folder."""
        return Counter()

    def check(self, record: Record) -> None:
        """Raise UserError if a finished job shows that no further job is worth running."""

    def save(self, *, with_curves: bool = True) -> None:
        """Write the finished cells to the tables of the folder."""
