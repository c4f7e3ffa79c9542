"""Figures and summary tables of experiments, which are no grid of methods and data sets."""

from __future__ import annotations

from dataclasses import replace

from ep_bench.experiments.figures import section
from ep_bench.plotting.page import Section
from ep_bench.report.context import NOT_DRAWN, ReportContext
from ep_bench.results.store import StudyResults

ORDER = 140


def _section(study: StudyResults, report: ReportContext) -> Section:
    if report.draws_all:
        return section(study)
    found = section(study, drawn=False)
    return replace(found, lines=[*found.lines, NOT_DRAWN])


def sections(report: ReportContext) -> list[Section]:
    """Return the section of an experiment, or one section with a part per experiment."""
    found = [_section(study, report) for study in report.merged.studies if study.lock.get("experiment")]
    if len(found) <= 1:
        return found
    return [Section("experiments", "Experiments", parts=found, summary=", ".join(part.title for part in found))]
