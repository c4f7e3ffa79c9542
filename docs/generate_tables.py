"""Write the tables of README and documentation from the committed results, and check the numbers in their sentences.

A table after the comment ``<!-- table: NAME -->`` is replaced by that of ``TABLES[NAME]``. ``FACTS`` lists parts of
sentences with numbers; each must be in its page. Run ``make docs-tables`` after results have changed.
"""

from __future__ import annotations

import csv
import json
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ep_bench import published
from ep_bench.catalogue import InstalledCatalogue
from ep_bench.cli import cli
from ep_bench.cli.commands.common import EXIT_CELLS, EXIT_INTERRUPTED, EXIT_REGRESSION, EXIT_USAGE
from ep_bench.convergence import ConvergedSplits, judge
from ep_bench.published import DENSITY, SQUARE, measured, moments, pooled, printed
from ep_bench.published.claims import FILE, load_claims
from ep_bench.report.claims import claim_verdicts
from ep_bench.report.merge import MergedStudies, merge_studies
from ep_bench.report.published_checks import merged_check
from ep_bench.results import store
from ep_bench.spec.schema import study_schema

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
LATER_TABLES = DOCS.parent / "ep_bench" / "published" / "tables" / "later_tables.csv"
DEEP_ENSEMBLE = ("Ensemble", "lakshminarayanan2017")  # entry and source
MARKER = re.compile(r"(<!-- table: (?P<name>\S+) -->\n\n?)(?P<table>(?:\|.*\n)+)")

Row = dict[str, Any]
Cells = Sequence[Row]


@cache
def finished(folder: str) -> tuple[Row, ...]:
    """Return the cells of a study that ended ok."""
    study = store.read_intact(RESULTS / folder)
    return tuple(row for row in study.rows if row["status"] == "ok")


@cache
def merged(folder: str) -> MergedStudies:
    """Return a study as a report has it."""
    return merge_studies([store.read_intact(RESULTS / folder)])


def planned(folder: str) -> dict[tuple[str, str], int]:
    """Return the number of planned cells by method and data set."""
    return merged(folder).planned


def convergence(folder: str, method: str, dataset: str) -> ConvergedSplits:
    """Return the counts of converged splits of one entry."""
    return merged(folder).convergence.get((method, dataset), ConvergedSplits())


@cache
def checked(folder: str) -> tuple[dict[str, str], ...]:
    """Return the rows of check.csv."""
    return rows_of(RESULTS / folder / "check.csv")


@cache
def summary(folder: str) -> tuple[dict[str, str], ...]:
    """Return the rows of the summary of an experiment."""
    return rows_of(RESULTS / folder / "summary.csv")


def rows_of(path: Path) -> tuple[dict[str, str], ...]:
    """Return the rows of a CSV file as text."""
    return tuple(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def cells(folder: str, method: str, dataset: str) -> list[Row]:
    """Return the cells of one entry that ended ok, by split."""
    return [row for row in finished(folder) if (row["method"], row["dataset"]) == (method, dataset)]


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(row)} |" for row in (head, *body)][:1] + ["|" + "---|" * len(head)] + [
        f"| {' | '.join(row)} |" for row in body
    ]  # fmt: skip


def with_error(values: Sequence[float], planned_splits: int, mark: str = "") -> str:
    """Return mean and standard error (ddof 0), a mark, and the number of splits if some are missing."""
    if not values:
        return "–"
    text = measured(float(np.mean(values)), float(np.std(values)) / math.sqrt(len(values)))
    text += f" {mark}" if mark else ""
    return text + (f" ({len(values)}/{planned_splits})" if len(values) < planned_splits else "")


# Networks


def covered(folder: str) -> list[str]:
    """Return the data sets on which at least half of the entries of a study have all splits."""
    plan = planned(folder)
    methods = {method for method, _ in plan}
    datasets = list(dict.fromkeys(dataset for _, dataset in plan))
    full = {d: sum(len(cells(folder, m, d)) == plan.get((m, d)) for m in methods) for d in datasets}
    return [dataset for dataset in datasets if 2 * full[dataset] >= len(methods)]


def scores(
    folder: str, metric: str, left_out: Sequence[str] = (), published: str = "", source: str = "bui2015"
) -> list[str]:
    """Return the table of one score of a study of networks: entries by data sets."""
    plan, datasets = planned(folder), covered(folder)
    methods = [m for m in dict.fromkeys(method for method, _ in plan) if m not in left_out]
    body = [
        [f"{published}, published", *(_published(folder, (source, published, d, metric)) for d in datasets)]
    ] * bool(published)
    for method in methods:
        found = [cells(folder, method, dataset) for dataset in datasets]
        body.append([
            method,
            *(with_error([row[metric] for row in rows], plan[method, d], convergence(folder, method, d).mark)
              for rows, d in zip(found, datasets, strict=True)),
        ])  # fmt: skip
    return table([metric.upper(), *datasets], body)


