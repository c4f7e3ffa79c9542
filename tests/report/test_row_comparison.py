"""Comparison of methods with a reference per data point: intervals, differences, figure, tables, published times."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ep_bench.plotting.page import Section
from ep_bench.report import merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import row_comparison
from ep_bench.results import row_scores, store

METHODS, DATASETS, SPLITS, ROWS = ("LA1", "EP1", "SM"), ("boston", "yacht"), 3, 40


def scores_of(method: str, split: int, rows: int = ROWS) -> dict[str, list[float]]:
    """A data point is easy or hard for all methods; differences between methods are small."""
    rng = np.random.default_rng(split)
    row = rng.normal(-2.0, 1.5, rows)
    own = np.random.default_rng([split, METHODS.index(method)]).normal(0.0, 0.05, rows)
    shift = {"LA1": -0.2, "EP1": 0.0, "SM": 0.0}[method]
    return {"ll": (row + own + shift).tolist(), "ae": np.exp(-row + own).tolist()}


def compared(
    folder: Path, make_study: Any, absent: Any = lambda *_: False, change: Any = lambda row: row, **lock: Any
) -> Path:
    """Write a study with the scores of its data points."""
    options = {"compare": {"rows": "SM", "times": "LA1"}, **lock}
    make_study(folder, METHODS, DATASETS, SPLITS, change=change, lock=options)
    cells = store.lock_cells(store.read_lock(folder) or {})
    kept = {c["cell"]: scores_of(c["method"], c["split"]) for c in cells if not absent(c["method"], c["split"])}
    (folder / row_scores.FILE).write_text(json.dumps({"format": 1, "cells": kept}))
    return folder


def found(folder: Path) -> Section:
    (compared,) = row_comparison.sections(ReportContext(merge.merge([folder])))
    return compared


def column(table: Any, name: str) -> dict[str, dict[str, Any]]:
    place = table.head.index(name)
    return {row[0]: row[place] for row in table.rows}


def test_the_bootstrap_has_the_moments_of_its_distribution() -> None:
    x = np.random.default_rng(0).standard_exponential((1, 60))
    drawn = row_comparison.bootstrap(x, 20000)[:, 0]
    std = x.std() / np.sqrt(61)  # of a mean under Dirichlet weights
    assert drawn.mean() == pytest.approx(x.mean(), abs=4 * std / np.sqrt(20000))
    assert drawn.std() == pytest.approx(std, rel=0.03)


def test_the_bootstrap_uses_the_same_weights_for_all_methods() -> None:
    x = np.random.default_rng(0).normal(size=(1, 50))
    drawn = row_comparison.bootstrap(np.concatenate([x, x + 3.0, 2.0 * x]), 300)
    np.testing.assert_allclose(drawn[:, 1] - drawn[:, 0], 3.0)
    np.testing.assert_allclose(drawn[:, 2], 2.0 * drawn[:, 0])


def test_differences_are_significant_where_intervals_of_means_overlap(tmp_path: Path, make_study: Any) -> None:
    table = found(compared(tmp_path / "s", make_study)).tables[0]
    assert table.head == ["method", "boston", "boston, minus SM", "yacht", "yacht, minus SM"]
    means, pairs = column(table, "boston"), column(table, "boston, minus SM")
    for method in METHODS:
        values = np.concatenate([scores_of(method, split)["ll"] for split in range(SPLITS)])
        assert means[method]["value"] == pytest.approx(values.mean())
        low, high = map(float, means[method]["small"].split(" to "))
        half = 1.96 * values.std() / np.sqrt(len(values) + 1)
        assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.1 * half)
    assert pairs["LA1"]["value"] == pytest.approx(-0.2, abs=0.02)
    assert [pairs[name]["text"].endswith(" ≠") for name in ("LA1", "EP1")] == [True, False]
    assert pairs["SM"]["text"] == "–"


def test_differences_use_common_data_points(tmp_path: Path, make_study: Any) -> None:
    def absent(method: str, split: int) -> bool:
        return (method, split) in {("SM", 0), ("LA1", 2)}

    table = found(compared(tmp_path / "s", make_study, absent)).tables[0]
    one, other = (scores_of(method, 1)["ll"] for method in ("LA1", "SM"))
    assert column(table, "boston, minus SM")["LA1"]["value"] == pytest.approx(np.mean(one) - np.mean(other))
    both = np.concatenate([scores_of("LA1", split)["ll"] for split in (0, 1)])
    assert column(table, "boston")["LA1"]["value"] == pytest.approx(both.mean())


def test_the_figure_shows_means_left_and_differences_right(tmp_path: Path, make_study: Any) -> None:
    parts = found(compared(tmp_path / "s", make_study))
    assert [picture.name for picture in parts.pictures] == ["rows-ll", "rows-mae"]
    axes = parts.pictures[0].figure.axes
    assert [ax.get_title() for ax in axes] == ["boston", "boston, minus SM", "yacht", "yacht, minus SM"]
    left = {float(y): float(x) for line in axes[0].lines[2:] for x, y in zip(*line.get_data(), strict=True)}
    values = column(parts.tables[0], "boston")
    names = [text.get_text() for text in axes[0].texts]
    assert left == pytest.approx({float(names.index(method)): values[method]["value"] for method in METHODS})


def test_times_are_relative_and_next_to_the_published_ones(tmp_path: Path, make_study: Any) -> None:
    methods = {name: {"use": "gp_t", "published": [name], "options": {}} for name in METHODS}
    folder = compared(tmp_path / "s", make_study, methods=methods)
    table = found(folder).tables[-1]
    assert table.head == ["method", "boston", "yacht", "mean", "max", "published mean", "published max"]
    rows = store.read_rows(folder / store.RESULTS)

    def seconds(method: str, dataset: str) -> float:
        mine = [row for row in rows if (row["method"], row["dataset"]) == (method, dataset)]
        return float(np.mean([row["fit_seconds"] + row["predict_seconds"] for row in mine]))

    ratios = [seconds("EP1", dataset) / seconds("LA1", dataset) for dataset in DATASETS]
    line = dict(zip(table.head, next(row for row in table.rows if row[0] == "EP1"), strict=True))
    assert [line[dataset]["value"] for dataset in DATASETS] == pytest.approx(ratios)
    assert line["mean"]["value"] == pytest.approx(np.mean(ratios))
    assert line["max"]["value"] == pytest.approx(max(ratios))
    assert (line["published mean"]["text"], line["published max"]["text"]) == ("0.8", "1.1")
    assert "concrete quality" in table.caption
    assert "not public" in table.caption


def test_relative_times_are_those_of_common_splits(tmp_path: Path, make_study: Any) -> None:
    def change(row: dict[str, Any]) -> dict[str, Any] | None:
        if row["method"] == "EP1" and row["dataset"] == "yacht" and row["split"] > 1:
            return None
        slow = 100.0 if row["split"] > 1 else 1.0  # the splits that EP1 lacks
        return row | {"fit_seconds": 3.0 * slow, "predict_seconds": 0.0}

    methods = {name: {"use": "gp_t", "published": [name], "options": {}} for name in METHODS}
    table = found(compared(tmp_path / "s", make_study, methods=methods, change=change)).tables[-1]
    line = dict(zip(table.head, next(row for row in table.rows if row[0] == "EP1"), strict=True))
    assert [line[name]["text"] for name in ("boston", "yacht", "mean", "max")] == ["1", "1", "1", "1"]


@pytest.mark.parametrize(("scheme", "warned"), [("kfold", False), ("standard", True)])
def test_test_points_that_several_splits_contain_are_a_warning(
    tmp_path: Path, make_study: Any, scheme: str, warned: bool
) -> None:
    notes = found(compared(tmp_path / "s", make_study, splits={"scheme": scheme})).notes
    assert any("intervals are too narrow" in note for note in notes) is warned


def test_the_reference_is_the_method_of_the_study_that_names_it() -> None:
    """Of two methods with one label, the report renames at least one."""
    locks: list[dict[str, Any]] = [{}, {"compare": {"rows": "hmc", "times": "gp"}}]
    studies = [SimpleNamespace(lock=lock) for lock in locks]
    merged: Any = SimpleNamespace(
        studies=studies, tags=["a", "b"], names={("a", "hmc"): "hmc", ("b", "hmc"): "hmc [b]"}
    )
    assert row_comparison.requested(merged) == {"rows": "hmc [b]", "times": "gp"}
