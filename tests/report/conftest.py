"""Fixtures of the tests of the report: synthetic studies, sections of a report, and a check of figures."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from ep_bench.plotting.page import Section
from ep_bench.report import builder, merge
from ep_bench.report.context import ReportContext


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
        found = builder.sections(ReportContext(merge.merge(folders)))
        return {part.id: part for section in found for part in section.with_parts()}

    return sections


@pytest.fixture(scope="session")
def no_overlap() -> Callable[[Figure], None]:
    """A check that no texts of a figure overlap and that none is cut off at an edge."""

    def check(figure: Figure) -> None:
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw_without_rendering()
        axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
        ticks = [(tick, sorted(axis.get_view_interval())) for axis in axes for tick in axis.get_major_ticks()]
        out_of_sight = {tick.label1 for tick, (low, high) in ticks if not low <= tick.get_loc() <= high}
        texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
        texts = [text for text in texts if text not in out_of_sight]
        boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
        assert boxes
        for i, (first, box) in enumerate(boxes):
            assert box.x0 >= 0 <= box.y0, first
            assert box.x1 <= figure.bbox.width, first
            assert box.y1 <= figure.bbox.height, first
            for second, other in boxes[i + 1 :]:
                assert not box.overlaps(other), (first, second)

    return check
