"""Training loops over minibatches: one permutation of the data points per epoch, finite checks, one trace.

``run_epochs`` is the loop over epochs. Its passes are either compiled kernels, which take all steps of an epoch at
once, or ``AdamMinibatches``, which steps from Python and supports a limit of steps and a plateau rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ep_bench.numerics.adam import adam_step, moments

Array = NDArray[np.float64]
Trace = dict[str, list[float]]  # name -> one value per epoch


def run_epochs(
    epochs: Iterable[int],
    run_epoch: Callable[[int, NDArray[np.int64]], float],
    theta: Array,
    n: int,
    rng: np.random.Generator,
    monitor: Callable[[], dict[str, float]] = dict,
) -> Trace:
    """Train for the given epochs and return the trace.

    ``run_epoch(epoch, order)`` visits the ``n`` data points in a random order (n,), updates the parameters ``theta``
    (P,) in place and returns the objective of the epoch. The trace has it as ``objective``, next to the values that
    ``monitor()`` returns after each epoch. Epochs count from 0.

    Raises FloatingPointError, with the epoch, if a parameter or the objective is not finite.
    """
    trace: Trace = {"objective": []}
    for epoch in epochs:
        objective = run_epoch(epoch, rng.permutation(n))
        _check_finite(epoch + 1, theta, objective)
        trace["objective"].append(objective)
        for name, value in monitor().items():
            trace.setdefault(name, []).append(value)
    return trace


def _check_finite(epoch: int, theta: Array, objective: float) -> None:
    for name, value in (("a parameter", theta), ("the objective", objective)):
        if not np.isfinite(value).all():
            raise FloatingPointError(f"epoch {epoch}: {name} is not finite; a smaller learning_rate may help")


class AdamSchedule(NamedTuple):
    """Number and size of the steps of Adam."""

    steps: int  # maximum
    batch_size: int  # data points per step, at most
    rate: float  # first step size of Adam
    plateau: int | None  # stop if the mean of this many objectives is not below that of as many before
    cosine: bool = False  # whether step sizes decrease to 0 along a cosine over all steps, or are constant

    def rate_after(self, steps: int) -> float:
        """Return the size of the next step after a number of steps."""
        return self.rate * (0.5 * (1.0 + math.cos(math.pi * steps / self.steps)) if self.cosine else 1.0)


class AdamMinibatches:
    """Epochs of Adam over whole minibatches of an objective that is evaluated from Python.

    Parameters
    ----------
    evaluate : ``evaluate(batch, gradient)`` returns the objective of the data points ``batch`` (B,), indices, and
        writes its gradient (P,)
    theta : (P,) parameters, updated in place
    n : number of data points; the last ``n % batch_size`` points of a permutation are not used
    schedule : number and size of the steps
    """

    def __init__(
        self, evaluate: Callable[[NDArray[np.int64], Array], float], theta: Array, n: int, schedule: AdamSchedule
    ) -> None:
        self._evaluate, self._theta, self._schedule = evaluate, theta, schedule
        self._batch_size = min(schedule.batch_size, n)
        self._moments, self._gradient = moments(len(theta)), np.empty(len(theta))
        self._objectives = np.empty(schedule.steps)
        self.steps = 0  # taken so far

    @property
    def objectives(self) -> Array:
        """The objective of each step so far, (steps,)."""
        return self._objectives[: self.steps]

    @property
    def settled(self) -> bool:
        """Whether the objectives have reached a plateau; False without a plateau rule."""
        window = self._schedule.plateau
        return window is not None and on_plateau(self.objectives, window)

    def epochs(self) -> Iterator[int]:
        """Yield 0, 1, 2, ... until all steps are taken or the objectives have settled."""
        epoch = 0
        while self.steps < self._schedule.steps and not self.settled:
            yield epoch
            epoch += 1

    def run_epoch(self, epoch: int, order: NDArray[np.int64]) -> float:  # noqa: ARG002 - the signature of run_epochs
        """Take the steps of an epoch; return the mean objective of its steps, divided by n.

        Raises FloatingPointError, with the step, if the objective or its gradient is not finite.
        """
        first, size = self.steps, self._batch_size
        count = min(len(order) // size, self._schedule.steps - first)
        for start in range(0, count * size, size):
            self._step(order[start : start + size])
        return float(self._objectives[first : self.steps].mean()) / len(order)

    def _step(self, batch: NDArray[np.int64]) -> None:
        rate = self._schedule.rate_after(self.steps)
        objective = self._objectives[self.steps] = self._evaluate(batch, self._gradient)
        self.steps += 1
        # The objective may be finite although a parameter is nan: some compiled exponentials map nan to 0.
        if not (np.isfinite(objective) and np.isfinite(self._gradient.sum())):
            raise FloatingPointError(
                f"step {self.steps}: the objective or its gradient is not finite; a smaller learning_rate may help"
            )
        adam_step(self._theta, self._gradient, self._moments, rate)


def on_plateau(objectives: Any, window: int) -> bool:
    """Return whether the mean of the last ``window`` objectives is not below the mean of as many before them."""
    if len(objectives) < 2 * window:
        return False
    return bool(objectives[-window:].mean() >= objectives[-2 * window : -window].mean())


def hold_out(n: int, fraction: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return the indices of the data points to fit, and of round(fraction * n) points for validation.

    Each part has at least one point. A single point (n = 1) is in both parts.
    """
    order = rng.permutation(n)
    size = min(max(round(fraction * n), 1), n - 1)
    return (order[size:], order[:size]) if size else (order, order)
