"""Tables of the pages of methods: scores and cost by data set, in the order of their numbers of training points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .forms import NAMES, Entry, before_after, named, score, table
from .stored import FIVE, LARGE, board, cells

DATASETS = ("yacht", "boston", "energy", "concrete", "kin8nm", "protein")  # of different numbers of data points
LL = ("ll", "seconds")
ALL = ("rmse", *LL)
SHOWN: dict[str, tuple[Sequence[str], Sequence[Entry]]] = {
    "pbp": (LL, [Entry("pbp-layers", "PBP-1"), Entry("pbp-layers", "PBP-2")]),
    "bp": (LL, [Entry("pbp-layers", "BP-1"), Entry("pbp-layers", "BP-2")]),
    "vi": (LL, [Entry("bnn-optimisation", name) for name in ("VI-1", "VI-1 heteroscedastic", "VI(G)-1")]),
    "dropout": (ALL, [Entry("bnn-optimisation", "Dropout-1")]),
    "bb_alpha": (LL, [Entry("bnn-optimisation", f"BB-alpha {alpha}") for alpha in ("0.5", "1")]),
    "ensemble": (LL, [Entry("ensemble", "Ensemble"), Entry("ensemble", "Ensemble adversarial")]),
    "hmc": (("ll", "converged", "seconds"), [Entry("bnn-sampling", "HMC-1"), Entry("bnn-sampling", "HMC-1 (b = 2)")]),
    "sgld": (LL, [Entry("bnn-sampling", "SGLD-1"), Entry("bnn-sampling", "SGLD-2")]),
    "laplace": (LL, [Entry("bnn-sampling", "LA-full"), Entry("bnn-sampling", "LA-diagonal")]),
    "ep_nn": (LL, [Entry("ep-nn", "NN-EP-LA"), Entry("ep-nn", "NN-EP-ARD")]),
    "gp": (ALL, [Entry("gp", "GP")]),
    "sgp": (("ll", "lowest", "seconds"), [Entry("gp", "FITC-100"), Entry("gp", "SGPR-100")]),
    "gp_t": (LL, [Entry("gp", "GP-t, EP"), Entry("gp", "GP-t, Laplace")]),
    "dgp_ep": (LL, [Entry("dgp-cosine", f"{name}, cosine", name) for name in ("GP-50", "DGP-2-50")]),
}


def by_size(columns: Sequence[str], entries: Sequence[Entry]) -> list[str]:
    """Return data sets by columns of entries; the names of the entries are in the head if there are several."""
    first = {dataset: cells(entries[0].folder, entries[0].method, dataset) for dataset in DATASETS}
    body = [
        [dataset, f"{rows[0]['n_train']:,.0f}", *(score(one, dataset, name) for one in entries for name in columns)]
        for dataset, rows in first.items()
        if rows
    ]
    names = [f", {named(entry)}" if len(entries) > 1 else "" for entry in entries]
    return table(["Data set", "N", *(NAMES[column] + name for name in names for column in columns)], body)


TREES = ("CatBoost", "LightGBM", "Quantile forest", "Extra trees")


def trees() -> list[str]:
    """Return RMSE and CRPS of ensembles of trees next to the lowest mean of entries with all splits."""
    rows, body = board().ok(), []
    for dataset in (*FIVE, *LARGE):
        own = rows[rows["dataset"] == dataset].groupby("method")[["rmse", "crps"]].agg(["mean", "count"])
        for column, label in (("rmse", "RMSE"), ("crps", "CRPS")):
            complete = own[column][own[column]["count"] == own[column]["count"].max()]["mean"]
            lowest = f"{complete.min():.3g} ({complete.idxmin()})"
            means = (score(Entry("trees", name), dataset, column) for name in TREES)
            body.append([dataset, label, lowest, *means])
    return table(["Data set", "Score", "Lowest of the leaderboard", *TREES], body)


TABLES: dict[str, Callable[[], list[str]]] = {f"scores-{name}": partial(by_size, *one) for name, one in SHOWN.items()}
TABLES["trees"] = trees
TABLES["sgld-settings"] = partial(before_after, Entry("bnn-sampling", "SGLD-1"), Entry("settings", "pSGLD-1"))
