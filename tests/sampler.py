"""A sampler of the registry's shape: random walks around the mean of the targets, for tests of what samplers keep."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ep_bench.predictions import Predictive
from ep_bench.types import Array, Method, Rows


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    chains: int = Field(2, ge=1, description="chains")
    draws: int = Field(40, ge=1, description="draws of each")
    apart: float = Field(0.0, description="of the last chain, in standard deviations")


class State(NamedTuple):
    levels: Array  # (chains, draws)
    chains: dict[str, Array]
    diagnostics: dict[str, float]


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    levels = train.y.mean() + 0.1 * rng.standard_normal((config.chains, config.draws))
    levels[-1] += 0.1 * config.apart
    log_joint = -0.5 * len(train.y) * levels**2
    within, between = levels.var(axis=1).mean(), levels.mean(axis=1).var()
    diagnostics = {"r_hat_level": float(np.sqrt(1.0 + between / within)), "divergences": 0, "ess_bulk_level": np.nan}
    state = State(levels, {"level": levels, "log_joint": log_joint}, diagnostics)
    return state, {"log_joint": log_joint.mean(axis=0).tolist()}


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    levels = state.levels.ravel()
    return Predictive.equal_mixture(np.repeat(levels[:, None], len(X), axis=1), 1.0)


METHOD = Method(
    name="walk", version=1, title="Random walks", paper="none", tasks=("regression",), config=Config, fit=fit,
    predict=predict,
)  # fmt: skip
