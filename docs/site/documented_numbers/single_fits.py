"""Fits and data points that alone decide a mean: collapsed fits, and one data point of energy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from ep_bench import data
from ep_bench.convergence import count
from ep_bench.types import SplitScheme

from .convergence_blocks import mark_on
from .markdown import table, with_error
from .stored import BOARD, Cells, board_cells, cells, planned

COLLAPSED = 0.95  # smallest RMSE of a collapsed fit, relative to that of Constant on the same split
POINT = 271  # a data point of energy whose target is far from those of its neighbours, counted from 0
DECIDED = 0.15  # nats by which the mean over the other splits differs in an entry of the table


def _entries() -> list[tuple[str, str]]:
    """Return the entries of the ranking page with their data sets."""
    return list(dict.fromkeys(place for folder in BOARD for place in planned(folder)))


def _not_collapsed(rows: Cells, dataset: str) -> Cells:
    """Return the rows that are better than a constant prediction."""
    constant = {row["split"]: row["rmse"] for row in board_cells("Constant", dataset)}
    return [row for row in rows if not row["rmse"] >= COLLAPSED * constant[row["split"]]]


def longer_pbp() -> str:
    """Return how many fits of PBP-3 on naval are no better than a constant, with 40 and with 160 epochs."""
    both = [cells("pbp-longer", method, "naval") for method in ("PBP-3", "PBP-3, 160 epochs")]
    short, long = (len(rows) - len(_not_collapsed(rows, "naval")) for rows in both)
    means = [f"{np.mean([row['rmse'] for row in rows]):.4f}" for rows in both]
    return (
        f"With 160 epochs instead of 40, {long} instead of {short} fits of PBP-3 on naval are no better than a "
        f"constant, and the mean RMSE is {means[1]} instead of {means[0]}"
    )


def default_dgp() -> str:
    """Return how many fits of DGP-1 on kin8nm are no better than a constant, with both trainings."""
    both = [board_cells(method, "kin8nm") for method in ("DGP-1-50", "DGP-1-50, cosine")]
    short, long = (len(rows) - len(_not_collapsed(rows, "kin8nm")) for rows in both)
    return f"With its default training, {long} instead of {short} fits of DGP-1-50 on kin8nm"


def collapsed_fits() -> list[str]:
    """Return the entries some of whose fits are not better than a constant prediction."""
    body = []
    for method, dataset in _entries():
        rows = board_cells(method, dataset)
        others = _not_collapsed(rows, dataset)
        if method != "Constant" and len(others) < len(rows):
            means = (with_error([row["rmse"] for row in each], len(each)) for each in (rows, others))
            name = f"{method} {mark_on(method, dataset)}".rstrip()
            body.append([name, dataset, f"{len(rows) - len(others)} of {len(rows)}", *means])
    return table(["Entry", "Data set", "Such fits", "RMSE, all fits", "RMSE, other fits"], body)


@cache
def _splits_with_point() -> frozenset[int]:
    splits = data.make_splits(SplitScheme("standard"), data.load_dataset("energy"))
    return frozenset(split.index for split in splits if POINT in split.test)


def without_point(dataset: str, rows: Cells) -> Cells:
    """Return the rows of the splits whose test set does not have the data point."""
    return [row for row in rows if dataset != "energy" or row["split"] not in _splits_with_point()]


def one_point() -> list[str]:
    """Return the entries whose mean log-likelihood on energy a single data point decides."""
    body = []
    for method, dataset in _entries():
        rows = board_cells(method, dataset) if dataset == "energy" else []
        everywhere, elsewhere = ([row["ll"] for row in each] for each in (rows, without_point(dataset, rows)))
        if rows and abs(np.mean(elsewhere) - np.mean(everywhere)) > DECIDED:
            affected = [row["ll"] for row in rows if row["split"] in _splits_with_point()]
            median = [row["ll_median"] for row in rows if row.get("ll_median") is not None]
            columns = (with_error(values, len(values)) for values in (everywhere, affected, elsewhere, median))
            body.append([f"{method} {count(rows).mark}".strip(), *columns])
    return table(["Entry", "LL, 20 splits", "The four splits", "The other splits", "At the median test point"], body)


def splits_with_the_point() -> str:
    """Return the splits whose test set has the data point, and its target."""
    *first, last = sorted(_splits_with_point())
    target = data.load_dataset("energy").y[POINT]
    return f"in the test sets of splits {', '.join(map(str, first))} and {last}. Its target is {target:.2f}"


def smallest_difference() -> str:
    """Return what the table of the data point leaves out."""
    return f"The other entries differ by less than {DECIDED} nats"


def collapsed_limit() -> str:
    """Return when a fit has collapsed."""
    return f"at least {COLLAPSED} times that of Constant"


TABLES: dict[str, Callable[[], list[str]]] = {"collapsed-fits": collapsed_fits, "one-point": one_point}
FACTS = [
    ("findings.md", splits_with_the_point), ("findings.md", smallest_difference), ("findings.md", collapsed_limit),
    ("findings.md", longer_pbp), ("findings.md", default_dgp),
]  # fmt: skip
