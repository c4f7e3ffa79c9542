"""Shared by the tests of the methods: training data, arrays at other places in memory, rows of cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ep_bench.runner.cell import run_cell
from ep_bench.runner.plan import make_plan
from ep_bench.spec import read_study
from ep_bench.types import Array, Rows


def rows(n: int = 60, d: int = 2, seed: int = 1, noise: float = 0.3) -> Rows:
    """Return a noisy sine of the first of ``d`` inputs, standardised."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + noise * rng.normal(size=n)
    return Rows(X, (y - y.mean()) / (y.std() or 1.0))


def wave(n: int = 60, d: int = 2, seed: int = 1, noise: float = 0.2) -> Rows:
    """Return the same with less noise."""
    return rows(n, d, seed, noise)


def begun_at(array: Array, offset: int) -> Array:
    """Return a copy whose data begin ``offset`` numbers behind a multiple of 64 bytes."""
    whole = np.empty(array.size + 16)
    start = (-whole.ctypes.data % 64) // 8 + offset
    moved = whole[start : start + array.size].reshape(array.shape)
    moved[:] = array
    return moved


def cell_row(folder: Path, entry: str) -> dict[str, Any]:
    """Return the row of a cell of a study with this method entry."""
    sizes = "datasets: [cubic]\nsplits: {scheme: standard, count: 1}\n"
    (folder / "s.yaml").write_text(f"study: s\n{sizes}methods: [{{{entry}}}]\n")
    (cell,) = make_plan(read_study(folder / "s.yaml"), folder / "r").cells
    return run_cell(cell.job).row
