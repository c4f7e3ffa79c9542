"""Scores of the earlier and the present version of a method on the five small data sets, with paired differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from ep_bench.report.paired_tests import t_test_p
from ep_bench.results.lock_file import read_provenance
from ep_bench.results.tables import read_rows
from ep_bench.types import UNCONVERGED

from .markdown import enumerated, signed, table, with_error
from .stored import DOCS, FIVE, RESULTS, Row, any_published_number, cells, rows_of, stored_study
from .verdicts import own_numbers

SPLITS = 20
BETTER = {"rmse": -1.0, "ll": 1.0}  # sign of a better difference
ROUNDING = 1e-5  # means and errors below it are differences by rounding
TEST_TO_TRAINING = 1.0 / 9.0  # ratio of the sizes of the standard splits, for the test of overlapping splits
LEVEL = 0.05  # of this test, for differences that sentences call clear
BEHIND = 2.0  # standard errors of the difference from a stored number of others
NONE = "–"
OWN = "ep-bench"  # the source of a yardstick that is an entry of ours


@dataclass(frozen=True)
class Replacement:
    """An entry of a study, the entry that it replaces, and the published method that is its yardstick."""

    folder: str
    method: str
    earlier: str = ""  # an entry of the same study; empty: the rows of this entry in superseded.csv
    source: str = "bui2015"
    printed: str = "HMC-1"
    timed: str = ""  # its name in version-times.csv, by default that of the entry


@dataclass(frozen=True)
class Pair:
    """Rows of both versions on the splits that both have, in the same order."""

    earlier: list[Row]
    present: list[Row]

    def differences(self, metric: str) -> list[float]:
        """Return present minus earlier by split."""
        return [new[metric] - old[metric] for old, new in zip(self.earlier, self.present, strict=True)]

    def gain(self, metric: str) -> tuple[float, float]:
        """Return the mean difference, positive if better, and its standard error (ddof 0)."""
        found = BETTER[metric] * np.array(self.differences(metric))
        return float(found.mean()), float(found.std() / np.sqrt(len(found)))

    def clear_sign(self, metric: str) -> float:
        """Return 1 if the mean is clearly better, -1 if clearly worse, by the corrected resampled t-test, else 0."""
        mean, error = self.gain(metric)
        is_clear = t_test_p(np.array(self.differences(metric)), TEST_TO_TRAINING) < LEVEL
        return float(np.sign(mean)) if is_clear and not _by_rounding(mean, error) else 0.0


@cache
def _replaced(folder: str) -> dict[tuple[str, str, int], Row]:
    """Return the replaced rows that ended ok by method, data set and split.

    Of several, it is that of the last version, and of one version, that of the shortest fit.
    Rows of the first format have no version; they are older than all others.
    """
    origins, _ = read_provenance(stored_study(folder).lock)
    rows = [row for row in read_rows(RESULTS / folder / "superseded.csv") if row["status"] == "ok"]

    def order(row: Row) -> tuple[int, float]:
        return int(origins[row["cell"]].version or 0) if row["cell"] in origins else 0, -row["fit_seconds"]

    return {(row["method"], row["dataset"], int(row["split"])): row for row in sorted(rows, key=order)}


def pair(entry: Replacement, dataset: str) -> Pair:
    """Return the rows of both versions on one data set."""
    present = {int(row["split"]): row for row in cells(entry.folder, entry.method, dataset)}
    if entry.earlier:
        earlier = {int(row["split"]): row for row in cells(entry.folder, entry.earlier, dataset)}
    else:
        replaced = _replaced(entry.folder)
        earlier = {
            split: replaced[entry.method, dataset, split]
            for split in present
            if (entry.method, dataset, split) in replaced
        }
    common = sorted(present.keys() & earlier.keys())
    return Pair([earlier[split] for split in common], [present[split] for split in common])


def compared(entry: Replacement) -> dict[str, Pair]:
    """Return both versions by data set, without data sets that have no earlier rows."""
    found = {dataset: pair(entry, dataset) for dataset in FIVE}
    return {dataset: rows for dataset, rows in found.items() if rows.earlier}


def mean_time(rows: Sequence[Row]) -> str:
    """Return the mean processor time of a fit, or the wall time with a mark if a row has no processor time."""
    known = all(row.get("fit_cpu_seconds") is not None for row in rows)
    mean = np.mean([row["fit_cpu_seconds" if known else "fit_seconds"] for row in rows])
    return f"{mean:.2f}" if known else f"{mean:.2f} wall"


@cache
def seconds_of_versions() -> dict[tuple[str, str], list[str]]:
    """Return the processor times of both versions by entry and data set: one fit each, in one run."""
    rows = rows_of(DOCS / "figures" / "version-times.csv")
    return {(row["entry"], row["dataset"]): [row["earlier"], row["present"]] for row in rows}


def _times(entry: Replacement, dataset: str, found: Pair) -> list[str]:
    """Return the times of both versions: those of one run, or means of the rows."""
    return seconds_of_versions().get((entry.timed or entry.method, dataset)) or [
        mean_time(rows) for rows in (found.earlier, found.present)
    ]


def _yardstick(entry: Replacement, dataset: str, metric: str) -> str:
    """Return the published number that an entry is compared with or that of the exact Gaussian process, or a dash."""
    if entry.source == OWN:
        rows = cells("gp", entry.printed, dataset)
        return _mean(rows, metric) if rows else NONE
    return any_published_number(entry.source, entry.printed, dataset, metric)


def _by_rounding(mean: float, error: float) -> bool:
    return max(abs(mean), error) < ROUNDING


def _is_unconverged(row: Row) -> bool:
    return str(row.get("reason")).startswith(UNCONVERGED)


def _mean(rows: Sequence[Row], metric: str) -> str:
    """Return the mean with its standard error, and a dagger if fits have not converged."""
    return with_error([row[metric] for row in rows], SPLITS, "†" if any(map(_is_unconverged, rows)) else "")


def _scores(found: Pair, metric: str) -> list[str]:
    """Return the means of both versions and their difference, with standard errors."""
    means = [_mean(rows, metric) for rows in (found.earlier, found.present)]
    mean, error = found.gain(metric)
    if _by_rounding(mean, error):
        return [*means, f"below {ROUNDING:.5f}"]
    return [*means, signed(with_error(found.differences(metric), SPLITS))]


def versions(
    entries: Sequence[Replacement], earlier: str = "earlier", present: str = "present", yardstick: str = "published"
) -> list[str]:
    """Return the table of scores and times of both versions; the other arguments are names of columns."""
    known = [metric for metric in BETTER if any(_yardstick(entry, FIVE[0], metric) != NONE for entry in entries)]
    body = []
    for entry in entries:
        for dataset, found in compared(entry).items():
            scores = [text for metric in BETTER for text in _scores(found, metric)]
            times = _times(entry, dataset, found)
            printed = [_yardstick(entry, dataset, metric) for metric in known]
            body.append([entry.method, dataset, *scores, *times, *printed])
    head = ["Entry", "Data set"]
    head += [f"{metric.upper()}, {name}" for metric in BETTER for name in (earlier, present, "difference")]
    head += [f"Seconds, {name}" for name in (earlier, present)]
    return table([*head, *(f"{metric.upper()}, {yardstick}" for metric in known)], body)


def _clear(entry: Replacement, metric: str, sign: float) -> str:
    """Return the data sets whose mean difference is clear, better for a positive sign and worse for a negative one."""
    clear = [dataset for dataset, found in compared(entry).items() if found.clear_sign(metric) == sign]
    return enumerated(clear) or "none"


def zero_scales() -> str:
    """Return on how many splits of wine the scale of the t runs to 0 without and with the check of EP's evidence."""
    found = pair(GP_T[0], "wine")
    zero, now = (
        sum("scale runs to 0" in str(row.get("reason")) for row in rows) for rows in (found.earlier, found.present)
    )
    return (
        f"On {zero} of {len(found.earlier)} splits of wine, the scale ran to 0 without the check. "
        f"With it, it does on {now or 'none'}"
    )


