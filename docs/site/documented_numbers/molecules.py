"""Tables on the photovoltaic molecules."""

from __future__ import annotations

from collections.abc import Callable

from .markdown import table, with_error
from .stored import cells, convergence, planned

# Mean squared errors of Duvenaud et al. (2015, table 1), by our entry of the same kind.
DUVENAUD = {
    "Constant": "mean: 6.40 ± 0.09",
    "Bayesian ridge": "linear layer: 2.63 ± 0.09",
    "PBP-1": "network: 2.00 ± 0.09",
}


def _entries(folder: str) -> list[str]:
    return list(dict.fromkeys(method for method, _ in planned(folder)))


def cep() -> list[str]:
    """Return RMSE and log-likelihood on the last molecules of the entries that have been run."""
    found = {method: cells("cep", method, "cep") for method in _entries("cep")}
    body = []
    for method, rows in found.items():
        if rows:
            mark = convergence("cep", method, "cep").mark
            scores = ([row[score] for row in rows if score in row] for score in ("rmse", "ll", "crps"))
            body.append([method, *(with_error(values, 1, mark) for values in scores)])
    return table(["Entry", "RMSE", "LL", "CRPS"], body)


def cep_folds() -> list[str]:
    """Return the mean squared errors of five blocks next to those of Duvenaud et al. (2015)."""
    body = []
    for method in _entries("cep-folds"):
        rows = cells("cep-folds", method, "cep")
        count, mark = planned("cep-folds")[method, "cep"], convergence("cep-folds", method, "cep").mark
        errors = with_error([row["rmse"] ** 2 for row in rows], count, mark)
        likelihoods = with_error([row["ll"] for row in rows], count, mark)
        body.append([method, errors, DUVENAUD.get(method, ""), likelihoods])
    return table(["Entry", "Mean squared error", "Duvenaud et al. (2015)", "LL"], body)


TABLES: dict[str, Callable[[], list[str]]] = {"cep": cep, "cep-folds": cep_folds}
