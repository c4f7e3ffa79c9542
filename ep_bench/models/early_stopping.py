"""Training by Adam, for a number of epochs that validation points determine: early stopping, then a fit of all points.

A first fit uses all but ``validation_fraction`` of the data points. It ends after twice the epochs that have had the
lowest loss of the others so far, at least ``MINIMUM``. The second fit uses all data points, for the number of epochs
with the lowest loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from ep_bench.numerics.minibatch import AdamMinibatches, AdamSchedule, Trace, hold_out, run_epochs

Array = NDArray[np.float64]

SINGLE = 40  # epochs if there is only one data point
PATIENCE = 2.0  # the first fit ends at this multiple of the best number of epochs so far, at least MINIMUM
MINIMUM = 100  # epochs; both as in ``ensemble``


class EarlyStoppingConfig(BaseModel):
    """Options of the training."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: PositiveInt | None = Field(
        None, description="passes over the training data; by default those with the lowest loss of validation points"
    )
    validation_fraction: float = Field(
        0.2, gt=0.0, lt=1.0, description="fraction of the training data that determines the epochs; 0.2 as bp"
    )
    max_epochs: PositiveInt = Field(2000, description="epochs of the first fit at most; as ensemble: 2,000")
    learning_rate: PositiveFloat = Field(3e-3, description="step size of Adam; ours")
    batch_size: PositiveInt = Field(32, description="data points per step; ours")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for name in ("validation_fraction", "max_epochs") if self.epochs else ():
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} has no effect if epochs is set; leave one of them out")
        return self


class TrainingProblem(NamedTuple):
    """Functions of parameters theta (T,) and data points X (B, d), y (B,)."""

    start: Callable[[np.random.Generator], Array]  # first parameters
    objective: Callable[[Array, Array, Array, int, Array], float]  # (theta, X, y, n, gradient), per data point, of n
    loss: Callable[[Array, Array, Array], float]  # (theta, X, y), of validation points


class _Training:
    """Parameters in training on X (n, d), y (n,)."""

    def __init__(
        self, problem: TrainingProblem, X: Array, y: Array, config: EarlyStoppingConfig, rng: np.random.Generator
    ) -> None:
        n, self._rng, self.theta = len(y), rng, problem.start(rng)
        steps = (config.epochs or config.max_epochs) * (n // min(config.batch_size, n))
        schedule = AdamSchedule(steps, config.batch_size, config.learning_rate, None)

        def evaluate(rows: NDArray[np.int64], gradient: Array) -> float:
            return n * problem.objective(self.theta, X[rows], y[rows], n, gradient)

        self._n, self._minibatches = n, AdamMinibatches(evaluate, self.theta, n, schedule)

    def train(self, epochs: range) -> Trace:
        return run_epochs(epochs, self._minibatches.run_epoch, self.theta, self._n, self._rng)


def train(
    problem: TrainingProblem, X: Array, y: Array, config: EarlyStoppingConfig, rng: np.random.Generator
) -> tuple[Array, Trace]:
    """Return parameters (T,) fitted to X (n, d), y (n,), and one value of ``objective`` per epoch of the second fit.

    Raises FloatingPointError, with the step, if the objective or its gradient is not finite.
    """
    epochs = config.epochs or best_epochs(problem, X, y, config, rng)
    training = _Training(problem, X, y, config, rng)
    return training.theta, training.train(range(epochs))


def best_epochs(
    problem: TrainingProblem, X: Array, y: Array, config: EarlyStoppingConfig, rng: np.random.Generator
) -> int:
    """Return the number of epochs with the lowest loss of validation points."""
    if len(y) == 1:
        return min(SINGLE, config.max_epochs)
    fitted, validation = hold_out(len(y), config.validation_fraction, rng)
    training = _Training(problem, X[fitted], y[fitted], config, rng)
    best, lowest = 1, math.inf
    for epoch in range(config.max_epochs):
        training.train(range(epoch, epoch + 1))
        loss = problem.loss(training.theta, X[validation], y[validation])
        if loss < lowest:
            best, lowest = epoch + 1, loss
        elif epoch + 1 >= max(PATIENCE * best, MINIMUM):
            break
    return best
