"""Notes of cells with chains that mix and chains that do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from ep_bench.runner import fit_notes
from ep_bench.types import Array


class Fitted:
    """The attributes of a fitted sampler."""

    def __init__(self, found: dict[str, Array], diagnostics: dict[str, float]) -> None:
        self.chains_, self.diagnostics_ = found, diagnostics


def walk(rng: np.random.Generator, count: int, draws: int, *, memory: float = 0.0) -> Array:
    """Return autoregressive chains (count, draws) with mean 0 and standard deviation 1."""
    found = rng.standard_normal((count, draws))
    for t in range(1, draws):
        found[:, t] = memory * found[:, t - 1] + np.sqrt(1.0 - memory**2) * found[:, t]
    return found


def sampled(seed: int, *, apart: float = 0.0, count: int = 4, draws: int = 500) -> dict[str, Any]:
    """Return the notes of a cell whose last chain is ``apart`` standard deviations away from the others."""
    rng = np.random.default_rng(seed)
    shift = apart * (np.arange(count) == count - 1)[:, None]
    found = {
        "log_joint": -12_345.0 + 8.0 * walk(rng, count, draws, memory=0.5),
        "noise_deviation": 0.3 + 0.01 * (walk(rng, count, draws) + shift),
        "prior_deviation": 1.1 + 0.1 * walk(rng, count, draws, memory=0.7),
        "prediction": 0.4 * (walk(rng, count, draws, memory=0.3) + shift),
    }
    worse = 1.0 + 0.3 * apart
    diagnostics = {
        "r_hat_predictions": 1.002 * worse, "r_hat_log_joint": 1.001, "r_hat_noise_deviation": 1.003 * worse,
        "ess_bulk_predictions": 900.0 / worse**3, "ess_tail_predictions": 700.0 / worse**3,
        "ess_bulk_noise_deviation": 1500.0 / worse**3, "ess_bulk_log_joint": 650.0, "divergences": 2.0 * apart,
        "acceptance": 0.81 + 0.01 * rng.random(), "step_size": 0.012, "gradients": 120_000.0,
    }  # fmt: skip
    return fit_notes.of(Fitted(found, diagnostics), np.zeros((2, 1)))
