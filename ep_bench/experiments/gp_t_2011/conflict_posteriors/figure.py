"""Figure of two contradicting observations: regression, and densities of the latent function between them."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ep_bench.experiments.gp_t_2011 import EXAMPLES, MIDPOINT, PAPER
from ep_bench.experiments.record import Arrays, ExperimentResults, by_method
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STROKES, STYLE, finish
from ep_bench.types import Array

HYPERPARAMETERS = ("lengthscale", "magnitude", "scale", "nu")  # columns of the summary
EM_STEPS = 1000  # to a mode
VISIBLE = 0.01  # height of a mode or bump relative to the highest mode
NEAR = 0.1  # distance of a bump from an observation, relative to that of both observations
DEVIATIONS = 2.0  # half-width of a band in standard deviations
FRACTIONAL = "EP, η = 0.5"  # label of fractional EP
HEADROOM = 1.15  # height of a panel relative to the peaks of the densities


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure of two panels per example: data with bands of some methods, and densities of f(2) by all.

    Arrays: labels, bands (M,); of example e: x_e, y_e (n,), grid_e, truth_e, latent_e (G,); of method i mean_e_i,
    std_e_i, density_e_i (G,), NaN if it failed.
    """
    arrays = results.arrays
    labels = [str(label) for label in arrays["labels"]]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.8, 6.2), layout="constrained")
        parts = figure.subfigures(2, 1, squeeze=False)[:, 0]
        axes = np.array([part.subplots(1, len(EXAMPLES)) for part in parts])
        for number, upper, lower in zip(EXAMPLES, *axes, strict=True):
            _regression(upper, arrays, number, labels)
            _densities(lower, arrays, number, labels)
            upper.set_title(f"example {number}")
            upper.set_xlabel("input x")
            lower.set_xlabel(f"latent value f({MIDPOINT:g})")
        axes[0, 0].set_ylabel("target y")
        axes[1, 0].set_ylabel(f"density of f({MIDPOINT:g})")
        for part, row in zip(parts, axes, strict=True):
            known: dict[str, Any] = {}
            for ax in row:
                handles, names = ax.get_legend_handles_labels()
                known |= dict(zip(names, handles, strict=True))
            part.legend(known.values(), known, loc="outside lower center", ncols=4, frameon=False, handlelength=3.0)
    shown = [label for label, band in zip(labels, arrays["bands"], strict=True) if band]
    caption = (
        "Two observations (squares) in a gap of the data contradict each other. Above: mean and "
        f"{DEVIATIONS:g} standard deviations of the latent function by {' and '.join(shown)}, and the true function. "
        f"Below: densities of f({MIDPOINT:g}), midway between the two; dotted lines mark their targets. Each method "
        f"has its own hyperparameters; {labels[0]}, the reference, averages over draws of them. Densities are cut at "
        f"the top of the panel. As in figure 1 of {PAPER}, on examples of our own."
    )
    return [finish(figure, f"conflict-posteriors-{results.study}", caption)]


