"""Options that all Gaussian-process methods have."""

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

from ep_bench.covariances.from_options import EVIDENCE, ChosenKernel, Kernel, candidates
from ep_bench.covariances.hyperparameters import role
from ep_bench.covariances.replicates import Duplicates
from ep_bench.options import NEUTRAL


def _positive(value: Any) -> Any:
    """Return one positive number, or several as a tuple. Raises ValueError for other values."""
    values = value if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else [value]
    sound = all(isinstance(v, int | float | np.number) and not isinstance(v, bool) and 0 < v < np.inf for v in values)
    if value is None:
        return None
    if len(values) == 0 or not sound:
        raise ValueError("must be a number above 0, or a list of such numbers")
    numbers = tuple(float(v) for v in values)
    return numbers if values is value else numbers[0]


_NUMBER = {"type": "number", "exclusiveMinimum": 0}
_SCHEMA = WithJsonSchema({"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 1}, {"type": "null"}]})
Values = Annotated[float | tuple[float, ...] | None, BeforeValidator(_positive), _SCHEMA]


class GaussianProcessConfig(BaseModel):
    """Covariance, fixed hyperparameters, and how the others are learned."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kernel: Kernel = Field(
        "se",
        description="se, matern32, matern52, nn (Williams 1998), linear, constant, or a list of them under sum or "
        "product; Jylanki et al. (2011), eq. 2: se",
    )
    ard: bool = Field(
        True,
        description="one lengthscale or weight variance per input, or one for all; Jylanki et al. (2011): per input",
    )
    lengthscale: Values = Field(None, description="one for all inputs, or one per input; learned if null")
    magnitude: PositiveFloat | None = Field(
        None, description="variance factor of se, matern, nn and constant; learned if null"
    )
    bias_variance: PositiveFloat | None = Field(None, description="bias variance of nn; learned if null")
    weight_variance: Values = Field(
        None, description="weight variance of nn and linear, one for all inputs, or one per input; learned if null"
    )
    noise_variance: PositiveFloat | None = Field(None, description="variance of the Gaussian noise; learned if null")
    optimize: bool = Field(
        True,
        description="learn hyperparameters that are null; without it they are fixed at the medians of the weak priors; "
        "ours",
    )
    prior: Literal["weak", "none"] = Field(
        "weak",
        description="prior of the logarithms of the hyperparameters: wide Gaussians (weak), or flat (none), as in "
        "Jylanki et al. (2011); ours: weak",
    )
    starts: PositiveInt = Field(
        3,
        description="number of searches for the hyperparameters: the first starts at the medians of the priors, the "
        "others at random points",
    )
    steps: PositiveInt = Field(500, description="maximum number of iterations per search; ours")
    duplicates: Duplicates = Field(
        "keep",
        description="data points with the same inputs: keep, or merge into one with the mean target and less noise, "
        "which does not change the exact likelihood; ours",
        json_schema_extra={NEUTRAL: "keep"},
    )

    @model_validator(mode="after")
    def _of_the_kernel(self) -> Self:
        has = {role(name) for name in candidates(self.kernel, 1, self.ard)[0].names}
        for name in ("lengthscale", "magnitude", "bias_variance", "weight_variance"):
            if getattr(self, name) is not None and name not in has:
                raise ValueError(f"{name} is not a parameter of this kernel; it has {', '.join(sorted(has))}")
        return self


class ChosenKernelConfig(GaussianProcessConfig):
    """The same with a covariance that the evidence may choose."""

    kernel: ChosenKernel = Field(
        "se",
        description="se, matern32, matern52, nn (Williams 1998), linear, constant, or a list of them under sum or "
        "product; evidence: se, matern52 or matern32, each learned, the one of the highest marginal posterior density; "
        "Jylanki et al. (2011), eq. 2: se",
    )

    @model_validator(mode="after")
    def _learned_kernel(self) -> Self:
        values = (self.lengthscale, self.magnitude, self.noise_variance)
        if self.kernel == EVIDENCE and not (self.optimize and None in values):
            raise ValueError("kernel: evidence compares kernels with learned hyperparameters; here all are fixed")
        return self
