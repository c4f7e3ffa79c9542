"""Reports of classification sets, alone and with regression sets: no table or rank mixes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from ep_bench.report import build, merge
from ep_bench.report.context import ReportContext
from ep_bench.results import store

KEPT = ("study", "method", "dataset", "split", "status", "seed", "cell", "n_train", "n_test", "fit_seconds")
CLASSES = ("glass", "crabs", "pima")


def of_classes(row: dict[str, Any]) -> dict[str, Any]:
    """Replace the scores of a row of a classification set by those of classification."""
    if row["dataset"] not in CLASSES:
        return row
    rng = np.random.default_rng([row["split"], len(row["method"])])
    error = 0.1 + 0.05 * len(row["method"]) + 0.02 * rng.random()
    return {key: row[key] for key in KEPT} | {"ll": -3.0 * error, "error_rate": error, "brier": 1.5 * error}


def test_a_report_of_classes(
    make_study: Any, tmp_path: Path, no_overlap: Callable[[Figure], None], sections_of: Any
) -> None:
    folder = make_study(tmp_path / "s", ("gp", "forest", "logistic"), CLASSES, 4, change=of_classes)
    scores = ReportContext(merge.merge([folder])).scores
    assert [part.score.name for part in scores] == ["ll", "error_rate", "brier"]
    assert scores[0].score.title == "Mean log-likelihood"
    for part in scores:
        assert part.table.datasets == CLASSES
        assert part.headline is not None
        assert list(part.headline.average.index) == ["gp", "forest", "logistic"]
        assert part.table.marked[:, 0].all()
    pictures = {picture.name: picture for section in sections_of(folder).values() for picture in section.pictures}
    names = set(pictures)
    for name in names - {"times"}:
        no_overlap(pictures[name].figure)
    assert {"panels-ll", "panels-error_rate", "critical-difference-ll", "critical-difference-error_rate"} <= names
    assert "calibration" not in names
    files = {path.name for path in build([folder])}
    assert {"ll.md", "error_rate.tex", "brier.md", "report.html"} <= files
    page = (folder / "report" / "report.html").read_text(encoding="utf-8")
    assert "Mean log-likelihood (nats)" in page
    assert "Brier score (sum over classes)" in page
    assert "Scores of classification sets are means over test data points" in page
    for absent in ("RMSE", "Mean test log-likelihood", "CRPS", "Calibration"):
        assert absent not in page


def test_a_set_whose_cells_have_all_failed_has_the_task_of_its_lock_file(make_study: Any, tmp_path: Path) -> None:
    def failed(row: dict[str, Any]) -> dict[str, Any]:
        return {key: row[key] for key in KEPT} | {"status": "failed"} if row["dataset"] == "glass" else of_classes(row)

    folder = make_study(tmp_path / "s", ("gp", "forest"), ("glass", "crabs"), 3, change=failed)
    lock = store.read_lock(folder)
    for entry in lock["datasets"].values():
        entry["task"] = "classification"
    store.write_lock(folder, {key: value for key, value in lock.items() if key != "format"})
    merged = merge.merge([folder])
    assert merged.tasks() == {"glass": "classification", "crabs": "classification"}
    assert [part.score.name for part in ReportContext(merged).scores] == ["ll", "error_rate", "brier"]


def test_tasks_are_never_ranked_together(make_study: Any, tmp_path: Path, sections_of: Any) -> None:
    names = ("glass", "boston", "crabs", "yacht", "wine")
    folder = make_study(tmp_path / "s", ("gp", "forest"), names, 3, change=of_classes)
    merged = merge.merge([folder])
    assert merged.tasks() == {name: "classification" if name in CLASSES else "regression" for name in names}
    parts = {part.score.name: part for part in ReportContext(merged).scores}
    assert list(parts) == ["rmse", "ll", "crps", "ll-classes", "error_rate", "brier"]
    for name, part in parts.items():
        of = ("glass", "crabs") if name in {"ll-classes", "error_rate", "brier"} else ("boston", "yacht", "wine")
        assert part.table.datasets == of
        assert [ranking.n for ranking in part.rankings] == [len(of), 3 * len(of)]
    (picture,) = sections_of(folder)["score-ll-classes"].pictures
    assert picture.name == "panels-ll-classes"
    assert parts["ll"].table.mean[0, 0] != parts["ll-classes"].table.mean[0, 0]


def test_classifiers_per_data_point(make_study: Any, tmp_path: Path, sections_of: Any) -> None:
    import json

    from ep_bench.results import row_scores, store

    lock = {"compare": {"rows": "gp"}}
    folder = make_study(tmp_path / "s", ("gp", "forest"), ("glass", "boston"), 2, change=of_classes, lock=lock)
    rng = np.random.default_rng(0)
    kept = {}
    for cell in store.lock_cells(store.read_lock(folder) or {}):
        other = {"error": rng.integers(2, size=30).tolist()} if cell["dataset"] == "glass" else {"ae": [1.0, 2.0] * 15}
        kept[cell["cell"]] = {"ll": rng.normal(size=30).tolist(), **other}
    (folder / row_scores.FILE).write_text(json.dumps({"format": 1, "cells": kept}))
    compared = sections_of(folder)["compared"]
    names = [picture.name for picture in compared.pictures]
    assert names == ["rows-ll", "rows-mae", "rows-ll-classes", "rows-error_rate"]
    assert pytest.approx([2, 2, 2, 2]) == [len(table.rows) for table in compared.tables]
    assert [table.head[1] for table in compared.tables] == ["boston", "boston", "glass", "glass"]
