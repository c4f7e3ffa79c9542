"""Tables of the findings: numbers next to print, splits with a gap, and fits that decide a mean."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from ep_bench import data, published
from ep_bench.convergence import count
from ep_bench.experiments.pbp_2015.active_learning.paired import LEVEL, PairedComparison, compare
from ep_bench.published import DENSITY, SQUARE
from ep_bench.types import SplitScheme

from .forms import NONE, comparisons, table, with_error
from .stored import (
    BOARD,
    FIVE,
    RESULTS,
    Cells,
    all_results,
    board_cells,
    board_convergence,
    cells,
    checked,
    methods_of,
    planned,
    printed,
    selected,
    summary,
)  # fmt: skip

PAPER = "hernandez-lobato2015"
OWN_CODE = ("GP-", "DGP-", "VI(KW)", "SGLD")  # columns of Bui et al. from their own code
CREDIBLE = 0.75  # of the lowest mean stored here
FEWEST = 5  # splits of such a mean
COLLAPSED = 0.95  # smallest RMSE of a collapsed fit, relative to that of Constant on the same split


def pbp_details() -> list[str]:
    """Return protein and naval with the settings that give the printed rows, and with those of the text."""
    rows = [row for folder in ("pbp-table-1", "pbp-plain") for row in checked(folder)]
    return comparisons(row for name in ("protein", "naval") for row in selected(rows, dataset=name, source=PAPER))


def ep_table_1() -> list[str]:
    """Return the means over test points of Jylanki et al. (2014) next to the printed ones."""
    rows = [*checked("nn-ep-table1"), *checked("nn-ep-kin40k")]
    return comparisons(row for row in rows if row["metric"] in (DENSITY, SQUARE) and row["n_splits"] != "0")


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


# Splits with a gap


@cache
def inputs_with_gap(dataset: str) -> frozenset[int]:
    """Return the inputs of which more than half of the test points have values that no training point has.

    Tied values of an input are divided in the order of the file, so that an input of few values has no gap. Of inputs
    with the same test set, only the first one is returned.
    """
    known = data.load_dataset(dataset)
    found: dict[frozenset[int], int] = {}
    for split in data.make_splits(SplitScheme("gap"), known):
        values = known.X[:, split.index]
        if np.isin(values[split.test], values[split.train]).mean() < 0.5:
            found.setdefault(frozenset(split.test.tolist()), split.index)
    return frozenset(found.values())


def gap(score: str, name: str) -> list[str]:
    """Return log-likelihoods or coverage on splits with a gap; the latter on standard splits in brackets."""
    head = [f"{one} ({len(inputs_with_gap(one))} of {data.load_dataset(one).X.shape[1]})" for one in FIVE]
    body = [[method, *(_in_gaps(method, dataset, score) for dataset in FIVE)] for method in methods_of("gap")]
    return table([name, *head], body)


def _in_gaps(method: str, dataset: str, score: str) -> str:
    rows: Cells = [row for row in cells("gap", method, dataset) if row["split"] in inputs_with_gap(dataset)]
    if score == "ll":
        return with_error([row["ll"] for row in rows], len(inputs_with_gap(dataset)), count(rows).mark)
    both = (rows, count(rows)), (board_cells(method, dataset), board_convergence(method, dataset))
    texts = [f"{np.mean([row[score] for row in part]):.2f} {counts.mark}".rstrip() for part, counts in both if part]
    return texts[0] + "".join(f" ({text})" for text in texts[1:])


# Active learning


def active_learning(folder: str) -> list[str]:
    """Return the RMSE after the last addition, and in parentheses that of the paper."""
    last = [row for row in summary(folder) if row["additions"] == summary(folder)[-1]["additions"]]
    labels, datasets = (list(dict.fromkeys(row[key] for row in last)) for key in ("method", "dataset"))
    found = {(row["dataset"], row["method"]): row for row in last}
    body = [[name, *(_with_printed(found[name, label]) for label in labels)] for name in datasets]
    return table(["RMSE", *labels], body)


def _with_printed(row: dict[str, str]) -> str:
    mean = published.measured(float(row["rmse"]), float(row["rmse_stderr"]))
    paper = printed(PAPER, row["method"].partition(",")[0], row["dataset"], "rmse")
    return f"{mean} ({paper.partition(' ')[0]})"


def choices() -> list[str]:
    """Return on which data sets active choice has the lower and the higher RMSE, by the paired test."""
    with np.load(RESULTS / "active-learning" / "arrays.npz") as stored:
        datasets, labels, errors = stored["datasets"].tolist(), stored["labels"].tolist(), stored["rmse"][..., -1]
    body = []
    for method in ("PBP", "HMC", "EP", "LA"):
        active, random = (labels.index(f"{method}-{rule}") for rule in "AR")
        found = {name: compare(errors[d, active], errors[d, random]) for d, name in enumerate(datasets)}
        lower = str(sum(one.mean < 0.0 for one in found.values()))
        body.append([method, lower, _clear(found, -1.0), _clear(found, 1.0)])
    return table(["Method", "Data sets with a lower mean", "Lower, p < 0.05", "Higher, p < 0.05"], body)


def _clear(found: dict[str, PairedComparison], sign: float) -> str:
    names = [name for name, one in found.items() if one.p < LEVEL and sign * one.mean > 0.0]
    return ", ".join(names) or NONE


TABLES: dict[str, Callable[[], list[str]]] = {
    "pbp-details": pbp_details,
    "ep-table-1": ep_table_1,
    "low-errors": low_errors,
    "collapsed-fits": collapsed_fits,
    "gap-ll": partial(gap, "ll", "LL"),
    "gap-coverage": partial(gap, "coverage95", "95 % coverage"),
    "active-learning": partial(active_learning, "active-learning"),
    "active-learning-priors": partial(active_learning, "active-learning-priors"),
    "active-learning-choices": choices,
}
