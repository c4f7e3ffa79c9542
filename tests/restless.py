"""A method that issues given warnings, for tests of the handling of warnings."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict
from sklearn.exceptions import ConvergenceWarning

from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    unfinished: tuple[str, ...] = ("three sweeps",)
    other: str = ""
    raises: bool = False


class State(NamedTuple):
    level: float


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    for words in config.unfinished:
        warnings.warn(words, ConvergenceWarning, stacklevel=3)
    if config.other:
        warnings.warn(config.other, RuntimeWarning)  # noqa: B028 its origin is this line
    if config.raises:
        raise FloatingPointError("diverged")
    return State(float(train.y.mean())), {}


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    return Predictive.gaussian(np.full(len(X), state.level), np.ones(len(X)))


METHOD = Method(
    name="restless", version=1, title="Restless", paper="none", tasks=("regression",), config=Config, fit=fit,
    predict=predict,
)  # fmt: skip
