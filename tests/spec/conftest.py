"""A catalogue and a study to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ep_bench import catalogue
from ep_bench.errors import OptionProblem
from ep_bench.spec import Study, read_study

GOOD = """\
study: a-study
seed: 3
datasets:
  - boston
  - {name: naval, constant_inputs: paper, label: naval as printed}
  - {name: kin40k, irrelevant_inputs: 92}
  - {name: mine, csv: mine.csv, target: price, label: my data}
splits: {scheme: shuffle, count: 4, test_fraction: 0.25, seed: 7}
methods:
  - pbp
  - {use: pbp, label: PBP-2, hidden: [50, 50]}
  - {use: dropout, tune: {trials: 30, fraction: 0.2}, published: Dropout-1}
  - {use: "package.module:Regressor", alpha: 1e-4}
  - {use: "./own.py:Own", label: mine too}
overrides:
  boston:
    pbp: {hidden: [100], epochs: 20}
    PBP-2: {epochs: 5}
limits: {seconds: 600, memory_gb: 4.5}
compare: {rows: PBP-2, times: pbp}
ranks:
  - {name: all, methods: [pbp, PBP-2, GP of another study], beside: bui2015, pairs: [[PBP-2, pbp]]}
  - {name: two, methods: [pbp, PBP-2]}
accept:
  - {method: PBP-2, dataset: naval, metric: rmse, reason: "two layers"}
"""


def known(what: str) -> tuple[str, ...]:
    return {
        "datasets": ("boston", "naval", "kin40k", "protein"), "methods": ("pbp", "dropout"),
        "experiments": ("cubic_toy",), "published": ("PBP", "Dropout-1"), "sources": ("bui2015", "jylanki2014"),
    }[what]  # fmt: skip


def check_options(use: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:
    assert base.is_absolute()
    if use.startswith("gone"):
        return [OptionProblem(("use",), "cannot be imported", use, None, None)]
    known = ("alpha",) if ":" in use else ("hidden", "epochs")
    found = [OptionProblem((k,), f"{use} has no such option", None, known, k) for k in options if k not in known]
    epochs = options.get("epochs", 1)
    if type(epochs) is not int or epochs < 1:
        found.append(OptionProblem(("epochs",), "must be a positive whole number", epochs))
    hidden = options.get("hidden", [1])
    for i, units in enumerate(hidden if isinstance(hidden, list) else [None]):
        if type(units) is not int or units < 1:
            found.append(OptionProblem(("hidden", i), "must be a positive whole number", units))
    return found


def search_space(use: str, base: Path) -> Mapping[str, Any] | None:
    return {"dropout": {"epochs": {"int": [1, 40]}, "hidden": ([20], [50])}, "p:Wrong": {"alfa": [1, 2]}}.get(use)


def check_experiment(name: str, options: Mapping[str, Any], base: Path) -> list[OptionProblem]:
    return [OptionProblem((key,), "unknown option", None, ("points",), key) for key in options if key != "points"]


@pytest.fixture(autouse=True)
def _small_catalogue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two methods with ``hidden`` and ``epochs``, one with a search space, for tests that use ``read``.

    An external class has ``alpha`` only; targets that start with ``gone`` do not exist.
    """
    if "read" in request.fixturenames:
        for function in (known, check_options, search_space, check_experiment):
            monkeypatch.setattr(catalogue, function.__name__, function)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.csv").write_text("x,price\n1,2\n")
    return tmp_path


@pytest.fixture
def read(folder: Path) -> Callable[[str | bytes], Study]:
    def read_text(text: str | bytes) -> Study:
        file = folder / "study.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_study(file)

    return read_text


@pytest.fixture(scope="session")
def good() -> str:
    return GOOD
