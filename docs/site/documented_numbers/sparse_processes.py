"""Scores of Gaussian processes: FITC and the variational bound (SGPR), and options against noise that runs to 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .markdown import in_words, table, with_error
from .stored import DOCS, cells, complete, convergence, mean_seconds, planned, rows_of

STUDY, OPTIONS, SEARCH = "gp", "gp-options", "sgp-search"
INDUCING = (50, 100)
PAIR = ("FITC", "SGPR")
EXACT = ("RMSE, exact GP", "LL, exact GP")


def _datasets(inducing: int) -> list[str]:
    """Return the data sets on which both entries have all splits."""
    first, second = (complete(STUDY, f"{name}-{inducing}") for name in PAIR)
    return [dataset for dataset in first if dataset in second]


def _score(method: str, dataset: str, metric: str, study: str = STUDY) -> str:
    rows = cells(study, method, dataset)
    mean = with_error([row[metric] for row in rows], planned(study)[method, dataset])
    return f"{mean} {convergence(study, method, dataset).mark}".strip()


def _lowest(method: str, dataset: str, study: str = STUDY) -> str:
    """Return the lowest log density of a test point over the splits whose rows have it, and their number if not all."""
    found = [row.get("ll_min") for row in cells(study, method, dataset)]
    known = [value for value in found if value is not None]
    if not known:
        return "–"
    return f"{min(known):.1f}" + (f" ({len(known)}/{len(found)})" if len(known) < len(found) else "")


def _exact(dataset: str) -> list[str]:
    """Return both scores of the exact process, dashes if it was not run on all splits."""
    known = dataset in complete(STUDY, "GP")
    return [_score("GP", dataset, metric) if known else "–" for metric in ("rmse", "ll")]


def fitc_and_sgpr() -> list[str]:
    """Return the table of scores of both approximations by number of inducing inputs and data set."""
    body = []
    for inducing in INDUCING:
        methods = [f"{name}-{inducing}" for name in PAIR]
        for dataset in _datasets(inducing):
            scores = [_score(method, dataset, metric) for metric in ("rmse", "ll") for method in methods]
            lowest = [_lowest(method, dataset) for method in methods]
            body.append([str(inducing), dataset, *scores, *lowest, *_exact(dataset)])
    columns = [f"{score}, {name}" for score in ("RMSE", "LL", "Lowest test point") for name in PAIR]
    return table(["Inducing inputs", "Data set", *columns, *EXACT], body)


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


def one_point_on_power() -> str:
    """Return how the lowest test point of FITC decides the log-likelihood of a split of power."""
    name, other = (f"{approximation}-{INDUCING[1]}" for approximation in PAIR)
    row = min((row for row in cells(STUDY, name, "power") if row.get("ll_min")), key=lambda row: row["ll_min"])
    (same,) = (one["ll"] for one in cells(STUDY, other, "power") if one["split"] == row["split"])
    rest = (row["n_test"] * row["ll"] - row["ll_min"]) / (row["n_test"] - 1)
    return (
        f"on split {row['split']}, {name} has a log-likelihood of {row['ll']:.2f} and {other} one of {same:.2f}, "
        f"and a single test point (`ll_min`) is the cause; without it {name} has {rest:.2f}"
    )


def _both(method: str, option: str, dataset: str, metric: str) -> list[str]:
    """Return a score without and with an option of ``OPTIONS``."""
    return [_score(method, dataset, metric), _score(f"{method}, {option}", dataset, metric, OPTIONS)]


def _seconds(method: str, option: str, dataset: str) -> list[str]:
    """Return the mean processor times of a fit without and with an option of ``OPTIONS``."""
    return [mean_seconds(cells(STUDY, method, dataset)), mean_seconds(cells(OPTIONS, f"{method}, {option}", dataset))]


def searches() -> list[str]:
    """Return the table of sparse processes with the searches for few and for many data points, on the same splits."""
    body = []
    for method, dataset in planned(SEARCH):
        many = cells(SEARCH, method, dataset)
        splits = {row["split"] for row in many}
        few = [row for row in cells(STUDY, method.removesuffix(", many"), dataset) if row["split"] in splits]
        scores = [
            with_error([row[metric] for row in rows], len(splits)) for metric in ("rmse", "ll") for rows in (few, many)
        ]
        body.append([method.removesuffix(", many"), dataset, *scores, mean_seconds(few), mean_seconds(many)])
    columns = [f"{name}, `{search}`" for name in ("RMSE", "LL", "CPU s") for search in ("trials", "many")]
    return table(["Entry", "Data set", *columns], body)


def minimum_noise() -> list[str]:
    """Return the table of FITC without and with a minimum of the noise variance."""
    option, body = "minimum noise", []
    for inducing in INDUCING:
        method = f"FITC-{inducing}"
        for dataset in complete(OPTIONS, f"{method}, {option}"):
            scores = [score for metric in ("rmse", "ll") for score in _both(method, option, dataset, metric)]
            lowest = [_lowest(method, dataset), _lowest(f"{method}, {option}", dataset, OPTIONS)]
            seconds = _seconds(method, option, dataset)
            body.append([str(inducing), dataset, *scores, *lowest, *seconds, *_exact(dataset)])
    columns = [
        f"{name}{text}" for name in ("RMSE", "LL", "Lowest test point", "CPU s") for text in ("", ", with minimum")
    ]
    return table(["Inducing inputs", "Data set", *columns, *EXACT], body)


def merged_inputs() -> list[str]:
    """Return the table of the exact process and FITC without and with merged data points."""
    body = []
    for method in ("GP", "FITC-50"):
        for dataset in complete(OPTIONS, f"{method}, merged"):
            scores = [score for metric in ("rmse", "ll") for score in _both(method, "merged", dataset, metric)]
            body.append([method, dataset, *scores, *_seconds(method, "merged", dataset)])
    columns = [f"{name}{text}" for name in ("RMSE", "LL", "CPU s") for text in ("", ", merged")]
    return table(["Method", "Data set", *columns], body)


def merged_noise() -> str:
    """Return how many fits of FITC with merged data points end at a noise of 0."""
    rows = cells(OPTIONS, "FITC-50, merged", "wine")
    zero = sum("noise_variance runs to 0" in str(row["reason"]) for row in rows)
    return f"the noise of {zero} of {len(rows)} fits run to 0"


def unseen_wine() -> str:
    """Return the log-likelihoods of wine over test points whose inputs are not among the training points."""
    names = ("GP", "GP-t, EP", "FITC-50", "SGPR-50")
    means = [np.mean([row["ll_unseen"] for row in cells(STUDY, name, "wine")]) for name in names]
    first, second, third, last = (f"{mean:.3f}" for mean in means)
    return f"(`ll_unseen`) it has {first}, GP-t by EP {second}, FITC-50 {third} and SGPR-50 {last}"


def other_splits() -> list[str]:
    """Return the table of whole fits by both searches and by GPy on splits of kin8nm."""
    body = []
    for row in rows_of(DOCS / "figures" / "sgp-searches.csv"):
        evidences = [f"{float(row[name]):.1f}" for name in ("trials", "many", "gpy")]
        times = [float(row[name]) for name in ("many_over_trials", "gpy_over_trials")]
        body.append([{"fitc": "FITC", "vfe": "SGPR"}[row["approximation"]], row["inducing"], row["split"], *evidences,
                     f"{times[0]:.1f}", f"{times[1]:.1f}"])  # fmt: skip
    names = ("`trials`", "`many`", "GPy")
    times_of = [f"CPU time, {name} / `trials`" for name in names[1:]]
    return table(["", "Inducing inputs", "Split", *(f"Evidence or bound, {name}" for name in names), *times_of], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "fitc-and-sgpr": fitc_and_sgpr,
    "minimum-noise": minimum_noise,
    "sgp-search": searches,
    "merged-inputs": merged_inputs,
    "sgp-other-splits": other_splits,
}
FACTS: list[tuple[str, Callable[[], str]]] = [
    *(("methods/sgp.md", lambda n=n: fitc_wins(n)) for n in INDUCING),
    ("methods/gp.md", merged_noise),
    ("methods/README.md", unseen_wine),
    ("methods/sgp.md", one_point_on_power),
]
