"""Tables and sentences on expectation propagation for networks and on Gaussian processes with Student-t noise."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from ep_bench.convergence import judge
from ep_bench.published import DENSITY, SQUARE, moments, pooled
from ep_bench.report.sections.several_starts import spread_of

from .markdown import table, with_error
from .stored import (
    PUBLISHED,
    RESULTS,
    TextRow,
    cells,
    check_row,
    checked,
    convergence,
    curves,
    finished,
    planned,
    rows_of,
    selected,
    summary,
)  # fmt: skip

PRIORS = {"NN-EP-LA": "Laplace", "NN-EP-ARD": "ARD"}
FIFTY = "NN-EP-ARD-50"  # an entry with 50 units
IN_TABLE_1 = ("NN-EP-LA", "NN-EP-ARD", "NN-MC", "GP", "GP-ARD")


def ep_restarts() -> list[str]:
    """Return the table of random starts of EP for networks."""
    rows = summary("nn-ep-restarts")
    body = []
    for dataset in sorted({row["dataset"] for row in rows}):
        both = [selected(rows, dataset=dataset, method=method)[0] for method in PRIORS]
        body.append([
            dataset, *(f"{one['converged']} of {one['restarts']}" for one in both),
            *(f"{float(one['ll_least']):.3f} to {float(one['ll_most']):.3f}" for one in both),
        ])  # fmt: skip
    head = ["", "converged, Laplace", "ARD", "test log-likelihood, Laplace", "ARD"]
    return table(head, body)


def ep_best_of() -> list[str]:
    """Return the table of mean log densities of the fit of highest evidence among 1, 5 and 20 of the stored starts."""
    arrays = np.load(RESULTS / "nn-ep-restarts" / "arrays.npz")
    names, labels = arrays["measures"].tolist(), arrays["labels"].tolist()
    body = []
    for i, dataset in sorted(enumerate(arrays["datasets"].tolist()), key=lambda pair: str(pair[1])):
        line = [dataset]
        for label in PRIORS:
            found = dict(zip(names, arrays[f"found_{i}"][labels.index(label)], strict=True))
            line += [f"{best_of(found['ll'], found['log_evidence'], number):.3f}" for number in (1, 5, 20)]
            line.append(f"{np.std(found['log_evidence']):.1f}")
        body.append(line)
    columns = [f"{prior}: {name}" for prior in PRIORS.values() for name in ("1", "5", "20", "evidence, sd")]
    return table(["", *columns], body)


def best_of(values: Any, evidences: Any, number: int) -> float:
    """Return the mean, over all choices of ``number`` starts, of the value (R,) of the one of highest evidence (R,)."""
    starts = len(values)
    weights = [math.comb(starts - 1 - place, number - 1) / math.comb(starts, number) for place in range(starts)]
    return float(np.dot(weights, values[np.argsort(-evidences)]))


def ep_scores() -> list[str]:
    """Return the table of scores of EP for networks and of PBP, on data sets with all splits of both priors."""
    folders = {**dict.fromkeys(PRIORS, "ep-nn"), "PBP-1": "bnn-optimisation"}
    body = []
    for dataset in dict.fromkeys(row["dataset"] for row in finished("ep-nn")):
        entries = [(folder, name, dataset) for name, folder in folders.items()]
        if all(len(cells(*entry)) == planned(entry[0])[entry[1:]] for entry in entries):
            body.append([dataset, *(_marked_mean(*entry, metric) for metric in ("rmse", "ll") for entry in entries)])
    head = ["", "RMSE, Laplace", "ARD", "`pbp`", "test log-likelihood, Laplace", "ARD", "`pbp`"]
    return table(head, body)


def _marked_mean(folder: str, method: str, dataset: str, metric: str) -> str:
    mean = with_error([row[metric] for row in cells(folder, method, dataset)], planned(folder)[method, dataset])
    return f"{mean} {convergence(folder, method, dataset).mark}".strip()


def ep_table_1() -> list[str]:
    """Return the table of means over points next to the printed ones."""
    body = []
    for folder in ("nn-ep-table1", "nn-ep-kin40k"):
        for dataset in dict.fromkeys(row["dataset"] for row in checked(folder)):
            body += [_means_over_points(folder, dataset, method) for method in IN_TABLE_1]
    body.append(_fifty_units())
    return table(["", "method", "test log-likelihood", "squared error"], [line for line in body if line])


def _means_over_points(folder: str, dataset: str, method: str) -> list[str]:
    """Return a line of table 1, empty if no split is finished."""
    both = [check_row(folder, dataset=dataset, method=method, metric=metric) for metric in (DENSITY, SQUARE)]
    texts = [f"{float(one['mean'] or 'nan'):.3f} ({float(one['published_mean']):.2f})" for one in both]
    mark = convergence(folder, method, dataset).mark
    return [dataset, f"{method} {mark}".strip(), *texts] if int(both[0]["n_splits"]) else []


def _fifty_units() -> list[str]:
    """Return a line of table 1 without printed values: EP with more units than in the paper."""
    rows = cells("nn-ep-kin40k", FIFTY, "kin40k")
    means = [pooled([moments(metric, row) for row in rows]).mean for metric in (DENSITY, SQUARE)]
    mark = convergence("nn-ep-kin40k", FIFTY, "kin40k").mark
    return ["kin40k", f"{FIFTY} {mark}".strip(), *(f"{mean:.3f}" for mean in means)]


def crime() -> list[str]:
    """Return the table of the Gaussian process on communities next to the printed values."""
    whole = [pooled([moments(m, row) for row in cells("nn-ep-table1", "GP", "communities")]) for m in (SQUARE, DENSITY)]
    ours = ["cube root", *(text for one in whole for text in (f"{one.mean:.3f}", f"{one.deviation:.2f}"))]
    head = ["", "squared error: mean", "standard deviation", "log density: mean", "standard deviation"]
    return table(head, [["printed", "0.30", "0.54", "-0.81", "0.91"], ours])


def ep_converged(folder: str, dataset: str) -> str:
    """Return how many fits of EP for networks on a data set have converged, of how many."""
    rows = [row for row in finished(folder) if row["dataset"] == dataset and row["method"] in PRIORS]
    return f"{sum(judge(row) != 'not' for row in rows)} of {len(rows)}"


def ep_seconds() -> str:
    """Return the range of fitting times of EP for networks on ten folds of boston."""
    seconds = [row["fit_seconds"] for name in PRIORS for row in cells("nn-ep-table1", name, "boston")]
    return f"{min(seconds):.2f} to {max(seconds):.2f} s"


def ep_counts() -> str:
    """Return how many fits of EP converge on other data sets than boston."""
    number = "none" if all(ep_converged("ep-nn", name) == "0 of 40" for name in ("naval", "power")) else "some"
    yacht, energy, kin8nm = (ep_converged("ep-nn", dataset) for dataset in ("yacht", "energy", "kin8nm"))
    return (
        f"{yacht} converge on yacht and {energy} on energy; of single fits, {kin8nm} on kin8nm and "
        f"{number} on naval and power, and {ep_converged('nn-ep-table1', 'communities')} on communities"
    )


def ep_boston() -> str:
    """Return how many fits of EP converge on boston."""
    splits, folds = ep_converged("ep-nn", "boston"), ep_converged("nn-ep-table1", "boston")
    return f"{splits} fits to the standard splits and {folds} fits to its ten folds"


def ep_many_inputs() -> str:
    """Return the mean log density of the network with 50 units on kin40k, for the standardised target."""
    rows = cells("nn-ep-kin40k", FIFTY, "kin40k")
    sweeps = re.findall(r"a relative step of (\S+) after (\d+) sweeps", rows[0]["reason"])[0]
    return (
        f"With 50 units it is at {_point_mean('NN-EP-ARD-50'):.3f} after {sweeps[1]} sweeps, with a relative step of "
        f"{sweeps[0]}, compared with {_point_mean('NN-EP-ARD'):.3f} with 30 units and 0.27 in print"
    )


def _point_mean(method: str) -> float:
    """Return the mean log density of an entry on kin40k, for the standardised target."""
    return float(pooled([moments(DENSITY, row) for row in cells("nn-ep-kin40k", method, "kin40k")]).mean)


def ep_first_fold() -> str:
    """Return the test log-likelihood of the first fold of boston: the best one, and at the end."""
    (row,) = selected(summary("nn-ep-convergence"), method="NN-EP-LA", fold="0")
    return f"from {float(row['ll_best']):.2f} after {row['ll_best_after']} sweeps to {float(row['ll']):.2f}"


def times_configurations() -> str:
    """Return the numbers of hyperparameters at which every approximation has a solution."""
    rows: dict[str, TextRow] = {row["dataset"]: row for row in summary("student-t-times")}
    return ", ".join(f"{rows[name]['configurations']} of 28 ({name})" for name in rows)


def times_r_hat() -> str:
    """Return R-hat of the chains that chose the hyperparameters."""
    return ", ".join(dict.fromkeys(f"{float(row['r_hat']):.2f}" for row in summary("student-t-times")))


def chain_times() -> str:
    """Return the printed times of chains relative to EP."""
    rows = selected(rows_of(PUBLISHED / "seed_tables.csv"), source="jylanki2014", method="NN-MC")
    times = [float(row["mean"]) for row in rows if row["metric"] == "cputime-relative"]
    return f"chains take {min(times):.0f} to {max(times):.0f} times as long as EP"


def kin40k_steps() -> str:
    """Return the relative steps at the end of EP with 30 units on kin40k."""
    steps = []
    for method, prior in PRIORS.items():
        (row,) = cells("nn-ep-kin40k", method, "kin40k")
        step, sweeps = re.findall(r"a relative step of (\S+) after (\d+) sweeps", row["reason"])[0]
        steps.append(f"{step} ({prior})")
    return f"has not converged after {sweeps} sweeps: the relative steps are {' and '.join(steps)}"


def kin40k_chains() -> str:
    """Return the state of the chains on kin40k."""
    (row,) = cells("nn-ep-kin40k", "NN-MC", "kin40k")
    r_hat, chains = re.findall(r"R-hat of predictions (\S+) exceeds .*?; (\d+ chains of \d+ draws)", row["reason"])[0]
    return f"{chains} have an R-hat of {float(r_hat):.1f}"


def evidence_differences() -> str:
    """Return at how many points of the grids EP differs from annealed importance sampling by more than 5 nats."""
    arrays = np.load(RESULTS / "student-t-evidence" / "arrays.npz")
    pairs = [(arrays[f"evidence_{k}_0"], arrays[f"annealed_{k}"], arrays[f"evidence_{k}_1"]) for k in (1, 2)]
    wrong = [np.abs(ep - annealed) > 5.0 for ep, annealed, _ in pairs]
    suspected = [np.abs(ep - fractional) > 5.0 for ep, _, fractional in pairs]
    number = sum(int(one.sum()) for one in wrong)
    points = sum(int(np.isfinite(ep - annealed).sum()) for ep, annealed, _ in pairs)
    same = all((one == other).all() for one, other in zip(wrong, suspected, strict=True))
    return f"{number} of {points} points. The comparison with `fraction: 0.5` finds these {number} points" * same


def ep_starts() -> list[str]:
    """Return the table of how far apart the five fits of a split end: medians over the splits, and the largest."""
    body = []
    for entry in sorted(curves("ep-nn")["starts"], key=lambda one: (one["dataset"], one["method"])):
        spreads = [spread for spread in map(spread_of, entry["evidences"]) if spread is not None]
        parts = [[getattr(spread, name) for spread in spreads] for name in ("above_median", "above_worst")]
        found = [f"{np.median(part):.1f} ({max(part):.1f})" for part in parts]
        body.append([entry["method"], entry["dataset"], str(len(spreads)), *found])
    return table(["Entry", "Data set", "Splits", "Best minus median", "Best minus worst"], body)


TABLES = {
    "ep-starts": ep_starts,
    "ep-restarts": ep_restarts,
    "ep-best-of": ep_best_of,
    "ep-scores": ep_scores,
    "ep-table-1": ep_table_1,
    "crime": crime,
}
FACTS = [
    ("papers/jylanki2011.md", times_configurations),
    ("papers/jylanki2011.md", times_r_hat),
    ("papers/jylanki2014.md", ep_many_inputs),
    ("papers/jylanki2014.md", kin40k_steps),
    ("papers/jylanki2014.md", kin40k_chains),
    ("methods/gp_t.md", evidence_differences),
    ("methods/ep_nn.md", chain_times),
    ("methods/ep_nn.md", ep_seconds),
    ("methods/ep_nn.md", ep_counts),
    ("methods/ep_nn.md", ep_boston),
    ("methods/ep_nn.md", ep_first_fold),
]
