"""Fixed hyperparameters of two experiments: means of their logarithms over Markov chains.

Deviation: the paper uses posterior means. Lengthscales of irrelevant inputs have no useful finite mean, so that these
are means of logarithms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt

from ep_bench.estimator import Estimator
from ep_bench.experiments.method_entries import Options
from ep_bench.types import Rows


class ChainOptions(Options):
    """Options of the chains, as those of ``gp_t``."""

    chains: PositiveInt = Field(2, description="independent chains")
    warmup: NonNegativeInt = Field(300, description="warm-up iterations per chain")
    samples: PositiveInt = Field(300, description="draws per chain after warm-up")


def posterior_means(rows: Rows, options: ChainOptions, seed: int) -> tuple[dict[str, Any], float]:
    """Return the hyperparameters by name, and the largest R-hat of the chains, for standardised ``rows``."""
    model = Estimator(
        "gp_t", inference="mcmc", nu="optimize", standardize=False, stored=10_000, random_state=seed,
        **options.model_dump(),
    )  # fmt: skip
    model.fit(rows.X, rows.y)
    state = model.state_
    values = state.hyper.values(state.theta.mean(axis=0))
    found = [value for name, value in model.diagnostics_.items() if name.startswith("r_hat_")]
    as_options = {name: value if isinstance(value, float) else tuple(value.tolist()) for name, value in values.items()}
    return as_options, float(np.max(found)) if found else float("nan")
