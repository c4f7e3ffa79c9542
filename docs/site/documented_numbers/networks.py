"""Tables and sentences on Bayesian neural networks."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ep_bench.results.tables import read_rows

from .improvements import Pair, Replacement, mean_time, pair
from .markdown import enumerated, in_words, signed, table, with_error
from .stored import (
    FIVE,
    RESULTS,
    Cells,
    Row,
    any_published_number,
    cells,
    check_row,
    checked,
    complete,
    converged_splits,
    convergence,
    covered,
    curves,
    mean_seconds,
    planned,
    published_number,
    rows_of,
    selected,
    summary,
)  # fmt: skip


def scores(
    folder: str, metric: str, left_out: Sequence[str] = (), published: str = "", source: str = "bui2015",
    others: Sequence[tuple[str, str]] = (),
) -> list[str]:  # fmt: skip
    """Return the table of one score of a study of networks: entries by data sets.

    ``others`` are entries (folder, label) of other studies for the last rows.
    """
    datasets = covered(folder)
    body = [[f"{published}, published", *(_published(folder, source, published, d, metric) for d in datasets)]]
    methods = [name for name in dict.fromkeys(method for method, _ in planned(folder)) if name not in left_out]
    for column, words in metrics(metric, source):
        body += [[method + words, *(_score(folder, method, d, column) for d in datasets)] for method in methods]
    body += [[method, *(_score(one, method, dataset, metric) for dataset in datasets)] for one, method in others]
    return table([metric.upper(), *datasets], body if published else body[1:])


def metrics(metric: str, source: str) -> list[tuple[str, str]]:
    """Return the scores of a table and what to add to the names of entries.

    Lakshminarayanan et al. (2017) print the log density of one Gaussian with the mean and variance of a mixture.
    """
    gaussian = [("ll_gaussian", ", one Gaussian")] if (metric, source) == ("ll", "lakshminarayanan2017") else []
    return [*gaussian, (metric, "")]


def _score(folder: str, method: str, dataset: str, metric: str) -> str:
    values = [row[metric] for row in cells(folder, method, dataset)]
    return with_error(values, planned(folder)[method, dataset], convergence(folder, method, dataset).mark)


def _published(folder: str, source: str, method: str, dataset: str, metric: str) -> str:
    wanted = {"source": source, "method": method, "dataset": dataset, "metric": metric}
    return published_number(checked(folder), "published_mean", "published_stderr", **wanted)


def cpu_seconds(folder: str) -> list[str]:
    """Return the table of mean CPU seconds per fit: entries by data sets; a dash for cells without CPU times."""
    datasets, methods = covered(folder), dict.fromkeys(method for method, _ in planned(folder))
    body = [[method, *(mean_seconds(cells(folder, method, dataset)) for dataset in datasets)] for method in methods]
    return table(["Mean CPU seconds of a fit", *datasets], body)


def sgld_difference() -> list[str]:
    """Return the table of differences of SGLD from HMC on common splits."""
    datasets = covered("bnn-sampling")
    body = [[f"{method}, {metric.upper()}", *(_sgld_difference(method, dataset, metric) for dataset in datasets)]
            for method in ("SGLD-1", "SGLD-2") for metric in ("rmse", "ll")]  # fmt: skip
    return table(["SGLD minus HMC-1", *datasets], body)


def _sgld_difference(method: str, dataset: str, metric: str) -> str:
    folder = "bnn-sampling"
    gaps = _gaps(cells(folder, method, dataset), cells(folder, "HMC-1", dataset), metric)
    return signed(with_error(gaps, planned(folder)[method, dataset]))


def _gaps(first: Cells, second: Cells, metric: str) -> list[float]:
    """Return the differences on common splits, empty with a single one."""
    other = {row["split"]: row[metric] for row in second}
    found = [row[metric] - other[row["split"]] for row in first if row["split"] in other]
    return found if len(found) > 1 else []


def pbp_table_1() -> list[str]:
    """Return the table of PBP's published and computed numbers."""
    rows = [row for row in checked("pbp-table-1") if row["source"] == "hernandez-lobato2015"]
    body = [[dataset, *_pbp_numbers(dataset, "rmse"), *_pbp_numbers(dataset, "ll")]
            for dataset in dict.fromkeys(row["dataset"] for row in rows)]  # fmt: skip
    return table(["Data set", "RMSE, table 1", "RMSE, ep-bench", "LL, table 1", "LL, ep-bench"], body)


