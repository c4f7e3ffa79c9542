"""Write the figures of the pages on the leaderboard and on energy into ``docs/figures``. Run ``make figures``."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from page_tables.leaderboard import LeaderboardRow, ranked
from page_tables.stored import FIGURES, board, board_cells

from ep_bench.convergence import DAGGER
from ep_bench.plotting.axes import log_axis
from ep_bench.plotting.method_style import DEEP, FAMILIES, NETWORKS, OTHER, PROCESSES, family_of
from ep_bench.plotting.numbers import plain_ticks
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish, write_picture

COLOURS = {NETWORKS: "#0072B2", PROCESSES: "#D55E00", DEEP: "#009E73", OTHER: "#666666"}
WIDTH = 4.8  # inches, readable on a phone
NOT_CONVERGED = "not converged on some splits"
BEST = 20  # entries of the figure of ranks
SHOWN = "Ensemble; Ensemble adversarial; HMC-1; FITC-50; DGP-2-50, cosine; GP; SGPR-100; LA-full; VI-1; Dropout-1; BP-1"
STEP = 0.03  # nats
LOWEST = -4.0  # nats; lower values have the colour of this one


def _families() -> dict[str, str]:
    """Return the family of each entry of the leaderboard."""
    uses = {label: str(entry["use"]) for study in board().studies for label, entry in study.lock["methods"].items()}
    return {name: family_of(uses[name]) for name in board().methods}


def _point(ax: Axes, x: float, y: float, row: LeaderboardRow, colour: str) -> None:
    face = "white" if row.mark == DAGGER else colour
    ax.plot(x, y, "o", color=colour, markerfacecolor=face, markersize=5, clip_on=False)


def _legend(figure: Figure, families: Sequence[str]) -> None:
    found = [family for family in FAMILIES if family in families]
    handles = [Line2D([], [], marker="o", linestyle="", color=COLOURS[family], label=family) for family in found]
    hollow = Line2D(
        [], [], marker="o", linestyle="", color="0.3", markerfacecolor="white", label="not converged on some splits"
    )
    figure.legend(handles=[*handles, hollow], frameon=False, loc="outside lower center", ncols=2, fontsize=7)


def rank_intervals() -> Picture:
    """Return average ranks with their intervals, of the best entries by log-likelihood."""
    everything = list(ranked("ll").values())
    rows, families = everything[:BEST], _families()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 0.9 + 0.17 * len(rows)), layout="constrained")
        ax = figure.subplots()
        for place, row in enumerate(rows):
            colour = COLOURS[families[row.method]]
            ax.hlines(place, row.low, row.high, color=colour, linewidth=1.2, alpha=0.6)
            _point(ax, row.rank, place, row, colour)
        ax.set_yticks(range(len(rows)), [row.method for row in rows])
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0.5, len(everything) + 0.5))
        ax.set_xlabel("average rank by log-likelihood, interval   (better: left)")
        _legend(figure, [families[row.method] for row in rows])
    return finish(figure, "leaderboard-ranks", "")


def loss_and_time() -> Picture:
    """Return the loss of each method against its CPU seconds, with the names of the best ones of their cost."""
    families = _families()
    rows = [row for row in ranked("ll").values() if row.seconds > 0.0 and families[row.method] != OTHER]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        ax = figure.subplots()
        for row in rows:
            _point(ax, row.seconds, row.loss, row, COLOURS[families[row.method]])
        for row in _best_of_their_cost(rows):
            place = (-5, 3) if row.seconds > 1.0 else (5, 5)
            side = "right" if row.seconds > 1.0 else "left"
            ax.annotate(row.method, (row.seconds, row.loss), place, textcoords="offset points", ha=side, fontsize=7.5)
        log_axis(ax)
        ax.invert_yaxis()
        plain_ticks(ax.yaxis)
        ax.set_xlabel("median CPU seconds of a fit   (cheaper: left)")
        ax.set_ylabel("mean loss in nats   (better: up)")
        _legend(figure, [families[row.method] for row in rows])
    return finish(figure, "leaderboard-cost", "")


def _best_of_their_cost(rows: Sequence[LeaderboardRow]) -> list[LeaderboardRow]:
    """Return the rows that are better than all cheaper ones, by at least ``STEP``."""
    found: list[LeaderboardRow] = []
    for row in sorted(rows, key=lambda row: row.seconds):
        if not found or row.loss <= found[-1].loss - STEP:
            found.append(row)
    return found


def energy_by_split() -> Picture:
    """Return log-likelihoods on the splits of energy by entry."""
    cells = {name: {row["split"]: row["ll"] for row in board_cells(name, "energy")} for name in SHOWN.split("; ")}
    splits = sorted(next(iter(cells.values())))
    values = np.array([[found.get(split, np.nan) for split in splits] for found in cells.values()])
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
        ax = figure.subplots()
        drawn = ax.imshow(values, cmap="viridis", vmin=LOWEST, vmax=0.0, aspect="auto")
        ax.set_yticks(range(len(cells)), list(cells))
        ax.set_xticks(range(len(splits)), [str(split) for split in splits], fontsize=6.5)
        ax.set_xlabel("standard split of energy")
        figure.colorbar(drawn, label="log-likelihood, nats", extend="both")
    return finish(figure, "energy-splits", "")


def main() -> None:
    """Write all figures."""
    for picture in (rank_intervals(), loss_and_time(), energy_by_split()):
        write_picture(picture, FIGURES)


if __name__ == "__main__":
    main()
