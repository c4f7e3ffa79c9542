"""Embedded data sets: no file, no network, arrays pinned by their cards, true functions that are the functions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ep_bench import data
from ep_bench.data import embedded
from ep_bench.types import DatasetRef, SplitScheme

NAMES = [name for name in data.names() if data.card(name).embedded]


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("EP_BENCH_DATA", raising=False)
    monkeypatch.setattr("ep_bench.data.locations.cache_folder", lambda: tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_the_arrays_have_the_checksum_of_the_card(name: str) -> None:
    dataset = data.load_dataset(name)
    card = data.card(name)
    assert embedded.checksum(dataset.X, dataset.y) == card.sha256 == dataset.checksum
    assert dataset.X.shape == (card.n, card.d)
    assert data.describe(DatasetRef(name, name)).checksum == dataset.checksum


def test_the_checksum_sees_the_tenth_digit_and_no_further() -> None:
    X, y = np.array([[1.0], [-0.0]]), np.array([0.5, 1.0 / 3.0])
    plain = embedded.checksum(X, y)
    assert embedded.checksum(X * (1 + 1e-13), np.abs(y)) == plain
    assert embedded.checksum(np.abs(X), y) == plain
    assert embedded.checksum(X + np.array([[1e-9], [0.0]]), y) != plain
    assert embedded.checksum(X[::-1], y) != plain


@pytest.mark.parametrize("which", [1, 2, 3])
def test_friedman_functions_are_those_of_scikit_learn(which: int) -> None:
    from sklearn import datasets

    X, y = getattr(datasets, f"make_friedman{which}")(n_samples=200, noise=0.0, random_state=7)
    np.testing.assert_allclose(data.true_function(f"friedman{which}")(X), y, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "std"), [("cubic", 3.0), ("step", 0.1), ("additive", 0.2), ("friedman1", 1.0), ("friedman2", 125.0)]
)
def test_the_standard_deviation_of_the_noise(name: str, std: float) -> None:
    dataset = data.load_dataset(name)
    noise = dataset.y - data.true_function(name)(dataset.X)
    n = len(noise)
    # Mean square and mean of n Gaussian draws, within four of their standard errors.
    assert abs(np.mean(noise**2) / std**2 - 1.0) < 4.0 * np.sqrt(2.0 / n)
    assert abs(noise.mean()) < 4.0 * std / np.sqrt(n)


def test_each_data_set_with_outliers_has_ten_of_them_and_rows_without_noise() -> None:
    dataset, function = data.load_dataset("friedman-outliers"), data.true_function("friedman-outliers")
    splits = list(data.make_splits(SplitScheme("holdout"), dataset))
    assert len(splits) == 10
    assert sorted(np.concatenate([[*split.train, *split.test] for split in splits])) == list(range(11000))
    far, noise = 0, []
    for split in splits:
        assert (len(split.train), len(split.test)) == (100, 1000)
        np.testing.assert_array_equal(dataset.y[split.test], function(dataset.X[split.test]))
        away = np.sort(np.abs(dataset.y[split.train] - function(dataset.X[split.train])))
        far += int((away > 4.0).sum())
        noise.append(away[:80])
    # The 100 outliers are N(0.6, 9 + 4.9^2) away from the function, 49 of them by more than 4, give or take 5.
    assert 34 < far < 64
    assert 0.5 < np.mean(np.square(noise)) < 0.8  # the 80 smallest of 90 draws of a standard normal


def test_the_toys_are_those_of_the_papers() -> None:
    cubic, additive = data.load_dataset("cubic"), data.load_dataset("additive")
    assert cubic.X.shape == (20, 1)
    assert np.abs(cubic.X).max() <= 4.0
    assert additive.X.shape == (200, 10)
    function = data.true_function("additive")
    base = np.zeros((3, 10))
    effects = []
    for j in range(10):
        X = base.copy()
        X[:, j] = [-1.0, 0.0, 1.0]
        effects.append(function(X))
    assert np.ptp(effects[0]) == 0.0
    slopes = [effect[2] - effect[1] for effect in effects[1:5]]
    assert all(later > earlier > 0 for earlier, later in itertools.pairwise(slopes))
    np.testing.assert_array_equal(data.true_function("step")(np.array([[-1e-9], [0.0], [2.0]])), [-1.0, 1.0, 1.0])


def test_no_true_function_where_nature_made_the_data() -> None:
    assert data.true_function("diabetes") is None
    assert data.true_function("boston") is None
