"""Average ranks with intervals, for more methods than a critical-difference diagram can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from ep_bench.plotting.axes import canvas, points, strokes
from ep_bench.plotting.method_style import MethodStyle
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish, towards_better

WIDTH = 4.4  # inches of the panel


class RankInterval(NamedTuple):
    """Average rank of a method with its interval (NaN without one)."""

    method: str
    rank: float
    low: float
    high: float
    style: MethodStyle


def rank_intervals(ranked: Sequence[RankInterval], cd: float, title: str, name: str, caption: str) -> Picture:
    """Return the ranks of methods, the best on top. A band contains those within ``cd`` of the best, if not NaN."""
    ordered = sorted(ranked, key=lambda one: one.rank)
    with mpl.rc_context(STYLE):
        figure, (ax,) = canvas(1, [one.method for one in ordered], [one.style for one in ordered], width=WIDTH)
        draw(ax, ordered, cd)
        ax.set_title(title)
    return finish(figure, name, caption)


def draw(ax: Axes, ordered: Sequence[RankInterval], cd: float) -> None:
    """Draw the ranks of methods, one line for each, and the band of those within ``cd`` of the best, if not NaN."""
    rank, low, high = (np.array([getattr(one, field) for one in ordered]) for field in ("rank", "low", "high"))
    lines = np.arange(len(ordered))
    if math.isfinite(cd):
        ax.axvspan(rank[0], rank[0] + cd, color="0.93", linewidth=0, zorder=-1)
    ax.plot(*strokes(low, high, lines), color="0.2", linewidth=1.1)
    points(ax, rank, lines, 5.0, [one.style for one in ordered])
    ax.set_xlim(0.5, len(ordered) + 0.5)
    ax.xaxis.set_major_locator(FixedLocator(range(1, len(ordered) + 1, 1 + len(ordered) // 12)))
    ax.set_xlabel(towards_better("average rank", "lower"))
