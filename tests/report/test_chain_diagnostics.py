"""Chains in the report: table of diagnostics, traces and rank plots, for chains that mix and chains that do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ep_bench.plotting import chain_figures
from ep_bench.plotting.page import item
from ep_bench.report import build, merge
from ep_bench.report.context import ReportContext
from ep_bench.report.sections import chains
from ep_bench.results import cell_curves, store
from ep_bench.types import Record
from tests.report.markov import sampled, walk
from tests.report.synthetic import complete

APART = {"yacht": 3.0}  # standard deviations between one chain and the others, by data set


def usual(row):
    if row["method"] != "hmc":
        return {}
    return sampled(row["split"], apart=APART.get(row["dataset"], 0.0) * (row["split"] == 0))


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


def monitored(values, **other):
    about = {"name": "a", "title": "A", "unit": "nats", "dataset": "toy", "split": 0, "r_hat": 1.0}
    return chain_figures.MonitoredDraws(**(about | {"draws": values.shape[1], "values": values} | other))


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


def test_a_split_without_a_number_is_reported(tmp_path, make_study):
    def notes(row):
        known = {0: {"r_hat_predictions": 1.2}, 1: {"r_hat_predictions": None}}
        return {"diagnostics": known[row["split"]] | {"divergences": None}}

    (table,) = collected(write(make_study(tmp_path / "s", ("hmc",), ("boston",), 2), notes)).tables
    (row,) = table.rows
    assert table.head == ["method", "data set", "splits", "R-hat, predictions"]
    assert (row[3]["text"], row[3]["small"]) == ("1.200†", "1 of 2 splits")


# Rank plots


def test_every_draw_has_a_rank_and_the_bins_are_even():
    found = chain_figures.ranks(walk(np.random.default_rng(0), 4, 100))
    assert found.counts.shape == (4, 10)
    assert found.counts.sum(axis=0).tolist() == [40] * 10
    assert found.counts.sum(axis=1).tolist() == [100] * 4
    assert found.uniform == 10.0


def test_the_band_contains_the_counts_of_chains_that_mix():
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(200):
        found = chain_figures.ranks(walk(rng, 4, 100))
        inside.append(np.mean((found.counts >= found.low) & (found.counts <= found.high)))
    exact = stats.hypergeom(400, 40, 100)
    expected = exact.cdf(found.high) - exact.cdf(found.low - 1)
    assert expected >= 0.95
    assert np.mean(inside) == pytest.approx(expected, abs=4 * np.std(inside) / np.sqrt(200))


@pytest.mark.parametrize("change", ["shifted", "wide", "stuck"])
def test_chains_that_do_not_mix_leave_the_band(change):
    values = walk(np.random.default_rng(2), 4, 100)
    values[3] = {"shifted": values[3] + 1.0, "wide": 3.0 * values[3], "stuck": np.full(100, 0.1)}[change]
    found = chain_figures.ranks(values)
    beyond = (found.counts < found.low) | (found.counts > found.high)
    assert beyond[3].sum() >= 3
    if change == "wide":
        assert beyond[3, [0, -1]].all()
    if change == "stuck":
        assert found.counts[3].max() == 100


def test_ties_have_ranks_and_draws_that_are_not_finite_are_omitted():
    values = np.array([[1.0, 1.0, np.nan, 2.0], [1.0, 3.0, 2.0, np.inf]])
    found = chain_figures.ranks(values)
    assert found.counts.sum(axis=1).tolist() == [3, 3]


# Figures


def test_a_trace_and_a_rank_plot_of_every_quantity(made):
    picture, more = made.pictures
    assert (picture.name, more.name) == ("chains-hmc-1", "chains-hmc-2")
    for words in (
        "Noise standard",
        "Log joint density",
        "R-hat 1.906",
        "boston",
        "split 0",
        "chain 4",
    ):
        assert f">{words}" in picture.svg
    titles = [ax.get_title() for ax in picture.figure.axes]
    assert len(titles) == len(more.figure.axes) == 2 * 2 * 2
    assert titles[:2] == ["Noise standard\ndeviation\n(standardised units)", "R-hat 1.003"]
    trace = picture.figure.axes[0].get_lines()
    assert len(trace) == 4
    assert {len(line.get_xdata()) for line in trace} == {cell_curves.DRAWS}
    assert (trace[0].get_xdata()[0], trace[0].get_xdata()[-1]) == (1.0, 500.0)


def test_r_hat_of_the_figure_is_that_of_its_split(tmp_path, make_study):
    """The first split has numbers, but no chains."""

    def notes(row):
        kept = sampled(row["split"], apart=float(row["split"]))
        return kept if row["split"] else {"diagnostics": kept["diagnostics"]}

    pictures = collected(write(make_study(tmp_path / "s", ("hmc",), ("boston",), 3), notes)).pictures
    assert all(">split 1" in picture.svg for picture in pictures)
    titles = {ax.get_title() for picture in pictures for ax in picture.figure.axes}
    assert titles >= {"R-hat 1.304", "R-hat 1.001", "R-hat 1.303"}


def test_one_chain_has_a_trace_and_no_ranks(tmp_path, make_study):
    folder = write(make_study(tmp_path / "s", ("hmc",), ("boston",), 2), lambda row: sampled(row["split"], count=1))
    pictures = collected(folder).pictures
    assert [len(picture.figure.axes) for picture in pictures] == [2, 2]
    assert not any("uniform" in picture.svg or "R-hat" in picture.caption for picture in pictures)


def test_constant_quantities_have_no_figure(tmp_path, make_study):
    def notes(row):
        kept = sampled(row["split"])
        kept["chains"]["noise_deviation"] = {"draws": 9, "values": [[0.1] * 9] * 4}
        kept["chains"]["log_joint"] = {"draws": 2, "values": [[None] * 2] * 4}
        return kept

    found = collected(write(make_study(tmp_path / "s", ("hmc",), ("boston", "yacht"), 1), notes))
    assert len(found.pictures[0].figure.axes) == 2 * 2 * 2


SCALES = [(1, 1.0, 0.0), (12, 1.0, 0.0), (2, 1e-7, 1e-6), (2, 1e9, -1e10), (4, 0.01, -123_456.0)]


@pytest.mark.parametrize(("count", "scale", "level"), SCALES)
def test_no_words_overlap(count, scale, level, no_overlap):
    rng = np.random.default_rng(0)
    found = [
        monitored(level + scale * walk(rng, count, 100), name=name, title=title, dataset=dataset)
        for name, title in (("a", "A"), ("b", "Prior standard deviation of the weights"))
        for dataset in ("boston", "yacht")
    ]
    (picture,) = chain_figures.several("hmc", found)
    no_overlap(picture.figure)
