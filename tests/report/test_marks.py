"""Marks and warnings of a whole report: one bold entry, daggers everywhere, few target values, references."""

from __future__ import annotations

import re

import pytest

from ep_bench.report import build
from ep_bench.results import store

METHODS, DATASETS, SPLITS = ("pbp", "hmc", "gp"), ("boston", "concrete", "energy", "kin8nm", "wine"), 5


def change(row):
    if row["method"] == "gp" and row["dataset"] == "boston" and row["split"] > 1:
        return None
    better = {"pbp": 1.0, "hmc": 0.9, "gp": 1.5 if row["dataset"] == "energy" else 0.5}[row["method"]]
    scores = {name: row[name] * better for name in ("rmse", "crps")} | {"ll": row["ll"] - better}
    r_hat = {"energy": 1.2, "wine": 1.03}.get(row["dataset"], 1.0)
    return row | scores | ({"r_hat": r_hat, "converged": "true"} if row["method"] == "hmc" else {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_study):
    folder = make_study(tmp_path_factory.mktemp("marks") / "s", METHODS, DATASETS, SPLITS, change=change)
    lock = store.read_lock(folder)
    lock["datasets"]["wine"]["target_values"] = 6
    store.write_lock(folder, lock | {"compare": {"times": "pbp"}})
    build([folder])
    return folder


def page(folder, name="report.html"):
    return (folder / "report" / name).read_text(encoding="utf-8")


def score_part(folder, name):
    return re.search(rf'<h3 id="score-{name}">.*?</table>', page(folder), re.DOTALL).group()


@pytest.mark.parametrize("name", ["rmse", "ll", "crps"])
def test_one_bold_entry_per_data_set(folder, name):
    text = score_part(folder, name)
    rows = [re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL) for row in re.findall(r"<tr>.*?</tr>", text, re.DOTALL)]
    head, *body = [row for row in rows if row]
    columns = dict(zip([re.sub(r"<.*?>", "", cell) for cell in head], zip(*body, strict=True), strict=True))
    for dataset in DATASETS:
        unbounded = (name, dataset) == ("ll", "wine")  # a log-likelihood of few target values
        assert sum("<strong>" in cell for cell in columns[dataset]) == (not unbounded), dataset
    faint = [cell for column in columns.values() for cell in column if "faint" in cell]
    assert len(faint) == 1
    assert 'data-value=""' in faint[0]  # sorted last
    assert "2 of 5 splits" in faint[0]


def test_daggers_are_in_all_formats(folder):
    for text in (score_part(folder, "rmse"), page(folder, "tables/rmse.md")):
        assert "†" in text
        assert "°" in text
    assert "$^\\dagger$" in page(folder, "tables/rmse.tex")
    assert "†" in page(folder, "figures/critical-difference-rmse.svg")
    plots = page(folder, "report.html")
    assert plots.count("Hollow markers: some splits have not converged.") >= 4
    for name in ("rmse", "crps"):
        assert "best entry that has not converged on every split: hmc† on energy." in score_part(folder, name)


def test_few_target_values_are_a_warning(folder):
    assert "no upper bound on wine (6 target values): compare by CRPS" in score_part(folder, "ll")
    assert "no upper bound" not in score_part(folder, "crps")
    assert (folder / "report" / "figures" / "panels-crps.svg").exists()
