"""Tables of the pages of methods: scores and cost by data set, in the order of their numbers of training points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from ep_bench import published
from ep_bench.report import pairwise

from .forms import NAMES, NONE, Entry, before_after, named, score, table
from .stored import FIGURES, FIVE, LARGE, board, cells, merged

DATASETS = ("yacht", "boston", "energy", "concrete", "kin8nm", "protein")  # of different numbers of data points
LL = ("ll", "seconds")
CLASSES = (
    "wine-cultivars", "crabs", "sonar", "glass", "new-thyroid", "ionosphere", "svmguide2", "breast", "australian",
    "pima",
)  # fmt: skip
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
    "tagi": (LL, [Entry("closed-form", "TAGI"), Entry("closed-form", "TAGI-V")]),
    "dvi": (LL, [Entry("closed-form", "DVI"), Entry("closed-form", "DVI homoscedastic")]),
    "ivon": (ALL, [Entry("closed-form", "IVON")]),
    "neural_linear": (ALL, [Entry("last-layer", "Neural linear")]),
    "vbll": (ALL, [Entry("last-layer", "VBLL")]),
    "mve": (LL, [Entry("last-layer", name) for name in ("MVE", "MVE likelihood", "MVE, 5 components")]),
    "swag": (ALL, [Entry("last-layer", "SWAG")]),
    "laplace": (LL, [Entry("bnn-sampling", "LA-full"), Entry("bnn-sampling", "LA-diagonal")]),
    "ep_nn": (LL, [Entry("ep-nn", "NN-EP-LA"), Entry("ep-nn", "NN-EP-ARD")]),
    "gp": (ALL, [Entry("gp", "GP")]),
    "sgp": (("ll", "lowest", "seconds"), [Entry("gp", "FITC-100"), Entry("gp", "SGPR-100")]),
    "gp_t": (LL, [Entry("gp", "GP-t, EP"), Entry("gp", "GP-t, Laplace")]),
    "dgp_ep": (LL, [Entry("dgp-cosine", f"{name}, cosine", name) for name in ("GP-50", "DGP-2-50")]),
}


def by_size(columns: Sequence[str], entries: Sequence[Entry], datasets: Sequence[str] = DATASETS) -> list[str]:
    """Return data sets by columns of entries; the names of the entries are in the head if there are several."""
    first = {dataset: cells(entries[0].folder, entries[0].method, dataset) for dataset in datasets}
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


def repeated_inputs() -> list[str]:
    """Return errors at test inputs that the training data also have, and at the others, as means over splits."""
    rows = pd.read_csv(FIGURES / "repeated-inputs.csv")
    parts = {"RMSE": "all", "RMSE, repeated inputs": "repeated", "RMSE, other inputs": "other"}
    body = []
    for (dataset, method), one in rows.groupby(["dataset", "method"], sort=False):
        means = (f"{one[part].mean():.3f}" for part in parts.values())
        body.append([str(dataset), str(method), f"{one['share_repeated'].mean():.0%}", *means])
    return table(["Data set", "Method", "Repeated", *parts], body)


def kernels(*names: str) -> list[str]:
    """Return scores of entries of `gp` and of the same with the kernel of the best objective, with paired tests."""
    rows, body = merged("gp", "kernels").ok(), []
    for name in names:
        ll, rmse = (_paired(rows, f"{name}, evidence", name, column) for column in ("ll", "rmse"))
        for dataset in FIVE:
            cost = score(Entry("kernels", f"{name}, evidence"), dataset, "seconds")
            label = [name] if len(names) > 1 else []
            body.append([dataset, *label, *ll[dataset], *rmse[dataset], cost])
    pairs = [f"{label}, {kernel}" for label in ("LL", "RMSE") for kernel in ("SE", "evidence", "p")]
    return table(["Data set", *(["Entry"] if len(names) > 1 else []), *pairs, "CPU s"], body)


def _paired(rows: pd.DataFrame, first: str, second: str, column: str) -> dict[str, list[str]]:
    """Return the means of two entries by data set, the second first, and the p-value of the corrected test."""
    tests = pairwise.compare(rows, first, second, score=column).set_index("dataset")
    form = ("{:.3f}" if column == "ll" else "{:.3g}").format
    means = tests[["mean_second", "mean_first"]].map(form).assign(p=tests["p"].map("{:.2g}".format))
    return {str(dataset): list(values) for dataset, values in zip(means.index, means.to_numpy(), strict=True)}


# Exact processes, and the sparse and deep ones that they are compared with
PROCESSES = {
    "all points": Entry("gp", "GP"),
    "subset": Entry("exact-gp", "GP, subset"),
    "subset, SE": Entry("exact-gp", "GP, subset, SE"),
    "FITC-100": Entry("gp", "FITC-100"),
    "SGPR-100": Entry("gp", "SGPR-100"),
    "DGP-2-50": Entry("dgp-cosine", "DGP-2-50, cosine"),
}
COMMON = (("power", 1), ("power", 20), ("kin8nm", 1), ("kin8nm", 20), ("naval", 1), ("protein", 1))


def exact() -> list[str]:
    """Return the scores of exact, sparse and deep processes on the splits that the exact ones have."""
    body = []
    for dataset, count in COMMON:
        for column in ("rmse", "ll"):
            means = (_first_splits(entry, dataset, column, count) for entry in PROCESSES.values())
            body.append([dataset, "0" if count == 1 else f"all {count}", NAMES[column], *means])
    return table(["Data set", "Splits", "Score", *PROCESSES], body)


def _first_splits(entry: Entry, dataset: str, column: str, count: int) -> str:
    """Return the mean of a score over the first splits, a dash if one is missing."""
    values = [row[column] for row in cells(entry.folder, entry.method, dataset) if row["split"] < count]
    if len(values) < count:
        return NONE
    mean = float(np.mean(values))
    return f"{mean:.4g}" if count == 1 else published.measured(mean, float(np.std(values)) / np.sqrt(count))


def layers() -> list[str]:
    """Return log-likelihoods of one, two and three layers of `dgp_vi`, with paired tests against one, and times."""
    rows, names = merged("doubly-stochastic").ok(), [f"DGP-VI-{n}" for n in (1, 2, 3)]
    two, three = (_paired(rows, name, names[0], "ll") for name in names[1:])
    body = [
        [dataset, *two[dataset][:2], three[dataset][1], two[dataset][2], three[dataset][2]]
        + [score(Entry("doubly-stochastic", name), dataset, "seconds") for name in names]
        for dataset in FIVE
    ]
    head = ["LL, 1 layer", "2 layers", "3 layers", "p, 2 and 1", "p, 3 and 1", "CPU s, 1 layer", "2", "3"]
    return table(["Data set", *head], body)


def larger_steps() -> list[str]:
    """Return log-likelihoods of black-box alpha with the default steps and with larger ones, with paired tests."""
    rows, body = merged("bnn-optimisation", "settings").ok(), []
    for alpha in ("1e-6", "0.5", "1"):
        found = _paired(rows, f"BB-alpha {alpha}, step 0.03", f"BB-alpha {alpha}", "ll")
        body += [[dataset, alpha, *found[dataset]] for dataset in FIVE]
    return table(["Data set", "Alpha", "LL, 0.002", "LL, 0.03", "p"], body)


TABLES: dict[str, Callable[[], list[str]]] = {f"scores-{name}": partial(by_size, *one) for name, one in SHOWN.items()}
TABLES["trees"] = trees
TABLES["repeated-inputs"] = repeated_inputs
TABLES["scores-ep_nn-classes"] = partial(
    by_size, ("ll",), [Entry("ep-nn-classes", name) for name in ("NN-EP-LA", "NN-EP-ARD", "GP", "DGP-2")], CLASSES
)
TABLES["dgp-settings"] = partial(
    before_after, Entry("dgp-cosine", "DGP-2-50, cosine"), Entry("settings", "DGP-2-50, alpha 0.5")
)
TABLES["dgp-settings-shallow"] = partial(
    before_after, Entry("dgp-cosine", "GP-50, cosine"), Entry("settings", "GP-50, alpha 0.5")
)
TABLES["dgp-vi-layers"] = layers
TABLES["sgld-settings"] = partial(before_after, Entry("bnn-sampling", "SGLD-1"), Entry("settings", "pSGLD-1"))
TABLES["bb-alpha-settings"] = larger_steps
TABLES["kernels-gp"] = partial(kernels, "GP")
TABLES["kernels-sgp"] = partial(kernels, "FITC-50", "SGPR-50")
TABLES["exact-gp"] = exact
