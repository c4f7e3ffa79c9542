"""Write the figure of the finding on energy into ``docs/figures``. Run ``make figures``."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from page_tables.stored import FIGURES, board_cells

from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish, write_picture

WIDTH = 4.8  # inches, readable on a phone
SHOWN = "Ensemble; Ensemble adversarial; HMC-1; FITC-50; DGP-2-50, cosine; GP; SGPR-100; LA-full; VI-1; Dropout-1; BP-1"
LOWEST = -4.0  # nats; lower values have the colour of this one


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
    """Write the figure."""
    write_picture(energy_by_split(), FIGURES)


if __name__ == "__main__":
    main()
