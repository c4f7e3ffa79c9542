"""Targets of a data set: transforms of a regression target, and targets of few different values.

Transforms are applied before splitting and standardisation. Some published results use one: those of Jylanki et al.
(2014) on the Crime data the cube root (see the card of ``communities``). All scores are then in the units of the
transformed target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ep_bench.errors import UserError
from ep_bench.types import Array, DatasetRef, Task

TRANSFORMS: Mapping[str, Callable[[Array], Array]] = {
    "none": lambda y: y,
    "log": np.log,
    "square_root": np.sqrt,
    "cube_root": np.cbrt,
}

REPEATS = 10  # mean number of data points per target value from which the values count as few
FREQUENT = 0.1  # fraction of the data points with one target value from which the values count as few


def few_values(y: Array) -> int | None:
    """Return the number of different values of targets y (n,) if they are few, or one of them is frequent, else None.

    A density can put ever narrower peaks on values that occur many times, so its log-likelihood has no upper bound.
    """
    counts = np.unique(y, return_counts=True)[1]
    few = REPEATS * len(counts) <= len(y) or counts.max() >= max(FREQUENT * len(y), 2)
    return len(counts) if few else None


def check_transform(ref: DatasetRef, task: Task) -> None:
    """Raise UserError if there is no such transform, or if the targets are classes."""
    name, place = ref.target_transform, {"where": ref.label, "field": "target_transform"}
    if name not in TRANSFORMS:
        raise UserError("unknown value", found=name, allowed=TRANSFORMS, name=name, **place)
    if name != "none" and task == "classification":
        raise UserError("does not apply to classification", found=name, allowed=("none",), **place)


def transformed(y: Array, ref: DatasetRef) -> Array:
    """Return the transformed target (n,). Raises UserError if the transform is not defined for a value of y (n,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = TRANSFORMS[ref.target_transform](y)
    count = int(np.sum(~np.isfinite(found)))
    if count:
        raise UserError(
            f"is not defined for {count} of {len(y)} targets; their minimum is {y.min():g}",
            where=ref.label,
            field="target_transform",
            found=ref.target_transform,
        )
    return np.ascontiguousarray(found)


def words(name: str, transform: str) -> str:
    """Return the name of a transformed target."""
    return name if transform == "none" else f"{transform.replace('_', ' ')} of {name}"