def time_of_check() -> str:
    """Return how much longer searches of GP-t by EP take with the check of the evidence."""
    times = [[float(text) for text in seconds_of_versions()[GP_T[0].method, dataset]] for dataset in FIVE]
    more = [with_check / without - 1.0 for without, with_check in times]
    return f"between {min(more):.0%} and {max(more):.0%} of the time without it"


def unconverged_yacht() -> str:
    """Return how many fits of GP-t by EP have not converged on yacht."""
    found = pair(GP_T[0], "yacht")
    earlier, now = (sum(map(_is_unconverged, rows)) for rows in (found.earlier, found.present))
    return f"{now} of {len(found.present)} fits of EP" if earlier == now else f"{earlier} earlier, {now} now"


def more_starts() -> str:
    """Return the mean log-likelihood of the exact process on yacht with three starts and with 20."""
    found = pair(GP[0], "yacht")
    earlier, now = (np.mean([row["ll"] for row in rows]) for rows in (found.earlier, found.present))
    return f"the mean test log-likelihood of yacht rises from {earlier:.3f} to {now:.3f}"


def clear_differences(entry: Replacement) -> str:
    """Return on which data sets the scores of an entry differ clearly."""
    parts = []
    for metric, better, worse in (("rmse", "RMSE is lower", "higher"), ("ll", "LL is higher", "lower")):
        names = _clear(entry, metric, -1.0)
        rest = "" if names == "none" else f" and {worse} on {names}"
        parts.append(f"{better} on {_clear(entry, metric, 1.0)}{rest}")
    return f"{entry.method}: {'; '.join(parts)}."