def _pbp_numbers(dataset: str, metric: str) -> list[str]:
    values = [row[metric] for row in cells("pbp-table-1", "PBP", dataset)]
    return [_published("pbp-table-1", "hernandez-lobato2015", "PBP", dataset, metric), with_error(values, 0)]


def hmc_mixing() -> list[str]:
    """Return the table of diagnostics of long chains."""
    chains = curves("hmc-mixing")["chains"]
    body = [_diagnostics(one) for one in sorted(chains, key=lambda one: (one["dataset"] != "yacht", one["method"]))]
    return table(["", "gradients", "R-hat, monitored", "R-hat, test", "bulk ESS, test"], body)


def _diagnostics(entry: Row) -> list[str]:
    found = {name: values[0] for name, values in entry["diagnostics"].items()}
    r_hats = [f"{found[name]:.3f}" for name in ("r_hat_predictions", "r_hat_test_rows")]
    gradients = f"{found['gradients'] / 1e6:.0f} million"
    return [f"{entry['dataset']}, {entry['method']}", gradients, *r_hats, f"{found['ess_bulk_test_rows']:.0f}"]


def hmc_long() -> list[str]:
    """Return the table of chains that are long enough: how many splits have mixed, and scores next to short chains."""
    chains = {(one["dataset"], one["method"]): one["diagnostics"] for one in curves("bnn-sampling")["chains"]}
    pairs = {entry: pair(Replacement("bnn-sampling", entry[1]), entry[0]) for entry in chains}
    long = {entry: found for entry, found in pairs.items() if found.earlier and entry[1].startswith("HMC")}
    body = [_long_chains(*entry, chains[entry], found) for entry, found in long.items()]
    scores = [f"{score}, {length}" for score in ("RMSE", "LL") for length in ("short", "long")]
    r_hats = ["R-hat at most 1.05, monitored", "at test inputs", "R-hat, training inputs", "R-hat, midpoints"]
    return table(
        ["", *scores, "RMSE, published", "LL, published", *r_hats, "ESS", "s per fit, short", "CPU s per fit, long"],
        body,
    )


def _long_chains(dataset: str, method: str, diagnostics: Row, found: Pair) -> list[str]:
    rows = found.present
    if len(diagnostics["r_hat_test_rows"]) != len(rows):
        raise ValueError(
            f"{method} on {dataset}: diagnostics of {len(diagnostics['r_hat_test_rows'])} of {len(rows)} fits"
        )
    mixed = [f"{np.sum(np.array(diagnostics[name]) <= 1.05)}" for name in ("r_hat_predictions", "r_hat_test_rows")]
    both = (found.earlier, rows)
    scores = [with_error([row[score] for row in part], len(part)) for score in ("rmse", "ll") for part in both]
    yardstick = [any_published_number("bui2015", "HMC-1", dataset, score) for score in ("rmse", "ll")]
    inputs = [_median_and_largest(diagnostics[name]) for name in ("r_hat_training_inputs", "r_hat_midpoints")]
    effective = f"{np.median(diagnostics['ess_bulk_test_rows']):.0f}"
    times = [mean_time(found.earlier), mean_seconds(rows)]
    return [f"{dataset}, {method}", *scores, *yardstick, *mixed, *inputs, effective, *times]


def _median_and_largest(values: Sequence[float]) -> str:
    """Return the median of values over splits, and the largest if there are several."""
    return f"{np.median(values):.3f}" + (f" ({max(values):.3f})" if len(values) > 1 else "")


def hmc_length() -> list[str]:
    """Return the scores of chains of the study's length and of longer ones on the larger data sets."""
    folder, short, long = "hmc-length", "HMC-1", "HMC-1, 5 times"
    body = []
    for dataset in covered(folder):
        row = check_row("bnn-sampling", source="bui2015", method=short, dataset=dataset, metric="ll")
        both = [cells(folder, method, dataset) for method in (short, long)]
        gap = signed(with_error(_gaps(both[1], both[0], "ll"), len(both[1])))
        ours = [_score(folder, method, dataset, "ll") for method in (short, long)]
        r_hats = [f"{np.median([row['r_hat'] for row in rows if row.get('r_hat')]):.2f}" for rows in both]
        seconds = [mean_seconds(rows) for rows in both]
        body.append([dataset, row["published_mean"], *ours, gap, " / ".join(r_hats), " / ".join(seconds)])
    head = ["Data set", "Printed LL", "LL, HMC-1", "LL, 5 times", "Difference", "Median R-hat, test"]
    return table([*head, "CPU s per fit"], body)


