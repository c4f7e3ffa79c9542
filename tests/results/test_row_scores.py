"""rows.json: scores of test points in cells, in a study that compares methods, and in a fresh clone."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from ep_bench import data
from ep_bench.errors import UserError
from ep_bench.results import row_scores, store
from ep_bench.runner.plan import make_plan
from ep_bench.runner.run import RunOptions, run_plan
from ep_bench.spec import read_study
from tests.commands import cells_in_this_process

pytestmark = pytest.mark.usefixtures("in_process")

STUDY = """\
study: s
datasets: [cubic]
splits: {scheme: kfold, folds: 2}
methods:
  - {use: "ep_bench.baselines:ConstantRegressor", label: constant}
  - {use: gp, label: GP, starts: 1, steps: 3}
"""


def run(folder: Path, text: str) -> Path:
    file = folder / "s.yaml"
    file.write_text(text)
    plan = make_plan(read_study(file), folder / "results")
    run_plan(plan, RunOptions(quiet=True))
    return plan.folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with cells_in_this_process():
        return run(tmp_path_factory.mktemp("rows"), STUDY + "compare: {rows: GP}\n")


def test_the_means_over_test_points_are_the_scores_of_the_cell(finished: Path) -> None:
    kept, study = row_scores.read(finished), store.read_study(finished)
    assert study.lock["compare"] == {"rows": "GP"}
    assert len(kept) == len(study.rows) == 4
    for row in study.rows:
        scores = kept[row["cell"]]
        assert len(scores["ll"]) == len(scores["ae"]) == row["n_test"] == 10
        assert np.mean(scores["ll"]) == pytest.approx(row["ll"], rel=1e-4)
        assert np.mean(scores["ae"]) == pytest.approx(row["mae"], rel=1e-4)


def test_scores_are_in_the_order_of_the_split(finished: Path) -> None:
    study = store.read_study(finished)
    scheme = data.resolve_scheme(read_study(finished.parents[1] / "s.yaml").splits)
    toy = data.load_dataset("cubic")
    for row in study.rows:
        if row["method"] == "constant":
            split = data.make_split(scheme, toy, row["split"])
            away = np.abs(toy.y[split.test] - toy.y[split.train].mean())
            np.testing.assert_allclose(row_scores.read(finished)[row["cell"]]["ae"], away, rtol=1e-4)


def test_the_file_is_written_once_the_study_asks_for_it(tmp_path: Path, finished: Path) -> None:
    folder = run(tmp_path, STUDY)
    assert not (folder / row_scores.FILE).exists()
    assert "compare" not in (store.read_lock(folder) or {})
    run(tmp_path, STUDY + "compare: {rows: GP}\n")
    assert row_scores.read(folder) == row_scores.read(finished)


def test_a_clone_keeps_entries_without_cell_files_and_drops_unplanned_ones(tmp_path: Path, finished: Path) -> None:
    clone = shutil.copytree(finished, tmp_path / "s", ignore=shutil.ignore_patterns("cells"))
    study = store.read_study(clone)
    before = (clone / row_scores.FILE).read_bytes()
    row_scores.update(clone, study.lock, study.rows)
    assert (clone / row_scores.FILE).read_bytes() == before
    row_scores.update(clone, study.lock, [row for row in study.rows if row["method"] == "GP"])
    assert set(row_scores.read(clone)) == {row["cell"] for row in study.rows if row["method"] == "GP"}
    row_scores.update(clone, study.lock, [row | {"status": "failed"} for row in study.rows])
    assert row_scores.read(clone) == {}


def test_a_large_file_is_compressed(tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(finished, tmp_path / "s")
    study, expected = store.read_study(folder), row_scores.read(folder)
    fewer = [row for row in study.rows if row["split"] == study.rows[0]["split"]]
    row_scores.update(folder, study.lock, fewer)
    monkeypatch.setattr(row_scores, "LARGE", 100)
    row_scores.update(folder, study.lock, study.rows)
    assert not (folder / row_scores.FILE).exists()
    assert row_scores.read(folder) == expected
    compressed = folder / row_scores.COMPRESSED
    compressed.write_bytes(compressed.read_bytes()[:-40])
    with pytest.raises(UserError, match=r"rows\.json\.xz: cannot be read"):
        row_scores.read(folder)
    compressed.write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"rows\.json\.xz: cannot be read"):
        row_scores.read(folder)
    monkeypatch.undo()
    compressed.unlink()
    row_scores.update(folder, study.lock, study.rows)
    assert (folder / row_scores.FILE).exists()


def test_scores_of_too_many_points_are_omitted() -> None:
    many = row_scores.note({"ll": np.zeros(row_scores.MAX_POINTS + 1), "ae": np.ones(3)})
    assert many == {"rows": {"ae": [1.0, 1.0, 1.0]}}
    assert row_scores.note({}) == {}
    assert row_scores.note({"ll": np.array([-1.23456789e-3])}) == {"rows": {"ll": [-0.0012346]}}
