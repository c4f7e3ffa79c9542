"""Figure of reference posteriors: R-hat at all test inputs."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from ep_bench.experiments.record import Claim, ExperimentResults
from ep_bench.plotting.numbers import log_ticks
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure with one line per posterior: the fraction of its test inputs up to an R-hat."""
    names = sorted(name.removesuffix("/r_hat") for name in results.arrays if name.endswith("/r_hat"))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.4, 2.6), layout="constrained")
        ax = figure.subplots()
        for place, name in enumerate(names):
            values = np.sort(np.asarray(results.arrays[f"{name}/r_hat"])) - 1.0
            ax.step(
                np.maximum(values, 1e-4), (np.arange(len(values)) + 1.0) / len(values), where="post", label=name,
                color=f"C{place % 10}", linestyle=("-", "--", ":", "-.")[place % 4],
            )  # fmt: skip
        for limit in (0.01, 0.05):
            ax.axvline(limit, color="0.6", linewidth=0.6)
        ax.set_xscale("log")
        log_ticks(ax.xaxis)
        ax.set_xlabel("R-hat minus 1")
        ax.set_ylabel("fraction of test inputs")
        ax.legend(fontsize=6)
    caption = (
        "R-hat of the network's output at the test inputs: fraction of inputs up to each value, one line per network, "
        "data set and split. Grey: 1.01 and 1.05."
    )
    return [finish(figure, f"reference-{results.study}", caption)]


def claims(results: ExperimentResults) -> list[Claim]:
    """Return whether the chains have converged at all test inputs."""
    worst = [float(row["r_hat"]) for row in results.summary]
    certified = sum(one <= 1.01 for one in worst)
    found = f"the largest R-hat is {max(worst):.3f}; it is at most 1.01 in {certified} of {len(worst)} posteriors"
    return [Claim("R-hat is at most 1.05 at every test input of every posterior", max(worst) <= 1.05, found)]
