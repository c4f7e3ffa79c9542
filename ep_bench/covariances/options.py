"""The options that Gaussian-process methods share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    WithJsonSchema,
    model_validator,
)

from ep_bench.covariances.from_options import Kernel, build
from ep_bench.covariances.hyperparameters import role


def _positive(value: Any) -> Any:
    """Return one positive number, or several as a tuple. Raises ValueError."""
    values = value if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else [value]
    sound = all(isinstance(v, int | float | np.number) and not isinstance(v, bool) and 0 < v < np.inf for v in values)
    if value is None:
        return None
    if len(values) == 0 or not sound:
        raise ValueError("must be a number above 0, or a list of such")
    numbers = tuple(float(v) for v in values)
    return numbers if values is value else numbers[0]


_NUMBER = {"type": "number", "exclusiveMinimum": 0}
_SCHEMA = WithJsonSchema({"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 1}, {"type": "null"}]})
Values = Annotated[float | tuple[float, ...] | None, BeforeValidator(_positive), _SCHEMA]


class GaussianProcessConfig(BaseModel):
    """Covariance, hyperparameters that are given, and how the others are learned."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kernel: Kernel = Field(
        "se",
        description="se, matern32, matern52, nn (Williams 1998), linear, constant, or a list of them under sum or "
        "product; Jylanki et al. (2011), eq. 2: se",
    )
    ard: bool = Field(
        True, description="a lengthscale or weight variance for each input, or one for all; Jylanki et al. (2011): each"
    )
    lengthscale: Values = Field(None, description="one for all inputs, or one each; learned unless given")
    magnitude: PositiveFloat | None = Field(
        None, description="variance in front of se, matern, nn, constant; learned unless given"
    )
    bias_variance: PositiveFloat | None = Field(None, description="of nn; learned unless given")
    weight_variance: Values = Field(
        None, description="of nn and linear, one for all inputs, or one each; learned unless given"
    )
    noise_variance: PositiveFloat | None = Field(None, description="learned unless given")
    optimize: bool = Field(
        True, description="learn what is not given; else it stays at the medians of the weak priors; ours"
    )
    prior: Literal["weak", "none"] = Field(
        "weak",
        description="of the hyperparameters' logarithms: wide Gaussians, or flat, as Jylanki et al. (2011) have; "
        "ours: weak",
    )
    starts: PositiveInt = Field(
        3, description="searches for hyperparameters, the first from the priors' medians, the others from random points"
    )
    steps: PositiveInt = Field(500, description="of each search, at most; ours")

    @model_validator(mode="after")
    def _of_the_kernel(self) -> Self:
        has = {role(name) for name in build(self.kernel, 1, self.ard).names}
        for name in ("lengthscale", "magnitude", "bias_variance", "weight_variance"):
            if getattr(self, name) is not None and name not in has:
                raise ValueError(f"{name} is given, which this kernel has not; it has {', '.join(sorted(has))}")
        return self
