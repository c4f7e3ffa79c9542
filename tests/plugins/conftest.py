"""A real tiny distribution: a folder with modules and a dist-info, as an installer leaves them."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

METHOD = '''
"""A constant, as a method of the registry's shape."""
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ep_bench.predictions import Predictive; from ep_bench.types import Method


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    factor: float = Field(1.0, gt=0, description="of the standard deviation")


class State(NamedTuple):
    mean: float
    variance: float


def fit(train, config, rng):
    return State(float(train.y.mean()), float(config.factor**2 * train.y.var())), {"loss": [1.0]}


def predict(state, X, rng):
    return Predictive.gaussian(np.full(len(X), state.mean), np.full(len(X), state.variance))


METHOD = Method(
    name="flat", version=3, title="A constant", paper="none", tasks=("regression",), config=Config, fit=fit,
    predict=predict,
)
'''
CLASS = '''
import numpy as np
from scipy import stats


class Wide:
    """A constant with heavy tails."""

    def __init__(self, df=3.0):
        self.df = df

    def fit(self, X, y):
        self.mean, self.std = np.mean(y), np.std(y)
        return self

    def predict_dist(self, X):
        return stats.t(self.df, np.full(len(X), self.mean), self.std)
'''
DATA = '''
import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from ep_bench.types import Dataset

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = X[:, 0] + 0.1 * rng.normal(size=60)


def pair():
    """Sixty points near a plane."""
    return X, y


def framed():
    return pd.DataFrame(X, columns=["left", "right"]), pd.Series(y, name="height")


def bunch():
    return Bunch(data=X, target=y, feature_names=["a", "b"], DESCR=".. _toy:\\n\\nToy plane\\n---------\\nMore.")


def dataset():
    return Dataset(name="x", X=X, y=y, names=("u", "v"), target="w", card=None, checksum="", constants={1: 2.0})


def classes():
    return Bunch(data=X, target=(y > 0.0).astype(int), target_names=np.array(["below", "above"]))


def labelled():
    kinds = (y > 0.0) * 1.0
    facts = {"task": "classification", "classes": ("no", "yes", "never")}
    return Dataset(name="x", X=X, y=kinds, names=("u", "v"), target="w", card=None, checksum="", **facts)


def halves():
    return Bunch(data=X, target=0.5 * (y > 0.0), target_names=["below", "above"])


def nameless():
    return Dataset(name="x", X=X, y=0.0 * y, names=(), target="w", card=None, checksum="", task="classification")


def ragged():
    return X, y[:-1]


def holes():
    broken = X.copy()
    broken[3, 1] = np.nan
    return broken, y


def flat():
    return X[:, 0], y


def words():
    return X, ["a"] * 60


def nothing():
    return None


def misnamed():
    return Bunch(data=X, target=y, feature_names=["a"])


def fails():
    raise OSError("no disk")


NUMBER = 3
'''


@dataclass
class Site:
    """A folder on the path of packages."""

    folder: Path

    def install(self, package: str, entries: str, version: str = "1.2.3", **modules: str) -> None:
        """Write a distribution: its modules, METADATA, RECORD and entry points."""
        info = self.folder / f"{package.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        files = {f"{name}.py": text for name, text in modules.items()}
        for name, text in files.items():
            (self.folder / name).write_text(text)
        summary = "Summary: A tiny package\nLicense: MIT"
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n{summary}\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(entries))
        kept = [*files, *(f"{info.name}/{name}" for name in ("METADATA", "entry_points.txt", "RECORD"))]
        (info / "RECORD").write_text("".join(f"{name},,\n" for name in kept))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Return an empty folder that is on the path, of this process too."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return Site(folder)


@pytest.fixture
def modules() -> Iterator[Callable[[str], str]]:
    """Return a maker of module names that no other test has, which are forgotten at the end."""
    made: list[str] = []

    def name(stem: str) -> str:
        made.append(f"{stem}_{os.getpid()}_{len(_names)}")
        _names.append(made[-1])
        return made[-1]

    yield name
    for module in made:
        sys.modules.pop(module, None)


_names: list[str] = []
