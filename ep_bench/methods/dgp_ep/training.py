"""Adam over minibatches of the energy: section 6 of Bui et al. (2015)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ep_bench.numerics.minibatch import AdamMinibatches, AdamSchedule, run_epochs
from ep_bench.types import Array, Indices

# Size of an array just below 32 MB. Releasing one raises glibc's threshold for returning memory to the system.
# Otherwise the arrays of each step are returned and fetched again, which takes a third of a step of tens of MB.
ALLOCATOR_BLOCK = 2**22 - 2**10


class TrainingHistory(NamedTuple):
    """Result of the training loop."""

    trace: dict[str, list[float]]  # one value per epoch
    steps: int
    settled: bool  # whether the plateau rule ended the training
    objectives: Array  # (steps,) energies, nats per data point


def run(
    evaluate: Callable[[Array, Array, Array, Array, Array], float], theta: Array, X: Array, y: Array,
    schedule: AdamSchedule, noise_shape: tuple[int, int], rng: np.random.Generator,
    monitor: Callable[[], dict[str, float]],
) -> TrainingHistory:  # fmt: skip
    """Minimise the energy over the parameters theta (P,), in place, on data X (n, d), y (n,).

    ``evaluate(theta, X, y, noise, gradient)`` returns the energy of a minibatch and writes its gradient. ``noise`` is
    standard normal and drawn for each step. ``monitor`` returns further values of the trace after each epoch.

    Raises FloatingPointError, with the step, if the energy or its gradient is not finite. This includes matrices
    without a Cholesky factor.
    """
    np.empty(ALLOCATOR_BLOCK)

    def evaluate_batch(batch: Indices, gradient: Array) -> float:
        return evaluate(theta, X[batch], y[batch], rng.standard_normal(noise_shape), gradient)

    minibatches = AdamMinibatches(evaluate_batch, theta, len(y), schedule)
    trace = run_epochs(minibatches.epochs(), minibatches.run_epoch, theta, len(y), rng, monitor)
    return TrainingHistory(trace, minibatches.steps, minibatches.settled, minibatches.objectives / len(y))
