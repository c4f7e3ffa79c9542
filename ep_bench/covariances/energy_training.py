"""Adam over minibatches of an energy, such as a negative bound, and its criterion of convergence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ep_bench.numerics.minibatch import AdamMinibatches, AdamSchedule, run_epochs
from ep_bench.types import Array, Decrease, Indices

# Size of an array just below 32 MB. Releasing one raises glibc's threshold for returning memory to the system.
# Otherwise the arrays of each step are returned and fetched again, which takes a third of a step of tens of MB.
ALLOCATOR_BLOCK = 2**22 - 2**10

SETTLED = Decrease(since=2, limit=0.02)  # of the energy, nats per data point; the limit is that of ``sgp``


class TrainingHistory(NamedTuple):
    """Result of the training loop."""

    trace: dict[str, list[float]]  # one value per epoch
    steps: int
    settled: bool  # whether the plateau rule ended the training
    objectives: Array  # (steps,) energies, nats per data point


def run(
    evaluate: Callable[[Array, Array, Array, Array, Array], float], theta: Array, X: Array, y: Array,
    schedule: AdamSchedule, noise_shape: tuple[int, ...], rng: np.random.Generator,
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


def judge(history: TrainingHistory, plateau: int | None) -> bool | None:
    """Return whether the training has converged, None if it is too short to decide; warn if not."""
    converged: bool | None
    if plateau is not None:
        converged, words = history.settled, f"no plateau of the energy in {history.steps} steps"
    else:
        decrease = SETTLED.of(history.objectives)
        converged = SETTLED.met(decrease)
        words = (
            f"the energy decreased by {decrease:.3f} nats per data point from the second to the last quarter "
            "of the steps; more steps may help"
        )
    if converged is False:
        warn_unconverged(words)
    return converged


def warn_unconverged(words: str) -> None:
    """Issue scikit-learn's ConvergenceWarning."""
    from ep_bench.errors import ConvergenceWarning

    warnings.warn(words, ConvergenceWarning, stacklevel=4)
