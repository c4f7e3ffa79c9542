"""Tables and figures of a report state their source, in the same way each time."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ep_bench.report import build


@pytest.mark.slow
def test_figures_tables_and_page_state_studies_cells_and_version(make_study, tmp_path: Path) -> None:
    folder = make_study(tmp_path / "mine", ["a", "b"], ["yacht", "boston"], splits=3)
    first = {path.name: path.read_bytes() for path in build([folder], tmp_path / "first", pdf=True)}
    again = {path.name: path.read_bytes() for path in build([folder], tmp_path / "again", pdf=True)}
    assert first == again
    page = first["report.html"].decode()
    source = page.partition('<meta name="source" content="')[2].partition('"')[0]
    assert source.startswith("mine; cells ")
    assert "; ep-bench " in source
    for name, content in first.items():
        if name.endswith((".tex", ".md", ".svg")):
            assert source.encode() in content, name
        if name.endswith(".tex"):  # the table environment alone is copied into a paper
            assert source.encode() in content.partition(rb"\end{table}")[0], name
        if name.endswith(".svg"):
            assert ET.fromstring(content)[0].text == source  # noqa: S314 - what a browser shows
        if name.endswith(".pdf"):
            assert b"/Keywords" in content
