"""Figures of the additive effects: effects with intervals by each method, and the weights of the last network."""

from __future__ import annotations

import textwrap

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ep_bench.experiments.ep_nn_2014 import PAPER, QUANTILE
from ep_bench.experiments.ep_nn_2014 import network_panels as panels
from ep_bench.experiments.record import Arrays, ExperimentResults, by_method
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Array

HALF = 5  # inputs per block of panels: first those with no effect or a linear one, then those with a nonlinear one
LETTERS = 19  # per line of a panel's vertical label
MARGIN = 0.6  # maximum excess of a band over the range of the true effects, as a fraction of this range


def draw(results: ExperimentResults) -> list[Picture]:
    """Return the figure of the effects and, if there are weights of a finite network, their figure.

    Arrays: labels, unconverged (M,), grid (G,), truth (d, G), mean_i, std_i (d, G), judged_half_width, standardized.
    With a finite network: network, weights, weights_std (K, d + 1), scales, scales_std (L,), outputs, outputs_std
    (K + 1,).
    """
    parts = (_effects, _network) if "weights" in results.arrays else (_effects,)
    return [part(results.arrays, results.study) for part in parts]


def _effects(arrays: Arrays, study: str) -> Picture:
    labels, truth = [str(label) for label in arrays["labels"]], np.asarray(arrays["truth"])
    blocks = [range(start, min(start + HALF, len(truth))) for start in range(0, len(truth), HALF)]
    count = len(labels)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 0.7 + 1.25 * count * len(blocks)), layout="constrained")
        axes = figure.subplots(count * len(blocks), HALF, sharex=True, sharey=False, squeeze=False)
        for block, inputs in enumerate(blocks):
            rows = axes[block * count : (block + 1) * count]
            ends = _ends(arrays, inputs, count)
            for i, row in enumerate(rows):
                for j, ax in zip(inputs, row, strict=False):
                    _effect(ax, arrays, i, j)
                    ax.set_ylim(*ends)
                    ax.set_yticklabels([]) if j != inputs[0] else None
                row[0].set_ylabel("\n".join(textwrap.wrap(f"({chr(97 + i)}) {labels[i]}: f", LETTERS)))
            for j, ax in zip(inputs, rows[0], strict=False):
                ax.set_title(f"input {j + 1}")
        for ax in axes[-1]:
            ax.set_xlabel("value of the input")
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=3, frameon=False, handlelength=2.6)
    legend = ", ".join(f"({chr(97 + i)}) {label}" for i, label in enumerate(labels))
    caption = (
        f"f along each of ten inputs, with all other inputs at 0, by a network with {legend}: mean, 95 % interval and "
        "true function, in original units. Inputs 1 to 5 share a vertical axis, as do inputs 6 to 10. There are no "
        f"data outside the dotted lines at ±π. {panels.ended_early(arrays)}As in figure 3 of {PAPER}, on effects of "
        "our own."
    )
    return finish(figure, f"additive-effects-{study}", caption)


def _effect(ax: Axes, arrays: Arrays, method: int, place: int) -> None:
    mean, std = (np.asarray(arrays[f"{name}_{method}"])[place] for name in ("mean", "std"))
    panels.band(ax, np.asarray(arrays["grid"]), mean, std, np.asarray(arrays["truth"])[place])
    for side in (-1.0, 1.0):
        ax.axvline(side * float(arrays["judged_half_width"]), color="0.5", linestyle=":", linewidth=0.7, zorder=0)
    ax.set_xlim(arrays["grid"][0], arrays["grid"][-1])
    ax.xaxis.set_major_locator(panels.ticks(3))
    ax.yaxis.set_major_locator(panels.ticks(4))


