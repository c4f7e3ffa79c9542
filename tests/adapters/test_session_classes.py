"""Classes of a notebook: the file that is written, runs of it, and what cannot be written."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest
from sklearn.linear_model import BayesianRidge

import ep_bench
from ep_bench.adapters.session_classes import named, source_file

CELL = """
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression as Line
"""
HELPERS = """
FLOOR, NAMES = 1e-9, ["a", "b"]
unused = object()

def spread(values):
    return np.std(values) + FLOOR
"""
MINE = """
class Mine(RegressorMixin, BaseEstimator):
    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y):
        self.line_ = Line().fit(X, y)
        self.spread_ = self.factor * spread(y - self.line_.predict(X))
        return self

    def predict(self, X, return_std=False):
        mean = self.line_.predict(X)
        return (mean, np.full(len(mean), self.spread_)) if return_std else mean
"""


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Return a function that runs cells as a notebook does and returns their names."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)

    def run(*cells: str) -> dict[str, Any]:
        for cell in cells:
            name = f"<cell {len(linecache.cache)}>"
            text = dedent(cell)
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
            exec(compile(text, name, "exec"), vars(module))  # noqa: S102
        return vars(module)

    return run


def test_the_file_has_what_the_class_uses(session: Any) -> None:
    text = source_file(session(CELL, HELPERS, MINE)["Mine"])
    lines = text.splitlines()
    assert lines[:3] == [
        "from sklearn.base import BaseEstimator",
        "from sklearn.base import RegressorMixin",
        "from sklearn.linear_model import LinearRegression as Line",
    ]
    assert lines[3] == "import numpy as np"
    assert "FLOOR = 1e-09" in lines
    assert text.index("def spread") < text.index("class Mine")
    assert "NAMES" not in text
    assert "unused" not in text
    exec(text, {"__name__": "file"})  # noqa: S102


@pytest.mark.slow
def test_a_class_of_a_notebook_is_benchmarked_and_found_again(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = session(CELL, HELPERS, MINE)["Mine"]
    study = {
        "study": "mine",
        "datasets": ["yacht"],
        "splits": {"count": 1},
        "methods": [mine, {"use": mine, "label": "wide", "factor": 2.0}, {"use": BayesianRidge}],
    }
    first = ep_bench.run(study)
    assert list(first["status"]) == ["ok"] * 3, list(first["reason"])
    assert sorted(first["method"]) == ["BayesianRidge", "Mine", "wide"]
    again = ep_bench.run(study)
    assert list(again["cell"]) == list(first["cell"])
    changed = session(MINE.replace("self.factor * spread", "3.0 * spread"))["Mine"]
    later = ep_bench.run({**study, "methods": [changed]})
    assert later["width90"][0] == pytest.approx(3.0 * first.loc[first["method"] == "Mine", "width90"].iloc[0])


def test_classes_of_modules_are_named_by_their_public_module(tmp_path: Path) -> None:
    found = named({"study": "s", "methods": [BayesianRidge]}, tmp_path)["methods"]
    assert found == [{"use": "sklearn.linear_model:BayesianRidge"}]
