"""Plots in Python: what they draw, into which axes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import stats

import ep_bench
from ep_bench.predictions import Predictive, QuantilePrediction

ROOT = Path(__file__).parents[1] / "results"
TARGETS = np.random.default_rng(0).normal(size=2000)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return ep_bench.load_results(ROOT / "pbp-layers", ROOT / "ensemble")


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_reliability_of_a_calibrated_and_of_a_wide_prediction() -> None:
    ax = Figure().add_subplot()
    named = {f"{std}": Predictive.gaussian(np.zeros(2000), np.full(2000, std**2)) for std in (1.0, 2.0)}
    assert ep_bench.plot.reliability(named, TARGETS, ax=ax) is ax
    _, calibrated, wide = ax.get_lines()
    np.testing.assert_allclose(calibrated.get_xdata(), np.arange(5.0, 100.0, 5.0))
    np.testing.assert_allclose(calibrated.get_ydata(), calibrated.get_xdata(), atol=4.0)
    expected = 100.0 * (2.0 * stats.norm.cdf(2.0 * stats.norm.ppf(0.75)) - 1.0)
    assert wide.get_ydata()[9] == pytest.approx(expected, abs=4.0)  # of the central 50 %
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1.0", "2.0"]


def test_reliability_of_quantiles_has_the_intervals_that_they_answer() -> None:
    levels = [0.05, 0.25, 0.75, 0.95]
    found = QuantilePrediction(levels, np.tile(stats.norm.ppf(levels)[:, None], (1, 2000)))
    ax = ep_bench.plot.reliability(found, TARGETS)
    np.testing.assert_allclose(ax.get_lines()[1].get_xdata(), [50.0, 90.0])
    assert ax.get_legend() is None


def test_ranks_are_those_of_the_leaderboard(rows: pd.DataFrame) -> None:
    ax = ep_bench.plot.ranks(rows, score="rmse")
    complete = set(rows["method"]) - {"Ensemble adversarial", "Ensemble 40 epochs"}  # splits of these have failed
    means = rows.pivot_table("rmse", "dataset", "method")[list(complete)].rank(axis=1).mean().sort_values()
    assert set(texts(ax)) == set(means.index)
    assert means[texts(ax)].is_monotonic_increasing  # ties are in any order
    np.testing.assert_allclose(sorted(ax.get_lines()[-1].get_xdata()), means.to_numpy())
    with pytest.raises(ep_bench.UserError, match="no two methods"):
        ep_bench.plot.ranks(rows[rows["method"] == "Ensemble"])
    with pytest.raises(ep_bench.UserError, match="score without a better side"):
        ep_bench.plot.ranks(rows, score="coverage50")


@pytest.mark.parametrize("score", ["ll", "rmse"])
def test_a_comparison_draws_its_table(rows: pd.DataFrame, score: str) -> None:
    ax = ep_bench.plot.compare(rows, "Ensemble", "PBP-1", score=score)
    table = ep_bench.compare(rows, "Ensemble", "PBP-1", score=score)
    assert texts(ax)[: len(table)] == list(table["dataset"])
    drawn = ax.get_lines()[-1].get_xdata()[-1]  # over all data sets
    expected = table["difference"].iloc[-1]
    assert drawn == pytest.approx(expected if score == "ll" else 100.0 * np.expm1(expected))
    assert ("% of PBP-1" in ax.get_xlabel()) == (score == "rmse")