def both_worse(entry: Replacement) -> str:
    """Return the data sets on which both scores of an entry are clearly worse, and those where both means are."""
    pairs = {
        name: rows for name, rows in compared(entry).items() if all(rows.gain(metric)[0] < 0.0 for metric in BETTER)
    }
    signs = {name: [rows.clear_sign(metric) for metric in BETTER] for name, rows in pairs.items()}
    clear = [name for name, found in signs.items() if all(found)]
    rest = [name for name in pairs if name not in clear]
    if not clear:
        extent = "but not both clearly" if any(map(any, signs.values())) else "but not clearly"
        return f"Both means of {entry.method} are worse on {enumerated(rest)}, {extent}."
    first = f"Both scores of {entry.method} are clearly worse on {enumerated(clear)}"
    return f"{first}; on {enumerated(rest)}, both means are worse, too." if rest else f"{first}."


def gains_of_restarts() -> str:
    """Return where the best of five fits of EP improves both scores clearly."""
    parts = []
    for entry, prior in zip(EP_NN, ("Laplace", "ARD"), strict=True):
        both = [
            name for name, rows in compared(entry).items() if all(rows.clear_sign(metric) > 0.0 for metric in BETTER)
        ]
        parts.append(f"on {enumerated(both) or 'no data set'} with {prior} priors")
    return f"restarts improve both scores clearly {enumerated(parts)}"


def second_criterion() -> list[str]:
    """Return the table of single fits of EP with the step as criterion, and with the movement of the evidence, too."""
    body = []
    for dataset in FIVE:
        both = pair(EP_NN[0], dataset).earlier, cells("ep-nn-stop", "NN-EP-LA, evidence", dataset)
        converged = [f"{sum(not _is_unconverged(row) for row in rows)} of {len(rows)}" for rows in both]
        scores = [_mean(rows, metric) for metric in BETTER for rows in both]
        body.append([dataset, *converged, *scores])
    names = ("Converged", *(metric.upper() for metric in BETTER))
    return table(["Data set", *(f"{name}, {stop}" for name in names for stop in ("`step`", "`evidence`"))], body)


def behind_later_rmse() -> str:
    """Return on which data sets the RMSE of dropout is higher than the stored one by more than two standard errors."""
    frame = own_numbers()
    frame = frame[(frame["method"] == DROPOUT[0].method) & (frame["source"] == DROPOUT[0].source)]
    rows = frame[(frame["metric"] == "rmse") & (frame["z"] > BEHIND)]
    names, ours, theirs = (rows[name] for name in ("published_dataset", "mean", "published_mean"))
    parts = [f"{n} ({float(a):.3g} and {float(b):.3g})" for n, a, b in zip(names, ours, theirs, strict=True)]
    return f"the RMSE is higher by more than two standard errors on {enumerated(parts)}"


