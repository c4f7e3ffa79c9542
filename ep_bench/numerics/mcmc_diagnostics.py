"""How well Markov chains have mixed: split R-hat and effective sample sizes by ArviZ (Vehtari et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

LIMIT = 1.05  # the largest R-hat of predictions that is taken for mixed
LARGEST = 100.0  # stands for every larger R-hat, and for the infinite one of chains that stand still, each elsewhere
ROUNDING = 1e-9  # of the largest absolute value; what varies less stands still: rescaled units move f by rounding
ROWS = 64  # rows whose predictions are watched
DRAWS = 2000  # of a chain, that are looked at
FEWEST = 4  # draws of each of two chains, or of each half of a single one, that the estimates need
TAILS = (0.05, 0.95)  # quantiles whose effective sample sizes are the tails'


def monitored_inputs(X: Any, rng: np.random.Generator) -> Any:
    """Return rows (M, d) to watch: half of them training rows, half midpoints between two of them."""
    n = len(X)
    own = X[rng.permutation(n)[: ROWS // 2]]
    first, second = rng.integers(n, size=(2, len(own)))
    return np.ascontiguousarray(np.concatenate([own, 0.5 * (X[first] + X[second])]))


def monitored_draws(draws: int) -> Any:
    """Return which of a chain's draws are judged: ``DRAWS`` at most, spread evenly."""
    return np.unique(np.linspace(0, draws - 1, DRAWS).round().astype(int))


def measures(name: str, values: Any) -> tuple[dict[str, float], int]:
    """Return ``r_hat_``, ``ess_bulk_`` and ``ess_tail_`` of ``name``, and which of its series has that R-hat.

    They are the worst of M series (chains, draws, M); a single chain's halves stand for two. Of predictions R-hat is
    ``LARGEST`` where none ever changes; any other quantity that never changes has no measures, and nothing has where
    draws are too few. All of them are finite.
    """
    from arviz_stats.base import array_stats

    values = _split_single_chain(values)
    if values.shape[1] < FEWEST:
        return {}, 0
    moving = np.flatnonzero(np.ptp(values, axis=(0, 1)) > ROUNDING * np.abs(values).max())
    if not moving.size:
        return ({f"r_hat_{name}": LARGEST} if name == "predictions" else {}), 0
    judged, axes = values[:, :, moving], {"chain_axis": 0, "draw_axis": 1}
    with np.errstate(divide="ignore", invalid="ignore"):  # no variance within chains
        r_hat = np.asarray(array_stats.rhat(judged, **axes))
    r_hat = np.minimum(np.nan_to_num(r_hat, nan=LARGEST), LARGEST)
    bulk = array_stats.ess(judged, method="bulk", **axes)
    tail = array_stats.ess(judged, method="tail", prob=TAILS, **axes)
    worst = int(np.argmax(r_hat))
    found = {"r_hat": r_hat[worst], "ess_bulk": np.min(bulk), "ess_tail": np.min(tail)}
    return {f"{kind}_{name}": float(value) for kind, value in found.items()}, int(moving[worst])


def unmixed(found: Mapping[str, float], run: str) -> str:
    """Return why predictions are not those of mixed chains, or nothing; ``run`` says in words what was run."""
    r_hat = found.get("r_hat_predictions")
    if r_hat is None:
        return f"too few draws for R-hat; {run}"
    if r_hat <= LIMIT:
        return ""
    return f"R-hat of predictions {r_hat:.3f}, at most {LIMIT:.3f} is taken for mixed; {run}"


def _split_single_chain(values: Any) -> Any:
    """Return series (chains, draws, M), the halves of a single chain as two; an odd draw more is left out."""
    if len(values) > 1:
        return values
    half = values.shape[1] // 2
    return values[:, : 2 * half].reshape(2, half, values.shape[2])