def _published(folder: str, number: tuple[str, str, str, str]) -> str:
    """Return a published number by source, method, data set and metric."""
    for row in checked(folder):
        if tuple(row[name] for name in ("source", "method", "dataset", "metric")) == number:
            return printed(float(row["published_mean"]), float(row["published_stderr"] or "nan"))
    return "–"


def cpu_seconds(folder: str) -> list[str]:
    """Return the table of mean CPU seconds per fit: entries by data sets; a dash for cells without CPU times."""
    datasets, methods = covered(folder), dict.fromkeys(method for method, _ in planned(folder))
    body = []
    for method in methods:
        rows = [cells(folder, method, dataset) for dataset in datasets]
        found = [[row["fit_cpu_seconds"] for row in each if "fit_cpu_seconds" in row] for each in rows]
        body.append([method, *(f"{np.mean(seconds):.2f}" if seconds else "–" for seconds in found)])
    return table(["CPU seconds", *datasets], body)


def sgld_difference() -> list[str]:
    """Return the table of differences of SGLD from HMC on common splits."""
    folder, datasets = "bnn-sampling", covered("bnn-sampling")
    body = []
    for method in ("SGLD-1", "SGLD-2"):
        for metric in ("rmse", "ll"):
            gaps = [_gaps(cells(folder, method, d), cells(folder, "HMC-1", d), metric) for d in datasets]
            splits = [planned(folder)[method, dataset] for dataset in datasets]
            texts = [_signed(with_error(gap, n)) for gap, n in zip(gaps, splits, strict=True)]
            body.append([f"{method}, {metric.upper()}", *texts])
    return table(["SGLD minus HMC-1", *datasets], body)


def _signed(text: str) -> str:
    """Return a number with its sign; a dash stands for no number."""
    return text if text[0] in "-–" else f"+{text}"


def _gaps(first: Cells, second: Cells, metric: str) -> list[float]:
    """Return the differences on common splits, empty with a single one."""
    other = {row["split"]: row[metric] for row in second}
    found = [row[metric] - other[row["split"]] for row in first if row["split"] in other]
    return found if len(found) > 1 else []


# Papers and methods


def pbp_table_1() -> list[str]:
    """Return the table of PBP's published and computed numbers."""
    rows = {(r["dataset"], r["metric"]): r for r in checked("pbp-table-1") if r["source"] == "hernandez-lobato2015"}
    body = []
    for dataset in dict.fromkeys(name for name, _ in rows):
        line = [dataset]
        for metric in ("rmse", "ll"):
            row = rows[dataset, metric]
            values = [one[metric] for one in cells("pbp-table-1", "PBP", dataset)]
            line += [printed(float(row["published_mean"]), float(row["published_stderr"])), with_error(values, 0)]
        body.append(line)
    return table(["Data set", "RMSE, table 1", "RMSE, ep-bench", "LL, table 1", "LL, ep-bench"], body)


def sparse_boston() -> list[str]:
    """Return the table of sparse Gaussian processes on boston, by us and by the authors' program."""
    rows = cells("dgp", "GP-50", "boston")
    found = {(r["source"], r["metric"]): r["published_mean"] for r in checked("dgp") if r["method"] == "GP-50"
             and r["dataset"] == "boston"}  # fmt: skip
    body = [
        ["`dgp_ep`", *(with_error([row[metric] for row in rows], 20) for metric in ("rmse", "ll"))],
        ["the authors' program", *(found["dgp-program", metric] for metric in ("rmse", "ll"))],
        ["the paper's table", *(found["bui2015", metric] for metric in ("rmse", "ll"))],
    ]
    return table(["Source", "RMSE", "test log-likelihood"], body)


def hmc_mixing() -> list[str]:
    """Return the table of diagnostics of long chains."""
    chains = json.loads((RESULTS / "hmc-mixing" / "curves.json").read_text(encoding="utf-8"))["chains"]
    body = []
    for entry in sorted(chains, key=lambda entry: (entry["dataset"] != "yacht", entry["method"])):
        found = {name: values[0] for name, values in entry["diagnostics"].items()}
        body.append([
            f"{entry['dataset']}, {entry['method']}", f"{found['gradients'] / 1e6:.0f} million",
            f"{found['r_hat_predictions']:.3f}", f"{found['r_hat_test_rows']:.3f}",
            f"{found['ess_bulk_test_rows']:.0f}",
        ])  # fmt: skip
    return table(["", "gradients", "R-hat, monitored", "R-hat, test", "bulk ESS, test"], body)


def ep_restarts() -> list[str]:
    """Return the table of random starts of EP for networks."""
    rows = {(row["dataset"], row["method"]): row for row in summary("nn-ep-restarts")}
    body = []
    for dataset in sorted({name for name, _ in rows}):
        both = [rows[dataset, method] for method in ("NN-EP-LA", "NN-EP-ARD")]
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
        for label in ("NN-EP-LA", "NN-EP-ARD"):
            found = dict(zip(names, arrays[f"found_{i}"][labels.index(label)], strict=True))
            line += [f"{best_of(found['ll'], found['log_evidence'], number):.3f}" for number in (1, 5, 20)]
            line.append(f"{np.std(found['log_evidence']):.1f}")
        body.append(line)
    return table(["", *(f"{p}: {n}" for p in ("Laplace", "ARD") for n in ("1", "5", "20", "evidence, sd"))], body)


