"""The method in CONTRIBUTING.md: a copy of it fulfils the contract of all methods; ruff and mypy accept it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ep_bench import methods
from ep_bench.types import Rows
from tests.methods.test_contract import TestContract as Contract
from tests.test_readme import PAGES, ROOT, blocks

SOURCE = blocks(PAGES["CONTRIBUTING.md"], "python")[0]
NAME = "ridge"


@pytest.fixture(autouse=True)
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "method_of_the_page.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(methods.REGISTRY, NAME, "method_of_the_page")


def test_the_method_fulfils_the_contract() -> None:
    Contract().test_functions_and_config(NAME)
    Contract().test_conformance_of_the_shortest_fit(NAME, "regression")
    Contract().test_predictions_do_not_depend_on_units(NAME)


def test_predictions_are_those_of_ridge_regression() -> None:
    method, rng = methods.get(NAME), np.random.default_rng(0)
    train = Rows(rng.normal(size=(200, 3)), rng.normal(size=200))
    state, _ = method.fit(train, method.config(penalty=1e-9), rng)
    fitted = np.linalg.lstsq(np.column_stack([train.X, np.ones(200)]), train.y, rcond=None)[0]
    np.testing.assert_allclose(state.weights, fitted, rtol=1e-6)


@pytest.mark.parametrize("command", ["check", "format --check"])
def test_the_linter_accepts_the_method(command: str) -> None:
    words = [sys.executable, "-m", "ruff", *command.split(), "--stdin-filename", "ep_bench/methods/ridge.py", "-"]
    done = subprocess.run(words, input=SOURCE, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.exhaustive  # mypy takes seconds without a cache
def test_the_types_of_the_method_are_correct(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(tmp_path / "method_of_the_page.py")]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
