"""Figure of probabilistic backpropagation pass by pass, and the numbers of the claims."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from ep_bench.experiments.record import ExperimentResults
from ep_bench.plotting.axes import log_axis
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STROKES, STYLE, finish

AXES = ((1, "test log-likelihood (nats)"), (2, "sd of the function"))  # columns of the scores
USUAL = 40  # passes of the paper


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure with log-likelihood and standard deviation of the function against the number of passes.

    Arrays: datasets (D,), labels (M,), passes (P,), scores (D, M, P, 4).
    """
    arrays = results.arrays
    datasets, passes = arrays["datasets"].tolist(), np.asarray(arrays["passes"])[1:]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.8 + 1.9 * max(len(datasets), 2), 4.2), layout="constrained")
        axes = figure.subplots(len(AXES), len(datasets), sharex=True, squeeze=False)
        for d, name in enumerate(datasets):
            axes[0, d].set_title(name)
            axes[-1, d].set_xlabel("passes")
            for ax, (column, label) in zip(axes[:, d], AXES, strict=True):
                for m, (colour, stroke, width) in zip(range(len(arrays["labels"])), STROKES, strict=False):
                    values = arrays["scores"][d, m, 1:, column]
                    ax.plot(passes, values, color=colour, linestyle=stroke, linewidth=width)
                log_axis(ax)
                if d == 0:
                    ax.set_ylabel(label)
        figure.legend(
            axes[0, 0].lines, arrays["labels"].tolist(), loc="outside upper center", ncols=3, frameon=False,
            handlelength=3.2,
        )  # fmt: skip
    caption = (
        "Probabilistic backpropagation by the number of passes over the data, without refinement of the prior factors, "
        "and without updates of the variances of the weights."
    )
    return [finish(figure, f"filtering-passes-{results.study}", caption)]


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return the least favourable data set's numbers for the claims of sections 3.4 and 4."""
    scores, passes = np.asarray(results.arrays["scores"]), results.arrays["passes"].tolist()
    if USUAL not in passes:
        return {}
    pbp, _, means = np.moveaxis(scores, 1, 0)  # (D, P, 4)
    usual, last = passes.index(USUAL), f"after {passes[-1]} passes relative to {USUAL}"
    return {
        f"smallest variance of the function {last}": float(np.min(pbp[:, -1, 2] / pbp[:, usual, 2]) ** 2),
        "smallest log-likelihood of PBP minus means only": float(np.min(pbp[:, usual, 1] - means[:, usual, 1])),
        "smallest RMSE of means only relative to PBP": float(np.min(means[:, usual, 0] / pbp[:, usual, 0])),
    }
