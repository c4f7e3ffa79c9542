"""Copies inside kernels."""

from __future__ import annotations

import numpy as np

from ep_bench.numerics.copying import copy_matrix, copy_rows, copy_vector


def test_vectors_and_matrices_of_any_layout_are_copied():
    source = np.arange(24.0).reshape(4, 6)
    out = np.full((4, 6), np.nan)
    copy_matrix(source, out)
    np.testing.assert_array_equal(out, source)
    copy_matrix(source[::2, 1:3].T, out[1:3, :2])
    np.testing.assert_array_equal(out[1:3, :2], source[::2, 1:3].T)
    copy_vector(source[:, 5], out[0, :4])
    np.testing.assert_array_equal(out[0], [5.0, 11.0, 17.0, 23.0, 4.0, 5.0])


def test_data_points_fill_the_first_rows_of_a_batch():
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    batch, targets = np.full((4, 2), np.nan), np.full(4, np.nan)
    copy_rows(X, y, np.array([5, 0, 2]), batch, targets)
    np.testing.assert_array_equal(batch[:3], X[[5, 0, 2]])
    np.testing.assert_array_equal(targets[:3], [5.0, 0.0, 2.0])
    assert np.isnan(batch[3]).all()
    assert np.isnan(targets[3])
