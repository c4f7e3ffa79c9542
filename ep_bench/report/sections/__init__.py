"""Sections of the report, one module each.

Each module has a number ``ORDER``, which is its place on the page, and a function ``sections`` that takes a
``ReportContext`` and returns a list of ``Section``, empty if there is nothing to show. ``SECTIONS`` has these functions
in the order of the page.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from ep_bench.plotting.page import Section
from ep_bench.report.context import ReportContext

_MODULES = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
SECTIONS: tuple[Callable[[ReportContext], list[Section]], ...] = tuple(
    module.sections for module in sorted(_MODULES, key=lambda module: module.ORDER)
)


def all_sections(report: ReportContext) -> list[Section]:
    """Return all sections of a report, in the order of the page."""
    return [section for function in SECTIONS for section in function(report)]
