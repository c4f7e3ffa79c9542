"""Adam over minibatches: section 6 of Bui et al. (2015)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ep_bench.numerics.adam import adam_step, moments
from ep_bench.types import Array

# Numbers of a block of memory just under 32 MB, the largest whose release teaches glibc's allocator what to keep for
# itself. Untaught it returns the arrays of a step to the system, from where the next step fetches them page by page: a
# third of the time of a step that takes tens of MB.
KEPT = 2**22 - 2**10


class AdamSchedule(NamedTuple):
    """How long and how far steps go."""

    steps: int
    batch_size: int
    rate: float  # of Adam
    plateau: int | None  # steps whose mean energy must lie below that of as many before


class TrainingHistory(NamedTuple):
    """What the steps came to."""

    energies: Array  # (T,) estimates, one a step
    epochs: list[int]  # steps done at the end of each pass over the rows
    values: list[Any]  # what ``watch`` found there
    settled: bool  # did the plateau rule end it?


def run(
    evaluate: Callable[[Array, Array, Array, Array, Array], float], theta: Array, X: Array, y: Array,
    schedule: AdamSchedule, noise_shape: tuple[int, int], rng: np.random.Generator, watch: Callable[[], Any],
) -> TrainingHistory:  # fmt: skip
    """Move the parameters (P,), in place, and return the path.

    ``evaluate(theta, X, y, noise, gradient)`` returns the energy of a minibatch and writes its gradient; ``noise`` is
    standard normal, fresh at every step. Each pass goes over a new permutation of the rows, in whole minibatches.
    Raises FloatingPointError with the step whose energy or gradient is not finite, or whose matrices have no factor.
    """
    np.empty(KEPT)
    n = len(y)
    rows = min(schedule.batch_size, n)
    state, gradient = moments(len(theta)), np.empty(len(theta))
    energies, epochs, values = np.empty(schedule.steps), [], []
    done, settled = 0, False
    while done < schedule.steps and not settled:
        order = rng.permutation(n)
        for first in range(0, min(n // rows, schedule.steps - done) * rows, rows):
            batch = order[first : first + rows]
            energies[done] = evaluate(theta, X[batch], y[batch], rng.standard_normal(noise_shape), gradient)
            done += 1
            # Where a parameter is nan the energy may be a number: exponentials take nan for what is far below 0.
            if not (np.isfinite(energies[done - 1]) and np.isfinite(gradient.sum())):
                raise FloatingPointError(
                    f"step {done}: the energy or its gradient is not finite, or a matrix has no Cholesky factor"
                )
            adam_step(theta, gradient, state, schedule.rate)
        epochs.append(done)
        values.append(watch())
        settled = schedule.plateau is not None and on_plateau(energies[:done], schedule.plateau)
    return TrainingHistory(energies[:done], epochs, values, settled)


def on_plateau(energies: Array, window: int) -> bool:
    """Tell whether the last ``window`` energies lie, in the mean, no lower than as many before them."""
    if len(energies) < 2 * window:
        return False
    return bool(energies[-window:].mean() >= energies[-2 * window : -window].mean())
