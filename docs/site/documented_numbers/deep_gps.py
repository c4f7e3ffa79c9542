"""Tables and sentences on deep Gaussian processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from ep_bench.convergence import ConvergedSplits
from ep_bench.report.paired_tests import t_test_p

from .improvements import LEVEL, TEST_TO_TRAINING, seconds_of_versions
from .markdown import enumerated, in_words, signed, table, with_error
from .single_fits import without_point
from .stored import (
    PUBLISHED,
    Cells,
    cells,
    check_row,
    checked,
    convergence,
    curves,
    finished,
    planned,
    published_number,
    rows_of,
    selected,
)  # fmt: skip

METRICS = ("rmse", "ll")
LABELS = {"rmse": "RMSE", "ll": "log-likelihood"}
FAR_OFF = -100.0  # nats of a test point that alone decides the mean of a split


def sparse_boston() -> list[str]:
    """Return the table of sparse Gaussian processes on boston, by us and by the authors' program."""
    rows = cells("dgp", "GP-50", "boston")
    mark = convergence("dgp", "GP-50", "boston").mark
    body = [["`dgp_ep`", *(with_error([row[metric] for row in rows], 20, mark) for metric in METRICS)]]
    for name, source in (("the authors' program", "dgp-program"), ("the paper's table", "bui2015")):
        wanted = {"source": source, "method": "GP-50", "dataset": "boston"}
        body.append([name, *(check_row("dgp", metric=metric, **wanted)["published_mean"] for metric in METRICS)])
    return table(["Source", "RMSE", "test log-likelihood"], body)


def dgp_training() -> list[str]:
    """Return scores with the training of the released program and with the default one, where all splits are run."""
    body = []
    for (method, dataset), count in planned("dgp-cosine").items():
        default, program = cells("dgp-cosine", method, dataset), cells("dgp", _plain(method), dataset)
        if len(default) >= count and len(program) >= count:
            counts = convergence("dgp-cosine", method, dataset).counts
            marks = [convergence("dgp", _plain(method), dataset).mark, convergence("dgp-cosine", method, dataset).mark]
            times = seconds_of_versions()[method, dataset]
            scores = _both_trainings(program, default, dataset, marks)
            body.append([dataset, _plain(method), *scores, *times, counts])
    head = ["Data set", "Model", "RMSE, program", "RMSE, default", "LL, program", "LL, default", "LL, DS-DGP"]
    return table([*head, "CPU s, program", "CPU s, default", "Splits, default"], body)


def _plain(method: str) -> str:
    return method.removesuffix(", cosine")


def _both_trainings(program: Cells, default: Cells, dataset: str, marks: Sequence[str]) -> list[str]:
    """Return scores of one entry by both trainings, and the score of doubly stochastic inference."""
    both = (program, default)
    scores = [with_error([row[metric] for row in rows], 0, mark)
              for metric in METRICS for rows, mark in zip(both, marks, strict=True)]  # fmt: skip
    wanted = {"source": "star-dgp", "method": "DS-DGP (mean-field) L2", "dataset": dataset, "metric": "ll"}
    later = published_number(rows_of(PUBLISHED / "later_tables.csv"), "mean", "stderr", **wanted)
    return [*scores, later]


def _order(folder: str, names: Sequence[str], metric: str) -> tuple[list[str], int, int]:
    """Return models sorted by average rank over all splits that have them, best first; numbers of splits and sets."""
    found = {(row["method"], row["dataset"], row["split"]): row for row in finished(folder)}
    places = {(row["dataset"], row["split"]) for row in finished(folder)}
    blocks = [place for place in places if all((name, *place) in found for name in names)]
    sign = 1.0 if metric == "rmse" else -1.0
    scores = np.array([[sign * found[name, *place][metric] for name in names] for place in blocks])
    order = np.argsort(scores.argsort(axis=1).argsort(axis=1).mean(axis=0))
    return [names[at] for at in order], len(blocks), len({dataset for dataset, _ in blocks})


def paper_order() -> str:
    """Return on how many splits and data sets the order of deep Gaussian processes was computed, best first."""
    names = ["DGP-3-50", "DGP-2-50", "GP-50", "DGP-1-50"]
    found = [_order("dgp", names, metric) for metric in METRICS]
    if [order for order, _, _ in found] != [names] * 2:
        return f"another order of {names}: {found}"
    return f"{found[0][1]} splits of {in_words(found[0][2])} data sets"


def default_orders() -> str:
    """Return the orders of the models by average rank with the default training, best first."""
    names = [f"{name}, cosine" for name in ("DGP-3-50", "DGP-2-50", "DGP-1-50", "GP-50")]
    by_rmse, by_ll = (
        ", ".join(_plain(name).removesuffix("-50") for name in _order("dgp-cosine", names, metric)[0])
        for metric in METRICS
    )
    return f"it is {by_rmse} by both scores" if by_rmse == by_ll else f"it is {by_rmse} by RMSE and {by_ll} by LL"


