"""Methods with point or quantile predictions: a dash for missing scores, ranks by the scores that they have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ep_bench import published, report
from ep_bench.cli.output.check import check_folders
from ep_bench.cli.output.study import status_items
from ep_bench.report import first_screen, merge, summary
from ep_bench.report import score_table_formats as tables
from ep_bench.report.context import ReportContext
from ep_bench.report.scores import BY_NAME
from ep_bench.report.sections import missing_cells
from ep_bench.results import store
from tests.commands import lines_of
from tests.report.synthetic import make_study

POINTS = "no log-likelihood: the method gives points only"
QUANTILES = "no log-likelihood: the method gives quantiles only"
MISSING = {
    "forest": ("ll", "pit_error", "coverage95"),
    "line": ("ll", "crps", "pit_error", "coverage50", "coverage90", "coverage95"),
}
REASONS = {"forest": QUANTILES, "line": POINTS}


def without(row: dict[str, Any]) -> dict[str, Any]:
    missing = MISSING.get(row["method"], ())
    kept = {key: value for key, value in row.items() if key not in missing}
    return kept | ({"reason": REASONS[row["method"]]} if missing else {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    methods = ("line", "pbp", "ridge", "forest")
    published_as = {"pbp": ["PBP"], "line": ["PBP"]}
    entries = {m: {"use": m, "published": published_as.get(m, []), "options": {}} for m in methods}
    place = tmp_path_factory.mktemp("r") / "study"
    return make_study(place, methods=methods, change=without, lock={"methods": entries})


@pytest.fixture(scope="module")
def written(folder: Path) -> dict[str, str]:
    paths = report.build([folder])
    texts = [path for path in paths if path.suffix in {".md", ".tex", ".csv", ".html"}]
    return {path.name: path.read_text(encoding="utf-8") for path in texts}


def test_tables_have_a_dash(written: dict[str, str]) -> None:
    rows = [line.strip("| ").split(" | ") for line in written["ll.md"].splitlines() if line.startswith("|")]
    assert [row[0] for row in rows[-2:]] == ["line", "forest"]  # without a rank
    assert all(entry == "–" for row in rows[-2:] for entry in row[1:])
    assert all("±" in entry for entry in rows[2][2:])
    assert " & -- & --" in written["ll.tex"]
    assert "(0/5)" not in written["ll.tex"]
    for text in written.values():
        assert not re.search(r"\bnan\b", text)
    page = written["report.html"]
    assert POINTS in page
    assert QUANTILES in page


def test_nothing_counts_as_missing(folder: Path, written: dict[str, str]) -> None:
    merged = merge.merge([folder])
    assert missing_cells.gaps(merged) == []
    table = summary.score_table(merged, BY_NAME["ll"])
    assert table is not None
    assert tables.shortfall(table, 0, table.methods.index("line")) == ""
    assert "of 5 splits" not in written["ll.md"]
    items, complete = status_items(folder)
    lines = lines_of(items)
    assert complete
    assert "60 ok" in lines[0]


def test_ranks_name_unranked_methods_and_keep_the_blocks(folder: Path, written: dict[str, str]) -> None:
    merged = merge.merge([folder])
    by_data, by_split = summary.ranked_score(merged, BY_NAME["ll"]).rankings
    assert by_data.left_out == ("line", "forest")
    assert (by_data.n, by_data.incomplete, by_split.n, by_split.incomplete) == (3, 0, 15, 0)
    assert list(by_data.ranks.columns) == ["pbp", "ridge"]
    full, _ = summary.ranked_score(merged, BY_NAME["rmse"]).rankings
    assert full.left_out == ()
    assert "Not ranked because they are not complete on all of these data sets: line, forest." in written["report.html"]


def test_the_page_says_that_there_is_no_density(folder: Path, written: dict[str, str]) -> None:
    assert "no density" in written["report.html"]
    assert "without this score" not in written["report.html"]
    report_of = ReportContext(merge.merge([folder]))
    assert report_of.leaderboards[0].score.name == "crps"  # forest has no density
    view = next(one for one in first_screen.views(report_of) if one.board.score.name == "ll")
    assert {"line is not ranked: no density.", "forest is not ranked: no density."} <= set(view.excluded)


def test_a_missing_split_is_still_missing(tmp_path: Path) -> None:
    def change(row: dict[str, Any]) -> dict[str, Any] | None:
        return None if row["method"] == "line" and row["split"] == 4 else without(row)

    folder = make_study(tmp_path / "study", methods=("line", "pbp"), change=change)
    table = summary.score_table(merge.merge([folder]), BY_NAME["ll"])
    assert table is not None
    assert tables.shortfall(table, 0, 0) == "0 of 5 splits with this score"
    assert len(report.build([folder])) > 5


def test_the_check_reports_incomplete(folder: Path) -> None:
    study = store.read_study(folder)
    rows = published.check(pd.DataFrame(study.rows), study.lock)
    line = rows[(rows["method"] == "line") & (rows["metric"] == "ll")]
    assert len(line)
    assert set(line["verdict"]) == {"incomplete"}
    assert line["reason"].str.contains("without a score").all()
    text = lines_of(check_folders([folder], (), folder / "check.csv")[0])
    assert not re.search(r"\bnan\b", "\n".join(text))


def test_coverages_of_different_methods(tmp_path: Path) -> None:
    missing = {"a": ("coverage50", "coverage95"), "b": ("coverage90", "pit_error")}

    def change(row: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in row.items() if key not in missing.get(row["method"], ())}

    folder = make_study(tmp_path / "study", methods=("a", "b"), change=change)
    assert any(path.name == "calibration.svg" for path in report.build([folder]))
