"""Plots of results and predictions for notebooks and papers. Each function draws into ``ax`` and returns it.

Without ``ax``, a new figure of pyplot is made. ``ep_bench.report.figures`` returns the figures of a report.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ep_bench import scores
from ep_bench.convergence import DAGGER
from ep_bench.errors import UserError
from ep_bench.predictions import QuantilePrediction
from ep_bench.report import pairwise, summary
from ep_bench.report.merge import MergedStudies
from ep_bench.report.scores import TARGET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = np.arange(5, 100, 5) / 100.0  # of central intervals


def reliability(
    predictions: scores.Distribution | Mapping[str, scores.Distribution], y: ArrayLike, *, ax: Axes | None = None
) -> Axes:
    """Plot the fraction of targets inside central intervals against the probability of the intervals.

    Parameters
    ----------
    predictions : prediction or mapping
        What ``predict_dist`` returns for N data points, or several by name.
    y : array-like of shape (N,)
        Targets.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The diagonal is perfect, and a curve above it has intervals that are too wide. The band contains 95 % of the
        fractions of a calibrated method at each level, if the data points are independent.
    """
    import matplotlib as mpl

    from ep_bench.plotting.style import LOOKS, STYLE

    named = predictions if isinstance(predictions, Mapping) else {"": predictions}
    with mpl.rc_context(STYLE):
        axes = _axes(ax, 3.4, 3.2)
        band = 196.0 * np.sqrt(LEVELS * (1.0 - LEVELS) / len(np.asarray(y)))
        axes.fill_between(100.0 * LEVELS, 100.0 * LEVELS - band, 100.0 * LEVELS + band, color="0.9", linewidth=0)
        axes.plot([0.0, 100.0], [0.0, 100.0], color="0.6", linewidth=0.8)
        for (name, prediction), (colour, marker) in zip(named.items(), cycle(LOOKS), strict=False):
            levels = [level for level in LEVELS if _has_interval(prediction, level)]
            inside = [100.0 * scores.coverage(prediction, y, level) for level in levels]
            axes.plot(100.0 * np.array(levels), inside, marker=marker, markersize=3, color=colour, label=name)
        axes.set(xlabel="nominal coverage (%)", ylabel="coverage (%)", xlim=(0, 100), ylim=(0, 100), aspect="equal")
        if any(named):
            axes.legend(frameon=False)
    return axes


def ranks(results: pd.DataFrame, *, score: str = "ll", ax: Axes | None = None) -> Axes:
    """Plot the average ranks of methods over data sets, the best on top.

    Parameters
    ----------
    results : DataFrame
        Finished cells, as `load_results` or `run` returns them. The methods and data sets are those of the largest
        complete subset.
    score : str
        A score of which lower or higher values are better, such as ``ll``, ``rmse``, ``crps`` or ``error_rate``.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
        A line contains the central 95 % of the ranks of resampled data sets and splits, and a band those closer to the
        best than Nemenyi's critical difference, where the test is possible. Hollow: some splits have not converged.

    Raises
    ------
    UserError
        There is no such score, or no two methods are complete on a data set.
    """
    import matplotlib as mpl

    from ep_bench.plotting.axes import method_axis
    from ep_bench.plotting.method_style import MethodStyle
    from ep_bench.plotting.rank_intervals import RankInterval, draw
    from ep_bench.plotting.style import STYLE
    from ep_bench.report.sections.leaderboard import leaderboard

    merged, chosen = _merged(results), replace(pairwise.score_named(score), task=None)
    table = summary.score_table(merged, chosen)
    board = None if table is None else leaderboard(merged, table)
    if table is None or board is None or len(board.ranked) < 2:
        raise UserError("no two methods are complete on a common data set", where="ranks", found=score)
    rankings = summary.rankings(merged, table)
    cd = rankings[0].cd if rankings and not summary.no_nemenyi(rankings[0]) else math.nan
    look = MethodStyle("#000000", "o", "-")
    found = [
        RankInterval(row.method, row.rank, row.low, row.high, look._replace(is_hollow=row.mark == DAGGER))
        for row in board.ranked
    ]
    with mpl.rc_context(STYLE):
        axes = _axes(ax, 4.4, 0.6 + 0.17 * max(len(found), 4))
        method_axis(axes, [one.method for one in found], named=True)
        draw(axes, found, cd)
        axes.set_title(f"{chosen.title}: {len(board.datasets)} data sets")
    return axes


def compare(results: pd.DataFrame, first: str, second: str, *, score: str = "ll", ax: Axes | None = None) -> Axes:
    """Plot the mean differences of two methods and their 95 % intervals, on each data set and over all of them.

    Parameters
    ----------
    results : DataFrame
        Finished cells, as `load_results` or `run` returns them.
    first, second : str
        Labels of the methods.
    score : str
        A score of which lower or higher values are better.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
        The numbers are those of `ep_bench.compare`. Scores in units of the target are shown in per cent of the second
        method. A triangle with a value is a mean outside the axes; an interval over few data sets may end outside.

    Raises
    ------
    UserError
        As `ep_bench.compare`.
    """
    import matplotlib as mpl

    from ep_bench.plotting.axes import intervals, method_axis
    from ep_bench.plotting.method_style import MethodStyle
    from ep_bench.plotting.style import STYLE, towards_better

    table, about = pairwise.compare(results, first, second, score=score), pairwise.score_named(score)
    over_all = (table["dataset"] == pairwise.ALL).to_numpy()
    values = table[["difference", "low", "high"]].to_numpy(dtype=float).T
    if about.unit == TARGET:
        values = 100.0 * np.where(over_all, np.expm1(values), values / table["mean_second"].to_numpy())
    with mpl.rc_context(STYLE):
        axes = _axes(ax, 4.4, 0.6 + 0.17 * max(len(table), 4))
        names = list(map(str, table["dataset"]))
        method_axis(axes, names, named=True)
        axes.axvline(0.0, color="0.4", linewidth=0.8, linestyle="--", zorder=0)
        looks = [MethodStyle("#000000", "D" if is_all else "o", "-") for is_all in over_all]
        mean, low, high = values
        outside = intervals(axes, mean, low, high, np.arange(len(names)), looks)
        reach = 2.0 * np.nanmax(np.abs([*values[:, ~over_all].flat, *mean]))
        if not outside and reach > 0.0:  # over two or three data sets, an interval of ratios has no useful scale
            left, right = axes.get_xlim()
            axes.set_xlim(max(left, -reach), min(right, reach))
        unit = f"% of {second}" if about.unit == TARGET else about.unit
        axes.set_xlabel(towards_better(f"{about.title}: {first} minus {second} ({unit})", about.better))
    return axes


def _axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return axes, by default those of a new figure of this size in inches, which pyplot and notebooks show."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    axes: Axes = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def _has_interval(prediction: scores.Distribution, level: float) -> bool:
    ends = (round(0.5 - level / 2.0, 12), round(0.5 + level / 2.0, 12))
    return not isinstance(prediction, QuantilePrediction) or all(map(prediction.answers, ends))


def _merged(results: pd.DataFrame) -> MergedStudies:
    """Return rows as the report has them. The planned splits of a method are those that it has any row of."""
    done = results.loc[results["status"] == "ok"]
    pairwise.require_one_row_per_split(done, "ranks")
    methods, datasets = (list(map(str, results[name].unique())) for name in ("method", "dataset"))
    splits = results[["method", "dataset", "split"]].drop_duplicates()
    planned = Counter(zip(splits["method"].astype(str), splits["dataset"].astype(str), strict=True))
    return MergedStudies([], [], methods, datasets, done, dict(planned), [])