def _ends(arrays: Arrays, inputs: range, count: int) -> tuple[float, float]:
    """Return the range of f to show for some inputs: the true effects, and the bands up to a margin."""
    rows = list(inputs)
    truth = np.asarray(arrays["truth"])[rows]
    low, high = float(truth.min()), float(truth.max())
    margin = MARGIN * (high - low)
    bands: list[tuple[Array, Array]] = []
    for i in range(count):
        mean, std = (np.asarray(arrays[f"{name}_{i}"])[rows] for name in ("mean", "std"))
        if np.isfinite(mean).all():
            bands.append((mean - QUANTILE * std, mean + QUANTILE * std))
    low = max(low - margin, min([low, *(float(bottom.min()) for bottom, _ in bands)]))
    high = min(high + margin, max([high, *(float(top.max()) for _, top in bands)]))
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def _network(arrays: Arrays, study: str) -> Picture:
    """Return the figure of input weights (two panels with separate scales), prior scales and output weights."""
    mean, std = np.asarray(arrays["weights"]).T[:-1], np.asarray(arrays["weights_std"]).T[:-1]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 5.6), layout="constrained")
        parts = figure.subfigures(2, 1, height_ratios=[1.25, 1.0], squeeze=False)[:, 0]
        upper, lower = np.ravel(parts[0].subplots(2, 1)), np.ravel(parts[1].subplots(1, 2))
        units = ("1 / sd of x", "sd of y") if arrays["standardized"] else ("unit of 1/x", "unit of y")
        for ax, inputs in zip(upper, (range(HALF), range(HALF, len(mean))), strict=True):
            rows = list(inputs)
            panels.intervals(ax, mean[rows], std[rows], [f"input {j + 1}" for j in rows])
            ax.set_ylabel(f"weight ({units[0]})")
        upper[0].set_title(f"(a) input weights, units 1 to {mean.shape[1]} side by side")
        _scales(lower[0], np.asarray(arrays["scales"]), np.asarray(arrays["scales_std"]), len(mean))
        panels.outputs(lower[1], arrays)
        lower[1].set_title("(c) output weights")
        lower[1].set_ylabel(f"weight ({units[1]})")
    label = str(arrays["labels"][int(arrays["network"])])
    caption = (
        f"95 % intervals of the parameters of the network with {label}: weights of each input to {mean.shape[1]} "
        "hidden units, without biases; prior scales φ; output weights. A marker is filled if the interval excludes 0. "
        f"The two panels of input weights have separate vertical axes. {panels.ended_early(arrays)}As in figure 4 of "
        f"{PAPER}."
    )
    return finish(figure, f"additive-effects-weights-{study}", caption)


def _scales(ax: Axes, mean: Array, std: Array, inputs: int) -> None:
    """Draw the intervals of the prior scales; the panel is empty if the priors of the weights are fixed."""
    ax.set_title("(b) prior scales")
    ax.set_ylabel("φ, logarithm of a prior variance")
    ax.set_xlabel("input" if len(mean) > 1 else "all weights")
    if len(mean):
        panels.intervals(ax, mean[:, None], std[:, None], _scale_names(len(mean), inputs), zero=False)


def _scale_names(scales: int, inputs: int) -> list[str]:
    if scales == 1:
        return ["φ"]
    names = [str(j + 1) for j in range(min(scales, inputs))]
    return [*names, "bias", *(f"φ{j + 1}" for j in range(inputs + 1, scales))] if scales > inputs else names


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return the numbers behind the statements on figures 3 and 4; errors are medians over the draws."""
    fixed, ard = "fixed Gaussian priors", "ARD priors"
    inputs = [str(j + 1) for j in range(len(results.arrays["truth"]))]
    errors = [
        np.mean([by_method(results.summary, "rmse_median", input=j)[name] for j in inputs]) for name in (ard, fixed)
    ]
    ranges, widths = (
        by_method(results.summary, "range", input="1"),
        by_method(results.summary, "deviation", input="all"),
    )
    scales = [by_method(results.summary, "scale", input=j)[ard] for j in inputs]
    weights, std = (np.asarray(results.arrays[name]) for name in ("weights", "weights_std"))
    clear = np.abs(weights) > QUANTILE * std
    return {
        "range of the effect of input 1 relative to the smallest other, Gaussian priors": ranges[fixed]
        / min(by_method(results.summary, "range", input=j)[fixed] for j in inputs[1:]),
        "range of the effect of input 1, ARD relative to Gaussian priors": ranges[ard] / ranges[fixed],
        "error of effects, ARD relative to Gaussian priors": float(errors[0] / errors[1]),
        "standard deviation of f, ARD relative to Gaussian priors": widths[ard] / widths[fixed],
        "units with a clear weight, any of inputs 2 to 5": float(clear[:, 1:HALF].any(axis=1).sum()),
        "units with a clear weight, input 1": float(clear[:, 0].sum()),
        "smallest scale of inputs 6 to 10 relative to the largest of 1 to 5": min(scales[HALF:]) / max(scales[:HALF]),
        "smallest ratio of successive scales of inputs 1 to 5": float(
            np.min(np.divide(scales[1:HALF], scales[: HALF - 1]))
        ),
    }
