"""Linear discriminants with a shared covariance, as a classifier of the registry's shape, for tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ep_bench.predictions import ClassProbabilities
from ep_bench.types import Array, Method, Rows


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    ridge: float = Field(0.1, gt=0, description="added to the variance of each input")


class State(NamedTuple):
    means: Array  # (C, d); the overall mean for a class without data points
    factor: Array  # (d, d), of the covariance
    frequencies: Array  # (C,) class frequencies with one data point added per class


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    members = [train.X[train.y == index] for index in range(train.classes)]
    means = np.array([rows.mean(axis=0) if len(rows) else train.X.mean(axis=0) for rows in members])
    apart = train.X - means[train.y.astype(int)]
    covariance = apart.T @ apart / len(apart) + config.ridge * np.eye(apart.shape[1])
    frequencies = np.array([len(rows) + 1.0 for rows in members])
    return State(means, np.linalg.cholesky(covariance), frequencies / frequencies.sum()), {"objective": [0.0]}


def predict(state: State, X: Array, rng: np.random.Generator) -> ClassProbabilities:
    apart = np.array([np.linalg.solve(state.factor, (X - mean).T) for mean in state.means])  # (C, d, n)
    scores = (np.log(state.frequencies)[:, None] - 0.5 * (apart**2).sum(axis=1)).T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return ClassProbabilities(weights / weights.sum(axis=1, keepdims=True))


METHOD = Method(
    name="discriminant", version=1, title="Discriminant", paper="none", tasks=("classification",), config=Config,
    fit=fit, predict=predict, space={"ridge": {"log": [0.01, 10.0]}},
)  # fmt: skip