def best_of(values: Any, evidences: Any, number: int) -> float:
    """Return the mean, over all choices of ``number`` starts, of the value (R,) of the one of highest evidence (R,)."""
    starts = len(values)
    weights = [math.comb(starts - 1 - place, number - 1) / math.comb(starts, number) for place in range(starts)]
    return float(np.dot(weights, values[np.argsort(-evidences)]))


def ep_scores() -> list[str]:
    """Return the table of scores of EP for networks and of PBP, on data sets with all splits of both priors."""
    names = ("NN-EP-LA", "NN-EP-ARD", "PBP-1")
    body = []
    for dataset in dict.fromkeys(row["dataset"] for row in finished("ep-nn")):
        entries = [("ep-nn" if name != "PBP-1" else "bnn-optimisation", name, dataset) for name in names]
        if all(len(cells(*entry)) == 20 for entry in entries):
            means = [f"{np.mean([row[m] for row in cells(*entry)]):.3f} {convergence(*entry).mark}".strip()
                     for m in ("rmse", "ll") for entry in entries]  # fmt: skip
            body.append([dataset, *means])
    head = ["", "RMSE, Laplace", "ARD", "`pbp`", "test log-likelihood, Laplace", "ARD", "`pbp`"]
    return table(head, body)


def ep_table_1() -> list[str]:
    """Return the table of means over points next to the printed ones."""
    body = []
    for folder in ("nn-ep-table1", "nn-ep-kin40k"):
        rows = {(r["dataset"], r["method"], r["metric"]): r for r in checked(folder)}
        for dataset in dict.fromkeys(row["dataset"] for row in checked(folder)):
            for method, prior in (("NN-EP-LA", "Laplace"), ("NN-EP-ARD", "ARD")):
                both = [rows[dataset, method, metric] for metric in (DENSITY, SQUARE)]
                if int(both[0]["n_splits"]):
                    texts = [f"{float(one['mean']):.3f} ({float(one['published_mean']):.2f})" for one in both]
                    mark = convergence(folder, method, dataset).mark
                    body.append([dataset, f"{prior} {mark}".strip(), *texts])
    return table(["", "prior", "test log-likelihood", "squared error"], body)


def crime() -> list[str]:
    """Return the table of the Gaussian process on communities next to the printed values."""
    whole = [pooled([moments(m, row) for row in cells("nn-ep-table1", "GP", "communities")]) for m in (SQUARE, DENSITY)]
    ours = ["cube root", *(text for one in whole for text in (f"{one.mean:.3f}", f"{one.deviation:.2f}"))]
    head = ["", "squared error: mean", "standard deviation", "log density: mean", "standard deviation"]
    return table(head, [["printed", "0.30", "0.54", "-0.81", "0.91"], ours])


def dgp_training() -> list[str]:
    """Return scores with the training of the released program and with the default one, where all splits are run."""
    folder, body = "dgp-cosine", []
    for (method, dataset), count in planned(folder).items():
        after, before = cells(folder, method, dataset), cells("dgp", method.removesuffix(", cosine"), dataset)
        if len(after) < count or len(before) < count:
            continue
        line = [dataset, method.removesuffix(", cosine")]
        for metric in ("rmse", "ll"):
            line += [with_error([row[metric] for row in rows], count) for rows in (before, after)]
        line.append(_ds_dgp(dataset))
        line += [f"{np.mean([row[name] for row in rows]):.1f}"
                 for rows, name in ((before, "fit_seconds"), (after, "fit_cpu_seconds"))]  # fmt: skip
        body.append([*line, convergence(folder, method, dataset).counts])
    head = ["Data set", "Model", "RMSE, program", "RMSE, default", "LL, program", "LL, default", "LL, DS-DGP"]
    return table([*head, "Seconds, program", "CPU seconds, default", "Splits, default"], body)


def _ds_dgp(dataset: str) -> str:
    """Return the published test log-likelihood of doubly stochastic inference with two layers."""
    for row in rows_of(LATER_TABLES):
        place = tuple(row[name] for name in ("source", "method", "dataset", "metric"))
        if place == ("star-dgp", "DS-DGP (mean-field) L2", dataset, "ll"):
            return printed(float(row["mean"]), float(row["stderr"]))
    return "–"


# Papers: verdicts on all published numbers and claims