def hmc_longer_chains() -> str:
    """Return how far chains that are five times as long come towards the printed log-likelihoods."""
    fractions = []
    for dataset in covered("hmc-length"):
        row = check_row("bnn-sampling", source="bui2015", method="HMC-1", dataset=dataset, metric="ll")
        short, long = (
            np.mean([row["ll"] for row in cells("hmc-length", name, dataset)]) for name in ("HMC-1", "HMC-1, 5 times")
        )
        fractions.append(float((long - short) / (float(row["published_mean"]) - short)))
    return (
        f"The log-likelihoods rise on {enumerated(covered('hmc-length'))}, "
        f"by {min(fractions):.0%} to {max(fractions):.0%} of the distance to the printed value"
    )


def shorter_chains_on_yacht() -> str:
    """Return on how many splits of yacht chains of a third of the length had mixed at the test inputs."""
    rows = read_rows(RESULTS / "bnn-sampling" / "superseded.csv")
    chosen = [row for row in rows if (row["method"], row["dataset"]) == ("HMC-1", "yacht") and row.get("r_hat")]
    mixed = sum(row["r_hat"] <= 1.05 for row in chosen)
    return f"R-hat at test inputs was at most 1.05 on {mixed} of {len(chosen)} splits"


def noise_rates() -> list[str]:
    """Return the log-likelihoods of HMC with rates of the noise prior next to the printed ones."""
    folder = "hmc-noise-prior"
    methods = list(dict.fromkeys(method for method, _ in planned(folder)))
    body = []
    for dataset in covered(folder):
        row = check_row("bnn-sampling", source="bui2015", method="HMC-1", dataset=dataset, metric="ll")
        body.append([dataset, row["published_mean"], *(_score(folder, one, dataset, "ll") for one in methods)])
    return table(["Data set", "Printed LL", *(re.findall(r"b = [\d.]+", method)[0] for method in methods)], body)


def fitting_rates() -> str:
    """Return with which rate of the noise prior each printed log-likelihood of HMC comes out."""
    rows = selected(checked("hmc-noise-prior"), source="bui2015", metric="ll")
    parts = []
    for dataset in reversed(covered("hmc-noise-prior")):
        nearest = min(selected(rows, dataset=dataset), key=lambda row: abs(float(row["z"])))
        (rate,) = re.findall(r"b = ([\d.]+)", nearest["method"])
        parts.append(f"that of {dataset} with the rate {rate} (z {float(nearest['z']):.1f})")
    return f"Both come out, but not with the same rate: {enumerated(parts)}"


def noise_floor() -> list[str]:
    """Return the log-likelihoods of HMC with both noise priors next to the printed ones."""
    entries = ("HMC-1", "HMC-1 (b = 2)")
    body = []
    for dataset in ("energy", "yacht"):
        row = check_row("bnn-sampling", source="bui2015", method="HMC-1", dataset=dataset, metric="ll")
        ours = [_score("bnn-sampling", method, dataset, "ll") for method in entries]
        body.append([dataset, row["published_mean"], *ours])
    return table(["Data set", "Printed LL", "b = 0.01", "b = 2"], body)


def hmc_unconverged() -> str:
    """Return how many splits of HMC-1 have converged, nearly converged and not converged."""
    return converged_splits("bnn-sampling", "HMC-1").counts


def hessians() -> str:
    """Return on how many data sets the paired test finds either Hessian of Laplace's approximation better."""
    found = next(row["found"] for row in rows_of(RESULTS / "bnn-sampling" / "claims.csv") if "Hessian" in row["claim"])
    won, lost = (int(re.findall(rf"(\d+) {word}", found)[0]) for word in ("won", "lost"))
    return f"the full Hessian is better on {won} data sets and the diagonal one on {lost}"