GAL = ("gal-dropout-2018", "MC-dropout-1")
WU = ("wu2019-dvi", "MCVI-1 (mean-field reparam S=10)")
BB_ALPHA = tuple(Replacement("bnn-optimisation", f"BB-alpha {alpha}") for alpha in ("1e-6", "0.5", "1"))
DROPOUT = (Replacement("bnn-optimisation", "Dropout-1", "", *GAL),)
VI = (Replacement("bnn-optimisation", "VI-1 heteroscedastic", "VI-1", *WU),)
VI_STARTS = (
    *(Replacement("bnn-optimisation", name, timed=f"{name}, starts") for name in ("VI-1", "VI-2")),
    Replacement("bnn-optimisation", "VI-1 heteroscedastic", "", *WU, "VI-1 heteroscedastic, starts"),
)
VI_PARTS = tuple(Replacement("vi-parts", f"VI-1, {part}", "VI-1", *WU) for part in ("empirical prior", "noise head"))
DROPOUT_STEPS = tuple(
    Replacement("dropout-steps", f"Dropout-1, {name}", "Dropout-1, step size 0.005", *GAL)
    for name in ("step size 0.001", "program")
)
LAPLACE = tuple(Replacement("bnn-sampling", name) for name in ("LA-full", "LA-diagonal"))
EP_NN = tuple(Replacement("ep-nn", name) for name in ("NN-EP-LA", "NN-EP-ARD"))
GP_T = tuple(Replacement("gp", name, "", OWN, "GP") for name in ("GP-t, EP", "GP-t, Laplace"))
GP = (Replacement("gp", "GP", printed="", timed="GP, starts"),)
ENSEMBLE = tuple(
    Replacement("ensemble", name, "", "lakshminarayanan2017", "Deep ensemble M=5")
    for name in ("Ensemble", "Ensemble adversarial")
)
PAGES = {
    "methods/bb_alpha.md": BB_ALPHA,
    "methods/dropout.md": (*DROPOUT, *DROPOUT_STEPS),
    "methods/vi.md": (*VI, *VI_PARTS, *VI_STARTS),
    "methods/laplace.md": LAPLACE,
    "methods/ep_nn.md": EP_NN,
    "methods/gp.md": GP,
    "methods/gp_t.md": GP_T,
    "methods/ensemble.md": ENSEMBLE,
}
WITH_WORSE = ("BB-alpha 1e-6", "Dropout-1", "VI-1 heteroscedastic", "LA-full", "LA-diagonal", "NN-EP-LA", "NN-EP-ARD")

TABLES: dict[str, Callable[[], list[str]]] = {
    "bb-alpha-versions": partial(versions, BB_ALPHA),
    "dropout-versions": partial(versions, DROPOUT),
    "vi-versions": partial(versions, VI, "VI-1", "heteroscedastic"),
    "vi-parts": partial(versions, VI_PARTS, "VI-1", "entry"),
    "vi-starts": partial(versions, VI_STARTS, "one start", "five starts"),
    "dropout-steps": partial(versions, DROPOUT_STEPS, "step size 0.005", "entry"),
    "laplace-versions": partial(versions, LAPLACE),
    "ep-nn-versions": partial(versions, EP_NN),
    "ep-nn-stop": second_criterion,
    "gp-starts": partial(versions, GP, "3 starts", "20 starts"),
    "gp-t-versions": partial(versions, GP_T, yardstick="exact GP"),
    "ensemble-epochs": partial(versions, ENSEMBLE, "up to 2,000", "up to 10,000"),
}
FACTS: list[tuple[str, Callable[[], str]]] = [
    ("methods/dropout.md", behind_later_rmse),
    ("methods/ep_nn.md", gains_of_restarts),
    ("methods/gp_t.md", zero_scales),
    ("methods/gp.md", more_starts),
    ("methods/gp_t.md", unconverged_yacht),
    ("methods/gp_t.md", time_of_check),
    *((page, partial(clear_differences, entry)) for page, entries in PAGES.items() for entry in entries),
    *(
        (page, partial(both_worse, entry))
        for page, entries in PAGES.items()
        for entry in entries
        if entry.method in WITH_WORSE and entry not in VI_STARTS
    ),
]
