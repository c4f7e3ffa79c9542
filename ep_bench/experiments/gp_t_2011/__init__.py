"""Jylanki, Vanhatalo and Vehtari (2011): Gaussian process regression with a Student-t likelihood."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ep_bench.convergence import NEARLY

PAPER = "Jylänki and others (2011)"
EXAMPLES = (1, 2)  # numbers of the examples in ``conflict_examples``
MIDPOINT = 2.0  # input midway between the two contradicting observations, at which the paper shows f


def chain_note(summary: Sequence[Mapping[str, str]], column: str) -> str:
    """Return a sentence if R-hat in a column of the summary is too large, else nothing."""
    found = [float(row[column]) for row in summary if row.get(column)]
    worst = max((r_hat for r_hat in found if math.isfinite(r_hat)), default=0.0)
    if not worst > NEARLY:
        return ""
    return f" The hyperparameters are posterior means of chains that have not converged: R-hat is up to {worst:.2f}."
