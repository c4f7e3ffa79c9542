"""Figures of chains: trace and rank plot of each monitored quantity, one row per data set, one column per quantity.

Ranks are those of a chain's draws among the draws of all M chains; they are uniform if the chains mix. A histogram
counts one chain's n draws in bins of ranks. For independent draws from one distribution, a count is hypergeometric: n
draws from M n without replacement. Its variance is smaller than that of the binomial distribution by a fraction of
about 1 / M. The band contains 95 % of this distribution.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy import stats

from ep_bench.plotting.axes import in_groups, side_by_side
from ep_bench.plotting.numbers import tick_texts
from ep_bench.plotting.page import Picture
from ep_bench.plotting.stored_figures import drawn_if_changed
from ep_bench.plotting.style import LINE, LOOKS, STYLE, finish
from ep_bench.report.chain_diagnostics import MonitoredDraws
from ep_bench.types import Array

DOWN, ACROSS = 5, 4  # data sets and quantities per figure
TRACE, RANKS, HEIGHT, CHAIN = 1.55, 1.05, 1.0, 0.24  # widths and height of panels, and height per chain, in inches
BETWEEN, TOP, BOTTOM = 0.28, 0.3, 0.27  # between trace and ranks, above and below a row of panels, in inches
DIGIT = 0.072  # inches per digit of a tick label
WORD, FOOT = 0.14, 0.22  # inches per line of a title, and below the last row
WRAP = 30  # letters per line of a title
CUT = 4.0  # largest count that a histogram shows, as a multiple of the uniform count
BINS, DRAWS_A_BIN = 20, 10  # maximum number of bins, and a chain's draws per bin
SHADES = [LOOKS[place] for place in (2, 0, 1, 5, 3, 4)]  # of the chains: those that differ most in greyscale first
BAND, OUTSIDE = "0.88", "0.55"  # greys, so that they are the colour of no chain


class Ranks(NamedTuple):
    """Rank histograms of M chains, the expected count, and the band of counts."""

    counts: NDArray[np.int64]  # (M, B)
    edges: Array  # (B + 1,)
    uniform: float
    low: float
    high: float


def ranks(values: Array) -> Ranks:
    """Return the rank histograms of chains (M, n). Ties get their average rank; NaN and infinities are omitted."""
    finite = np.isfinite(values)
    total = int(finite.sum())
    n = total / len(values)
    bins = int(min(max(n // DRAWS_A_BIN, 2), BINS))
    places = np.full(values.shape, -1)
    places[finite] = np.floor((stats.rankdata(values[finite]) - 0.5) / total * bins).astype(int)
    counts = np.array([np.bincount(row[row >= 0], minlength=bins) for row in places])
    known = stats.hypergeom(total, round(total / bins), round(n))
    low, high = (float(known.ppf(p)) for p in (0.025, 0.975))
    return Ranks(counts, np.linspace(0.0, total, bins + 1), n / bins, low, high)


def several(method: str, found: Sequence[MonitoredDraws]) -> Iterator[Picture]:
    """Yield the figures of a method, each with at most ``DOWN`` data sets and ``ACROSS`` quantities."""
    datasets = list(dict.fromkeys(one.dataset for one in found))
    order = list(dict.fromkeys(one.name for one in found))
    parts = [(rows, names) for rows in in_groups(datasets, DOWN) for names in in_groups(order, ACROSS)]
    for place, (rows, names) in enumerate(parts):
        mine = [one for one in found if one.dataset in rows and one.name in names]
        if mine:
            yield _figure(mine, method, f"chains-{method}{f'-{place + 1}' if len(parts) > 1 else ''}")


@drawn_if_changed
def _figure(found: Sequence[MonitoredDraws], method: str, name: str) -> Picture:
    datasets = list(dict.fromkeys(one.dataset for one in found))
    quantities = list(dict.fromkeys(one.name for one in found))
    chains = max(len(one.values) for one in found)
    with mpl.rc_context(STYLE):
        handles = _legend(chains)
        figure, axes = _canvas(found, datasets, quantities, handles)
        for one in found:
            row, column = datasets.index(one.dataset), quantities.index(one.name)
            trace, ranked = axes[row, column]
            last = row == max(datasets.index(other.dataset) for other in found if other.name == one.name)
            _trace(trace, one, first=row == min(datasets.index(o.dataset) for o in found if o.name == one.name))
            if len(one.values) > 1:
                _rank_rows(ranked, one)
            else:
                ranked.remove()
            if last:
                trace.set_xlabel("monitored draw")
                ranked.set_xlabel("rank")
        for row, column in np.ndindex(len(datasets), len(quantities)):
            if not any((one.dataset, one.name) == (datasets[row], quantities[column]) for one in found):
                for ax in axes[row, column]:
                    ax.remove()
    return finish(figure, name, _caption(method, found))


def _canvas(
    found: Sequence[MonitoredDraws], datasets: Sequence[str], quantities: Sequence[str], handles: Sequence[Any]
) -> tuple[Figure, NDArray[Any]]:
    """Return a figure and its axes (data sets, quantities, 2), below space for a legend.

    Axes are placed by hand, which is much faster than a layout engine.
    """
    height = max(HEIGHT, CHAIN * max(len(one.values) for one in found))
    splits = {one.dataset: one.split for one in found}
    labels = {d: [*textwrap.wrap(d, int(height / 0.075)), f"split {splits[d]}"] for d in datasets}
    margin = 0.1 + 0.14 * max(len(lines) for lines in labels.values())
    left = 0.12 + DIGIT * max(len(text) for one in found for text in _numbers(one)[1].values())
    across = left + TRACE + BETWEEN + RANKS
    width = margin + len(quantities) * across + 0.2
    figure = Figure(figsize=(width, 1.0))
    named = [str(handle.get_label()) for handle in handles]
    columns = side_by_side(figure, named)
    above = 0.05 + LINE * math.ceil(len(named) / columns) + WORD * (max(len(_head(one)) for one in found) - 1)
    total = above + len(datasets) * (TOP + height + BOTTOM) + FOOT
    figure.set_size_inches((width, total))
    axes = np.empty((len(datasets), len(quantities), 2), dtype=object)
    for row, dataset in enumerate(datasets):
        y = total - above - row * (TOP + height + BOTTOM) - TOP - height
        middle = (y + 0.5 * height) / total
        figure.text(
            0.08 / width, middle, "\n".join(labels[dataset]), rotation=90, ha="left", va="center",
            multialignment="center",
        )  # fmt: skip
        for column in range(len(quantities)):
            x = margin + column * across + left
            for place, (start, wide) in enumerate(((x, TRACE), (x + TRACE + BETWEEN, RANKS))):
                axes[row, column, place] = figure.add_axes((start / width, y / total, wide / width, height / total))
    figure.legend(
        handles=handles, loc="upper center", ncols=columns, frameon=False, borderaxespad=0.4, borderpad=0.1,
        labelspacing=0.3,
    )  # fmt: skip
    return figure, axes


def _legend(chains: int) -> list[Any]:
    lines = [
        Line2D(
            [],
            [],
            color=colour,
            marker=marker,
            markersize=3.0,
            linewidth=0.9,
            linestyle=_stroke(place),
            label=f"chain {place + 1}",
        )
        for place in range(chains)
        for colour, marker in [SHADES[place % len(SHADES)]]
    ]
    if chains == 1:
        return lines
    return [
        *lines,
        Line2D([], [], color="black", linewidth=0.9, label="draws by rank"),
        Line2D([], [], color="0.35", linewidth=0.7, linestyle="--", label="uniform"),
        Patch(color=BAND, linewidth=0, label="95 % band"),
        Patch(color=OUTSIDE, linewidth=0, label="beyond the band"),
    ]


def _stroke(place: int) -> str:
    """Return the line style of a chain. It distinguishes chains of one colour, from the seventh on."""
    return ("-", "--", ":", "-.")[place // len(SHADES) % 4]


def _trace(ax: Axes, one: MonitoredDraws, *, first: bool) -> None:
    """Draw the chains over one another, with their markers at different draws."""
    kept = one.values.shape[1]
    x = np.linspace(1.0, one.draws, kept)
    step = max(1, kept // 4)
    for place, values in enumerate(one.values):
        colour, marker = SHADES[place % len(SHADES)]
        ax.plot(
            x, values, color=colour, marker=marker, markersize=2.6, linewidth=0.6, linestyle=_stroke(place), alpha=0.85,
            markevery=(place * step // len(one.values), step),
        )  # fmt: skip
    ax.set_xlim(1.0 - 0.02 * one.draws, 1.02 * one.draws + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    limits, ticks = _numbers(one)
    ax.set_yticks(list(ticks), list(ticks.values()))
    ax.set_ylim(limits)
    if first:
        ax.set_title("\n".join(_head(one)))


def _head(one: MonitoredDraws) -> list[str]:
    return [*textwrap.wrap(one.title, WRAP), *textwrap.wrap(f"({one.unit})", WRAP)]


def _numbers(one: MonitoredDraws) -> tuple[tuple[float, float], dict[float, str]]:
    """Return the limits of the axis of values, and its ticks with the decimals required by their steps."""
    known = one.values[np.isfinite(one.values)]
    low, high = float(known.min()), float(known.max())
    low, high = low - 0.06 * (high - low), high + 0.06 * (high - low)
    places = [p for p in np.asarray(MaxNLocator(3).tick_values(low, high)).tolist() if low <= p <= high]
    return (low, high), dict(zip(places, tick_texts(places), strict=True))


def _rank_rows(ax: Axes, one: MonitoredDraws) -> None:
    """Draw one histogram per chain, the first on top, all on one scale."""
    found = ranks(one.values)
    largest = max(min(float(found.counts.max()), CUT * found.uniform), found.high)
    scale = 1.15 * largest
    total = float(found.edges[-1])
    for place, counts in enumerate(found.counts):
        base = float(len(found.counts) - 1 - place)
        level = base + found.uniform / scale
        heights = base + np.minimum(counts, largest) / scale
        ax.fill_between(
            [0.0, total], base + found.low / scale, base + found.high / scale, color=BAND, linewidth=0
        )  # fmt: skip
        beyond = (counts < found.low) | (counts > found.high)
        ax.stairs(np.where(beyond, heights, level), found.edges, baseline=level, fill=True, color=OUTSIDE, linewidth=0)
        ax.plot([0.0, total], [level, level], color="0.35", linewidth=0.7, linestyle="--")
        ax.stairs(heights, found.edges, baseline=None, color="black", linewidth=0.9)
        if place:
            ax.axhline(base + 1.0, color="0.6", linewidth=0.4)
    rows = len(found.counts)
    ax.set(xlim=(0.0, total), ylim=(-0.03, float(rows)))
    ax.set_xticks([0.0, total])
    ax.set_yticks([rows - 1 - place + 0.4 for place in range(rows)], [str(place + 1) for place in range(rows)])
    ax.tick_params(axis="y", length=0)
    ax.set_title("ranks" if math.isnan(one.r_hat) else f"R-hat {one.r_hat:.3f}")


def _caption(method: str, found: Sequence[MonitoredDraws]) -> str:
    kept = sorted({one.values.shape[1] for one in found})
    count = f"{kept[0]}" if len(kept) == 1 else f"{kept[0]} to {kept[-1]}"
    text = f"Chains of {method} on one split per data set, after warm-up: {count} evenly spaced draws per chain."
    if max(len(one.values) for one in found) == 1:
        return text
    return (
        f"{text} Left: traces. Right: histogram of the ranks of each chain's draws among the draws of all chains. It "
        "is uniform (dashed) if the chains mix. The band contains 95 % of the counts of independent draws; correlated "
        f"draws leave it more often. Counts are cut at {CUT:g} times the uniform count. R-hat was computed by the "
        "sampler from at most 2,000 evenly spaced draws per chain."
    )