PAPERS = {
    "hernandez-lobato2015": ("Hernandez-Lobato and Adams (2015)", "`pbp`, `bp`, `vi_graves`"),
    "jylanki2011": ("Jylanki, Vanhatalo and Vehtari (2011)", "`gp_t`"),
    "jylanki2014": ("Jylanki, Nummenmaa and Vehtari (2014)", "`ep_nn`"),
    "bui2015": ("Bui et al. (2015)", "`dgp_ep`, `hmc`, `sgld`, `vi`"),
    "hernandez-lobato2016": ("Hernandez-Lobato et al. (2016), supplement", "`bb_alpha`"),
}
INCIDENTAL = re.compile(
    r"on |published as|\\d+ of \\d+ splits|standard errors|one split|one of \\d"
)  # parts of reasons
SHOWN = ("reproduced", "better", "worse", "disputed", "incomplete")


VARIATIONS = ("pbp-plain", "dgp-cosine")  # rows with other settings than those that are compared with printed numbers


@cache
def all_results() -> MergedStudies:
    """Return the cells of all committed folders but ``VARIATIONS``, not those of folders that are not committed."""
    listing = subprocess.run(
        ["git", "ls-files", "results/*/results.csv"], cwd=DOCS.parent, capture_output=True, text=True, check=True
    )
    folders = sorted((DOCS.parent / line).parent for line in listing.stdout.splitlines())
    return merge_studies([store.read_intact(folder) for folder in folders if folder.name not in VARIATIONS])


@cache
def comparison() -> pd.DataFrame:
    """Return the comparison of the committed results with all published numbers; a number may have several rows."""
    return merged_check(all_results())


def verdicts(frame: pd.DataFrame) -> list[str]:
    """Return how many published numbers have each of the verdicts ``SHOWN``."""
    found = published.counts(frame)
    return [str(found[verdict]) for verdict in SHOWN]


def papers() -> list[str]:
    """Return the README's table of papers."""
    frame = comparison()
    body = []
    for source, (title, names) in PAPERS.items():
        part = frame[frame["source"] == source]
        counted = verdicts(part) if len(part) else ["–"] * len(SHOWN)
        body.append([f"[{title}](docs/papers/{source}.md)", names, *counted])
    return table(["Paper", "Methods", *(verdict.capitalize() for verdict in SHOWN)], body)


def reproductions() -> list[str]:
    """Return the verdicts by published table, those of other sources included."""
    body = []
    for (source, number), part in comparison().groupby(["source", "table"], sort=True):
        found = published.counts(part)
        name = f"[{source}](papers/{source}.md)" if source in PAPERS else str(source)
        body.append([name, str(number), *verdicts(part), str(found["yardstick"])])
    return table(["Source", "Table", *SHOWN, "yardstick"], body)


def columns_of(source: str) -> list[str]:
    """Return the verdicts by column of the tables of one paper, with the reasons of other verdicts than reproduced."""
    frame = comparison()
    part = frame[frame["source"] == source]
    column = published.COLUMN_NAMES[0]
    body = []
    for (number, name), rows in part.groupby(["table", column], sort=True):
        causes = rows.loc[rows["verdict"].isin(["disputed", "worse"]), "reason"].str.removeprefix("accepted: ")
        parts = [part for cause in causes for part in cause.split("; ") if not INCIDENTAL.match(part)]
        main = [part for part, _ in Counter(parts).most_common(1)]
        body.append([str(number), str(name), *verdicts(rows), "".join(main)])
    return table(["Table", "Column", *SHOWN, "Reason, if disputed or worse"], body)


def claims(verdict: str) -> list[str]:
    """Return the claims of the papers with one verdict."""
    rows = claim_verdicts(all_results(), load_claims(FILE))
    found = [row for row in rows if row["verdict"] == verdict]
    extra = verdict == "not decided"
    body = [[r["source"], r["place"], r["claim"], r["found"] or "–", *[r["reason"]] * extra] for r in found]
    return table(["Paper", "Place", "Claim", "Found", *["Reason"] * extra], body)


# Leaderboard


BOARD = ("bnn-optimisation", "bnn-sampling", "ensemble", "ep-nn", "gp", "dgp")
FIVE = ("boston", "concrete", "energy", "wine", "yacht")


@cache
def board() -> MergedStudies:
    """Return the cells of the studies on the standard splits of the regression sets."""
    return merge_studies([store.read_intact(RESULTS / folder) for folder in BOARD])


@cache
def finished_cells(method: str, dataset: str) -> tuple[Row, ...]:
    """Return the cells of an entry of the leaderboard that ended ok."""
    rows = board().ok()
    return tuple(rows[(rows["method"] == method) & (rows["dataset"] == dataset)].to_dict("records"))


def complete_entries() -> list[str]:
    """Return the entries with all splits of the five data sets."""
    plan = board().planned
    most = {d: max(n for (_, dataset), n in plan.items() if dataset == d) for d in FIVE}
    return [m for m in board().methods if all(len(finished_cells(m, d)) == most[d] for d in FIVE)]


def average_ranks(metric: str, *, higher: bool) -> pd.DataFrame:
    """Return the ranks of the complete entries by data set (1 is best), sorted by their mean."""
    columns = {m: [np.mean([row[metric] for row in finished_cells(m, d)]) for d in FIVE] for m in complete_entries()}
    means = pd.DataFrame(columns, index=list(FIVE))
    ranks = means.rank(axis=1, ascending=not higher)
    return ranks[ranks.mean().sort_values(kind="stable").index]


