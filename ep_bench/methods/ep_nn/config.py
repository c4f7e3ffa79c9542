"""Options of EP for networks."""

from __future__ import annotations

from math import log
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from ep_bench.options import NEUTRAL

Rate = Annotated[float, Field(gt=0, le=1)]


class Config(BaseModel):
    """Options of EP for networks."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    hidden: tuple[PositiveInt] = Field((10,), description="units K of the hidden layer; section 4.4: 10, kin40k 30")
    linear_units: NonNegativeInt = Field(0, description="number of them that are linear, h / sqrt(K); section 4.1: 1")
    prior: Literal["laplace", "ard", "gaussian"] = Field(
        "laplace",
        description="prior of input weights: laplace, ard (Gaussian, one scale per input) or gaussian (with fixed "
        "weight_variance); section 4.4: laplace and ard",
    )
    groups: Literal["common", "input", "unit", "weight"] | tuple[NonNegativeInt, ...] | None = Field(
        None,
        description="weights with a common scale: all, those of an input, those of a unit, none, or the group of each "
        "input and of the bias, counted from 0; by default common for laplace, input for ard",
    )
    bias: Literal["shared", "own"] = Field(
        "shared",
        description="biases of hidden units have the common scale of the weights (shared) or their own scale; ours",
    )
    updates: Literal["sequential", "parallel"] = Field(
        "sequential", description="update q(w_k) after each data point or after a sweep; section 4.4: sequential"
    )
    fraction: Rate = Field(
        0.95, description="fraction eta of the likelihood terms; section 3.3.1: 0.95; not used for classes (1)"
    )
    prior_fraction: Rate = Field(0.8, description="fraction eta of the prior terms; section 3.3.1: 0.7 to 0.9")
    damping: Rate | None = Field(
        None, description="damping delta of input and theta sites before priors are released; section 3.3.1: 0.5 to "
        "0.8 sequential (by default 0.8), below 0.5 parallel (0.4)",
    )  # fmt: skip
    output_damping: Rate | None = Field(
        None, description="damping delta of output sites before priors are released; section 3.3.1: 0.2; ours: 0.5 "
        "sequential, 0.2 parallel",
    )  # fmt: skip
    final_damping: Rate | None = Field(
        None, description="damping delta of all sites afterwards; ours: 0.9 sequential, 0.4 parallel"
    )
    final_output_damping: Rate = Field(
        1.0, json_schema_extra={NEUTRAL: 1.0}, description="upper limit of that of output sites; section 3.3.1: 0.2"
    )
    prior_damping: Rate = Field(
        1.0, json_schema_extra={NEUTRAL: 1.0}, description="the same for the priors of input weights; section 3.3.1: "
        "0.5 to 0.7",
    )  # fmt: skip
    clip: bool = Field(True, description="set negative precisions of input sites to 0; ours")
    prior_updates: Literal["always", "once"] = Field(
        "always",
        description="update the priors of input weights in every sweep after their release, or only until they "
        "converge; ours",
    )
    release: PositiveFloat | None = Field(
        None,
        description="relative step of EP with Gaussian priors below which the priors of input weights are released, "
        "after half of the sweeps at the latest; by default after 50 sweeps; section 3.3.1: sufficient, 4.2: converged",
    )
    scale_mean: float = Field(2.0 * log(0.01), description="mean of the prior of phi; section 4.4: 2 log 0.01")
    scale_deviation: PositiveFloat = Field(2.5, description="standard deviation of the prior of phi; section 4.4: 2.5")
    noise_mean: float = Field(2.0 * log(0.01), description="mean of the prior of theta; section 4.4: 2 log 0.01")
    noise_deviation: PositiveFloat = Field(2.0, description="standard deviation of the prior of theta; section 4.4: 2")
    noise_variance: PositiveFloat | None = Field(
        None, description="fixed noise variance, in squared units of the standardised target; by default learned"
    )
    weight_variance: PositiveFloat = Field(
        0.5, description="initial prior variance of input weights, fixed for prior: gaussian; section 3.3.1: 0.5"
    )
    bias_variance: PositiveFloat = Field(4.0, description="the same for the biases; section 3.3.1: 4")
    output_freedom: PositiveFloat = Field(
        4.0, description="degrees of freedom nu of the prior of output weights; section 2.1: 4"
    )
    output_scale: PositiveFloat = Field(1.0, description="scale sigma of that prior; section 2.1: 1")
    output_bias_variance: PositiveFloat = Field(
        1.0, json_schema_extra={NEUTRAL: 1.0}, description="prior variance of the output bias v_0; section 2.1: 1"
    )
    start: Literal["zero", "map"] = Field(
        "zero", description="means of the initial priors: 0, or a maximum of the posterior; section 3.3.1: zero"
    )
    sweeps: PositiveInt = Field(400, description="sweeps over the data points, at most; ours")
    tolerance: PositiveFloat = Field(1e-4, description="relative undamped step of all sites at convergence; ours")
    stop: Literal["step", "evidence"] = Field(
        "step",
        json_schema_extra={NEUTRAL: "step"},
        description="criterion of convergence: the relative step of all sites, or (evidence) either this or a log "
        "evidence that is stable to 0.1 nats over 50 sweeps; ours",
    )
    restarts: PositiveInt = Field(
        1,
        json_schema_extra={NEUTRAL: 1},
        description="number of fits with different orders of the data points, of which the one of the highest log "
        "evidence is kept; ours",
    )
    accelerate: bool = Field(True, description="use extrapolation and Anderson mixing in the last stage; ours")

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.linear_units > self.hidden[0]:
            raise ValueError(
                f"linear_units must be at most {self.hidden[0]}, the number of hidden units, found {self.linear_units}"
            )
        if self.groups is not None and self.prior == "gaussian":
            raise ValueError("groups requires a prior with scales, prior: laplace or ard")
        if self.prior == "gaussian" and (self.release is not None or self.prior_updates == "once"):
            raise ValueError("release and prior_updates: once require a prior with sites, prior: laplace or ard")
        if self.prior == "gaussian" and self._changed("scale_mean", "scale_deviation", "bias"):
            raise ValueError("scale_mean, scale_deviation and bias require a prior with scales, prior: laplace or ard")
        if self.noise_variance is not None and self._changed("noise_mean", "noise_deviation"):
            raise ValueError("noise_mean and noise_deviation require learned noise: remove noise_variance")
        if isinstance(self.groups, tuple) and self.bias == "own":
            raise ValueError(
                "bias: own cannot be combined with a list of groups, whose last number is the group of the biases"
            )
        if self.bias == "own" and (self.groups or (self.prior == "ard" and "input")) in {"input", "weight"}:
            raise ValueError(
                "bias: own requires scales that inputs share; with one scale per input the bias already has its own"
            )
        if isinstance(self.groups, tuple) and set(self.groups) != set(range(max(self.groups, default=0) + 1)):
            raise ValueError(f"groups must be numbered 0, 1, 2, ... without gaps, found {list(self.groups)}")
        return self

    def _changed(self, *names: str) -> bool:
        """Return whether an option differs from its default."""
        return any(getattr(self, name) != Config.model_fields[name].default for name in names)
