"""Expectation propagation, Jylanki et al. (2011), sections 3.2 and 4, with powers eta of the likelihood.

Parallel sweeps from empty sites, or from those that are given, damped. Where they do not converge the scheme starts
again with half the damping factor, then updates one site at a time.

Deviation: no double loop yet; smaller factors and sequential updates stand in its place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from ep_bench.methods.gp_t.posterior import Inferred
from ep_bench.methods.gp_t.sites import CLOSE, Model, Sites, empty, inferred, sites
from ep_bench.methods.gp_t.sweeps import parallel, sequential
from ep_bench.types import Array

Start = tuple[Array, Array]  # tau and b

SWEEPS = 100


def infer(
    K: Array,
    y: Array,
    nu: float,
    scale: float,
    eta: float,
    damping: float,
    start: Start | None = None,
    close: float = CLOSE,
) -> Inferred:
    """Return a fixed point for covariances K (N, N), in full; ``start`` are tau and b, from where it is sought first.

    Raises FloatingPointError, with the state reached by each attempt, where none converges.
    """
    model = Model(K, y, nu, scale, eta)
    tried, total = [], 0
    for stage, sweeps, limit in _attempts(model, damping, start):
        now, swept = _run(sweeps, limit, close)
        total += swept
        if now is not None and now.mismatch < close:
            return inferred(now, model, total, stage)
        reached = math.inf if now is None else now.mismatch
        tried.append(f"{stage}: mismatch {reached:.2g} after {swept} sweeps")
    raise FloatingPointError(f"expectation propagation did not converge; {'; '.join(tried)}")


def _attempts(model: Model, damping: float, start: Start | None) -> Iterator[tuple[str, Iterator[Sites], int]]:
    warm = None if start is None else sites(model, *start)
    if warm is not None and math.isfinite(warm.mismatch):
        yield f"parallel {damping:g} from given sites", parallel(model, warm, damping), SWEEPS
    for part in (1.0, 0.5, 0.25, 0.125):
        yield f"parallel {damping * part:g}", parallel(model, empty(model), damping * part), int(SWEEPS / part)
    yield f"sequential {0.5 * damping:g}", sequential(model, empty(model), 0.5 * damping), SWEEPS


def _run(scheme: Iterator[Sites], limit: int, close: float) -> tuple[Sites | None, int]:
    """Return where sweeps end, and their number."""
    now, swept = None, 0
    for now in islice(scheme, limit):
        swept += 1
        if now.mismatch < close or not math.isfinite(now.mismatch):
            break
    return now, swept
