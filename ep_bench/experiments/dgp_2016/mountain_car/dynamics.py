"""The mountain car and its value function (R. S. Sutton and A. G. Barto, Reinforcement Learning, 1998, example 8.2).

A car in a valley is too weak for the slope on the right and must first swing back. At position x in [-1.2, 0.5] and
velocity v in [-0.07, 0.07], an action a of -1, 0 or 1 gives

    v' = v + 0.001 a - 0.0025 cos(3 x),    x' = x + v',

both clipped to their bounds. At the left bound v' becomes 0; at the right bound the episode ends. Every step costs 1,
so that the value of a state is minus the number of steps that an optimal driver needs. The value has a cliff: where the
swing just suffices, a slightly smaller velocity costs another swing.

Value iteration uses a grid with bilinear interpolation: V = -1 + max_a V(next state), 0 at the goal, starting from 0,
until nothing changes. The interpolation smooths steep parts of V, less so on a finer grid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ep_bench.types import Array

POSITION, VELOCITY = (-1.2, 0.5), (-0.07, 0.07)
ACTIONS = (-1.0, 0.0, 1.0)
FORCE, GRAVITY = 0.001, 0.0025
LONGEST = 10_000  # maximum of sweeps, and of steps per episode; never reached


class ValueFunction(NamedTuple):
    """A value function on a grid, with positions along the first axis."""

    position: Array  # (P,)
    velocity: Array  # (Q,)
    values: Array  # (P, Q)
    sweeps: int
    change: float  # largest change in the last sweep

    def at(self, states: Array) -> Array:
        """Return the values (S,) of states (S, 2), position and velocity, by bilinear interpolation."""
        corners, weights = _corners(self.position, self.velocity, states)
        return np.asarray(np.sum(self.values.ravel()[corners] * weights, axis=0))


def step(states: Array, action: float | Array) -> Array:
    """Return the next states (S, 2) of states (S, 2) under one action, or under one action per state (S,)."""
    x, v = states.T
    velocity = np.clip(v + FORCE * action - GRAVITY * np.cos(3.0 * x), *VELOCITY)
    position = np.clip(x + velocity, *POSITION)
    return np.column_stack([position, np.where(position <= POSITION[0], 0.0, velocity)])


def at_goal(states: Array) -> NDArray[np.bool_]:
    """Return which states (S, 2) end an episode."""
    return np.asarray(states[:, 0] >= POSITION[1])


def nodes(position: Array, velocity: Array) -> Array:
    """Return the states (P Q, 2) of a grid, velocities varying fastest."""
    return np.stack(np.meshgrid(position, velocity, indexing="ij"), axis=-1).reshape(-1, 2)


def iterate(count: int, tolerance: float = 1e-8) -> ValueFunction:
    """Return the value function on a grid of ``count`` nodes per dimension, by value iteration.

    The iteration ends if no value changes by more than ``tolerance``. Raises ArithmeticError if it does not converge.
    """
    position, velocity = np.linspace(*POSITION, count), np.linspace(*VELOCITY, count)
    states = nodes(position, velocity)
    moves = [_transitions(position, velocity, step(states, action)) for action in ACTIONS]
    values, ended = np.zeros(len(states)), at_goal(states)
    for sweep in range(1, LONGEST + 1):
        better = np.maximum.reduce([move @ values for move in moves]) - 1.0
        better[ended] = 0.0
        change = float(np.abs(better - values).max())
        values = better
        if change <= tolerance:
            return ValueFunction(position, velocity, values.reshape(count, count), sweep, change)
    raise ArithmeticError(f"value iteration: values still change by {change:.3g} after {LONGEST} sweeps")


def drive(values: ValueFunction, states: Array) -> NDArray[np.int64]:
    """Return the numbers of steps (S,) to the goal from states (S, 2), for a greedy driver.

    The driver takes the action of the highest value. Raises ArithmeticError if a driver does not arrive.
    """
    states, steps = np.array(states, dtype=np.float64), np.zeros(len(states), dtype=np.int64)
    for _ in range(LONGEST):
        going = np.flatnonzero(~at_goal(states))
        if not len(going):
            return steps
        after = np.stack([step(states[going], action) for action in ACTIONS])
        worth = np.stack([np.where(at_goal(option), 0.0, values.at(option)) for option in after])
        states[going] = after[worth.argmax(axis=0), np.arange(len(going))]
        steps[going] += 1
    raise ArithmeticError(f"{len(going)} drivers are not at the goal after {LONGEST} steps")


def shortest(values: ValueFunction, states: Array) -> NDArray[np.int64]:
    """Return the numbers of steps (S,) of the best of three drivers, who start with different actions.

    These numbers are attained, so that no optimal driver takes more. The first step matters next to the cliff, where
    interpolated values mislead a greedy driver.
    """
    found = []
    for action in ACTIONS:
        after = step(states, action)
        found.append(1 + drive(values, after))  # 0 further steps at the goal
    return np.asarray(np.where(at_goal(states), 0, np.minimum.reduce(found)))


def _transitions(position: Array, velocity: Array, after: Array) -> sparse.csr_array:
    """Return the matrix (P Q, P Q) that interpolates the values after a step, 0 where the episode ends."""
    corners, weights = _corners(position, velocity, after)
    weights = np.where(at_goal(after), 0.0, weights)
    count = len(after)
    rows = np.broadcast_to(np.arange(count), corners.shape)
    return sparse.csr_array((weights.ravel(), (rows.ravel(), corners.ravel())), shape=(count, count))


def _corners(position: Array, velocity: Array, states: Array) -> tuple[Array, Array]:
    """Return the corner nodes (4, S) of the cell around each state (S, 2), as flat indices, and weights (4, S)."""
    (i, a), (j, b) = (_cell(axis, along) for axis, along in zip((position, velocity), states.T, strict=True))
    width = len(velocity)
    corners = np.stack([i * width + j, i * width + j + 1, (i + 1) * width + j, (i + 1) * width + j + 1])
    return corners, np.stack([(1.0 - a) * (1.0 - b), (1.0 - a) * b, a * (1.0 - b), a * b])


def _cell(axis: Array, along: Array) -> tuple[Array, Array]:
    """Return the cell (S,) of an evenly spaced axis (P,) that contains each value, and the position in it."""
    place = (along - axis[0]) / (axis[-1] - axis[0]) * (len(axis) - 1)
    cell = np.clip(np.floor(place).astype(np.int64), 0, len(axis) - 2)
    return cell, place - cell
