"""Tables of the findings: numbers next to print, and fits that decide a mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ep_bench import published

from .forms import comparisons, table
from .stored import BOARD, all_results, board_cells, checked, planned, selected

PAPER = "hernandez-lobato2015"
OWN_CODE = ("GP-", "DGP-", "VI(KW)", "SGLD")  # columns of Bui et al. from their own code
CREDIBLE = 0.75  # of the lowest mean stored here
FEWEST = 5  # splits of such a mean
COLLAPSED = 0.95  # smallest RMSE of a collapsed fit, relative to that of Constant on the same split


def pbp_details() -> list[str]:
    """Return protein and naval with the settings that give the printed rows, and with those of the text."""
    rows = [row for folder in ("pbp-table-1", "pbp-plain") for row in checked(folder)]
    return comparisons(row for name in ("protein", "naval") for row in selected(rows, dataset=name, source=PAPER))


def low_errors() -> list[str]:
    """Return the printed RMSE of the own code of Bui et al. that are far below the lowest mean stored here."""
    rows = all_results().ok()
    rows = rows[(rows["study"] != "gap") & rows["rmse"].notna()]
    names = rows["dataset"].str.partition(" ")[0]  # without the split scheme
    means = rows.groupby([names.rename("dataset"), "method"])["rmse"].agg(["mean", "count"])
    means = means[means["count"] >= FEWEST]
    frame = published.load_published()
    frame = frame[(frame["source"] == "bui2015") & (frame["table"].astype(str) == "4") & (frame["metric"] == "rmse")]
    frame = frame[frame["method"].str.startswith(OWN_CODE) & (frame["mean"] > 0.0)]
    body = []
    for dataset, part in frame.groupby("dataset", sort=True):
        if dataset not in means.index:
            continue
        best = means.loc[str(dataset)].sort_values("mean").iloc[0]
        low = part.loc[part["mean"] < CREDIBLE * best["mean"], "mean"]
        if len(low):
            values = f"{low.min():g} to {low.max():g}"
            body.append([str(dataset), f"{best['mean']:.3g} ({best.name})", f"{len(low)} of {len(part)}", values])
    return table(["RMSE", "Lowest mean here", "Printed cells below 3/4 of it", "Values"], body)


# Fits that decide a mean


def _entries() -> list[tuple[str, str]]:
    return list(dict.fromkeys(place for folder in BOARD for place in planned(folder)))


def collapsed_fits() -> list[str]:
    """Return the entries some of whose fits are not better than a constant prediction."""
    body = []
    for method, dataset in _entries():
        constant = {row["split"]: row["rmse"] for row in board_cells("Constant", dataset)}
        rows = board_cells(method, dataset)
        others = [row for row in rows if not row["rmse"] >= COLLAPSED * constant[row["split"]]]
        if method != "Constant" and len(others) < len(rows):
            means = (f"{np.mean([row['rmse'] for row in each]):.2g}" for each in (rows, others))
            body.append([method, dataset, f"{len(rows) - len(others)}/{len(rows)}", *means])
    return table(["Entry", "Data set", "Such fits", "RMSE, all", "RMSE, others"], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "pbp-details": pbp_details,
    "low-errors": low_errors,
    "collapsed-fits": collapsed_fits,
}
