"""Options of robust Gaussian-process regression."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from ep_bench.covariances.gaussian_process_config import GaussianProcessConfig
from ep_bench.covariances.replicates import Duplicates
from ep_bench.methods.gp_t import ep
from ep_bench.options import NEUTRAL

CHECK_FRACTION = 0.5  # of EP whose evidence is compared: with two modes it is closer to the exact one
UNRELIABLE = 5.0  # difference (nats) beyond which EP's evidence is not used


def _grid_is_integrate(nu: Any) -> Any:
    return "integrate" if nu == "grid" else nu


class Config(GaussianProcessConfig):
    """Options of robust regression: those of ``gp``, except ``noise_variance``, and those of a t likelihood."""

    inference: Literal["ep", "laplace", "vb", "fvb", "kl", "mcmc"] = Field(
        "ep",
        description="ep, laplace, vb (variational bounds), fvb (factorising variational Bayes, hyperparameters by EM), "
        "kl (the Gaussian that minimises KL(q || p)) or mcmc (samples hyperparameters); Jylanki et al. (2011): ep",
    )
    noise_variance: PositiveFloat | None = Field(
        None, description="always null: a t likelihood has scale and nu instead"
    )
    duplicates: Duplicates = Field(
        "keep",
        description="always keep: with Student-t noise each target counts, so that data points cannot be merged",
        json_schema_extra={NEUTRAL: "keep"},
    )
    nu: Annotated[PositiveFloat | Literal["optimize", "integrate"], BeforeValidator(_grid_is_integrate)] = Field(
        4.0,
        description="degrees of freedom, or optimize, or integrate (also called grid); mcmc samples nu with either; "
        "Jylanki et al. (2011), section 6: 4",
    )
    scale: PositiveFloat | None = Field(
        None, description="sigma of the t, which is not its standard deviation; learned if null"
    )
    fraction: float = Field(1.0, gt=0.0, le=1.0, description="eta, the power of the likelihood in EP; 1: standard EP")
    damping: float = Field(
        0.8,
        gt=0.0,
        le=1.0,
        description="initial damping factor of EP's site updates; Jylanki et al. (2011), section 4: 0.8",
    )
    scheme: ep.Scheme = Field(
        "robust",
        description="scheme of EP: robust, one of its parts (parallel, sequential or double_loop), or paper; "
        "Jylanki et al. (2011): robust",
    )
    evidence_check: PositiveFloat | None = Field(
        UNRELIABLE,
        validate_default=True,
        description="largest difference (nats) of the log evidence of ep from that with fraction 0.5; "
        "hyperparameters are not learned where it is larger; null: no limit, as in Jylanki et al. (2011); ours",
        json_schema_extra={NEUTRAL: None},
    )
    chains: PositiveInt = Field(2, description="number of independent chains of mcmc; ours")
    samples: PositiveInt = Field(1000, description="draws of mcmc per chain after the warm-up; ours")
    warmup: NonNegativeInt = Field(500, description="warm-up iterations of mcmc per chain; ours")
    stored: PositiveInt = Field(
        200,
        description="draws of mcmc stored for predictions, of all chains, evenly thinned, at least one per chain; ours",
    )
    starts: int = Field(1, ge=1, description="number of searches for the hyperparameters; ours")
    start: Literal["medians", "paper"] = Field(
        "medians",
        description="where searches start: at the medians of the weak priors, further ones at random around them "
        "(medians; ours), or at sigma 0.5, further ones with random lengthscales (paper, as in Jylanki et al. (2011))",
        json_schema_extra={NEUTRAL: "medians"},
    )

    @field_validator("evidence_check")
    @classmethod
    def _only_where_it_has_an_effect(cls, limit: float | None, info: ValidationInfo) -> float | None:
        checked = info.data.get("inference") == "ep" and info.data.get("fraction", 1.0) > CHECK_FRACTION
        return limit if checked else None

    @model_validator(mode="after")
    def _of_the_likelihood(self) -> Self:
        if self.noise_variance is not None:
            raise ValueError("noise_variance is not an option of gp_t; set scale, the sigma of the t distribution")
        if self.duplicates == "merge":
            raise ValueError(
                "duplicates: merge is exact for Gaussian noise only; with Student-t noise each target counts: set keep"
            )
        return self
