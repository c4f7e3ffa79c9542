"""Figures and table of the spread over seeds: means over splits by seed, and standard errors over splits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ep_bench import published
from ep_bench.experiments.record import ExperimentResults, SummaryRow, uses
from ep_bench.plotting.method_style import MethodStyle, method_styles
from ep_bench.plotting.numbers import plain_ticks, with_minus
from ep_bench.plotting.page import Picture, Table, item
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Array

TITLES = {"rmse": "RMSE", "ll": "log-likelihood"}
AXES = {"rmse": "RMSE (original units)", "ll": "mean test log-likelihood (nats per data point)"}


def draw(results: ExperimentResults) -> list[Picture]:
    """Return one figure per score, with one panel per data set and one line per method.

    Arrays: rmse, ll (D, M, S, K); datasets (D,); labels (M,).
    """
    return [_figure(results, score) for score in AXES if np.isfinite(results.arrays[score]).any()]


def tables(results: ExperimentResults) -> list[Table]:
    """Return the table of standard deviations over seeds and over splits, and that of failed fits."""
    rows = [_row(row, _median_seconds(results.arrays, row)) for row in results.summary]
    head = [
        "data set", "method", "score", "mean over splits", "range over seeds", "standard deviation over seeds",
        "standard deviation over splits", "variance due to the seed", "splits", "median CPU seconds per fit",
    ]  # fmt: skip
    caption = (
        "Mean ± standard error over splits with one seed each; the range over seeds of the mean over splits; the "
        "standard deviation of single fits over seeds on one split, and that over splits without the effect of seeds; "
        "the fraction of the variance of single fits that is due to the seed. Splits with a failed fit are left out."
    )
    failures = [[str(text)] for text in results.arrays.get("failures", ())]
    found = [Table(head, rows, caption)]
    return [*found, Table(["Failed fits"], failures, folded=f"{len(failures)} failed fits")] if failures else found


def _median_seconds(arrays: Mapping[str, Any], row: SummaryRow) -> Any:
    """Return the median CPU time of the fits of a row as an entry of the table."""
    i = [str(name) for name in arrays["datasets"]].index(row["dataset"])
    j = [str(name) for name in arrays["labels"]].index(row["method"])
    seconds = float(np.median(arrays["seconds"][i, j]))
    return item(f"{seconds:.3g}", seconds)


def _row(row: SummaryRow, seconds: Any) -> list[Any]:
    name = [row["dataset"], row["method"], TITLES[row["score"]]]
    if not row.get("mean"):
        return [*name, *[item("–")] * 5, item(row["splits"], float(row["splits"])), seconds]
    values = {key: float(row[key]) for key in row if key not in {"dataset", "method", "score"}}
    places = published.error_decimals(values["stderr"]) if values["stderr"] > 0.0 else 3

    def shown(*keys: str, between: str = " ") -> Any:
        text = between.join(f"{values[key]:.{places}f}" for key in keys)
        return item(with_minus(text), values[keys[0]])

    return [
        *name,
        shown("mean", "stderr", between=" ± "),
        shown("lowest_mean", "highest_mean", between=" to "),
        shown("seed_std"),
        shown("split_std"),
        item(f"{100.0 * values['seed_fraction']:.0f} %", values["seed_fraction"]),
        item(row["splits"], values["splits"]),
        seconds,
    ]


def _figure(results: ExperimentResults, score: str) -> Picture:
    arrays = results.arrays
    names, labels = ([str(one) for one in arrays[key]] for key in ("datasets", "labels"))
    styles = method_styles(labels, uses(results.options))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(1.2 + 2.4 * max(len(names), 2), 0.9 + 0.22 * len(labels)), layout="constrained")
        for i, ax in enumerate(figure.subplots(1, len(names), squeeze=False, sharey=True)[0]):
            errors = _errors(results, names[i], score)
            _panel(ax, np.asarray(arrays[score][i]), errors, [styles[label] for label in labels])
            ax.set_title(f"({chr(97 + i)}) {names[i]}")
        ax.set_yticks(np.arange(len(labels)), labels)
        ax.set_ylim(len(labels) - 0.5, -0.5)
        figure.supxlabel(AXES[score], fontsize=8.0)
    return finish(figure, f"seed-spread-{score}-{results.study}", _caption(arrays, score))


def _errors(results: ExperimentResults, dataset: str, score: str) -> list[str]:
    """Return the standard errors of the summary by method, empty without a mean."""
    return [row["stderr"] for row in results.summary if (row["dataset"], row["score"]) == (dataset, score)]


def _panel(ax: Axes, scores: Array, errors: list[str], styles: list[MethodStyle]) -> None:
    """Draw scores (M, S, K): means over splits by seed, and the standard error (M,) over splits with one seed each."""
    for j, (values, error, style) in enumerate(zip(scores, errors, styles, strict=True)):
        if not error:
            continue
        means = values[np.isfinite(values).all(axis=1)].mean(axis=0)
        ax.errorbar(means.mean(), j, xerr=float(error), color="0.6", linewidth=2.5, zorder=1)
        ax.plot(means, np.full(len(means), j), style.marker, color=style.colour, markersize=3.5, zorder=2)
    ax.grid(visible=True, axis="x", linewidth=0.4, color="0.9")
    plain_ticks(ax.xaxis)


def _caption(arrays: Mapping[str, Any], score: str) -> str:
    splits, seeds = arrays[score].shape[2:]
    return (
        f"The spread over seeds: {AXES[score]}. Each marker is the mean over {splits} splits with one of {seeds} "
        "seeds. Grey bars: mean ± standard error over the splits with one seed each. The table has the part of the "
        "variance that is due to the seed."
    )
