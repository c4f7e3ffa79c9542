"""The spread over seeds of studies with several seeds per cell.

The score of a fit is modelled as x_sk = m + a_s + e_sk, with independent effects of the split s and of the seed k on
it. The variance of e is the mean over splits of the variance over seeds (ddof 1). That of a is the variance over splits
of the means over seeds (ddof 1), without the part of e, and at least 0. This is the analysis of variance of one random
factor.

Bouthillier and others (2021), Accounting for variance in machine learning benchmarks, compare such sources of variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from ep_bench.plotting.numbers import readable
from ep_bench.plotting.page import Item, Section, Table, item
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import cpu_seconds
from ep_bench.results import store
from ep_bench.results.store import StudyResults
from ep_bench.types import COLUMNS, Array

ORDER = 115
SCORES = {"ll": "log-likelihood", "rmse": "RMSE", "error_rate": "error rate"}
HEAD = [
    "data set", "method", "score", "mean over splits", "range over seeds", "standard deviation over seeds",
    "standard deviation over splits", "variance due to the seed", "splits", "median CPU seconds per fit",
]  # fmt: skip
CAPTION = (
    "{seeds} seeds per split. Mean ± standard error over splits with one seed each; the range over seeds of the mean "
    "over splits; the standard deviation of single fits over seeds on one split, and that over splits without the "
    "effect of seeds; the fraction of the variance of single fits that is due to the seed. Splits on which a fit is "
    "missing or has failed are left out."
)


class Spread(NamedTuple):
    """Mean and standard deviations of a score over splits and seeds."""

    mean: float
    stderr: float  # of the mean over splits with one seed each
    lowest: float  # over seeds, of the mean over splits
    highest: float
    seed_std: float
    split_std: float
    seed_fraction: float  # of the variance of single fits


def sections(report: ReportContext) -> list[Section]:
    """Return the section of seeds, if a study has several."""
    tables = [table for study in report.merged.studies if study.further_seeds for table in _tables(study)]
    return [Section("seeds", "Spread over seeds", tables=tables)] if tables else []


def _tables(study: StudyResults) -> Iterator[Table]:
    rows = list(_rows(study))
    if rows:
        yield Table(HEAD, rows, f"{study.name}: {CAPTION.format(seeds=study.lock['seeds'])}")


def _rows(study: StudyResults) -> Iterator[list[str | Item]]:
    cells = finished_cells(study).assign(cpu=cpu_seconds)
    for (dataset, method), found in cells.groupby(["dataset", "method"], sort=False):
        for score, name in SCORES.items():
            values = scores_by_seed(found, score, int(study.lock["seeds"]))
            if len(values) > 1:
                cpu = float(found["cpu"].median())
                yield [str(dataset), str(method), name, *_entries(spread(values)), item(str(len(values)), len(values)),
                       item(f"{cpu:.3g}", cpu)]  # fmt: skip


def finished_cells(study: StudyResults) -> pd.DataFrame:
    """Return the rows of the cells that ended ok, with the seed of the study as column ``study_seed``."""
    seeds = {cell["cell"]: cell["factors"]["seed"] for cell in store.lock_cells(study.lock)}
    rows = [row | {"study_seed": seeds[row["cell"]]} for row in study.all_rows if row["status"] == "ok"]
    return pd.DataFrame(rows, columns=[*COLUMNS, "study_seed"])


def scores_by_seed(cells: pd.DataFrame, score: str, seeds: int) -> Array:
    """Return a score (S, K) of the S splits on which all K seeds have it."""
    table = cells.set_index(["split", "study_seed"])[score].unstack().dropna()  # noqa: PD010 one value per place
    return table.to_numpy(dtype=np.float64) if table.shape[1] == seeds else np.empty((0, seeds))


def spread(values: Array) -> Spread:
    """Return the spread of scores (S, K) of S splits with K seeds each, both at least 2."""
    splits, seeds = values.shape
    within = float(values.var(axis=1, ddof=1).mean())
    between = max(float(values.mean(axis=1).var(ddof=1)) - within / seeds, 0.0)
    total, means = within + between, values.mean(axis=0)
    fraction = within / total if total > 0.0 else 0.0
    return Spread(
        float(values.mean()), float(np.sqrt(total / splits)), float(means.min()), float(means.max()),
        float(np.sqrt(within)), float(np.sqrt(between)), fraction,
    )  # fmt: skip


def _entries(found: Spread) -> Iterator[Item]:
    yield item(f"{readable(f'{found.mean:.4g}')} ± {found.stderr:.2g}", found.mean)
    yield item(f"{readable(f'{found.lowest:.4g}')} to {readable(f'{found.highest:.4g}')}", found.highest - found.lowest)
    yield item(f"{found.seed_std:.3g}", found.seed_std)
    yield item(f"{found.split_std:.3g}", found.split_std)
    yield item(f"{found.seed_fraction:.0%}", found.seed_fraction)
