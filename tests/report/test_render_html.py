"""The page as HTML: values to sort by."""

from __future__ import annotations

import pytest

from ep_bench.plotting.page import Section, Table, item
from ep_bench.report import first_screen, merge, page_data, render_html
from ep_bench.report.context import ReportContext


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        (item("2.59 ± 0.31", 2.5941), None),
        (item("-0.0685 ± 0.0012†", -0.06851), None),
        (item("0.5", 0.5), None),
        (item("1.2 min", 72.0), "72"),  # in another unit than the value
        (item("1.2e-05", 1.234567e-5), "1.23457e-05"),
        (item("3.10 (2 of 20)", ""), ""),  # last, although its text begins with a number
        (item("boston"), None),
        (item("2.6", 2.6, kind="word"), "2.6"),  # the script reads numbers in entries of kind "number" only
    ],
)
def test_an_entry_has_a_value_to_sort_by_unless_its_text_begins_with_it(entry, key):
    table = Table(["value"], [["a", entry]])
    page = render_html.page("title", [Section("s", "Section", tables=[table])]).partition("</table>")[0]
    assert (f' data-value="{key}"' in page) == ("data-value" in page) == (key is not None)


def test_only_a_page_with_views_contains_their_script(tmp_path, make_study):
    sections = [Section("s", "Section", tables=[Table(["value"], [["1"]])])]
    report = ReportContext(merge.merge([make_study(tmp_path / "s")]))
    views = first_screen.views(report)
    data = page_data.CellData(report).as_dict() | {"tex": {}}
    without, with_views = render_html.page("title", sections), render_html.page("title", sections, views, data)
    assert "function makeSortable" in without
    assert "function showView" not in without
    assert "function showView" in with_views


def test_scripts_have_no_comment_lines_and_keep_their_texts():
    script = "// A comment.\n/** Another. */\nf(() => {\n\n  return `a // b`; // why\n});\n"
    assert render_html._without_comments(script) == "f(() => {\nreturn `a // b`; // why\n});"


@pytest.mark.parametrize("entry", [506, 1.5, None])
def test_a_bare_value_is_no_entry_of_a_table(entry: object) -> None:
    with pytest.raises(TypeError, match=rf"table 'Sizes': an entry must be a text or item.*found {entry}"):
        Table(["method", "points"], [["knn", entry]], "Sizes")
    assert Table(["method", "points"], [["knn", item("506", 506)]], "Sizes").rows
