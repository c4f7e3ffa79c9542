"""The note on chains that determined the hyperparameters of the experiments with fixed ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ep_bench.convergence import NEARLY


def chain_note(summary: Sequence[Mapping[str, str]], column: str) -> str:
    """Return a sentence if R-hat in a column of the summary is too large, else nothing."""
    found = [float(row[column]) for row in summary if row.get(column)]
    worst = max((r_hat for r_hat in found if math.isfinite(r_hat)), default=0.0)
    if not worst > NEARLY:
        return ""
    return f" The hyperparameters are posterior means of chains that have not converged: R-hat is up to {worst:.2f}."
