"""Moments over the points of all folds, compared with those of the points themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ep_bench.published import DENSITY, SQUARE, ScoreMoments, moments, normalised, pooled

SCALES, POINTS = (9.0, 8.5, 9.6), (51, 50, 50)


def fold(index: int) -> tuple[dict[str, object], np.ndarray, np.ndarray]:
    """Return a cell's row of results.csv, its log densities and its absolute errors, in original units."""
    rng = np.random.default_rng(index)
    ll, ae = rng.normal(-2.5 - index, 1.5, POINTS[index]), np.abs(rng.normal(0.0, 3.0 + index, POINTS[index]))
    row: dict[str, object] = {
        "cell": f"c{index}", "n_test": POINTS[index], "target_std": SCALES[index], "ll": ll.mean(), "ll_std": ll.std(),
        "rmse": math.sqrt(np.mean(ae**2)), "se_std": np.std(ae**2),
    }  # fmt: skip
    return row, ll, ae


@pytest.mark.parametrize("metric", [DENSITY, SQUARE])
def test_folds_of_unlike_sizes_and_scales_pool_to_their_points(metric: str) -> None:
    folds = [fold(index) for index in range(3)]
    if metric == DENSITY:
        points = np.concatenate([ll + math.log(s) for (_, ll, _), s in zip(folds, SCALES, strict=True)])
    else:
        points = np.concatenate([(ae / s) ** 2 for (_, _, ae), s in zip(folds, SCALES, strict=True)])
    found = pooled([moments(metric, row) for row, _, _ in folds])
    assert found.points == 151
    assert found.mean == pytest.approx(points.mean(), rel=1e-12)
    assert found.deviation == pytest.approx(points.std(), rel=1e-12)
    rows = {str(row["cell"]): {"ll": ll.tolist(), "ae": ae.tolist()} for row, ll, ae in folds}
    kept = normalised([row for row, _, _ in folds], rows)
    assert kept is not None
    np.testing.assert_allclose(kept[0 if metric == DENSITY else 1], points)


def test_points_of_a_cell_that_were_not_kept_are_none_of_all() -> None:
    folds = [fold(index) for index in range(3)]
    rows = {str(row["cell"]): {"ll": ll.tolist(), "ae": ae.tolist()} for row, ll, ae in folds}
    for lost in ({"c0": rows["c0"], "c1": rows["c1"]}, rows | {"c2": {"ae": [1.0]}}):
        assert normalised([row for row, _, _ in folds], lost) is None


def test_what_a_row_lacks_is_nan() -> None:
    row, _, _ = fold(0)
    assert math.isnan(moments(DENSITY, row | {"target_std": ""}).mean)
    assert math.isnan(moments(DENSITY, row | {"target_std": 0.0}).mean)
    without = moments(SQUARE, {key: value for key, value in row.items() if key != "se_std"})
    assert math.isfinite(without.mean)
    assert math.isnan(without.deviation)
    assert moments("rmse", {"rmse": 3.0}).mean == 3.0
    assert math.isnan(pooled([]).mean)
    assert pooled([ScoreMoments(1.0, 2.0, 10)]) == ScoreMoments(1.0, 2.0, 10)
