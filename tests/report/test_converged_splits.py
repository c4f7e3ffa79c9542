"""Rows without a statement of convergence: the median of the stored objectives, judged by the method's criterion."""

from __future__ import annotations

import numpy as np
import pytest

from ep_bench.report import build, merge
from ep_bench.results import curves, store
from ep_bench.types import Decrease, Record

CRITERION = Decrease(since=2, limit=0.02)
RATES = {"slow": 0.5, "fast": 50.0}  # of the exponential decrease of the objective over the whole training
SPLITS = 4


def objective(rate, split, epochs=200):
    return (np.exp(-rate * np.arange(epochs) / epochs) + 0.001 * split).tolist()


@pytest.fixture
def folder(tmp_path, make_study):
    """A study of two methods, whose last split of boston was not traced."""
    folder = make_study(tmp_path / "s", tuple(RATES), ("boston", "yacht"), SPLITS, change=states_yacht)
    write_traces(folder, "objective")
    return folder


def states_yacht(row):
    return row | ({"converged": "true"} if row["dataset"] == "yacht" and row["split"] < 2 else {})


def write_traces(folder, name):
    lock = store.read_lock(folder)
    for group in lock["groups"]:
        group["criterion"] = CRITERION._asdict()
    store.write_lock(folder, lock)
    rows = list(store.finished_rows(folder).rows.values())
    traced = [row for row in rows if (row["dataset"], row["split"]) != ("boston", SPLITS - 1)]
    for row in traced:
        store.write_record(
            folder, Record(row=row, factors={}, trace={name: objective(RATES[row["method"]], row["split"])})
        )
    curves.update(folder, rows)


def counts(folder):
    return {entry: found.counts for entry, found in merge.merge([folder]).convergence.items()}


def test_all_splits_of_a_median_have_its_verdict(folder):
    found = counts(folder)
    assert found["slow", "boston"] == "0 of 4 converged, 3 not, 1 not stated, 3 by the median curve"
    assert found["fast", "boston"] == "3 of 4 converged, 0 not, 1 not stated, 3 by the median curve"


def test_what_rows_state_is_kept(folder):
    assert counts(folder)["slow", "yacht"] == "2 of 4 converged, 2 not, 2 by the median curve"


def test_without_objective_or_criterion_nothing_is_stated(tmp_path, make_study):
    folder = make_study(tmp_path / "s", tuple(RATES), ("boston",), SPLITS)
    write_traces(folder, "rmse")
    assert set(counts(folder).values()) == {"0 of 4 converged, 4 not stated"}
    lock = store.read_lock(folder)
    store.write_lock(folder, lock | {"groups": [{**group, "criterion": None} for group in lock["groups"]]})
    with pytest.raises(store.UserError, match="criterion"):
        merge.merge([folder])


@pytest.mark.usefixtures("undrawn_figures")
def test_marks_and_notes_follow(folder):
    build([folder])
    page = (folder / "report" / "report.md").read_text(encoding="utf-8")
    assert "Converged by the median curve" in page
    assert "0 of 4 converged, 3 not, 1 not stated, 3 by the median curve" in page
    assert "†" in page


@pytest.mark.parametrize("since", [2, 3])
def test_the_decrease_compares_means_of_quarters(since):
    rule = Decrease(since, 0.5)
    values = np.repeat([9.0, 5.0, 3.0, 2.0], 3)
    assert rule.of(values) == pytest.approx({2: 3.0, 3: 1.0}[since])
    assert (rule.met(0.5), rule.met(0.6)) == (True, False)
    assert rule.met(rule.of([1.0, 1.0, 1.0])) is None
