"""Tables of the findings: numbers next to print, and fits that decide a mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from ep_bench import published
from ep_bench.experiments import SUMMARY
from ep_bench.published.compare import Z_LIMIT

from .forms import Entry, comparisons, score, table
from .stored import BOARD, RESULTS, all_results, board_cells, checked, own_numbers, planned, rows_of, selected

PAPER = "hernandez-lobato2015"
FAMILIES = {"GP, DGP": r"D?GP-", "VI(KW), SGLD": r"VI\(KW\)|SGLD"}  # columns of Bui et al. from their own code
OWN_CODE = "|".join(FAMILIES.values())
TIMED = {"VI": "VI(G)-1", "BP": "BP-1", "PBP": "PBP-1"}  # columns of table 1, and our entries
SIDES = ("reproduced", "better", "worse")
CREDIBLE = 0.75  # of the lowest mean stored here
FEWEST = 5  # splits of such a mean
COLLAPSED = 0.95  # smallest RMSE of a collapsed fit, relative to that of Constant on the same split


def pbp_details() -> list[str]:
    """Return protein and naval with the settings that give the printed rows, and with those of the text."""
    rows = [row for folder in ("pbp-table-1", "pbp-plain") for row in checked(folder)]
    return comparisons(row for name in ("protein", "naval") for row in selected(rows, dataset=name, source=PAPER))


def printed_times() -> list[str]:
    """Return the printed seconds of table 1 of Hernandez-Lobato and Adams next to ours, the search included."""
    frame = published.load_published()
    frame = frame[(frame["source"] == PAPER) & (frame["metric"] == "seconds")]
    body = []
    for dataset, part in frame.groupby("dataset", sort=False):
        seconds = part.set_index("method")["printed_mean"]
        pairs = [
            (seconds[name], score(_timed(label, str(dataset)), str(dataset), "seconds"))
            for name, label in TIMED.items()
        ]
        body.append([str(dataset), *(text for pair in pairs for text in pair)])
    return table(["Seconds", *(f"{name}, {where}" for name in TIMED for where in ("printed", "here"))], body)


def _timed(label: str, dataset: str) -> Entry:
    """Return an entry with the 40 epochs of the text; PBP-1 has 20 on protein."""
    plain = (label, dataset) == ("PBP-1", "protein")
    return Entry("pbp-plain", "PBP-plain") if plain else Entry("bnn-optimisation", label)


def low_errors() -> list[str]:
    """Return the printed RMSE of the own code of Bui et al. that are far below the lowest mean stored here."""
    rows = all_results().ok()
    rows = rows[(rows["study"] != "gap") & rows["rmse"].notna()]
    names = rows["dataset"].str.partition(" ")[0]  # without the split scheme
    means = rows.groupby([names.rename("dataset"), "method"])["rmse"].agg(["mean", "count"])
    means = means[means["count"] >= FEWEST]
    frame = published.load_published()
    frame = frame[(frame["source"] == "bui2015") & (frame["table"].astype(str) == "4") & (frame["metric"] == "rmse")]
    frame = frame[frame["method"].str.match(OWN_CODE) & (frame["mean"] > 0.0)]
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


def columns_of_own_code() -> list[str]:
    """Return how the printed numbers of each own column of Bui et al. compare, and where they are disputed."""
    frame = own_numbers()
    own = frame["source"].eq("bui2015") & frame["published_method"].str.match(OWN_CODE)
    frame = published.worst_first(frame[own & frame["table"].isin(["3", "4"])])
    frame = frame.drop_duplicates(["published_method", "published_dataset", "metric"])
    advantage = frame["z"] * frame["metric"].map(published.METRICS)
    frame = frame.assign(side=np.select([advantage < -Z_LIMIT, advantage > Z_LIMIT], ["worse", "better"], "reproduced"))
    parts = [(str(name), part) for name, part in frame.groupby("published_method", sort=True)]
    parts += [(name, frame[frame["published_method"].str.match(family)]) for name, family in FAMILIES.items()]
    head = ["Column", *(f"{kind}: {side}" for kind in ("all", "verdict") for side in SIDES), "disputed"]
    return table(head, [_column(*each) for each in parts])


def _column(name: str, part: pd.DataFrame) -> list[str]:
    counted = [(part[kind] == side).sum() for kind in ("side", "verdict") for side in SIDES]
    doubted = part[part["verdict"] == "disputed"]
    where = (
        "" if name in FAMILIES else f" ({', '.join(sorted(set(doubted['published_dataset'])))})" if len(doubted) else ""
    )
    return [name, *map(str, counted), f"{len(doubted)}{where}"]


def errors_by_epochs() -> list[str]:
    """Return the error at the data of black-box alpha on the cubic toy data, by alpha and number of epochs."""
    errors = {tuple(row["method"].split(", ")): row["rmse_inside"] for row in rows_of(RESULTS / "toy-epochs" / SUMMARY)}
    alphas, epochs = (list(dict.fromkeys(key[place] for key in errors)) for place in (0, 1))
    body = [[alpha, *(f"{float(errors[alpha, count]):.1f}" for count in epochs)] for alpha in alphas]
    return table(["Error at the data", *(f"{int(count):,} epochs" for count in epochs)], body)


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
    "printed-times": printed_times,
    "own-columns": columns_of_own_code,
    "alpha-epochs": errors_by_epochs,
    "collapsed-fits": collapsed_fits,
}