def leaderboard(metric: str, *, higher: bool = False) -> list[str]:
    """Return the complete entries by average rank over the five data sets, with their means."""
    ranks = average_ranks(metric, higher=higher)
    body = []
    for method in ranks:
        line = [method, f"{ranks[method].mean():.1f}", f"{ranks[method].min():.0f} to {ranks[method].max():.0f}"]
        for dataset in FIVE:
            rows = finished_cells(method, dataset)
            mark = board().convergence.get((method, dataset), ConvergedSplits()).mark
            line.append(with_error([row[metric] for row in rows], 0, mark))
        body.append(line)
    return table(["Entry", "Average rank", "Ranks", *FIVE], body)


def ranking() -> list[str]:
    """Return the average ranks of the complete entries by three scores."""
    scores_ = {"LL": ("ll", True), "RMSE": ("rmse", False), "CRPS": ("crps", False)}
    ranks = {name: average_ranks(metric, higher=higher).mean() for name, (metric, higher) in scores_.items()}
    body = [[method, *(f"{ranks[name][method]:.1f}" for name in scores_)] for method in ranks["LL"].index]
    return table(["Entry", *(f"Average rank by {name}" for name in scores_)], body)


def interval_coverage() -> list[str]:
    """Return the fraction of test targets in central intervals, mean over the five data sets."""
    body = []
    for method in average_ranks("ll", higher=True):
        line = [method]
        for level in (50, 90, 95):
            means = [np.mean([row[f"coverage{level}"] for row in finished_cells(method, d)]) for d in FIVE]
            line.append(f"{np.mean(means):.3f} ({min(means):.2f} to {max(means):.2f})")
        body.append(line)
    return table(["Entry", "50 % interval", "90 % interval", "95 % interval"], body)


def finished_of_planned() -> list[str]:
    """Return the finished and planned splits of every entry on every data set."""
    plan, datasets = board().planned, board().datasets
    body = []
    for method in board().methods:
        numbers = [(len(finished_cells(method, d)), plan.get((method, d), 0)) for d in datasets]
        body.append(
            [method, *("–" if not total else "all" if done == total else f"{done}/{total}" for done, total in numbers)]
        )
    return table(["Entry", *datasets], body)


# Performance


def machines() -> list[str]:
    """Return the machines, revisions and command of every folder with times."""
    body = []
    for study in all_results().studies:
        lock = json.loads((study.folder / "study.lock.json").read_text(encoding="utf-8"))
        found = [one["machine"] for one in lock.get("environments", {}).values() if "machine" in one]
        kinds = dict.fromkeys(f"{one['processor']}, {one['cores']} cores, {one['system']}" for one in found)
        name = study.folder.name
        body.append(
            [f"[{name}](../results/{name})", "; ".join(kinds) or "not recorded", f"`ep-bench report results/{name}`"]
        )
    return table(["Folder", "Machines", "Command that prints the times"], body)


def median_seconds() -> list[str]:
    """Return the median CPU seconds of one fit, search included, on the five data sets."""
    body = []
    for method in complete_entries():
        line = [method]
        for dataset in FIVE:
            times = [row["fit_cpu_seconds"] + (0.0 if pd.isna(row["tune_cpu_seconds"]) else row["tune_cpu_seconds"])
                     for row in finished_cells(method, dataset) if not pd.isna(row["fit_cpu_seconds"])]  # fmt: skip
            line.append(f"{np.median(times):.3g}" if times else "–")
        body.append(line)
    return table(["Entry", *FIVE], body)


# Command line


def commands() -> list[str]:
    """Return the commands with the first sentence of their help."""
    found = [(name, command) for name, command in sorted(cli.commands.items())]
    body = [[f"`ep-bench {name}`", " ".join((command.help or "").split("\n\n")[0].split())] for name, command in found]
    return table(["Command", "Purpose"], body)


def exit_statuses() -> list[str]:
    """Return the exit statuses of the command line."""
    meanings = {
        0: "done",
        EXIT_REGRESSION: "`check`: a published number is not reproduced; `verify`: a stored number is not reproduced",
        EXIT_USAGE: "invalid input",
        EXIT_CELLS: "some cells are not `ok`; `verify`: nothing could be compared",
        EXIT_INTERRUPTED: "interrupted; every finished cell is kept",
    }
    return table(["Exit status", "Meaning"], [[str(number), meaning] for number, meaning in meanings.items()])


# Findings


def check_row(folder: str, **wanted: str) -> dict[str, str]:
    """Return the one row of check.csv with some values."""
    (found,) = (row for row in checked(folder) if all(row[key] == value for key, value in wanted.items()))
    return found