def decided_pairs() -> str:
    """Return how many pairs of the deep and sparse processes the critical difference decides, by either score."""
    rows = [row for row in checked("dgp", "report/tables/orders.csv") if row["group"] == "GP family"]
    counts = [Counter(row["order"] for row in rows if row["score"] == metric) for metric in METRICS]
    if any(found["reversed"] for found in counts) or counts[0]["holds"] != counts[1]["holds"]:
        return f"other verdicts: {counts}"
    sets = in_words(int(float(rows[0]["datasets"])))
    return f"Over the {sets} data sets, the critical difference decides {counts[0]['holds']} of the {counts[0].total()}"


def all_methods_orders() -> list[str]:
    """Return how many orders of two methods in the paper's rank figures come out, by group and score."""
    rows = [row for row in checked("suite", "report/tables/orders.csv") if row["source"] == "bui2015"]
    body = []
    for group, score in dict.fromkeys((row["group"], row["score"]) for row in rows if row["score"] in METRICS):
        chosen = [row for row in rows if (row["group"], row["score"]) == (group, score)]
        found = Counter(row["order"] for row in chosen)
        same, other = (found.pop(f"within CD ({way} way)", 0) for way in ("same", "other"))
        decided = [found.pop(order, 0) for order in ("holds", "reversed")]
        sets, distance = chosen[0]["datasets"], float(chosen[0]["critical_difference"])
        counts = (*decided, same, other, found.total())
        body.append([group, LABELS[score], sets, f"{distance:.1f}", str(len(chosen)), *map(str, counts)])
    head = ["Group", "Score", "Data sets", "Critical difference", "Pairs", "Holds", "Reversed"]
    return table([*head, "Not decided, same way", "Not decided, other way", "Equal"], body)


def worse_without_a_hidden_layer() -> str:
    """Return the data sets on which the classifier without a hidden layer is worse than printed."""
    return f"On {_listed(name for name, methods in _worse_classifiers() if 'GP' in methods)} this includes"


def worse_with_a_hidden_layer() -> str:
    """Return the data sets on which only classifiers with a hidden layer are worse than printed."""
    only = _listed(name for name, methods in _worse_classifiers() if "GP" not in methods)
    return f"On {only} that process is reproduced"


def _worse_classifiers() -> list[tuple[str, set[str]]]:
    """Return the data sets with scores that are worse than printed, in the order of the study, and their methods."""
    worse = [(row["dataset"], row["method"]) for row in checked("dgp-classes") if row["verdict"] == "worse"]
    order = dict.fromkeys(dataset for _, dataset in planned("dgp-classes"))
    found = [(name, {method for dataset, method in worse if dataset == name}) for name in order]
    return [(name, methods) for name, methods in found if methods]


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}"


def dgp_energies() -> str:
    """Return the final energy of GP-50 on yacht with the training of the released program and with the default one."""
    ends = []
    for folder, method in (("dgp", "GP-50"), ("dgp-cosine", "GP-50, cosine")):
        traces = curves(folder)["traces"]
        (one,) = (trace for trace in traces if (trace["method"], trace["dataset"]) == (method, "yacht"))
        ends.append(f"{one['traces']['objective']['median'][-1]:.2f}")
    return f"changes from {ends[0]} to {ends[1]} nats per data point"


def _mean(folder: str, method: str, dataset: str, column: str) -> float:
    return float(np.mean([row[column] for row in cells(folder, method, dataset)]))


def outliers_on_energy() -> str:
    """Return how single test points decide the log-likelihood of GP-50 on energy with the default training."""
    both = (("dgp", "GP-50", "energy"), ("dgp-cosine", "GP-50, cosine", "energy"))
    rmse, median, mean = ([_mean(*entry, column) for entry in both] for column in ("rmse", "ll_median", "ll"))
    far = [row["ll_min"] < FAR_OFF for row in cells(*both[1])]
    others = np.mean([row["ll"] for row in cells(*both[1]) if row["ll_min"] >= FAR_OFF])
    return (
        f"the RMSE of GP-50 falls from {rmse[0]:.2f} to {rmse[1]:.2f} and its log-likelihood "
        f"at the median test point rises from {median[0]:.2f} to {median[1]:.2f}, "
        f"but the mean falls from {mean[0]:.2f} to {mean[1]:.2f}: on {sum(far)} of "
        f"{len(far)} splits, the lowest test point has less than {FAR_OFF:.0f} nats, "
        f"and the mean of the others is {others:.2f}"
    )


def overfitted_energy() -> str:
    """Return on which data sets DGP-2 with the default training fits the training data better and test data worse.

    Splits whose test log-likelihood a single data point decides do not count.
    """
    worse = []
    for method, dataset in planned("dgp-cosine"):
        both = (("dgp", "DGP-2-50", dataset), ("dgp-cosine", "DGP-2-50, cosine", dataset))
        if method == "DGP-2-50, cosine" and all(cells(*entry) for entry in both):
            old, new = (_mean(*entry, "train_ll") for entry in both)
            old_test, new_test = (
                np.mean([row["ll"] for row in without_point(dataset, cells(*entry))]) for entry in both
            )
            worse += [dataset] if new > old and new_test < old_test else []
    names = f"{', '.join(worse[:-1])} and {worse[-1]}"
    return f"On {names}, DGP-2 has a higher log-likelihood on the training data and a lower"


