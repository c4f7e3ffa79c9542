"""Tables of the papers of Jylanki et al.: relative times, and spreads over test points next to the printed ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ep_bench import published
from ep_bench.published.claims import ABOUT
from ep_bench.report.sections.point_tables import METRICS, PointTableLine, collect
from ep_bench.report.sections.row_comparison import relative_times
from ep_bench.results import row_scores
from ep_bench.types import Array

from .forms import NONE, Entry, differences, score, table
from .stored import RESULTS, Row, cells, merged, methods_of, stored_study

FIGURE_6 = ("student-t-friedman", "student-t-boston", "student-t-concrete")
SPREADS = ("lpd-std", "lpd-prct1", "se-std", "se-prct99")
DRAWS = 500  # of the bootstrap of a spread
DIFFERENT = " ≠"


def times() -> list[str]:
    """Return the relative times of table 1 of the 2011 paper, as mean and maximum over the data sets."""
    found = relative_times(merged(*FIGURE_6), "LA1")
    if found is None:
        return table(["Method"], [])
    body = []
    for method, ratios in found.ours.items():
        values, printed = list(ratios.values()), found.printed.get(method, {})
        numbers = [f"{value:.2g}" if value < 100 else f"{value:.0f}" for value in (np.mean(values), np.max(values))]
        body.append([method, printed.get("mean", NONE), numbers[0], printed.get("max", NONE), numbers[1]])
    return table(["Time / LA1", "Mean, printed", "Mean, here", "Maximum, printed", "Maximum, here"], body)


def fixed_times() -> list[str]:
    """Return what the times of EP at fixed hyperparameters consist of."""
    with np.load(RESULTS / "student-t-times" / "arrays.npz") as arrays:
        labels, names = [str(one) for one in arrays["labels"]], [str(one) for one in arrays["datasets"]]
        body = [_ep_times(name, *seconds[[labels.index("LA1"), labels.index("EP1")]])
                for name, seconds in zip(names, arrays["seconds"], strict=True)]  # fmt: skip
    head = ["EP1 / LA1", "Mean", "Median", "At the posterior means", "Time of EP in the five slowest", "No solution"]
    return table(head, body)


def _ep_times(name: str, laplace: Array, ep: Array) -> list[str]:
    """Return a row; the first configuration has the posterior means."""
    known = np.isfinite(laplace) & np.isfinite(ep)
    own, unit = ep[known], laplace[known]
    slowest = np.sort(own)[-5:].sum() / own.sum()
    numbers = (own.mean() / unit.mean(), np.median(own / unit), ep[0] / laplace[0])
    return [name, *(f"{value:.2g}" for value in numbers), f"{slowest:.0%}", str(int(np.isnan(ep).sum()))]


def starts() -> list[str]:
    """Return the log-likelihoods of figure 6 of the 2011 paper from our starting points and from the paper's."""
    body = []
    for dataset, folder in (("boston", "student-t-starts"), ("concrete", "student-t-starts-concrete")):
        for label in methods_of(folder):
            before = Entry(f"student-t-{dataset}", label.partition(",")[0])
            ours = (score(one, dataset, "ll") for one in (before._replace(method="GA"), before, Entry(folder, label)))
            body.append([dataset, before.method, *ours])
    return table(["Data set", "Approximation", "Gaussian model", "Our starts", "The paper's starts"], body)


def spreads() -> list[str]:
    """Return spreads over test points and times of table 1 of the 2014 paper, printed numbers in brackets."""
    body = []
    for folder in ("nn-ep-table1", "nn-ep-kin40k"):
        kept = row_scores.read(stored_study(folder).folder)
        (found,) = collect(merged(folder))
        body += [
            [block.dataset, line.method, *_compared(line, cells(folder, line.method, block.dataset), kept)]
            for block in found.blocks for line in block.lines if any(line.printed)
        ]  # fmt: skip
    return table(["Data set", "Model", "LPD std", "LPD 1 %", "SE std", "SE 99 %", "Time"], body)


def _compared(line: PointTableLine, rows: Sequence[Row], kept: Mapping[str, row_scores.Scores]) -> list[str]:
    """Return our numbers with the printed ones, and the mark of those that differ."""
    errors = _errors(rows, kept)
    texts = []
    for metric in (*SPREADS, "cputime-relative"):
        ours, printed = (values[METRICS.index(metric)] for values in (line.ours, line.printed))
        theirs, unit = float(printed), 10.0 ** -len(str(printed).partition(".")[2])
        if metric in SPREADS:
            differs = abs(ours - theirs) > 2.0 * math.sqrt(2.0 * errors[metric] ** 2 + unit**2 / 12.0)
        else:
            differs = not 1.0 / ABOUT <= ours / theirs <= ABOUT
        texts.append(f"{ours:.2f} ({printed}){DIFFERENT * differs}")
    return texts


def _errors(rows: Sequence[Row], kept: Mapping[str, row_scores.Scores]) -> dict[str, float]:
    """Return the standard errors of our spreads, by a bootstrap over test points; NaN without scores of points."""
    scores = published.normalised(rows, kept)
    if scores is None:
        return dict.fromkeys(SPREADS, math.nan)
    density, square = map(np.asarray, scores)
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(DRAWS):
        at = rng.integers(len(density), size=len(density))
        drawn.append(
            [density[at].std(), np.percentile(density[at], 1), square[at].std(), np.percentile(square[at], 99)]
        )
    return dict(zip(SPREADS, np.std(drawn, axis=0).tolist(), strict=True))


def settings_2014() -> list[str]:
    """Return what the settings of section 3.3.1 of the 2014 paper change on boston: both densities, and convergence."""
    folder, dataset = "nn-ep-settings", "boston"
    standard = Entry(folder, "defaults")
    body = []
    for method in methods_of(folder):
        rows, entry = cells(folder, method, dataset), Entry(folder, method)
        densities = [f"{np.mean([row[column] for row in rows]):.2f}" for column in ("train_ll", "ll")]
        tests = [] if entry == standard else differences(standard, entry)
        compared = [f"{tests[0].difference:+.2f}", f"{tests[0].p:.2g}"] if tests else [NONE, NONE]
        numbers = [score(entry, dataset, column) for column in ("converged", "seconds")]
        body.append([method, *densities, *compared, *numbers])
    return table(["Setting", "LL, training", "LL, test", "Difference", "p", "Converged", "CPU s"], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "times-jylanki2011": times,
    "fixed-times-jylanki2011": fixed_times,
    "starts-jylanki2011": starts,
    "spreads-jylanki2014": spreads,
    "settings-jylanki2014": settings_2014,
}