def pbp_details() -> list[str]:
    """Return protein and naval with the settings that give the printed rows, and with those of the text."""
    body = []
    settings = {"protein": ("20 epochs", "40 epochs"), "naval": ("constant 1", "constant 0")}
    for dataset, both in settings.items():
        for folder, method, setting in zip(("pbp-table-1", "pbp-plain"), ("PBP", "PBP-plain"), both, strict=True):
            for metric in ("rmse", "ll"):
                row = check_row(folder, source="hernandez-lobato2015", method=method, dataset=dataset, metric=metric)
                ours = measured(float(row["mean"]), float(row["stderr"]))
                z = f"{float(row['z']):+.1f}"
                body.append([dataset, setting, metric.upper(), row["published_mean"], ours, z, row["verdict"]])
    return table(["Data set", "Setting", "Score", "Printed", "ep-bench", "z", "Verdict"], body)


def exchanged_rows() -> list[str]:
    """Return printed and computed log-likelihoods of australian and pima."""
    body = []
    for method in ("GP", "DGP-1", "DGP-2", "DGP-3"):
        line = [method]
        for dataset in ("australian", "pima"):
            rows = [
                r for r in checked("dgp-classes") if (r["method"], r["dataset"], r["metric"]) == (method, dataset, "ll")
            ]
            as_printed = next(row for row in rows if row["verdict"] == "disputed")
            ours = measured(float(as_printed["mean"]), float(as_printed["stderr"]))
            line += [as_printed["published_mean"], f"{ours} ({as_printed['n_splits']} splits)"]
        body.append(line)
    head = ["Entry", "australian, printed", "australian, ep-bench", "pima, printed", "pima, ep-bench"]
    return table(head, body)


FLOORS = {
    "kin8nm": 0.052,
    "power": 3.1,
    "protein": 3.3,
    "wine": 0.52,
    "year": 8.4,
}  # RMSE, from trials outside this repository
OWN_CODE = ("GP-", "DGP-", "VI(KW)", "SGLD")


def below_floors() -> dict[str, list[float]]:
    """Return the printed RMSEs of the own code of Bui et al. that are below a floor, by data set."""
    rows = rows_of(Path(published.__file__).parent / "tables" / "seed_tables.csv")
    own = [row for row in rows if (row["source"], row["table"], row["metric"]) == ("bui2015", "4", "rmse")
           and row["method"].startswith(OWN_CODE) and row["mean"]]  # fmt: skip
    return {
        d: [float(r["mean"]) for r in own if r["dataset"] == d and float(r["mean"]) < floor]
        for d, floor in FLOORS.items()
    }


def floors() -> list[str]:
    """Return the number of printed RMSEs below each floor, and the best complete entry of the stored results."""
    rows = all_results().ok()
    body = []
    for dataset, values in below_floors().items():
        means = rows[rows["dataset"].str.split(" ").str[0] == dataset].groupby("method")["rmse"].agg(["mean", "count"])
        best = means.sort_values("mean")
        ours = f"{best['mean'].iloc[0]:.3g} ({best.index[0]}, {best['count'].iloc[0]} splits)" if len(best) else "–"
        body.append(
            [dataset, f"{FLOORS[dataset]:g}", f"{len(values)} of 12", f"{min(values):g} to {max(values):g}", ours]
        )
    total = sum(len(values) for values in below_floors().values())
    body.append(["all ten data sets", "", f"{total} of 120", "", ""])
    return table(["Data set", "Floor", "Printed cells below it", "Their values", "Lowest mean stored here"], body)


def power_floor() -> str:
    """Return the RMSE of the exact Gaussian process on split 0 of power, and the number of cells below other floors."""
    (row,) = (one for one in cells("gp", "GP", "power") if one["split"] == 0)
    others = sum(len(values) for dataset, values in below_floors().items() if dataset != "power")
    return (
        f"reaches {row['rmse']:.2f} on split 0 ([gp](../results/gp)). The three cells of power are below that value "
        f"too, but may be possible. Without power, the count is {others}."
    )


