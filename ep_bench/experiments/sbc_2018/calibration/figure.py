"""Figure of simulation-based calibration: histograms of ranks, with the band of an exact sampler."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ep_bench.experiments.record import Claim, ExperimentResults
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Indices

BAND = 0.99  # probability that a bar is in the band


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure with one row of panels per case and one panel per quantity.

    Arrays: ranks (cases, replications, quantities), among 0, ..., draws (); labels (cases,), quantities (Q,).
    """
    arrays = results.arrays
    ranks, draws = np.asarray(arrays["ranks"]), int(arrays["draws"])
    labels, quantities = [str(x) for x in arrays["labels"]], [str(x) for x in arrays["quantities"]]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(1.5 * len(quantities) + 0.3, 1.25 * len(labels) + 0.5), layout="constrained")
        axes = figure.subplots(len(labels), len(quantities), sharex=True, sharey=True, squeeze=False)
        for row, of_case, label in zip(axes, ranks, labels, strict=True):
            for ax, of in zip(row, of_case.T, strict=True):
                _histogram(ax, of, draws)
            row[0].set_ylabel(label.replace(", ", ",\n") + "\n(data sets)")
        for ax, quantity in zip(axes[0], quantities, strict=True):
            ax.set_title(quantity)
        largest = max(np.bincount(of).max() for of_case in ranks for of in of_case.T)
        axes[0, 0].set_ylim(0.0, 1.1 * max(largest, band(ranks.shape[1], draws)[1]))  # all panels share this axis
        for ax in axes[-1]:
            ax.set_xlabel("rank")
    bars = ranks.shape[0] * ranks.shape[2] * (draws + 1)
    caption = (
        f"Simulation-based calibration (Talts and others 2018): number of data sets by the rank of the true value "
        f"among {draws} draws of a chain; {ranks.shape[1]} data sets drawn from the prior in each row. Each bar of an "
        f"exact sampler is in the grey band with probability {BAND:.0%}; bars outside it are hatched. Of the {bars} "
        f"bars, at most {(1.0 - BAND) * bars:.0f} are expected outside. First and second "
        "output: the network's outputs at two further inputs."
    )
    return [finish(figure, f"calibration-{results.study}", caption)]


def band(replications: int, draws: int) -> tuple[float, float]:
    """Return the interval of counts that has a bar of uniform ranks with probability ``BAND`` or more."""
    from scipy.stats import binom

    low, high = binom.interval(BAND, replications, 1.0 / (draws + 1))
    return float(low), float(high)


def _histogram(ax: Axes, ranks: Indices, draws: int) -> None:
    counts = np.bincount(ranks, minlength=draws + 1)
    low, high = band(len(ranks), draws)
    ax.axhspan(low, high, color="0.85", linewidth=0)
    ax.axhline(len(ranks) / (draws + 1), color="0.5", linewidth=0.6)
    beyond = (counts < low) | (counts > high)
    for which, colour, hatch in ((~beyond, "#0072B2", ""), (beyond, "#D55E00", "////")):
        ax.bar(np.arange(draws + 1)[which], counts[which], width=0.8, linewidth=0.0, color=colour, hatch=hatch)


def claims(results: ExperimentResults) -> list[Claim]:
    """Return whether the ranks are uniform, with Bonferroni's correction for all tests."""
    p = [float(row["p_value"]) for row in results.summary]
    found = f"the smallest of {len(p)} p-values is {min(p):.2g}, and {0.05 / len(p):.2g} is the level after correction"
    return [Claim("Hamiltonian Monte Carlo draws from the posterior: ranks are uniform", min(p) > 0.05 / len(p), found)]
