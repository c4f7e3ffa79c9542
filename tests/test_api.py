"""`ep_bench.run` and `ep_bench.load_results`."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import ep_bench
from ep_bench.types import COLUMNS

STUDY = {
    "study": "constant",
    "datasets": ["yacht"],
    "splits": {"scheme": "standard", "count": 2},
    "methods": [{"use": "ep_bench.baselines:ConstantRegressor", "label": "Constant"}],
}


@pytest.mark.slow
def test_a_mapping_runs_once_and_its_rows_can_be_loaded(tmp_path: Path) -> None:
    first = ep_bench.run(STUDY, results=tmp_path)
    stamp = (tmp_path / "constant" / "results.csv").stat().st_mtime_ns
    assert list(first.columns) == list(COLUMNS)
    assert list(first["split"]) == [0, 1]
    assert set(first["status"]) == {"ok"}
    assert first["rmse"].notna().all()
    again = ep_bench.run(STUDY, results=tmp_path)
    assert (tmp_path / "constant" / "results.csv").stat().st_mtime_ns == stamp
    pd.testing.assert_frame_equal(first, again)
    pd.testing.assert_frame_equal(first, ep_bench.load_results(tmp_path / "constant"))


def test_a_wrong_mapping_has_one_message(tmp_path: Path) -> None:
    with pytest.raises(ep_bench.UserError, match=r"datasets\[0\].*did you mean 'yacht'"):
        ep_bench.run({**STUDY, "datasets": ["yachtt"]}, results=tmp_path)
    with pytest.raises(ep_bench.UserError, match="not plain text, number, list or mapping"):
        ep_bench.run({**STUDY, "seed": object()}, results=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"methods": ["pbp", {"use": "sklearn.linear_model:Ridge", "alpha": Ridge}]},
            r"methods: has a value that is not plain .*; found class Ridge;",
        ),
        (
            {"datasets": [{"name": np.zeros(99)}]},
            r"datasets: has a value that is not .*; found object of type ndarray;",
        ),
        (
            {"splits": OrderedDict(count=2)},
            r"splits: has a value that is not plain .*; found object of type OrderedDict;",
        ),
    ],
)
def test_a_value_that_is_not_plain_is_named(tmp_path: Path, changed: dict[str, object], message: str) -> None:
    with pytest.raises(ep_bench.UserError, match=message) as caught:
        ep_bench.run({**STUDY, **changed}, results=tmp_path)
    assert "'package.module:Class' or './file.py:Class'" in str(caught.value)


def test_an_experiment_runs_once_and_returns_its_summary(tmp_path: Path) -> None:
    study = {"study": "tilted", "experiment": "conflict_tilted", "options": {"points": 21}}
    first = ep_bench.run(study, results=tmp_path)
    stamp = (tmp_path / "tilted" / "summary.csv").stat().st_mtime_ns
    pd.testing.assert_frame_equal(first, ep_bench.run(study, results=tmp_path))
    pd.testing.assert_frame_equal(first, pd.read_csv(tmp_path / "tilted" / "summary.csv"))
    assert (tmp_path / "tilted" / "summary.csv").stat().st_mtime_ns == stamp
    assert len(first) > 0


def test_an_experiment_that_fails_has_no_results(tmp_path: Path) -> None:
    study = {"study": "car", "experiment": "mountain_car", "limits": {"seconds": 0.01}}
    with pytest.raises(ep_bench.UserError, match="the experiment has no results; its parts: 1 timeout"):
        ep_bench.run(study, results=tmp_path)


def test_rows_of_several_folders(tmp_path: Path) -> None:
    root = Path(__file__).parents[1] / "results"
    both = ep_bench.load_results(root / "pbp-table-1", root / "pbp-layers")
    assert set(both["study"]) == {"pbp-table-1", "pbp-layers"}
    assert both["converged"].isna().all()  # PBP has no criterion
    pd.testing.assert_frame_equal(
        both, ep_bench.load_results(root / "pbp-table-1", root / "pbp-layers", root / "pbp-layers")
    )
    with pytest.raises(ep_bench.UserError, match="no results folder"):
        ep_bench.load_results()
    with pytest.raises(ep_bench.UserError, match="nowhere"):
        ep_bench.load_results(tmp_path / "nowhere")


def test_columns_have_types() -> None:
    rows = ep_bench.load_results(Path(__file__).parents[1] / "results" / "ep-nn")
    assert {name: str(kind) for name, kind in rows.dtypes.items() if kind != "float64"} == {
        **dict.fromkeys(("study", "method", "dataset", "status", "cell", "reason"), "string"),
        **dict.fromkeys(("split", "n_train", "n_test", "seed"), "Int64"),
        "converged": "boolean",
    }
    assert len(rows[~rows["converged"].fillna(True)]) == (rows["converged"] == False).sum() > 0  # noqa: E712
    assert rows["reason"].str.startswith("not converged").sum() > 0


def test_a_list_of_folders_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ep_bench.UserError, match=r"load_results\(\*folders\)"):
        ep_bench.load_results([tmp_path])  # type: ignore[arg-type]


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "2"])
def test_a_wrong_number_of_jobs_writes_nothing(tmp_path: Path, jobs: object) -> None:
    with pytest.raises(ep_bench.UserError, match=r"wrong number of jobs.*allowed: an integer of at least 1"):
        ep_bench.run(STUDY, results=tmp_path, jobs=jobs)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
