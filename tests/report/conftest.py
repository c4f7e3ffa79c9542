"""Fixtures of the tests of the report: synthetic studies, sections of a report, and a check of figures."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from ep_bench.plotting.page import Section
from ep_bench.report import merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import all_sections


@pytest.fixture(scope="session")
def make_study() -> Callable[..., Path]:
    spec = importlib.util.spec_from_file_location("synthetic", Path(__file__).parent / "synthetic.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_study


@pytest.fixture(scope="session")
def sections_of() -> Callable[..., dict[str, Section]]:
    """A function that returns the sections and parts of the report of some folders, by id."""

    def sections(*folders: Path) -> dict[str, Section]:
        found = all_sections(ReportContext(merge.merge(folders)))
        return {part.id: part for section in found for part in section.with_parts()}

    return sections