def not_worse(folder: str, method: str, source: str, text: str) -> str:
    """Return the text if no published number of a source is missed by the entry on the data sets with all splits."""
    rows = [r for r in checked(folder) if (r["method"], r["source"]) == (method, source)]
    verdicts = {row["verdict"] for row in rows if row["dataset"] in complete(folder, method)}
    return text if verdicts <= {"reproduced", "better"} else f"{method}: {sorted(verdicts)}"


def hmc_published() -> str:
    """Return on which data sets HMC-1 is worse than published by Bui et al., among those with all splits."""
    rows = [r for r in checked("bnn-sampling") if (r["method"], r["source"]) == ("HMC-1", "bui2015")]
    worse = {row["dataset"] for row in rows if row["verdict"] == "worse"}
    rest = [dataset for dataset in complete("bnn-sampling", "HMC-1") if dataset not in worse]
    if set(rest) != set(FIVE):
        return f"HMC-1 is not worse on {', '.join(rest)}"
    return (
        "HMC-1 matches or exceeds the published numbers on the five small data sets, and is worse on "
        f"{enumerated(sorted(worse))}"
    )


def pbp_reproduced() -> str:
    """Return how many numbers of PBP in table 1 are reproduced, if all are."""
    rows = selected(checked("pbp-table-1"), source="hernandez-lobato2015", method="PBP")
    found = [row for row in rows if row["verdict"] == "reproduced"]
    return f"ll {len(found)} numbers" if len(found) == len(rows) else f"{len(found)} of {len(rows)} are reproduced"


def pbp_cells() -> str:
    """Return the number of cells of the study of PBP's table 1."""
    return f"{sum(planned('pbp-table-1').values())} cells"


def readme_picture() -> str:
    """Return the numbers of methods and data sets in the rank diagrams of README."""
    folder = RESULTS / "bnn-optimisation" / "report" / "tables"
    rows = selected(rows_of(folder / "p-values.csv"), score="ll", blocks="data sets")
    methods = {row[name] for row in rows for name in ("first", "second")}
    return f"average ranks of {in_words(len(methods))} networks by mean test log-likelihood"


def unconverged_alphas() -> str:
    """Return on how many fits the noise of black-box alpha still changes, on the data sets with all splits."""
    study = "bnn-optimisation"
    entries = [name for name in dict.fromkeys(method for method, _ in planned(study)) if name.startswith("BB-alpha")]
    found = {
        (dataset, method): convergence(study, method, dataset)
        for method in entries
        for dataset in complete(study, method)
    }
    unconverged = {place: one.unconverged for place, one in found.items() if one.unconverged}
    naval = {unconverged.pop(("naval", method), 0) for method in entries}
    if naval != {20} or list(unconverged) != [("yacht", "BB-alpha 1")]:
        return f"other unconverged fits: {unconverged}, {naval}"
    yacht = unconverged["yacht", "BB-alpha 1"]
    return f"20 of 20 fits on naval with each alpha, and {yacht} of 20 on yacht with alpha = 1"


def unconverged_yacht() -> str:
    """Return how many fits of black-box alpha 1 on yacht have not converged."""
    entry = ("bnn-optimisation", "BB-alpha 1", "yacht")
    unconverged = convergence(*entry).unconverged
    return f"On yacht with alpha = 1, it has not converged in {unconverged} of {len(cells(*entry))} fits"


DIVERGED = 5.0  # RMSE relative to the median over splits


def adversarial_on_naval() -> str:
    """Return the failed split of adversarial ensembles on naval, and the splits of a far larger error."""
    rows = cells("ensemble", "Ensemble adversarial", "naval")
    (failed,) = set(range(20)) - {row["split"] for row in rows}
    middle = float(np.median([row["rmse"] for row in rows]))
    far = [row for row in rows if row["rmse"] > DIVERGED * middle]
    if any(row["train_rmse"] < DIVERGED * middle for row in far):
        return "the error on the training data is smaller"
    splits = enumerated([str(row["split"]) for row in far])
    errors = enumerated([f"{row['rmse']:.3f}" for row in far])
    return (
        f"split {failed} failed, and splits {splits} have an RMSE of {errors}, "
        f"where the median over the splits is {middle:.4f}"
    )


def all_poor_on_naval() -> str:
    """Return the lowest RMSE of adversarial ensembles on naval, and the highest of usual ones."""
    lowest = min(row["rmse"] for row in cells("ensemble", "Ensemble adversarial", "naval"))
    highest = max(row["rmse"] for row in cells("ensemble", "Ensemble", "naval"))
    return f"the lowest RMSE of a split is {lowest:.4f}, and the highest one without `adversarial` is {highest:.4f}"


