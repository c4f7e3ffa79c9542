"""Scores of sparse Gaussian processes by FITC and by the variational bound (SGPR)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .markdown import in_words, table, with_error
from .stored import cells, complete, convergence, planned

STUDY = "gp"
INDUCING = (50, 100)
PAIR = ("FITC", "SGPR")


def _datasets(inducing: int) -> list[str]:
    """Return the data sets on which both entries have all splits."""
    first, second = (complete(STUDY, f"{name}-{inducing}") for name in PAIR)
    return [dataset for dataset in first if dataset in second]


def _score(method: str, dataset: str, metric: str) -> str:
    rows = cells(STUDY, method, dataset)
    return with_error([row[metric] for row in rows], planned(STUDY)[method, dataset])


def _lowest(method: str, dataset: str) -> str:
    """Return the lowest log density of a test point over the splits whose rows have it, and their number if not all."""
    found = [row.get("ll_min") for row in cells(STUDY, method, dataset)]
    known = [value for value in found if value is not None]
    if not known:
        return "–"
    return f"{min(known):.1f}" + (f" ({len(known)}/{len(found)})" if len(known) < len(found) else "")


def fitc_and_sgpr() -> list[str]:
    """Return the table of scores of both approximations by number of inducing inputs and data set."""
    body = []
    for inducing in INDUCING:
        methods = [f"{name}-{inducing}" for name in PAIR]
        for dataset in _datasets(inducing):
            marks = [convergence(STUDY, method, dataset).mark for method in methods]
            scores = [
                f"{_score(method, dataset, metric)} {mark}".strip()
                for metric in ("rmse", "ll")
                for method, mark in zip(methods, marks, strict=True)
            ]
            body.append([str(inducing), dataset, *scores, *(_lowest(method, dataset) for method in methods)])
    columns = [f"{score}, {name}" for score in ("RMSE", "LL", "Lowest test point") for name in PAIR]
    return table(["Inducing inputs", "Data set", *columns], body)


def _wins(inducing: int, metric: str, sign: float) -> int:
    """Return on how many data sets FITC has the better mean."""
    means = [
        [np.mean([row[metric] for row in cells(STUDY, f"{name}-{inducing}", dataset)]) for name in PAIR]
        for dataset in _datasets(inducing)
    ]
    return sum(bool(sign * fitc > sign * sgpr) for fitc, sgpr in means)


def fitc_wins(inducing: int) -> str:
    """Return on how many data sets either approximation has the better mean log-likelihood and RMSE."""
    number = len(_datasets(inducing))
    return (
        f"With {inducing} inducing inputs, FITC has the higher mean log-likelihood on "
        f"{in_words(_wins(inducing, 'll', 1.0))} of the {in_words(number)} data sets, "
        f"and SGPR the lower RMSE on {in_words(number - _wins(inducing, 'rmse', -1.0))}"
    )


TABLES: dict[str, Callable[[], list[str]]] = {"fitc-and-sgpr": fitc_and_sgpr}
FACTS: list[tuple[str, Callable[[], str]]] = [("methods/sgp.md", lambda n=n: fitc_wins(n)) for n in INDUCING]