def _regression(ax: Axes, arrays: Arrays, number: int, labels: list[str]) -> None:
    grid, x, y = (np.asarray(arrays[f"{name}_{number}"]) for name in ("grid", "x", "y"))
    drawn = [i for i, band in enumerate(arrays["bands"]) if band]
    for place, i in enumerate(drawn):
        mean, std = np.asarray(arrays[f"mean_{number}_{i}"]), np.asarray(arrays[f"std_{number}_{i}"])
        low, high = mean - DEVIATIONS * std, mean + DEVIATIONS * std
        colour, stroke, width = STROKES[i - 1]
        if place == 0:
            ax.fill_between(grid, low, high, color="0.87", linewidth=0, label=f"{labels[i]}: ± {DEVIATIONS:g} sd")
        else:
            for edge, label in ((low, f"{labels[i]}: ± {DEVIATIONS:g} sd"), (high, None)):
                ax.plot(grid, edge, color=colour, linewidth=0.7, linestyle=(0, (1, 1)), label=label)
        ax.plot(grid, mean, color=colour, linestyle=stroke, linewidth=width, label=f"{labels[i]}: mean")
    ax.plot(grid, arrays[f"truth_{number}"], color="black", linewidth=0.9, label="true function")
    ax.plot(x[2:], y[2:], "o", color="black", markersize=2.6, label="data")
    ax.plot(x[:2], y[:2], "s", color="black", markerfacecolor="white", markersize=4.5, label="y1, y2")
    for i in range(2):
        ax.annotate(f"y{i + 1}", (x[i], y[i]), xytext=(6, 0), textcoords="offset points", va="center")
    ax.set_xlim(grid[0], grid[-1])
    shown = np.concatenate([y, np.asarray(arrays[f"truth_{number}"])])
    margin = 0.15 * float(np.ptp(shown))
    ax.set_ylim(float(shown.min()) - margin, float(shown.max()) + margin)