def noise_floor() -> list[str]:
    """Return the log-likelihoods of HMC with both noise priors next to the printed ones."""
    body = []
    for dataset in ("energy", "yacht"):
        first = check_row("bnn-sampling", source="bui2015", method="HMC-1", dataset=dataset, metric="ll")
        line = [dataset, first["published_mean"]]
        for method in ("HMC-1", "HMC-1 (b = 2)"):
            rows = cells("bnn-sampling", method, dataset)
            mark = convergence("bnn-sampling", method, dataset).mark
            line.append(with_error([row["ll"] for row in rows], 20, mark))
        body.append(line)
    return table(["Data set", "Printed LL", "b = 0.01", "b = 2"], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "papers": papers,
    "commands": commands,
    "exit-statuses": exit_statuses,
    "pbp-details": pbp_details,
    "exchanged-rows": exchanged_rows,
    "floors": floors,
    "noise-floor": noise_floor,
    "reproductions": reproductions,
    **{
        f"columns-{source}": partial(columns_of, source)
        for source in ("hernandez-lobato2015", "bui2015", "jylanki2014")
    },
    "claims-fail": lambda: claims("does not hold"),
    "claims-hold": lambda: claims("holds"),
    "claims-open": lambda: claims("not decided"),
    "leaderboard-ll": lambda: leaderboard("ll", higher=True),
    "leaderboard-rmse": lambda: leaderboard("rmse"),
    "ranking": ranking,
    "interval-coverage": interval_coverage,
    "finished": finished_of_planned,
    "machines": machines,
    "seconds": median_seconds,
    "optimisation-rmse": lambda: scores("bnn-optimisation", "rmse"),
    "optimisation-ll": lambda: scores("bnn-optimisation", "ll"),
    "sampling-rmse": lambda: scores("bnn-sampling", "rmse", ("PBP-1", "VI-1"), "HMC-1"),
    "sampling-ll": lambda: scores("bnn-sampling", "ll", ("PBP-1", "VI-1"), "HMC-1"),
    "ensemble-rmse": lambda: scores("ensemble", "rmse", (), *DEEP_ENSEMBLE),
    "ensemble-ll": lambda: scores("ensemble", "ll", (), *DEEP_ENSEMBLE),
    "ensemble-seconds": lambda: cpu_seconds("ensemble"),
    "sgld-difference": sgld_difference,
    "pbp-table-1": pbp_table_1,
    "sparse-boston": sparse_boston,
    "dgp-training": dgp_training,
    "hmc-mixing": hmc_mixing,
    "ep-restarts": ep_restarts,
    "ep-best-of": ep_best_of,
    "ep-scores": ep_scores,
    "ep-table-1": ep_table_1,
    "crime": crime,
}


# Sentences


def hmc_unconverged() -> str:
    """Return how many splits of HMC-1 have converged, nearly converged and not converged."""
    datasets = covered("bnn-sampling")
    return sum((convergence("bnn-sampling", "HMC-1", d) for d in datasets), ConvergedSplits()).counts


def hessians() -> str:
    """Return on how many data sets the paired test finds either Hessian of Laplace's approximation better."""
    found = next(row["found"] for row in rows_of(RESULTS / "bnn-sampling" / "claims.csv") if "Hessian" in row["claim"])
    won, lost = (int(re.findall(rf"(\d+) {word}", found)[0]) for word in ("won", "lost"))
    return f"the full Hessian is better on {won} data sets and the diagonal one on {lost}"


def not_worse(folder: str, method: str, source: str, text: str) -> str:
    """Return the text if no published number of a source is missed by the entry on the data sets with all splits."""
    rows = [r for r in checked(folder) if (r["method"], r["source"]) == (method, source)]
    verdicts = {row["verdict"] for row in rows if row["dataset"] in covered(folder)}
    return text if verdicts <= {"reproduced", "better"} else f"{method}: {sorted(verdicts)}"


def paper_order() -> str:
    """Return on how many splits and data sets the order of deep Gaussian processes was computed, best first."""
    names = ["DGP-3-50", "DGP-2-50", "GP-50", "DGP-1-50"]
    places = {(r["dataset"], r["split"]) for r in finished("dgp")}
    orders = []
    for metric, sign in (("rmse", 1.0), ("ll", -1.0)):
        by_place = {(r["method"], r["dataset"], r["split"]): sign * r[metric] for r in finished("dgp")}
        blocks = [p for p in places if all((name, *p) in by_place for name in names)]
        ranks = np.array([[by_place[(name, *p)] for name in names] for p in blocks]).argsort(axis=1).argsort(axis=1)
        orders.append(list(np.argsort(ranks.mean(axis=0))))
    if orders != [[0, 1, 2, 3]] * 2:
        return f"another order of {names}: {orders}"
    return f"{len(blocks)} splits of {_words(len({dataset for dataset, _ in blocks}))} data sets"


def _words(number: int) -> str:
    return {5: "five", 8: "eight", 9: "nine"}.get(number, str(number))


def ep_converged(folder: str, dataset: str) -> tuple[int, int]:
    """Return how many fits of EP for networks on a data set have converged, and how many there are."""
    rows = [row for row in finished(folder) if row["dataset"] == dataset and row["method"].startswith("NN-EP")]
    return sum(judge(row) != "not" for row in rows), len(rows)


def ep_seconds() -> str:
    """Return the range of fitting times of EP for networks on ten folds of boston."""
    seconds = [
        row["fit_seconds"] for name in ("NN-EP-LA", "NN-EP-ARD") for row in cells("nn-ep-table1", name, "boston")
    ]
    return f"{min(seconds):.2f} to {max(seconds):.2f} s"


def times_configurations() -> str:
    """Return the numbers of hyperparameters at which every approximation has a solution."""
    rows = {row["dataset"]: row for row in summary("student-t-times")}
    return ", ".join(f"{rows[name]['configurations']} of 28 ({name})" for name in rows)


def times_r_hat() -> str:
    """Return R-hat of the chains that chose the hyperparameters."""
    return ", ".join(dict.fromkeys(f"{float(row['r_hat']):.2f}" for row in summary("student-t-times")))


