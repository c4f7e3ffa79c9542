"""How well chains have mixed: split R-hat and effective sample sizes by ArviZ (Vehtari et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ep_bench.methods.hmc.chain import Chain

LIMIT = 1.05  # the largest R-hat of predictions that is taken for mixed
LARGEST = 100.0  # stands for every larger R-hat, and for the infinite one of chains that stand still, each elsewhere
ROUNDING = 1e-9  # of the largest absolute value; what varies less stands still: rescaled units move f by rounding
ROWS = 64  # rows whose predictions are watched
DRAWS = 2000  # of a chain, that are looked at
FEWEST = 4  # draws of each of two chains, or of each half of a single one, that the estimates need
TAILS = (0.05, 0.95)  # quantiles whose effective sample sizes are the tails'


def monitored_rows(X: Any, rng: np.random.Generator) -> Any:
    """Return rows (M, d) to watch: half of them training rows, half midpoints between two of them."""
    n = len(X)
    own = X[rng.permutation(n)[: ROWS // 2]]
    first, second = rng.integers(n, size=(2, len(own)))
    return np.ascontiguousarray(np.concatenate([own, 0.5 * (X[first] + X[second])]))


def summarise(chains: Sequence[Chain]) -> tuple[dict[str, Any], dict[str, float]]:
    """Return monitored series, each (chains, draws), and diagnostics.

    The series are ``log_joint`` (nats), ``noise_deviation``, ``prior_deviation`` and ``prediction`` (the watched row
    whose R-hat is the largest), standardised units. Of predictions, ``r_hat_predictions`` is the largest over the rows
    and the effective sample sizes the smallest; where no prediction ever changes, it is ``LARGEST``. Any other quantity
    that never changes has none of these, and nothing has where draws are too few. All of them are finite.
    """
    places = np.unique(np.linspace(0, len(chains[0].log_joint) - 1, DRAWS).round().astype(int))
    names = ("log_joint", "noise_deviation", "prior_deviation")
    series = {name: np.array([getattr(chain, name)[places] for chain in chains]) for name in names}
    found: dict[str, float] = {}
    for name, values in series.items():
        found |= _measures(name, values[:, :, None])[0]
    predictions = np.array([chain.predictions[places] for chain in chains])
    measures, worst = _measures("predictions", predictions)
    found |= measures
    series["prediction"] = predictions[:, :, worst]
    found |= {
        "divergences": float(sum(chain.divergences for chain in chains)),
        "acceptance": float(np.mean([chain.acceptance.mean() for chain in chains])),
        "step_size": float(np.mean([chain.step_size for chain in chains])),
        "gradients": float(sum(chain.gradients for chain in chains)),
    }
    return series, found


def _measures(name: str, values: Any) -> tuple[dict[str, float], int]:
    """Return R-hat and effective sample sizes, the worst of M series (chains, draws, M), and which has that R-hat."""
    from arviz_stats.base import array_stats

    values = _at_least_two(values)
    if values.shape[1] < FEWEST:
        return {}, 0
    moving = np.flatnonzero(np.ptp(values, axis=(0, 1)) > ROUNDING * np.abs(values).max())
    if not moving.size:
        return ({f"r_hat_{name}": LARGEST} if name == "predictions" else {}), 0
    looked_at, axes = values[:, :, moving], {"chain_axis": 0, "draw_axis": 1}
    with np.errstate(divide="ignore", invalid="ignore"):  # no variance within chains
        r_hat = np.asarray(array_stats.rhat(looked_at, **axes))
    r_hat = np.minimum(np.nan_to_num(r_hat, nan=LARGEST), LARGEST)
    bulk = array_stats.ess(looked_at, method="bulk", **axes)
    tail = array_stats.ess(looked_at, method="tail", prob=TAILS, **axes)
    worst = int(np.argmax(r_hat))
    found = {"r_hat": r_hat[worst], "ess_bulk": np.min(bulk), "ess_tail": np.min(tail)}
    return {f"{kind}_{name}": float(value) for kind, value in found.items()}, int(moving[worst])


def _at_least_two(values: Any) -> Any:
    """Return series (chains, draws, M), the halves of a single chain as two; an odd draw more is left out."""
    if len(values) > 1:
        return values
    half = values.shape[1] // 2
    return values[:, : 2 * half].reshape(2, half, values.shape[2])
