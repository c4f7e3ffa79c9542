"""Fixtures of the tests of the report: synthetic studies, sections of a report, and a check of figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ep_bench.plotting.page import Section
from ep_bench.report import merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import all_sections
from tests.report import synthetic


@pytest.fixture(scope="session")
def make_study() -> Callable[..., Path]:
    return synthetic.make_study


@pytest.fixture
def report_of(tmp_path: Path, make_study: Callable[..., Path]) -> Callable[..., ReportContext]:
    """A function that writes a study and returns its report."""

    def report(*names: object, name: str = "s", **about: object) -> ReportContext:
        return ReportContext(merge.merge([make_study(tmp_path / name, *names, **about)]))

    return report


@pytest.fixture(scope="session")
def sections_of() -> Callable[..., dict[str, Section]]:
    """A function that returns the sections and parts of the report of some folders, by id."""

    def sections(*folders: Path) -> dict[str, Section]:
        found = all_sections(ReportContext(merge.merge(folders)))
        return {part.id: part for section in found for part in section.with_parts()}

    return sections
