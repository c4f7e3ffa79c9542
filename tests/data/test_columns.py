"""Columns of a user's file: kinds, values, and all faults at once; the entry that ``data check`` prints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ep_bench import data
from ep_bench.data.columns import Choices, Column, read_input
from ep_bench.errors import UserError
from ep_bench.types import DatasetRef, Task
from tests.commands import ep_bench


def column(cells: list[str], **choices: str) -> Column:
    return read_input("x", cells, lambda row: f"mine.csv:{row + 2}", Choices(**choices))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["1970-01-02", "1970-01-02 12:00:00"], [1.0, 1.5]),
        (["2.1.1970", "31.1.1970"], [1.0, 30.0]),
        (["2/1/1970", "31/1/1970"], [1.0, 30.0]),
        (["1/2/1970", "1/31/1970"], [1.0, 30.0]),
        (["1970/1/2", ""], [1.0, np.nan]),
    ],
)
def test_dates_are_days_since_1970(cells: list[str], days: list[float]) -> None:
    found = column(cells, dates="days", missing="median")
    assert (found.kind, found.faults) == ("date", ())
    np.testing.assert_array_equal(found.values, days)


def test_dates_whose_order_is_unknown_are_refused() -> None:
    (fault,) = column(["1/2/1970", "3/4/1970"], dates="days").faults
    assert "day and month cannot be told apart in 2 lines" in str(fault)


def test_a_column_is_what_most_of_its_cells_are() -> None:
    assert column(["1", "2", "many"]).kind == "number"
    found = column(["b", "a", "", "7", "none"], categories="onehot", missing="keep")
    assert (found.kind, found.names, found.faults) == ("category", ("7", "a", "b", "none"), ())
    np.testing.assert_array_equal(found.values, [2.0, 1.0, np.nan, 0.0, 3.0])
    zip_codes = column(["10", "9", "10"], categories="ordinal", kind="category")
    assert zip_codes.names == ("9", "10")


def test_all_faults_are_reported_with_the_key_that_mends_them(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    lines = [
        f"{i},{'' if i in {3, 5} else i % 4},{'red' if i % 2 else 'blue'},2024-01-{i + 1:02d},{i * i}"
        for i in range(12)
    ]
    path.write_text("a,size,kind,the day,y\n" + "\n".join([*lines, "1,2"]))
    with pytest.raises(UserError) as caught:
        data.load(DatasetRef("mine", "mine", csv=str(path), target="y"))
    first, *others = str(caught.value).split("\n")
    assert "mine.csv:14: the line has 2 fields" in first
    for fault, words in zip(
        others,
        [
            ":5: column size: missing value in 2 lines; found ''; allowed: finite numbers, or `missing: {size",
            ":2: column kind: categories, not numbers in 12 lines; found 'blue'; allowed: numbers, or `categories",
            ":2: column the day: dates, not numbers in 12 lines; found '2024-01-01'; allowed: numbers, or `dates: {",
        ],
        strict=True,
    ):
        assert words in fault
    assert '"the day": days' in others[2]


@pytest.mark.parametrize("choice", ["missing", "categories", "dates"])
def test_missing_targets_and_unknown_names_are_refused_with_any_choice(tmp_path: Path, choice: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("a,y\n" + "".join(f"{i},{'' if i == 4 else i * i}\n" for i in range(12)))
    every = {"missing": "median", "categories": "onehot", "dates": "days"}
    with pytest.raises(UserError, match=r":6: column y: missing value; found ''"):
        data.load(DatasetRef("mine", "mine", csv=str(path), target="y", **every))
    with pytest.raises(UserError, match=f"{choice}: there is no such column; found 'aa'"):
        data.load(DatasetRef("mine", "mine", csv=str(path), target="y", **{choice: {"aa": every[choice]}}))


def test_the_printed_entry_is_that_of_a_valid_study(tmp_path: Path) -> None:
    lines = [
        f"{'' if i % 5 == 0 else i / 7},{['x', 'y z', ''][i % 3]},{i % 28 + 1}.1.2024,1,{i % 9}" for i in range(40)
    ]
    (tmp_path / "mine.csv").write_text("size,kind,on,one,y\n" + "\n".join([*lines, lines[1], lines[1]]))
    done = ep_bench("data", "check", "mine.csv", "--target", "y", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "42 rows, 2 of them repeat an earlier one" in done.stdout
    assert "constant" in done.stdout
    entry = done.stdout[done.stdout.index("datasets:") :]
    (tmp_path / "s.yaml").write_text(f"study: s\n{entry}methods: [gp]\n")
    plan = ep_bench("plan", "s.yaml", cwd=tmp_path)
    assert plan.returncode == 0, plan.stderr


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_rows_without_a_target_and_identifiers_are_dropped(tmp_path: Path, task: Task) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("id,a,y\n" + "".join(f"n{i:02},{i},{'' if i in (4, 70) else i % 7}\n" for i in range(80)))
    entry = data.check_file(str(path), "y", task).entry
    assert 'missing: {"y": drop}, categories: {id: drop}' in entry
    ref = DatasetRef("mine", "mine", csv=str(path), target="y", task=task)
    found = data.load(replace(ref, missing={"y": "drop"}, categories={"id": "drop"}))
    kept = [i for i in range(80) if i not in (4, 70)]
    np.testing.assert_array_equal(found.X, np.array(kept, dtype=float)[:, None])
    np.testing.assert_array_equal(found.y, [i % 7 for i in kept])
    with pytest.raises(UserError, match="all inputs are dropped"):
        data.load(replace(ref, missing={"y": "drop"}, categories={"id": "drop", "a": "drop"}))
    with pytest.raises(UserError, match=r"missing: the target cannot be prepared; found 'y'"):
        data.load(replace(ref, missing={"y": "median"}))
    with pytest.raises(UserError, match=r"missing: only the target is dropped if it is missing; found 'a'"):
        data.load(replace(ref, missing={"a": "drop"}))
