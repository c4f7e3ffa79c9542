"""Shared types: training data and option problems."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from ep_bench.errors import OptionProblem
from ep_bench.types import Rows


def test_rows_keep_the_number_of_classes() -> None:
    rows = Rows(np.zeros((3, 2)), np.arange(3.0), 4)
    assert replace(rows, y=np.zeros(3)).classes == 4
    assert pickle.loads(pickle.dumps(rows)).classes == 4
    assert Rows(rows.X, rows.y).classes == 0
    with pytest.raises(FrozenInstanceError):
        rows.classes = 2  # type: ignore[misc]


def test_an_option_problem_becomes_an_error() -> None:
    problem = OptionProblem(("hidden", 1), "unknown value", "rleu", ("relu", "tanh"), "rleu")
    expected = "pbp: hidden[1]: unknown value; found 'rleu'; allowed: relu, tanh; did you mean 'relu'?"
    assert str(problem.error("pbp")) == expected
