"""The section of equal budgets: families of entries, ranks, gains and orders of a synthetic study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ep_bench.report import merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import budgets
from ep_bench.results import store
from tests.report.synthetic import make_study

TUNE = {"fraction": 0.2, "score": "ll", "space": {"epochs": {"int": [1, 9]}}}
ENTRIES: dict[str, dict[str, Any]] = {
    name + suffix: {"use": use, "options": {}} | ({"tune": TUNE | {"trials": n}} if n > 1 else {})
    for name, use in (("PBP", "pbp"), ("BP", "bp"), ("Forest", "m:Forest"))
    for suffix, n in (("", 1), (", 5 trials", 5), (", 20 trials", 20))
}
RECALIBRATED: dict[str, dict[str, Any]] = {
    f"{name}, 20 trials, recalibrated": ENTRIES[f"{name}, 20 trials"] | {"recalibrate": {"method": "isotonic"}}
    for name in ("PBP", "BP")
}
GAINS = {"PBP, 5 trials": 0.5, "PBP, 20 trials": 1.0, "BP, 20 trials, recalibrated": 4.0}


def changed(row: dict[str, Any]) -> dict[str, Any]:
    """A row of PBP, which gains by its search, of BP, which does not and is worse, or of a forest without density."""
    ll = 2.0 * row["method"].startswith("PBP") + GAINS.get(row["method"], 0.0) + 0.001 * row["split"]
    trials = (ENTRIES | RECALIBRATED)[row["method"]].get("tune", {}).get("trials", 0)
    row |= {"ll": ll, "crps": 3.0 - ll / 2.0, "fit_seconds": 1.0, "predict_seconds": 0.0, "tune_seconds": float(trials)}
    return {name: value for name, value in row.items() if name != "ll"} if "Forest" in row["method"] else row


@pytest.fixture
def report(tmp_path: Path) -> ReportContext:
    pairs = [["PBP", "BP"], ["BP", "PBP"]]
    ranks = [{"name": "conclusions", "methods": ["PBP", "BP"], "pairs": pairs}]
    lock = {"methods": ENTRIES, "ranks": ranks}
    datasets = ("boston", "yacht", "concrete")
    folder = make_study(tmp_path / "league", list(ENTRIES), datasets, 4, change=changed, lock=lock)
    return ReportContext(merge.merge_studies([store.read_study(folder)]))


def texts(table: Any) -> list[list[str]]:
    return [[one if isinstance(one, str) else one["text"] for one in row] for row in table.rows]


def test_families_are_entries_of_one_search() -> None:
    found = budgets.found_families(ENTRIES)
    assert found["PBP"] == {1: "PBP", 5: "PBP, 5 trials", 20: "PBP, 20 trials"}
    assert list(found) == ["PBP", "BP", "Forest"]
    assert not budgets.found_families({name: one for name, one in ENTRIES.items() if "20" not in name})
    other = ENTRIES["BP, 5 trials"]
    mixed = ENTRIES | {"BP, 5 trials": other | {"tune": other["tune"] | {"score": "rmse"}}}
    assert list(budgets.found_families(mixed)) == ["PBP", "Forest"]


def test_ranks_gains_and_orders(report: ReportContext) -> None:
    (section,) = budgets.sections(report)
    ll, crps, gains, orders, within = section.tables
    assert texts(ll) == [["PBP", "1.0", "1", "1.0", "6", "1.0", "21"], ["BP", "2.0", "1", "2.0", "6", "2.0", "21"]]
    assert [row[0] for row in texts(crps)] == ["PBP", "BP", "Forest"]
    assert texts(gains)[0] == ["PBP", "+0.500", "+1.000", "+0.134", "+0.288"]
    assert gains.rows[0][2]["small"].endswith("3 + and 0 − of 3")
    assert texts(gains)[1] == ["BP", "+0.000", "+0.000", "+0.000", "+0.000"]
    assert texts(orders)[0] == ["PBP above BP", "log-likelihood", "holds, +2.000", "holds, +2.500", "holds, +3.000"]
    assert all(one.startswith("reversed") for one in texts(orders)[2][2:])
    assert texts(within) == [
        ["1 s", "PBP", "PBP"],
        ["10 s", "PBP, 5 trials", "PBP, 5 trials"],
        ["60 s", "PBP, 20 trials", "PBP, 20 trials"],
        ["300 s", "PBP, 20 trials", "PBP, 20 trials"],
    ]
    assert section.notes == ["Without log-likelihood, or not complete: Forest."]
    assert section.pictures[0].name == "ranks-against-budgets"


def test_without_budgets_there_is_no_section(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "plain")
    assert budgets.sections(ReportContext(merge.merge_studies([store.read_study(folder)]))) == []


def test_recalibrated_entries_are_compared_with_those_without(tmp_path: Path) -> None:
    entries = ENTRIES | RECALIBRATED
    assert budgets.found_families(entries) == budgets.found_families(ENTRIES)
    pairs = budgets.recalibrated_pairs(entries)
    assert pairs["PBP, 20 trials"] == {0: "PBP, 20 trials", 1: "PBP, 20 trials, recalibrated"}
    folder = make_study(
        tmp_path / "league",
        list(entries),
        ("boston", "yacht", "concrete"),
        4,
        change=changed,
        lock={"methods": entries},
    )
    report = ReportContext(merge.merge_studies([store.read_study(folder)]))
    (table,) = budgets.recalibration_tables(report.merged, report.entries)
    assert texts(table) == [
        ["BP, 20 trials", "isotonic", "+4.000", "2.0", "1.0", "+1.099", "2.0", "1.0"],
        ["PBP, 20 trials", "isotonic", "−1.000", "1.0", "2.0", "−0.288", "1.0", "2.0"],
    ]
    assert "log-likelihood: boston, concrete and yacht, 4 splits each; CRPS: boston" in table.caption


def test_a_method_without_any_cell_has_no_row(tmp_path: Path) -> None:
    lock = {"methods": ENTRIES}
    done = [name for name in ENTRIES if not name.startswith("BP")]
    folder = make_study(tmp_path / "league", done, ("boston", "yacht"), 3, change=changed, lock=lock)
    report = ReportContext(merge.merge_studies([store.read_study(folder)]))
    assert [row[0] for row in texts(budgets.gain_table(report.merged, budgets.found_families(ENTRIES)))] == [
        "PBP", "Forest",
    ]  # fmt: skip
