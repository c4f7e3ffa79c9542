"""Planted leaks are found: a sum of inputs, its logarithm or exponential, and groups of nearly equal targets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ep_bench import data
from ep_bench.data.leaks import find_leaks

NAMES = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (lambda X: 2.0 * X[:, 1] - 5.0, ["b determines the target"]),
        (lambda X: X[:, 1] + 3.0 * X[:, 3], ["d + b determine the target"]),
        (lambda X: np.log(X[:, 0] + X[:, 2] + 9.0), ["a + c determine the exponential of the target"]),
        (lambda X: np.exp(X[:, 2]), ["c determines the logarithm of the target"]),
        (lambda X: X.sum(axis=1), []),  # of more than three inputs
        (lambda X: X[:, 0] ** 2, []),
    ],
)
def test_a_sum_of_inputs_is_found(target: Callable, found: list[str]) -> None:
    X = np.random.RandomState(1).standard_normal((400, 4)) * [1.1, 1.0, 0.9, 1.0]
    X = np.clip(X, -3.0, 3.0)
    assert [text.replace("c + a", "a + c") for text in find_leaks(X, target(X), NAMES)] == found


@pytest.mark.parametrize(("noise", "found"), [(0.1, ["b groups data points of nearly equal targets"]), (1.0, [])])
def test_labels_of_groups_are_found_and_repeated_points_are_none(noise: float, found: list[str]) -> None:
    stream = np.random.RandomState(2)
    X = stream.standard_normal((600, 3))
    X[:, 1] = stream.randint(20, size=600)
    y = stream.standard_normal(20)[X[:, 1].astype(int)] + noise * stream.standard_normal(600)
    assert find_leaks(X, y, NAMES[:3]) == found
    y = X[:, 1] + noise * stream.standard_normal(600)  # a smooth function of the same values
    assert find_leaks(np.round(X), np.round(y) + 0.3 * stream.standard_normal(600), NAMES[:3]) == []
    repeated = np.repeat(stream.standard_normal((40, 3)), 15, axis=0)
    assert find_leaks(repeated, np.repeat(stream.standard_normal(40), 15), NAMES[:3]) == []


def test_a_users_file_is_checked(tmp_path: Path) -> None:
    X = np.random.RandomState(3).standard_normal((100, 2))
    rows = "".join(f"{a},{'' if i == 4 else i % 7},{b},{a + b}\n" for i, (a, b) in enumerate(X.tolist()))
    (tmp_path / "own.csv").write_text("a,gaps,b,y\n" + rows, encoding="utf-8")
    assert sorted(data.check_file(str(tmp_path / "own.csv"), "y").leaks[0].split()[:3]) == ["+", "a", "b"]
    assert data.check_file(str(tmp_path / "own.csv"), "gaps").leaks == []
