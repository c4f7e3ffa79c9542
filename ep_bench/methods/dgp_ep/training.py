"""Adam over minibatches: section 6 of Bui et al. (2015)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.dgp_ep import network
from ep_bench.numerics.adam import Moments, adam_step, moments
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.types import Array


class Schedule(NamedTuple):
    """How long and how far steps go."""

    steps: int
    batch_size: int
    rate: float  # of Adam
    plateau: int | None  # steps whose mean energy must lie below that of as many before


class Path(NamedTuple):
    """What the steps came to."""

    energies: Array  # (T,) estimates, one a step
    epochs: list[int]  # steps done at the end of each pass over the rows
    values: list[Any]  # what ``watch`` found there
    settled: bool  # did the plateau rule end it?


@jit(relaxed=FUSE)
def walk(
    model: Any,
    theta: Any,
    state: Moments,
    X: Any,
    y: Any,
    order: Any,
    rows: int,
    noise: Any,
    rate: float,
    energies: Any,
) -> int:
    """Make a step on every whole minibatch of ``rows`` among the row indices ``order``; return how many were made.

    ``noise`` (steps, S, C) are draws for the softmax; ``energies`` (steps,) takes the estimates. Ends before a step
    whose energy is not finite.
    """
    gradient = np.empty(theta.size)
    batch, targets = np.empty((rows, X.shape[1])), np.empty(rows)
    for step in range(len(order) // rows):
        for i in range(rows):
            row = order[step * rows + i]
            batch[i] = X[row]
            targets[i] = y[row]
        energies[step] = network.value_and_gradient(model, theta, batch, targets, noise[step], gradient)
        if not np.isfinite(energies[step]):
            return step
        adam_step(theta, gradient, state, rate)
    return len(order) // rows


def run(
    model: Any, theta: Array, X: Array, y: Array, schedule: Schedule, draws: int, rng: np.random.Generator,
    watch: Callable[[], Any],
) -> Path:  # fmt: skip
    """Move the parameters (P,), in place, and return the path.

    Each pass goes over a new permutation of the rows, in whole minibatches. ``draws`` of the softmax, 0 of other
    likelihoods. Raises FloatingPointError with the step whose energy is not finite, or whose matrices have no factor.
    """
    n, outputs = len(y), int(model.dims[-1])
    rows = min(schedule.batch_size, n)
    state, energies, epochs, values = moments(len(theta)), np.empty(schedule.steps), [], []
    done, settled = 0, False
    while done < schedule.steps and not settled:
        count = min(n // rows, schedule.steps - done)
        order = rng.permutation(n)[: count * rows]
        noise = rng.standard_normal((count, draws, outputs)) if draws else np.zeros((count, 0, outputs))
        made = walk(model, theta, state, X, y, order, rows, noise, schedule.rate, energies[done : done + count])
        done += made
        if made < count:
            raise FloatingPointError(f"step {done + 1}: the energy is not finite, or a matrix has no Cholesky factor")
        epochs.append(done)
        values.append(watch())
        settled = schedule.plateau is not None and on_plateau(energies[:done], schedule.plateau)
    return Path(energies[:done], epochs, values, settled)


def on_plateau(energies: Array, window: int) -> bool:
    """Tell whether the last ``window`` energies lie, in the mean, no lower than as many before them."""
    if len(energies) < 2 * window:
        return False
    return bool(energies[-window:].mean() >= energies[-2 * window : -window].mean())
