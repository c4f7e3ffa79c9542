"""Sections of the report.

Each module has a function ``sections`` that takes a ``ReportContext`` and returns a list of ``Section``, empty if there
is nothing to show. ``SECTIONS`` lists these functions in the order of the page.
"""

from __future__ import annotations

from collections.abc import Callable

from ep_bench.plotting.page import Section
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import (
    calibration_and_time,
    chains,
    experiments,
    function_panels,
    further_scores,
    leaderboard,
    missing_cells,
    notes,
    point_tables,
    published_numbers,
    rank_groups,
    ranks,
    row_comparison,
    scores,
    several_starts,
    training_curves,
    tuned_options,
    what_was_run,
)

SECTIONS: tuple[Callable[[ReportContext], list[Section]], ...] = (
    leaderboard.sections,
    notes.sections,
    scores.sections,
    ranks.sections,
    rank_groups.sections,
    row_comparison.sections,
    point_tables.sections,
    function_panels.sections,
    calibration_and_time.sections,
    chains.sections,
    several_starts.sections,
    training_curves.sections,
    tuned_options.sections,
    further_scores.sections,
    experiments.sections,
    published_numbers.sections,
    missing_cells.sections,
    what_was_run.sections,
)
