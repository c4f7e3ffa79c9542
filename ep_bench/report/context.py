"""The merged studies of a report, and what several sections compute from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ep_bench.convergence import DAGGER
from ep_bench.plotting.axes import HOLLOW
from ep_bench.plotting.method_style import MethodStyle, method_styles
from ep_bench.report import summary
from ep_bench.report.merge import MergedStudies
from ep_bench.report.published_checks import merged_check
from ep_bench.report.scores import BY_NAME, MORE, Score, main_scores
from ep_bench.report.summary import RankedScore, ScoreTable

if TYPE_CHECKING:
    from ep_bench.report.sections.leaderboard import Leaderboard

TITLED = 4  # studies in the title of a page
SMALL = 2000  # data sets with fewer data points are small
DRAWN = 20  # methods whose scores are drawn in panels
NOT_DRAWN = "The figures are drawn with the option --all-figures, and in the report of a single study of few methods."


@dataclass(frozen=True)
class ReportContext:
    """Merged studies. What several sections need is computed at the first access."""

    merged: MergedStudies
    all_figures: bool | None = None  # draw experiments and all panels; None: by the size

    @property
    def draws_all(self) -> bool:
        """Return whether to draw experiments too."""
        small = len(self.merged.studies) == 1 and len(self.merged.methods) <= DRAWN
        return small if self.all_figures is None else self.all_figures

    @property
    def draws_panels(self) -> bool:
        """Return whether to draw the scores in panels by data set; a map shows them for more methods."""
        return bool(self.all_figures) or len(self.merged.methods) <= DRAWN

    @property
    def title(self) -> str:
        """Return the title of the page: the studies, and how much was run."""
        tags = self.merged.tags
        shown = tags if len(tags) <= TITLED else [*tags[:TITLED], f"and {len(tags) - TITLED} more studies"]
        name, planned = ", ".join(shown), sum(self.merged.planned.values())
        if not planned:
            return name
        methods, datasets = len(self.merged.methods), len(self.merged.datasets)
        what = f"{methods} method{'s' * (methods != 1)} on {datasets} data set{'s' * (datasets != 1)}"
        return f"{name}: {what}, {len(self.merged.ok()):,} of {planned:,} fits"

    @cached_property
    def styles(self) -> dict[str, MethodStyle]:
        """Return the style of each method in all figures."""
        return method_styles(self.merged.methods, {name: str(one.get("use", "")) for name, one in self.entries.items()})

    @cached_property
    def marked_styles(self) -> dict[str, MethodStyle]:
        """Return the styles, with hollow markers for methods of which some split has not converged."""
        return {name: style._replace(is_hollow=self.marks[name] == DAGGER) for name, style in self.styles.items()}

    def by_rank(self, score: Score | None = None) -> list[str]:
        """Return the methods by average rank in a score (by default the first), then those that are not ranked."""
        boards = [board for board in self.leaderboards if board.score == score] or self.leaderboards[:1]
        ranks = {row.method: row.rank for board in boards for row in board.ranked}
        return sorted(self.merged.methods, key=lambda method: ranks.get(method, math.inf))

    @property
    def hollow_note(self) -> str:
        """Return what hollow markers mean as a sentence of a caption, empty if no method has one."""
        return HOLLOW * (DAGGER in self.marks.values())

    @cached_property
    def entries(self) -> dict[str, Mapping[str, Any]]:
        """Return the entry of each method in the lock of its first study, by label."""
        found: dict[str, Mapping[str, Any]] = {}
        for name, entry in self.merged.method_entries():
            found.setdefault(name, entry)
        return found

    @cached_property
    def scores(self) -> list[RankedScore]:
        """Return the main scores with their rankings."""
        found = (summary.ranked_score(self.merged, score) for score in main_scores(set(self.merged.tasks().values())))
        return [one for one in found if one is not None]

    def table_of(self, score: Score) -> ScoreTable:
        """Return the table of a main score."""
        return next(one.table for one in self.scores if one.score == score)

    @cached_property
    def checks(self) -> pd.DataFrame:
        """Return the comparison with published numbers."""
        return merged_check(self.merged)

    @cached_property
    def set_groups(self) -> dict[str, list[str]]:
        """Return the data sets of all groups: all, then small and large ones if there are both."""
        names = self.merged.datasets
        small = [name for name in names if self.merged.sizes.get(name, SMALL) < SMALL]
        large = [name for name in names if name not in small]
        return {"all": names} | ({"small": small, "large": large} if small and large else {})

    @cached_property
    def boards(self) -> dict[tuple[str, str], Leaderboard]:
        """Return the leaderboard of each score and group of data sets, the first score first.

        That is the log-likelihood or, if a method has the CRPS but no density, the CRPS.
        """
        from ep_bench.report.sections.leaderboard import leaderboard

        tables = {one.score.name: one.table for one in self.scores}
        whole = {name: set(np.array(table.methods)[table.complete.any(axis=0)]) for name, table in tables.items()}
        dense = set(summary.pivot(self.merged, BY_NAME["ll"]).columns)
        first = "crps" if whole.get("crps", set()) - dense else "ll"
        ordered = sorted(tables.values(), key=lambda table: table.score.source != first)
        ordered.sort(key=lambda table: table.score.task == "classification")
        return {
            (table.score.name, group): leaderboard(self.merged, table, sets=sets)
            for table in ordered
            if table.score.better
            for group, sets in self.set_groups.items()
            if set(sets) & set(table.datasets)
        }

    @property
    def leaderboards(self) -> list[Leaderboard]:
        """Return the leaderboard of each score on all data sets, that of the first score first."""
        return [board for (_, group), board in self.boards.items() if group == "all"]

    @cached_property
    def further_scores(self) -> dict[str, ScoreTable]:
        """Return the tables of the further scores, such as coverage and times, by name."""
        found = {score.name: summary.score_table(self.merged, score) for score in MORE}
        return {name: table for name, table in found.items() if table is not None}

    @property
    def time_notes(self) -> list[str]:
        """Return the note on times of several processors, if there are several."""
        processors = self.merged.processors
        if len(processors) < 2:
            return []
        return [f"Times are of {len(processors)} processors ({', '.join(processors)}), which are not equally fast."]

    def label(self, method: str) -> str:
        """Return the name of a method in figures and tables, with its mark of convergence over all data sets."""
        return method + self.marks.get(method, "")

    @cached_property
    def marks(self) -> dict[str, str]:
        """Return the mark of convergence of each method over all data sets: a dagger, a ring or nothing."""
        return {method: self.merged.converged([method], self.merged.datasets).mark for method in self.merged.methods}
