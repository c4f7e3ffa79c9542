"""Transforms of a regression set's target, before anything is split or standardised.

Some published numbers rest on one: those of the Crime data of Jylanki et al. (2014) on the cube root (see the card of
``communities``). All scores are then those of the transformed target, in its units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ep_bench.types import Array, DatasetRef, Task, UserError

TRANSFORMS: Mapping[str, Callable[[Array], Array]] = {
    "none": lambda y: y,
    "log": np.log,
    "square_root": np.sqrt,
    "cube_root": np.cbrt,
}


def check_transform(ref: DatasetRef, task: Task) -> None:
    """Raise UserError where there is no such transform, or where the targets are classes."""
    name, place = ref.target_transform, {"where": ref.label, "field": "target_transform"}
    if name not in TRANSFORMS:
        raise UserError("unknown value", found=name, allowed=TRANSFORMS, name=name, **place)
    if name != "none" and task == "classification":
        raise UserError("classes have no transform", found=name, allowed=("none",), **place)


def transformed(y: Array, ref: DatasetRef) -> Array:
    """Return the target y (n,) under the transform that a study names. Raises UserError where it is not defined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = TRANSFORMS[ref.target_transform](y)
    bad = int(np.sum(~np.isfinite(found)))
    if bad:
        raise UserError(
            f"is not defined for {bad} of {len(y)} targets, the least of them {y.min():g}",
            where=ref.label,
            field="target_transform",
            found=ref.target_transform,
        )
    return np.ascontiguousarray(found)


def words(name: str, transform: str) -> str:
    """Return what a transformed target is called."""
    return name if transform == "none" else f"{transform.replace('_', ' ')} of {name}"