def _densities(ax: Axes, arrays: Arrays, number: int, labels: list[str]) -> None:
    f = np.asarray(arrays[f"latent_{number}"])
    found = [np.asarray(arrays[f"density_{number}_{i}"]) for i in range(len(labels))]
    ax.fill_between(f, found[0], color="0.85", linewidth=0)
    ax.plot(f, found[0], color="0.35", linewidth=1.6, label=labels[0])
    for i, density in enumerate(found[1:]):
        colour, stroke, width = STROKES[i % len(STROKES)]
        if i >= len(STROKES):
            colour, stroke, width = "black", (0, (1, 3)), 1.2
        if np.isfinite(density).all():
            ax.plot(f, density, color=colour, linestyle=stroke, linewidth=width, label=labels[i + 1])
    peaks = sorted(float(density.max()) for density in found if np.isfinite(density).all())
    ax.set_ylim(0.0, HEADROOM * (peaks[-1] if len(peaks) < 3 else min(peaks[-1], 2.0 * peaks[len(peaks) // 2])))
    ax.set_xlim(f[0], f[-1])
    transform = ax.get_xaxis_transform()
    for i, value in enumerate(np.asarray(arrays[f"y_{number}"])[:2]):
        ax.axvline(value, color="0.35", linestyle=":", linewidth=0.9, zorder=0)
        ax.annotate(f"y{i + 1}", (value, 1.0), xycoords=transform, ha="center", va="bottom")


def measures(results: ExperimentResults) -> dict[str, float]:
    """Return the numbers behind the statements on figure 1 and on the modes of the hyperparameters (section 5.3)."""
    found: dict[str, float] = {}
    labels = [str(label) for label in results.arrays["labels"]]
    for number in EXAMPLES:
        widths, means = (by_method(results.summary, name, example=str(number)) for name in ("deviation", "mean"))
        end = "" if number == 1 else f", example {number}"
        found |= {
            f"standard deviation relative to chains, {name}{end}": widths[name] / widths["MCMC"]
            for name in widths if name != "MCMC"
        }  # fmt: skip
        at = f"of fractional EP relative to EP, example {number}"
        found[f"standard deviation {at}"] = widths[FRACTIONAL] / widths["EP"]
        for column, word in zip(HYPERPARAMETERS, ("lengthscale", "magnitude", "σ", "ν"), strict=True):
            values = by_method(results.summary, column, example=str(number))
            found[f"{word} {at}"] = values[FRACTIONAL] / values["EP"]
        found[f"modes of the chains, example {number}"] = float(
            _modes(np.asarray(results.arrays[f"density_{number}_0"]))
        )
        x, y = (np.asarray(results.arrays[f"{name}_{number}"]) for name in "xy")
        hyper = [by_method(results.summary, name, example=str(number))["EP"] for name in HYPERPARAMETERS]
        modes = _conditional_modes(x, y, *hyper)
        found[f"modes of f given the hyperparameters of EP, example {number}"] = float(modes)
        pair = y[:2]
        if number == 2:
            found |= {
                f"distance from the nearer observation relative to that of both, {name}": float(
                    np.abs(means[name] - pair).min() / np.ptp(pair)
                )
                for name in means
            }
            in_tails = [_mass_in_tails(results.arrays, labels.index(name)) for name in ("EP", "MCMC")]
            found["mass in the tails relative to chains, EP, example 2"] = in_tails[0] / in_tails[1]
    density, latent, pair = (np.asarray(results.arrays[name]) for name in ("density_1_0", "latent_1", "y_1"))
    found["bumps of the chains near the observations, example 1"] = float(_bumps(latent, density, pair[:2]))
    found["standard deviation at 2 relative to the mean elsewhere, EP"] = _rise(results.arrays, labels.index("EP"))
    return found | {"largest difference of means elsewhere in standard deviations": _elsewhere(results.arrays)}


def _modes(density: Array) -> int:
    """Return the number of visible local maxima."""
    inner = density[1:-1]
    return int(((inner > density[:-2]) & (inner > density[2:]) & (inner > VISIBLE * density.max())).sum())


def _conditional_modes(x: Array, y: Array, lengthscale: float, magnitude: float, scale: float, nu: float) -> int:
    """Return the number of modes of p(f | y) that EM finds from starts with and without each of y1 and y2."""
    K, ends = magnitude * np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / lengthscale**2), []
    for kept in np.ndindex(2, 2):
        precisions = np.full(len(y), scale**-2.0)
        precisions[:2] *= kept
        for _ in range(EM_STEPS):
            residuals = np.linalg.solve(np.eye(len(K)) + K * precisions, y)  # y - f
            precisions = (nu + 1.0) / (nu * scale**2 + residuals**2)
        ends.append(residuals[:2])
    return len(np.unique(np.round(ends, 2), axis=0))


def _bumps(f: Array, density: Array, targets: Array) -> int:
    """Return how many targets are near a visible concave part of a density that is not the one of its mode."""
    concave = np.gradient(np.gradient(density, f), f) < 0.0
    part = np.cumsum(np.diff(concave, prepend=concave[0]))
    bump = concave & (part != part[density.argmax()]) & (density > VISIBLE * density.max())
    return sum(bool(bump[np.abs(f - target) <= NEAR * np.ptp(targets)].any()) for target in targets)


def _rise(arrays: Arrays, place: int) -> float:
    """Return the standard deviation of f(2) of example 1 relative to its mean at the other data points."""
    at = np.interp([MIDPOINT, *np.asarray(arrays["x_1"])[2:]], arrays["grid_1"], arrays[f"std_1_{place}"])
    return float(at[0] / at[1:].mean())


def _mass_in_tails(arrays: Arrays, place: int) -> float:
    """Return a method's mass of f(2) of example 2 beyond two standard deviations of the chains around their mean."""
    f, chains = np.asarray(arrays["latent_2"]), np.asarray(arrays["density_2_0"])
    mean = np.average(f, weights=chains)
    width = np.sqrt(np.average((f - mean) ** 2, weights=chains))
    beyond = np.abs(f - mean) > 2.0 * width
    return float(np.asarray(arrays[f"density_2_{place}"])[beyond].sum() * (f[1] - f[0]))


def _elsewhere(arrays: Arrays) -> float:
    """Return the largest difference of a mean from that of the chains at the other data points of example 1."""
    points = np.asarray(arrays["x_1"])[2:]
    means, std = ([np.interp(points, arrays["grid_1"], arrays[f"{name}_1_{i}"]) for i in range(len(arrays["labels"]))]
                  for name in ("mean", "std"))  # fmt: skip
    return float(max(np.max(np.abs(mean - means[0]) / std[0]) for mean in means[1:]))
