"""Probabilistic backpropagation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from ep_bench.methods.pbp._first import PlainPBP, relu
from ep_bench.types import Array, Indices, Method, Predictive, Rows


class Config(BaseModel):
    """Options of probabilistic backpropagation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field((50,), min_length=1, description="units of each hidden layer (section 5.1)")
    epochs: PositiveInt = Field(40, description="passes over the training rows (section 5.1)")


class State(NamedTuple):
    means: tuple[Array, ...]
    variances: tuple[Array, ...]
    noise_a: float
    noise_b: float
    prior_a: float
    prior_b: float


def fit(
    train: Rows,
    config: Config,
    rng: np.random.Generator,
    start: Sequence[Array] | None = None,
    orders: Indices | None = None,
) -> tuple[State, dict[str, list[float]]]:
    n, d = train.X.shape
    if start is None:
        sizes = (d, *config.hidden, 1)
        start = [rng.standard_normal((o, i + 1)) / np.sqrt(i + 1) for i, o in zip(sizes[:-1], sizes[1:], strict=True)]
    net = PlainPBP(start)
    for epoch in range(config.epochs):
        net.fit(train.X, train.y, [rng.permutation(n) if orders is None else orders[epoch]])
        if not np.isfinite(net.noise).all():
            raise FloatingPointError(f"epoch {epoch + 1}: not finite")
    return State(net.means, net.variances, *net.noise.tolist(), *net.prior.tolist()), {}


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    z, w = X, np.zeros_like(X)
    for l, (m, v) in enumerate(zip(state.means, state.variances, strict=True)):
        z = np.column_stack([z, np.ones(len(X))])
        w = np.column_stack([w, np.zeros(len(X))])
        a, a_var = z @ m.T / np.sqrt(z.shape[1]), (w @ (m**2 + v).T + z**2 @ v.T) / z.shape[1]
        if l < len(state.means) - 1:
            z, w = np.vectorize(lambda x, y: relu(x, y)[:2])(a, a_var)
    return Predictive.gaussian(a[:, 0], a_var[:, 0] + state.noise_b / (state.noise_a - 1))


def _seconds(config: Config, n: int, d: int) -> float:
    return 3e-6 * n * config.epochs


def _published(config: Config) -> tuple[str, ...]:
    return ("PBP", "PBP-1") if len(config.hidden) == 1 else ()


METHOD = Method(
    name="pbp",
    version=1,
    title="Probabilistic backpropagation",
    paper="Hernandez-Lobato and Adams (2015)",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1},
    published=_published,
)
