"""Several starts in the report."""

from __future__ import annotations

import pytest

from ep_bench.report import build
from ep_bench.report.sections.seeds import spread_of
from ep_bench.results import store
from ep_bench.types import Record
from tests.report.synthetic import complete


def test_the_spread_of_the_starts_of_one_fit() -> None:
    spread = spread_of([-10.0, None, -7.0, -7.5, -20.0])
    assert spread == pytest.approx((2 / 5, 1.75, 13.0))
    assert spread_of([None, -3.0]) is None
    assert spread_of([]) is None


def test_the_table_of_a_report(tmp_path, make_study) -> None:
    folder = make_study(tmp_path / "s", datasets=("boston", "yacht"), splits=2)
    evidences = {0: [-10.0, -12.0, -11.5], 1: [-10.0, None, -30.0]}
    for row in store.read_rows(folder / store.RESULTS):
        if row["method"] == "ridge" and row["dataset"] == "boston":
            notes = {"start_evidences": evidences[row["split"]]}
            kept = {"trace": {"objective": [1.0, 2.0]}, "provenance": {"finished": "2026-01-01T00:00:00Z"}}
            store.write_record(folder, Record(row=row, factors={}, notes=notes, **kept))
    complete(folder)
    build([folder])
    text = (folder / "report" / "report.html").read_text(encoding="utf-8")
    section = text[text.index('<section id="starts">') :].split("</section>", 1)[0]
    assert "Several starts" in section
    assert "largest 20.0" in section
    assert "yacht" not in section
