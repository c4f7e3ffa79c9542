"""Figure and table of distances from reference posteriors, and claims with paired tests over data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ep_bench.experiments.posteriors.fidelity import pairs
from ep_bench.experiments.posteriors.fidelity.pairs import FLOOR, floors, geometric_mean, methods_of, set_means, values
from ep_bench.experiments.record import Claim, ExperimentResults, uses
from ep_bench.plotting.axes import side_by_side
from ep_bench.plotting.method_style import MethodStyle, method_styles
from ep_bench.plotting.numbers import log_ticks
from ep_bench.plotting.page import Item, Picture, Table, item
from ep_bench.plotting.style import STYLE, finish

COLUMNS = {
    "mean_error": "mean error", "std_ratio": "std ratio", "wasserstein_1": "W1", "wasserstein_2": "W2",
    "total_variation": "TV", "kl": "KL", "pair_kl": "KL of pairs", "ll": "LL", "seconds": "CPU s",
}  # fmt: skip
CAPTION = (
    "Distance from the reference posterior, network {network}; means over data sets of means over their splits and the "
    "test inputs (std ratio: medians), sorted by W2. Mean error, W1 and W2 (Wasserstein distances of order 1 and 2) "
    "are of the network's output without noise, in standard deviations of the reference; std ratio is relative to the "
    "reference. TV (total variation) and KL (nats, from the reference) are of an observation, KL of pairs of the "
    "observations at an input and at its nearest neighbour. The first row is the distance between halves of the "
    "reference's chains, which limits the resolution; largest R-hat of a reference: {r_hat:.3f}. *: other variances, "
    "so that the method does not aim at this posterior. The script of the NeurIPS 2021 competition on approximate "
    "inference calls W1 w2_distance."
)


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure with one panel per network: W2 over the CPU seconds of a fit, one point per method."""
    networks = sorted({row["network"] for row in results.summary}, reverse=True)
    labels = dict.fromkeys(method for network in networks for method in methods_of(results.summary, network))
    styles = method_styles(list(labels), uses(results.options))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(3.4, 3.0 * len(networks)), 3.4), layout="constrained")
        axes = figure.subplots(1, len(networks), squeeze=False, sharex=True, sharey=True)[0]
        for ax, network in zip(axes, networks, strict=True):
            _panel(ax, results.summary, network, styles)
        axes[0].set_ylabel("W2 from the posterior, better \N{DOWNWARDS ARROW}")
        log_ticks(axes[0].yaxis)
        handles = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        columns = side_by_side(figure, list(handles), 0.45)
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=7)
    caption = (
        "Distance from the reference posterior (W2 of the network's output, in its standard deviations; geometric mean "
        "over data sets and splits) by the CPU time of a fit (geometric mean). Grey line: distance between the halves "
        "of the reference's chains. Hollow: the method does not aim at this posterior."
    )
    return [finish(figure, f"fidelity-{results.study}", caption)]


def _panel(ax: Axes, rows: Sequence[Mapping[str, str]], network: str, styles: Mapping[str, MethodStyle]) -> None:
    for method, same in methods_of(rows, network).items():
        distance, seconds = (values(rows, network, method, name) for name in ("wasserstein_2", "seconds"))
        if not distance:
            continue
        look = styles[method]
        x, y = geometric_mean(seconds), geometric_mean(distance)
        face = look.colour if same else "none"
        ax.plot(x, y, look.marker, color=look.colour, markerfacecolor=face, markersize=5, label=method)
    for value in floors(rows, network, "wasserstein_2"):
        ax.axhline(value, color="0.6", linewidth=0.8)
    ax.set(xscale="log", yscale="log", title=f"{network} network", xlabel="CPU seconds of a fit")
    ax.margins(x=0.1)
    log_ticks(ax.xaxis)


def tables(results: ExperimentResults) -> list[Table]:
    """Return one table of distances per network: the floor first, then the nearest method."""
    return [_table(results.summary, network) for network in sorted({row["network"] for row in results.summary})]


def claims(results: ExperimentResults) -> list[Claim]:
    """Return which of two methods is closer, with paired tests."""
    return pairs.claims(results)


def _table(rows: Sequence[Mapping[str, str]], network: str) -> Table:
    methods = methods_of(rows, network, with_floor=True)
    means = {
        method: {name: _mean(values(rows, network, method, name)) for name in COLUMNS} for method in methods
    }  # fmt: skip
    fits = {method: len(values(rows, network, method, "wasserstein_2")) for method in methods}
    ordered = sorted(means, key=lambda method: (methods[method] is not None, means[method]["wasserstein_2"]))
    body: list[list[str | Item]] = []
    for method in ordered:
        name = method + ("*" if methods[method] is False else "")
        name += f" ({fits[method]} of {fits[FLOOR]} fits)" * (fits[method] < fits[FLOOR])
        numbers = means[method].values()
        body.append([name, *(item(f"{one:.3g}" if np.isfinite(one) else "–", one) for one in numbers)])
    r_hat = max((float(row["r_hat"]) for row in rows if row["network"] == network and row["r_hat"]), default=np.nan)
    return Table(["method", *COLUMNS.values()], body, CAPTION.format(network=network, r_hat=r_hat))


def _mean(found: Mapping[tuple[str, str], float]) -> float:
    return float(np.mean(set_means(found))) if found else np.inf
