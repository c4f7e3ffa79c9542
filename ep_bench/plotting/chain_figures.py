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
from ep_bench.plotting.numbers import plain_ticks
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import LOOKS, STYLE, finish
from ep_bench.types import Array

DOWN, ACROSS = 5, 2  # data sets and quantities per figure
TRACE, RANKS, HEIGHT, CHAIN = 1.9, 1.3, 1.5, 0.3  # widths and height of panels, and height per chain, in inches
WRAP = 22  # letters per line of a title
CUT = 4.0  # largest count that a histogram shows, as a multiple of the uniform count
BINS, DRAWS_A_BIN = 20, 10  # maximum number of bins, and a chain's draws per bin
SHADES = [LOOKS[place] for place in (2, 0, 1, 5, 3, 4)]  # of the chains: those that differ most in greyscale first
BAND, OUTSIDE = "0.88", "0.55"  # greys, so that they are the colour of no chain


class MonitoredDraws(NamedTuple):
    """Stored draws of one quantity on one split; a chain had ``draws`` draws, of which some are stored."""

    name: str
    title: str
    unit: str
    dataset: str
    split: int
    draws: int
    values: Array  # (chains, stored draws), NaN for values that were not finite
    r_hat: float

    def moves(self) -> bool:
        """Return whether there are two different finite values."""
        known = self.values[np.isfinite(self.values)]
        return len(known) > 1 and bool(np.ptp(known) > 0.0)


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


def _figure(found: Sequence[MonitoredDraws], method: str, name: str) -> Picture:
    datasets = list(dict.fromkeys(one.dataset for one in found))
    quantities = list(dict.fromkeys(one.name for one in found))
    chains = max(len(one.values) for one in found)
    size = (len(quantities) * (TRACE + RANKS) + 0.3, len(datasets) * max(HEIGHT, CHAIN * chains) + 0.6)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(
            len(datasets), 2 * len(quantities), squeeze=False, width_ratios=[TRACE, RANKS] * len(quantities)
        )
        used = set()
        for one in found:
            row, column = datasets.index(one.dataset), 2 * quantities.index(one.name)
            trace, ranked = axes[row, column : column + 2]
            used.add(trace)
            _trace(trace, one)
            if len(one.values) > 1:
                used.add(ranked)
                _rank_rows(ranked, one)
        for ax in set(axes.ravel()) - used:
            ax.remove()
        handles = _legend(chains)
        columns = side_by_side(figure, [str(handle.get_label()) for handle in handles])
        figure.legend(handles=handles, loc="outside upper center", ncols=columns, frameon=False)
    return finish(figure, name, _caption(method, found))


def _legend(chains: int) -> list[Any]:
    lines = [
        Line2D(
            [], [], color=colour, marker=marker, markersize=3.0, linestyle=_stroke(place), label=f"chain {place + 1}"
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


def _trace(ax: Axes, one: MonitoredDraws) -> None:
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
    ax.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    plain_ticks(ax.yaxis)
    ax.set(title="\n".join(textwrap.wrap(f"{one.title} ({one.unit})", WRAP)), xlabel="monitored draw")
    ax.set_ylabel("\n".join([*textwrap.wrap(one.dataset, 20), f"split {one.split}"]))


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
    ax.set(title="ranks" if math.isnan(one.r_hat) else f"R-hat {one.r_hat:.3f}", xlabel="rank")


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