def year_like() -> list[str]:
    """Return time, memory and scores on the generated set of the size of year."""
    body = []
    for method, dataset in planned("year-like"):
        for row in cells("year-like", method, dataset):
            seconds = (f"{row[part]:.3g}" for part in ("fit_seconds", "fit_cpu_seconds", "predict_cpu_seconds"))
            body.append([method, *seconds, f"{row['peak_mb'] / 1000:.2g}", f"{row['rmse']:.2f}", f"{row['ll']:.3f}"])
    head = ["Entry", "Wall s, fit", "CPU s, fit", "CPU s, predictions", "Peak memory, GB", "RMSE", "LL"]
    return table(head, body)


DEEP_ENSEMBLES = [("ensemble", "Ensemble"), ("ensemble", "Ensemble adversarial")]
DEEP_ENSEMBLE = {"published": "Ensemble", "source": "lakshminarayanan2017"}
TABLES = {
    "optimisation-rmse": lambda: scores("bnn-optimisation", "rmse", others=DEEP_ENSEMBLES),
    "optimisation-ll": lambda: scores("bnn-optimisation", "ll", others=DEEP_ENSEMBLES),
    "sampling-rmse": lambda: scores("bnn-sampling", "rmse", ("PBP-1", "VI-1"), "HMC-1"),
    "sampling-ll": lambda: scores("bnn-sampling", "ll", ("PBP-1", "VI-1"), "HMC-1"),
    "bp-schedule": lambda: scores("bp-schedule", "rmse", published="BP-1", source="hernandez-lobato2015"),
    "ensemble-rmse": lambda: scores("ensemble", "rmse", **DEEP_ENSEMBLE),
    "ensemble-ll": lambda: scores("ensemble", "ll", **DEEP_ENSEMBLE),
    "ensemble-seconds": lambda: cpu_seconds("ensemble"),
    "pbp-layers-rmse": lambda: scores("pbp-layers", "rmse"),
    "pbp-layers-ll": lambda: scores("pbp-layers", "ll"),
    "sgld-difference": sgld_difference,
    "pbp-table-1": pbp_table_1,
    "hmc-mixing": hmc_mixing,
    "hmc-long": hmc_long,
    "hmc-length": hmc_length,
    "noise-floor": noise_floor,
    "noise-rates": noise_rates,
    "year-like": year_like,
}


def calibration_data_sets() -> str:
    """Return the number of data sets per case of the calibration of ``hmc``."""
    return f"{int(summary('hmc-calibration')[0]['replications']):,} data sets"


def calibration_statistics() -> str:
    """Return how many statistics of the calibration of ``hmc`` exceed 2 standard errors."""
    values = [abs(float(row[name])) for row in summary("hmc-calibration") for name in ("shift", "spread")]
    return f"{sum(value > 2.0 for value in values)} of {len(values)} exceed two standard errors"


FACTS = [
    ("methods/hmc.md", shorter_chains_on_yacht),
    ("methods/hmc.md", calibration_statistics),
    ("methods/hmc.md", calibration_data_sets),
    ("results.md", calibration_data_sets),
    ("../README.md", pbp_cells),
    ("../README.md", readme_picture),
    ("papers/hernandez-lobato2015.md", pbp_cells),
    ("papers/hernandez-lobato2015.md", pbp_reproduced),
    ("methods/pbp.md", pbp_reproduced),
    ("networks.md", hmc_unconverged),
    ("networks.md", hessians),
    ("networks.md", unconverged_yacht),
    ("methods/bb_alpha.md", unconverged_alphas),
    ("methods/ensemble.md", adversarial_on_naval),
    ("methods/ensemble.md", all_poor_on_naval),
    ("networks.md", hmc_published),
    ("papers/bui2015.md", hmc_longer_chains),
    ("findings.md", fitting_rates),
    ("methods/bp.md", lambda: not_worse("bnn-optimisation", "BP-1", "hernandez-lobato2015", "match or exceed")),
    ("methods/vi.md", lambda: not_worse("bnn-optimisation", "VI(G)-1", "hernandez-lobato2015", "match or exceed")),
]
