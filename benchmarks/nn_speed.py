"""Time per sweep of ``ep_nn`` by data points and units, and of q(w) by inputs; ``python -m benchmarks.nn_speed FILE``.

Times are processor times on one core, so other programs have little influence. All sizes of one curve are timed
alternately, and the minimum per size is reported. The sweep is one of the last stage, in which all sites are updated
and q is recomputed. The posterior of the weights is compared with LAPACK's potrf and potri for K matrices of the same
size, and with the same after the products X' T_k X. The script prints the tables and draws the figure of the
documentation.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from scipy.linalg import blas, lapack
from threadpoolctl import threadpool_limits

from benchmarks.dgp_speed import minimum_times, slope
from ep_bench.methods.ep_nn import DAMPING, NOISE_START, Config, posterior, problem, sites
from ep_bench.methods.ep_nn.approximation import NetworkApproximation
from ep_bench.methods.ep_nn.initialisation import along_a_direction, start
from ep_bench.methods.ep_nn.schedule import settle_weight_priors
from ep_bench.plotting.style import LOOKS, STYLE, finish

D, N, K = 14, 455, 10  # inputs with the bias, data points, units: a split of boston
ROWS, UNITS, WIDTHS = (455, 910, 1820, 3640), (5, 10, 20, 40), (50, 100, 200, 400)
UNTIMED_SWEEPS = 12  # sweeps before the timed ones
UPDATES = ("sequential", "parallel")


def drawn(n, d):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((n, d - 1)), np.ones(n)])
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * np.tanh(X[:, 2]) + 0.3 * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


def sweeper(n=N, units=K, updates="sequential", d=D):
    """Return a function that performs a number of sweeps of the last stage, as ``fit`` without its accelerator."""
    X, y = drawn(n, d)
    config = Config(hidden=(units,), updates=updates)
    one = NetworkApproximation(problem(X, y, config), NOISE_START, along_a_direction(X, np.random.default_rng(1)))
    start(one, config.weight_variance, config.bias_variance)
    damping, output_damping, final = DAMPING[updates]

    def walk(steps, first=final, second=final, blocks=1):
        for _ in range(steps):
            before = one.vector.copy()
            one.recover(before, one.sweep(first, second, final, blocks))

    walk(UNTIMED_SWEEPS, damping, output_damping, 1 if updates == "sequential" else 30)
    one.released.outputs = True
    one.release_noise(NOISE_START, 2.0 / n)
    settle_weight_priors(one, 1e-3)
    one.released.weights = True
    walk(2)
    return walk


def posterior_functions(d, n=N, units=K):
    """Return functions that compute K posteriors of d weights repeatedly: ours, LAPACK's, LAPACK's with products."""
    X, _ = drawn(n, d)
    rng = np.random.default_rng(2)
    _, likelihood, prior = sites.empty(n, units, d)
    likelihood.tau[:] = rng.uniform(0.1, 1.0, likelihood.tau.shape)
    prior.tau[:] = 2.0
    mean, S = np.zeros((units, d)), np.zeros((units, d, d))
    precisions = [(X * tau[:, None]).T @ X + 2.0 * np.eye(d) for tau in likelihood.tau.T]

    def ours(times):
        for _ in range(times):
            posterior.weights(X, likelihood, prior, mean, S)

    def bare(times):
        for _ in range(times):
            for precision in precisions:
                lapack.dpotri(lapack.dpotrf(precision, lower=1)[0], lower=1, overwrite_c=1)

    def whole(times):
        for _ in range(times):
            for tau in likelihood.tau.T:
                product = blas.dsyrk(1.0, np.sqrt(tau) * X.T, lower=1)
                product.flat[:: d + 1] += 2.0
                lapack.dpotri(lapack.dpotrf(product, lower=1)[0], lower=1, overwrite_c=1)

    return ours, bare, whole


def by_rows(updates):
    """Return seconds (4,) per sweep for every n of ROWS."""
    return minimum_times([sweeper(n=n, updates=updates) for n in ROWS])


def by_units(updates):
    """Return seconds (4,) per sweep for every K of UNITS."""
    return minimum_times([sweeper(units=units, updates=updates) for units in UNITS])


def by_widths():
    """Return seconds (4, 3) per posterior of the weights for every d of WIDTHS: ours, LAPACK's, with products."""
    return np.array([minimum_times(posterior_functions(d)) for d in WIDTHS])


def lines_of(words, sizes, curves):
    """Yield the lines of a table by sizes, with one column per curve and the powers of the size."""
    yield f"| {words} | " + " | ".join(curves) + " |"
    yield "|---" * (1 + len(curves)) + "|"
    for i, size in enumerate(sizes):
        yield f"| {size} | " + " | ".join(f"{1e3 * values[i]:.2f} ms" for values in curves.values()) + " |"
    for label, chosen in (("power", slice(None)), ("power over the last two", slice(-2, None))):
        powers = [f"{slope(sizes[chosen], values[chosen]):.2f}" for values in curves.values()]
        yield f"| {label} | " + " | ".join(powers) + " |"


def from_a_line(sizes, values):
    """Return the largest relative distance of values from the straight line that fits them best."""
    line = np.polyfit(sizes, values, 1, w=1.0 / np.asarray(values))
    return float(np.abs(np.polyval(line, sizes) / values - 1.0).max())


def draw_figure(rows, units, widths):
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 2.7), layout="constrained")
        axes = figure.subplots(1, 3)
        plot_by_size(axes[0], ROWS, rows, 1e3, (f"data points n, {K} units", "ms per sweep"), ("n", 1))
        plot_by_size(axes[1], UNITS, units, 1e3, (f"hidden units K, {N} data points", "ms per sweep"), ("K", 1))
        plot_by_size(
            axes[2], WIDTHS, widths, 1e3, (f"weights per unit d, {N} data points", f"q(w) of {K} units, ms"), ("d³", 3)
        )
        return finish(figure, "ep-nn-speed", "")


def plot_by_size(ax, sizes, curves, scale, words, guide):
    """Draw curves against a size on logarithmic axes, with a power of it through the last point of the first curve."""
    for (name, values), (colour, marker) in zip(curves.items(), LOOKS, strict=False):
        ax.loglog(sizes, scale * values, marker=marker, color=colour, label=name, markersize=4)
    last = scale * next(iter(curves.values()))[-1]
    ax.loglog(
        sizes, last * (np.array(sizes) / sizes[-1]) ** guide[1], ":", color="0.5", label=f"as {guide[0]}", zorder=0
    )
    ax.set(xlabel=words[0], ylabel=words[1])
    ax.set_ylim(top=(3.0 if guide[1] == 1 else 60.0) * ax.get_ylim()[1])
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if guide[1] == 1 else (1.0,)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    ax.legend(frameon=False, fontsize=7, loc="upper left")


def main(path):
    with threadpool_limits(1):
        rows = {updates: by_rows(updates) for updates in UPDATES}
        units = {updates: by_units(updates) for updates in UPDATES}
        widths = dict(zip(("ep_nn", "potrf and potri", "products, potrf, potri"), by_widths().T, strict=True))
    for table in (("n", ROWS, rows), ("K", UNITS, units), ("d", WIDTHS, widths)):
        print("\n".join([*lines_of(*table), ""]))
    for words, sizes, curves in (("n", ROWS, rows), ("K", UNITS, units)):
        differences = [f"{name} {100 * from_a_line(sizes, values):.0f}%" for name, values in curves.items()]
        print(f"largest distance from a line in {words}: {', '.join(differences)}")
    Path(path).write_text(draw_figure(rows, units, widths).svg, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
