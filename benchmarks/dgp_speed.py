"""Time per step of ``dgp_ep`` by inducing inputs, data points and layers; ``python -m benchmarks.dgp_speed FILE.svg``.

Times are processor times on one core, so other programs have little influence. All sizes of one curve are timed
alternately, and the minimum per size is reported. The time per data point is the slope over the size of the minibatch,
so it does not include operations on M x M matrices, which happen once per step. The script prints the tables and draws
the figure of the documentation.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from ep_bench.covariances.energy_training import run
from ep_bench.methods.dgp_ep.energy import DGPProblem, evaluator
from ep_bench.methods.dgp_ep.initialisation import start
from ep_bench.methods.dgp_ep.layout import Structure
from ep_bench.numerics.minibatch import AdamSchedule
from ep_bench.plotting.style import LOOKS, STYLE, finish

INPUTS, ROWS, BATCH, RATE = 13, 455, 50, 0.005
INDUCING = (25, 50, 100, 200)
BATCHES = (25, 50, 100, 150)
CHAINS = ((), (2,), (2, 2), (2, 2, 2))
ROUNDS, MIN_SECONDS = 9, 0.02  # rounds, and minimum seconds of steps per round


class StepProblem(NamedTuple):
    """Data, initial parameters, and the structure of the network."""

    structure: Structure
    theta: np.ndarray
    X: np.ndarray
    y: np.ndarray


def drawn(hidden=(), inducing=50):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, INPUTS))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(ROWS)
    y = (y - y.mean()) / y.std()
    structure = Structure((INPUTS, *hidden, 1), inducing)
    return StepProblem(structure, start(structure, X, X[:inducing].copy(), rng), X, y)


def walker(hidden=(), inducing=50, batch=BATCH):
    """Return a function that applies a number of steps as ``fit`` does, with minibatches, gradients and Adam."""
    structure, theta, X, y = drawn(hidden, inducing)
    evaluate, rng = evaluator(DGPProblem(structure, "gaussian", ROWS)), np.random.default_rng(1)

    def walk(steps):
        schedule = AdamSchedule(steps, batch, RATE, None)
        run(evaluate, theta, X, y, schedule, (0, 1), rng, dict)

    return walk


def seconds(walk, steps):
    begun = time.process_time()
    walk(steps)
    return (time.process_time() - begun) / steps


def minimum_times(walkers, rounds=ROUNDS):
    """Return the minimum seconds per step of each function, timed alternately."""
    for walk in walkers:
        walk(2)
    counts = [max(int(MIN_SECONDS / seconds(walk, 2)), 2) for walk in walkers]
    taken = [[seconds(walk, count) for walk, count in zip(walkers, counts, strict=True)] for _ in range(rounds)]
    return np.min(taken, axis=0)


def slope(x, y):
    """Return the exponent p of y ~ x^p."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def by_inducing(hidden):
    """Return seconds per step (4,) for every M of INDUCING."""
    return minimum_times([walker(hidden, M) for M in INDUCING])


def per_point(hidden):
    """Return the seconds (4,) per data point of a step, for every M of INDUCING."""
    found = []
    for M in INDUCING:
        taken = minimum_times([walker(hidden, M, batch) for batch in BATCHES])
        found.append(np.polyfit(BATCHES, taken, 1)[0])
    return np.array(found)


def by_layers(inducing=50):
    """Return seconds per step (4,) with zero to three hidden layers of dimension 2."""
    return minimum_times([walker(hidden, inducing) for hidden in CHAINS])


def local_slopes(x, y):
    return np.diff(np.log(y)) / np.diff(np.log(x))


def lines_by_inducing(step, row):
    """Yield the lines of a table by inducing inputs; ``step`` and ``row`` are seconds (4,) by hidden layers."""
    yield (
        "| M | "
        + " | ".join(f"{name(hidden)}, per step" for hidden in step)
        + " | "
        + " | ".join(f"{name(hidden)}, per data point" for hidden in row)
        + " |"
    )
    yield "|---" * (1 + len(step) + len(row)) + "|"
    for i, M in enumerate(INDUCING):
        cells = [f"{1e3 * step[hidden][i]:.2f} ms" for hidden in step]
        cells += [f"{1e6 * row[hidden][i]:.2f} µs" for hidden in row]
        yield f"| {M} | " + " | ".join(cells) + " |"
    for label, chosen in (("power of M", slice(None)), ("power of M, M >= 100", slice(2, None))):
        M = np.array(INDUCING)[chosen]
        cells = [f"{slope(M, values[chosen]):.2f}" for values in (*step.values(), *row.values())]
        yield f"| {label} | " + " | ".join(cells) + " |"


def lines_by_layers(taken):
    """Yield the lines of a table by layers; ``taken`` are seconds (4,) by inducing inputs."""
    yield (
        "| M | "
        + " | ".join(name(hidden) for hidden in CHAINS)
        + " | per additional layer | largest distance from a line |"
    )
    yield "|---" * (3 + len(CHAINS)) + "|"
    for M, values in taken.items():
        line = np.polyfit(np.arange(1, len(CHAINS)), values[1:], 1)
        difference = np.abs(np.polyval(line, np.arange(1, len(CHAINS))) / values[1:] - 1.0).max()
        cells = [f"{1e3 * value:.2f} ms" for value in values]
        yield f"| {M} | " + " | ".join(cells) + f" | {1e3 * line[0]:.2f} ms | {100 * difference:.0f}% |"


def name(hidden):
    return "no hidden layer" if not hidden else str(list(hidden))


def draw_figure(step, row, taken):
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 2.7), layout="constrained")
        first, second, third = figure.subplots(1, 3)
        plot_by_inducing(first, step, 1e3, "ms per step of 50 data points", {2: ":", 3: "--"})
        plot_by_inducing(second, row, 1e6, "µs per data point", {2: ":"})
        for (M, values), (colour, marker) in zip(taken.items(), LOOKS, strict=False):
            third.plot(range(len(CHAINS)), 1e3 * values, marker=marker, color=colour, label=f"M = {M}", markersize=4)
        third.set(xlabel="hidden layers of 2", ylabel="ms per step of 50 data points", ylim=(0, None), xticks=range(4))
        third.legend(frameon=False, fontsize=7)
        return finish(figure, "dgp-speed", "")


def plot_by_inducing(ax, curves, scale, label, powers):
    """Draw curves against M on logarithmic axes, with powers of M through the last point of the last curve."""
    for (hidden, values), (colour, marker) in zip(curves.items(), LOOKS, strict=False):
        ax.loglog(INDUCING, scale * values, marker=marker, color=colour, label=name(hidden), markersize=4)
    for power, stroke in powers.items():
        guide = scale * values[-1] * (np.array(INDUCING) / INDUCING[-1]) ** power
        ax.loglog(INDUCING, guide, stroke, color="0.5", label=f"as M{'²³'[power - 2]}", zorder=0)
    ax.set(xlabel="inducing inputs M", ylabel=label)
    ax.set_ylim(top=8.0 * ax.get_ylim()[1])
    ax.set_xticks(INDUCING, [str(M) for M in INDUCING])
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=7, loc="upper left")


def main(path):
    hidden = ((), (2,))
    with threadpool_limits(1):
        step = {one: by_inducing(one) for one in hidden}
        row = {one: per_point(one) for one in hidden}
        taken = {M: by_layers(M) for M in (50, 100)}
    print("\n".join([*lines_by_inducing(step, row), "", *lines_by_layers(taken)]))
    Path(path).write_text(draw_figure(step, row, taken).svg, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
