"""The note on chains that determined the hyperparameters of the experiments with fixed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ep_bench.convergence import NEARLY


def chain_note(summary: Sequence[Mapping[str, str]], column: str) -> str:
    """Return a sentence if R-hat in a column of the summary is too large, else nothing."""
    worst = max((float(row.get(column) or "nan") for row in summary), default=0.0)
    if not worst > NEARLY:
        return ""
    return f" The hyperparameters are posterior means of chains that have not converged: R-hat is up to {worst:.2f}."
