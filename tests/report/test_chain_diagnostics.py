"""Chains in the report: the table of diagnostics, for chains that mix and chains that do not."""

from __future__ import annotations

import pytest

from ep_bench.plotting.page import item
from ep_bench.report import build, merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import chains
from ep_bench.results import store
from ep_bench.types import Record
from tests.report.synthetic import complete

APART = {"yacht": 3.0}  # standard deviations between one chain and the others, by data set


def usual(row):
    """Return the notes of a cell whose last chain is so many standard deviations away from the others."""
    if row["method"] != "hmc":
        return {}
    apart = APART.get(row["dataset"], 0.0) * (row["split"] == 0)
    worse = 1.0 + 0.3 * apart
    diagnostics = {
        "r_hat_predictions": 1.002 * worse, "r_hat_log_joint": 1.001, "r_hat_noise_deviation": 1.003 * worse,
        "ess_bulk_predictions": 900.0 / worse**3, "ess_tail_predictions": 700.0 / worse**3,
        "ess_bulk_noise_deviation": 1500.0 / worse**3, "ess_bulk_log_joint": 650.0, "divergences": 2.0 * apart,
        "acceptance": 0.815, "step_size": 0.012, "gradients": 120_000.0,
    }  # fmt: skip
    return {"diagnostics": diagnostics}


def write(folder, notes=usual):
    """Write a cell file with notes for every row of a study."""
    for row in store.read_rows(folder / store.RESULTS):
        kept = notes(row)
        trace = {} if row["method"] == "gp" else {"noise_deviation": [0.5, 0.4, 0.3]}
        trace |= {"acceptance": [0.8, 0.8, 0.8]} if row["method"] == "hmc" else {}
        store.write_record(folder, Record(row=row, factors={}, trace=trace, notes=kept))
    return complete(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_study):
    """Return the folder of a study with its report."""
    folder = write(make_study(tmp_path_factory.mktemp("r") / "s", ("hmc", "pbp", "gp"), ("boston", "yacht"), 3))
    build([folder])
    return folder


@pytest.fixture(scope="module")
def made(folder):
    return collected(folder)


def collected(folder):
    """Return the section of chains."""
    (section,) = chains.sections(ReportContext(merge.merge([folder])))
    return section


def by_label(table):
    return {(row[0], row[1]): dict(zip(table.head[2:], row[2:], strict=True)) for row in table.rows}


# The table


def test_the_table_has_medians_and_worst_splits(made):
    (main,) = made.tables
    rows = by_label(main)
    assert rows.keys() == {("hmc", "boston"), ("hmc", "yacht")}
    r_hat = rows["hmc", "yacht"]["R-hat, predictions"]
    assert (r_hat["text"], r_hat["small"], r_hat["strong"]) == ("1.002†", "highest 1.904", False)
    bulk = rows["hmc", "yacht"]["bulk ESS, predictions"]
    assert (bulk["text"], bulk["small"], bulk["strong"]) == ("900↓", "lowest 131", False)
    assert rows["hmc", "yacht"]["divergences"]["small"] == "highest 6"
    assert rows["hmc", "boston"]["R-hat, predictions"] == item("1.002", 1.002)
    assert not rows["hmc", "boston"]["bulk ESS, predictions"]["strong"]
    assert rows["hmc", "boston"]["acceptance"]["text"].startswith("0.8")


def test_numbers_beyond_the_limits_are_marked(tmp_path, make_study):
    values = {"at": (1.01, 400.0), "over": (1.0101, 399.0), "far": (1.051, 500.0)}

    def notes(row):
        r_hat, ess = values[row["dataset"]]
        return {"diagnostics": {"r_hat_predictions": r_hat, "ess_tail_predictions": ess}}

    rows = by_label(collected(write(make_study(tmp_path / "s", ("hmc",), tuple(values), 2), notes)).tables[0])
    for name in ("R-hat, predictions", "tail ESS, predictions"):
        assert rows["hmc", "at"][name]["text"][-1].isdigit()
    assert rows["hmc", "over"]["R-hat, predictions"]["text"] == "1.010°"
    assert rows["hmc", "far"]["R-hat, predictions"]["text"] == "1.051†"
    assert rows["hmc", "over"]["tail ESS, predictions"]["text"] == "399↓"
    assert not any(entry["strong"] for row in rows.values() for entry in row.values() if isinstance(entry, dict))