def finished_splits(folder: str) -> str:
    """Return the number of finished splits of each entry of a study, if it is the same for all."""
    counts = {len(cells(folder, method, dataset)) for method, dataset in planned(folder)}
    totals = set(planned(folder).values())
    return f"{' or '.join(map(str, sorted(counts)))} of the {totals.pop()} splits"


def ep_counts() -> str:
    """Return how many fits of EP converge on other data sets than boston."""
    yacht, energy = ep_converged("ep-nn", "yacht"), ep_converged("ep-nn", "energy")
    crime_ = ep_converged("nn-ep-table1", "communities")
    return (
        f"{yacht[0]} of {yacht[1]} fits converge on yacht, {energy[0]} of {energy[1]} on energy, "
        f"and {crime_[0]} of {crime_[1]} on communities"
    )


def ep_boston() -> str:
    """Return how many fits of EP converge on boston."""
    splits, folds = ep_converged("ep-nn", "boston"), ep_converged("nn-ep-table1", "boston")
    return f"{splits[0]} of {splits[1]} fits to the standard splits and {folds[0]} of {folds[1]} fits to its ten folds"


def ep_many_inputs() -> str:
    """Return the mean log density of the network with 50 units on kin40k, for the standardised target."""
    rows = cells("nn-ep-kin40k", "NN-EP-ARD-50", "kin40k")
    return f"With 50 units it is at {pooled([moments(DENSITY, row) for row in rows]).mean:.3f} after 400 sweeps"


def ep_first_fold() -> str:
    """Return the test log-likelihood of the first fold of boston: the best one, and at the end."""
    (row,) = (one for one in summary("nn-ep-convergence") if (one["method"], one["fold"]) == ("NN-EP-LA", "0"))
    return f"from {float(row['ll_best']):.2f} after {row['ll_best_after']} sweeps to {float(row['ll']):.2f}"


def dgp_energies() -> str:
    """Return the final energy of GP-50 on yacht with the training of the released program and with the default one."""
    ends = []
    for folder, method in (("dgp", "GP-50"), ("dgp-cosine", "GP-50, cosine")):
        traces = json.loads((RESULTS / folder / "curves.json").read_text(encoding="utf-8"))["traces"]
        (one,) = (trace for trace in traces if (trace["method"], trace["dataset"]) == (method, "yacht"))
        ends.append(f"{one['traces']['objective']['median'][-1]:.2f}")
    return f"changes from {ends[0]} to {ends[1]} nats per data point"


FACTS: list[tuple[str, Callable[[], str]]] = [
    ("networks.md", hmc_unconverged),
    ("networks.md", hessians),
    ("networks.md", lambda: not_worse("bnn-sampling", "HMC-1", "bui2015", "HMC-1 matches or exceeds the published")),
    ("methods/bp.md", lambda: not_worse("bnn-optimisation", "BP-1", "hernandez-lobato2015", "match or exceed")),
    ("methods/vi.md", lambda: not_worse("bnn-optimisation", "VI(G)-1", "hernandez-lobato2015", "match or exceed")),
    ("findings.md", power_floor),
    ("papers/bui2015.md", paper_order),
    ("papers/bui2015.md", dgp_energies),
    ("papers/bui2015.md", lambda: finished_splits("dgp-classes")),
    ("papers/jylanki2011.md", times_configurations),
    ("papers/jylanki2011.md", times_r_hat),
    ("papers/jylanki2014.md", ep_many_inputs),
    ("methods/ep_nn.md", ep_seconds),
    ("methods/ep_nn.md", ep_counts),
    ("methods/ep_nn.md", ep_boston),
    ("methods/ep_nn.md", ep_first_fold),
]


# Pages


def with_tables(text: str) -> str:
    """Return a page with all its tables as they are now."""
    return MARKER.sub(lambda found: found[1] + "".join(f"{line}\n" for line in TABLES[found["name"]]()), text)


def missing_facts() -> list[str]:
    """Return the parts of sentences that are not in their page."""
    pages = {page: " ".join((DOCS / page).read_text(encoding="utf-8").split()) for page, _ in FACTS}
    expected = [(page, fact()) for page, fact in FACTS]
    return [f"docs/{page}: expected {text!r}" for page, text in expected if text not in pages[page]]


def pages() -> list[Path]:
    """Return README and all pages of the documentation."""
    return [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]


def write_schema() -> None:
    """Write the JSON schema of studies that the first line of every study in ``configs/`` names."""
    schema = study_schema(InstalledCatalogue().schema_names())
    text = json.dumps(schema, indent=1, sort_keys=True) + "\n"
    (DOCS.parent / "configs" / "study.schema.json").write_text(text, encoding="utf-8")


def main() -> int:
    """Write all tables and the schema of studies, and print the numbers in sentences that differ from the results."""
    write_schema()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(with_tables(text), encoding="utf-8")
    missing = missing_facts()
    print("\n".join(missing))
    return len(missing) > 0


if __name__ == "__main__":
    sys.exit(main())
