"""An experiment with a reference: it is the first panel, and the table is sorted by the distance from it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from ep_bench.experiments.figures import section
from ep_bench.experiments.pbp_2015.cubic_toy import distance_table
from ep_bench.results import store

REGIONS = ("", "_inside", "_outside")


def row(method: str, distance: float, excess: float, regions: tuple[str, ...] = REGIONS) -> dict[str, str]:
    values = {"wasserstein": distance, "crps": 1.7 + excess, "crps_excess": excess}
    columns = {name + region: str(value) for name, value in values.items() for region in regions}
    return {"method": method, "rmse_inside": "1.23456789", "fit_seconds": "0.5"} | columns


ROWS = [row("far", 12.345, 7.0), row("near", 0.25, 0.0421), row("HMC", 0.0, 0.0)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "toy"
    folder.mkdir()
    grid = np.linspace(-6, 6, 31)
    arrays = {"grid": grid, "truth": grid**3, "x": grid[5:25:5], "y": grid[5:25:5] ** 3}
    for i in range(3):
        arrays |= {f"mean_{i}": (i + 1) * grid, f"std_{i}": 3.0 + np.abs(grid)}
    np.savez(folder / "arrays.npz", **arrays, labels=np.array([row["method"] for row in ROWS]))
    with (folder / "summary.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(ROWS[0]))
        writer.writeheader()
        writer.writerows(ROWS)
    lock = {"study": "toy", "experiment": "cubic_toy", "options": {"points": 31, "reference": "HMC"}, "seed": 0}
    store.write_lock(folder, lock)
    return folder


def test_methods_are_sorted_by_their_distance_and_the_reference_is_marked() -> None:
    table = distance_table.table(ROWS, "HMC", {})
    head, rows, caption = table.head, table.rows, table.caption
    assert head[:4] == ["method", "W1 whole grid", "W1 inside the data", "W1 outside"]
    assert [entry[0]["text"] for entry in rows] == ["HMC", "near", "far"]
    assert (rows[0][0]["strong"], rows[0][0]["small"]) == (True, "reference")
    assert not any(entry["strong"] for entry in rows[1])
    assert [entry["text"] for entry in rows[2]] == ["far", "12.3", "12.3", "12.3", "8.70", "8.70", "8.70"]
    assert [entry["small"] for entry in rows[1][4:]] == ["+0.0421"] * 3
    assert [entry["small"] for entry in rows[0][4:]] == [""] * 3
    assert "HMC, the reference" in caption
    assert "unit of y" in caption
    assert "Chains of the reference" not in caption


def test_the_caption_has_the_monte_carlo_error_of_a_reference_that_samples() -> None:
    diagnostics = {"r_hat_predictions": 1.0042, "ess_bulk_predictions": 812.3, "divergences": 7.0, "halves": 0.2604}
    caption = distance_table.table(ROWS, "HMC", diagnostics).caption
    assert "R-hat 1.004, bulk effective sample size 812; 7 divergent trajectories" in caption
    assert caption.endswith("W1 between the two halves of the chains: 0.260 whole grid.")


def test_the_summary_omits_the_distances(folder: Path) -> None:
    distances, summary = section(store.read_study(folder)).tables
    assert distances.caption.startswith("Distance from HMC")
    assert summary.head == ["method", "rmse inside", "fit seconds"]
    assert summary.rows[0][0] == "far"
    assert [entry["text"] for entry in summary.rows[0][1:]] == ["1.2346", "0.5"]


def test_the_figure_shows_the_reference_first(folder: Path) -> None:
    (picture,) = section(store.read_study(folder)).pictures
    axes = picture.figure.axes
    assert [ax.get_title() for ax in axes] == ["HMC (reference)", "far", "near"]
    slopes = [np.polyfit(line.get_xdata(), line.get_ydata(), 1)[0] for ax in axes for line in ax.lines[1:2]]
    np.testing.assert_allclose(slopes, [3.0, 1.0, 2.0])  # every title is above its own mean
