"""Convergence diagnostics of Markov chains: split R-hat and effective sample sizes from ArviZ (Vehtari et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

LIMIT = 1.05  # chains have converged if the largest R-hat of predictions is at most this
LARGEST = (
    100.0  # replaces larger values of R-hat, also the infinite one of chains that are constant at different values
)
ROUNDING = 1e-9  # relative range below which a series counts as constant: rescaled units change f by rounding errors
ROWS = 64  # monitored inputs
DRAWS = 2000  # per chain, used for diagnostics
FEWEST = 4  # draws per chain, or per half of a single chain, that the estimates need
TAILS = (0.05, 0.95)  # quantiles of the tail effective sample size


def monitored_inputs(X: Any, rng: np.random.Generator) -> Any:
    """Return inputs (M, d) at which predictions are monitored.

    Half of them are training inputs from X (n, d), half are midpoints between two training inputs.
    """
    n = len(X)
    own = X[rng.permutation(n)[: ROWS // 2]]
    first, second = rng.integers(n, size=(2, len(own)))
    return np.ascontiguousarray(np.concatenate([own, 0.5 * (X[first] + X[second])]))


def monitored_draws(draws: int) -> Any:
    """Return the indices of at most ``DRAWS`` evenly spaced draws, the ones used for diagnostics."""
    return np.unique(np.linspace(0, draws - 1, DRAWS).round().astype(int))


def measures(name: str, values: Any) -> tuple[dict[str, float], int]:
    """Return ``r_hat_``, ``ess_bulk_`` and ``ess_tail_`` of ``name``, and the index of the series with that R-hat.

    ``values`` (chains, draws, M) are M series; the measures are those of the worst. A single chain is split into two
    halves. Constant series are ignored. If all are constant, R-hat of ``predictions`` is ``LARGEST``, and other
    quantities have no measures. Without enough draws nothing has measures. All measures are finite.
    """
    values = _split_single_chain(values)
    if values.shape[1] < FEWEST:
        return {}, 0
    moving = np.flatnonzero(np.ptp(values, axis=(0, 1)) > ROUNDING * np.abs(values).max())
    if not moving.size:
        return ({f"r_hat_{name}": LARGEST} if name == "predictions" else {}), 0
    by_input = by_series(values[:, :, moving])
    worst = int(np.argmax(by_input["r_hat"]))
    found = {"r_hat": by_input["r_hat"][worst], "ess_bulk": by_input["ess_bulk"].min()}
    found["ess_tail"] = by_input["ess_tail"].min()
    return {f"{kind}_{name}": float(value) for kind, value in found.items()}, int(moving[worst])


def by_series(values: Any) -> dict[str, Any]:
    """Return ``r_hat``, at most ``LARGEST``, ``ess_bulk`` and ``ess_tail`` (M,) of series (chains, draws, M)."""
    from arviz_stats.base import array_stats

    axes = {"chain_axis": 0, "draw_axis": 1}
    with np.errstate(divide="ignore", invalid="ignore"):  # the variance within chains may be 0
        r_hat = np.asarray(array_stats.rhat(values, **axes))
    return {
        "r_hat": np.minimum(np.nan_to_num(r_hat, nan=LARGEST), LARGEST),
        "ess_bulk": np.asarray(array_stats.ess(values, method="bulk", **axes)),
        "ess_tail": np.asarray(array_stats.ess(values, method="tail", prob=TAILS, **axes)),
    }


def unmixed(found: Mapping[str, float], run: str) -> str:
    """Return why the predictions have not converged, or ''; ``run`` describes the chains, for the message."""
    r_hat = found.get("r_hat_predictions")
    if r_hat is None:
        return f"too few draws for R-hat; {run}"
    if r_hat <= LIMIT:
        return ""
    return f"R-hat of predictions {r_hat:.3f} exceeds the limit {LIMIT:.3f}; {run}"


def _split_single_chain(values: Any) -> Any:
    """Return series (chains, draws, M); a single chain is split into two halves, without its last draw if odd."""
    if len(values) > 1:
        return values
    half = values.shape[1] // 2
    return values[:, : 2 * half].reshape(2, half, values.shape[2])
