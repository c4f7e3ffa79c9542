"""The page as HTML."""

from __future__ import annotations

import pytest

from ep_bench.plotting.page import Section, Table, item
from ep_bench.report import first_screen, merge, render_html
from ep_bench.report.context import ReportContext


def test_only_a_page_with_views_contains_their_script(tmp_path, make_study):
    sections = [Section("s", "Section", tables=[Table(["value"], [["1"]])])]
    report = ReportContext(merge.merge([make_study(tmp_path / "s")]))
    views = first_screen.views(report)
    data = render_html.CellData(report).as_dict()
    without, with_views = render_html.page("title", sections), render_html.page("title", sections, views, data)
    assert "function makeSortable" in without
    assert "function showView" not in without
    assert "function showView" in with_views


@pytest.mark.parametrize("entry", [506, 1.5, None])
def test_a_bare_value_is_no_entry_of_a_table(entry: object) -> None:
    with pytest.raises(TypeError, match=rf"table 'Sizes': an entry must be a text or item.*found {entry}"):
        Table(["method", "points"], [["knn", entry]], "Sizes")
    assert Table(["method", "points"], [["knn", item("506", 506)]], "Sizes").rows
