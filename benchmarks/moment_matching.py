"""Matched moments against samples through the hidden layer, as on the right of figure 2 of Bui et al. (2015).

DGP-2-50 with the training of the released program, on standard split 0 of boston. At three test points the predictive
density by matched moments is compared with a mixture of samples; they have the smallest, median and largest total
variation distance of both densities. The moments of two layers are exact, so only the shapes differ.

    python -m benchmarks.moment_matching docs/figures/moment-matching.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from ep_bench import data
from ep_bench.estimator import standardisation
from ep_bench.methods import dgp_ep
from ep_bench.plotting.style import STYLE, finish
from ep_bench.types import Array, Rows

CONFIG = dgp_ep.Config(hidden=(2,), training="released program")
SAMPLES, GRID = 4000, 401
NAMES = ("smallest", "median", "largest")


def densities() -> tuple[Array, Array, Array]:
    """Return grids, sampled and Gaussian densities (n, GRID) of the test points, standardised units."""
    boston = data.load_dataset("boston")
    train, test = data.standard_split(len(boston.y), 0)
    inputs, target = standardisation(boston.X[train], boston.y[train])
    rows = Rows(inputs.apply(boston.X[train]), target.apply(boston.y[train][:, None])[:, 0])
    state, _ = dgp_ep.fit(rows, CONFIG, np.random.default_rng(0))
    X = inputs.apply(boston.X[test])
    matched = dgp_ep.predict(state, X, np.random.default_rng(1))
    mixture = dgp_ep.predict(state._replace(samples=SAMPLES), X, np.random.default_rng(1))
    mean, std = matched.mean()[:, None], matched.std()[:, None]
    grid = mean + std * np.linspace(-5.0, 5.0, GRID)
    sampled = np.exp([mixture.logpdf(y) for y in grid.T]).T
    return grid, sampled, stats.norm.pdf(grid, mean, std)


def main(path: Path) -> None:
    grid, sampled, gaussian = densities()
    distances = 0.5 * np.trapezoid(np.abs(sampled - gaussian), grid, axis=1)
    order = np.argsort(distances)
    chosen = order[[0, len(order) // 2, -1]]
    print(f"total variation: median {np.median(distances):.3f}, largest {distances.max():.3f}")
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 2.2), layout="constrained")
        for ax, i, name in zip(figure.subplots(1, 3), chosen, NAMES, strict=True):
            ax.plot(grid[i], sampled[i], color="#D55E00", linewidth=1.4, label="samples")
            ax.plot(
                grid[i], gaussian[i], color="#0072B2", linestyle=(0, (4, 2)), linewidth=1.4, label="matched moments"
            )
            ax.set_title(f"{name} distance: {distances[i]:.2f}")
            ax.set_xlabel("standardised target")
            ax.set_yticks([])
        figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    path.write_text(finish(figure, path.stem, "").svg, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