def clear_losses() -> str:
    """Return where the default training has a clearly lower log-likelihood, by split."""
    found = []
    for method, dataset in planned("dgp-cosine"):
        program = {row["split"]: row["ll"] for row in cells("dgp", _plain(method), dataset)}
        default = {row["split"]: row["ll"] for row in cells("dgp-cosine", method, dataset)}
        change = [default[split] - program[split] for split in sorted(default.keys() & program.keys())]
        if np.mean(change) < 0.0 and t_test_p(np.array(change), TEST_TO_TRAINING) < LEVEL:
            found.append(f"{_plain(method)} on {dataset} ({with_error(change, len(change))})")
    return f"The losses are clear for {enumerated(found)}" if found else "No loss is clear"


def deeper_on_energy() -> str:
    """Return the mean and median log-likelihoods of DGP-2 and DGP-3 on energy with both trainings."""
    parts = []
    for method in ("DGP-2-50", "DGP-3-50"):
        before, after = _mean("dgp", method, "energy", "ll"), _mean("dgp-cosine", f"{method}, cosine", "energy", "ll")
        middle = np.median([row["ll"] for row in cells("dgp-cosine", f"{method}, cosine", "energy")])
        parts.append(f"from {before:.2f} to {after:.2f} for {method} (median over the splits {middle:.2f})")
    return f"The mean falls, too, {enumerated(parts)}"


def below_fitc() -> str:
    """Return on how many data sets GP-50 with the default training is below FITC-50."""
    entries = [dataset for method, dataset in planned("dgp-cosine") if method == "GP-50, cosine"]
    lower = [_mean("dgp-cosine", "GP-50, cosine", name, "ll") < _mean("gp", "FITC-50", name, "ll") for name in entries]
    return f"lower than that of FITC-50 on {sum(lower)} of {len(lower)} data sets"


def _is_better(method: str, dataset: str) -> bool:
    """Return whether both scores of a model are better with the default training."""
    both = (("dgp", _plain(method), dataset), ("dgp-cosine", method, dataset))
    (rmse, default_rmse), (ll, default_ll) = ([_mean(*entry, column) for entry in both] for column in METRICS)
    return default_rmse < rmse and default_ll > ll


def better_everywhere() -> str:
    """Return the data sets on which all models are better in both scores with the default training."""
    entries = planned("dgp-cosine")
    models = in_words(len({method for method, _ in entries}))
    worse = {dataset for method, dataset in entries if not _is_better(method, dataset)}
    sets = [dataset for dataset in dict.fromkeys(dataset for _, dataset in entries) if dataset not in worse]
    return f"On {', '.join(sets[:-1])} and {sets[-1]}, both scores of all {models} models are better"


def default_training_on_naval() -> str:
    """Return how the log-likelihood of DGP-3 on naval with the default training differs from those of later papers."""
    rows = selected(checked("dgp"), method="DGP-3-50", dataset="naval", metric="ll", verdict="yardstick")
    ours = _mean("dgp-cosine", "DGP-3-50, cosine", "naval", "ll")
    found = [ours - float(row["published_mean"]) for row in rows]
    least, most = (signed(f"{value:.2f}") for value in (min(found), max(found)))
    return (
        f"With the default training, the log-likelihood of DGP-3-50 on naval is {ours:.2f}, "
        f"and the differences from the {in_words(len(found))} methods of later papers are {least} to {most}"
    )


TABLES = {"sparse-boston": sparse_boston, "dgp-training": dgp_training, "paper-orders": all_methods_orders}


def converged_defaults() -> str:
    """Return how many fits with the default training have converged."""
    found = sum((convergence("dgp-cosine", *entry) for entry in planned("dgp-cosine")), ConvergedSplits())
    total = found.judged + found.unstated
    return f"With the defaults, {found.converged} of {total} fits of the study `dgp_cosine` have converged"


FACTS = [
    ("methods/dgp_ep.md", converged_defaults),
    ("papers/bui2015.md", paper_order),
    ("papers/bui2015.md", decided_pairs),
    ("papers/bui2015.md", default_orders),
    ("papers/bui2015.md", dgp_energies),
    ("papers/bui2015.md", outliers_on_energy),
    ("papers/bui2015.md", overfitted_energy),
    ("papers/bui2015.md", clear_losses),
    ("papers/bui2015.md", deeper_on_energy),
    ("papers/bui2015.md", below_fitc),
    ("papers/bui2015.md", better_everywhere),
    ("findings.md", outliers_on_energy),
    ("reproductions.md", default_training_on_naval),
    ("papers/bui2015.md", worse_without_a_hidden_layer),
    ("papers/bui2015.md", worse_with_a_hidden_layer),
]
