"""The leaderboard: methods by average rank over the largest complete subset of the data sets.

Ranks are those of the mean scores over the splits of each data set (Demsar 2006). Their intervals are bootstrap
percentiles: the splits of each data set are drawn with replacement, the same ones for all methods. Means of J splits
then have the variance s^2 / J about, which is too little for splits that overlap. Their distances from the mean are
multiplied, so that it is (1 / J + r) s^2 as in ``paired_tests``.

From ``FEWEST_BLOCKS`` data sets, these are drawn with replacement too. Percentiles of few draws are too narrow; those
of D data sets are expanded as by Hesterberg (2015), What teachers should know about the bootstrap, The American
Statistician 69.

The intervals are spreads of ranks, not confidence intervals of the ranks of the expected scores. If these are close,
resampled ranks tend to the middle, and the intervals often miss them (tests/report/test_leaderboard.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from ep_bench import published
from ep_bench.convergence import DAGGER, ConvergedSplits
from ep_bench.report import significance, summary
from ep_bench.report.merge import MergedStudies, cpu_seconds
from ep_bench.report.scores import Score
from ep_bench.report.significance import FEWEST_BLOCKS, PairedTest, block_ranks
from ep_bench.report.summary import ScoreTable
from ep_bench.types import Array

RESAMPLES = 10_000
CENTRAL = 0.95  # fraction inside the interval of a rank


@dataclass(frozen=True)
class LeaderboardRow:
    """One method. Rank, interval, loss, calibration error and time are NaN for a method that is not ranked.

    The interval is NaN too for few data sets of which one has a single split.

    Attributes
    ----------
    loss : mean over data sets of the loss against the best ranked mean without a dagger, or the best one if all have it
        (negative if an unconverged method is better): a relative difference for scores of which lower is better
        (geometric mean of the ratios), without data sets on which a score is 0; a difference in nats for
        log-likelihoods, without data sets on which they have no upper bound
    calibration : mean calibration error of the PIT over data sets; NaN in classification
    seconds : median CPU seconds of tuning, fit and prediction over splits
    finished, planned : splits with this score, and planned splits, over the chosen data sets
    without : splits that ended ok without this score, such as those of points without a density
    converged : counts of splits over the chosen data sets
    mark : mark of convergence over the ranked data sets; over the chosen ones for a method that is not ranked
    verdicts : number of published values by verdict, worst first
    accepted : number of worse values whose difference the study accepts with a reason
    """

    method: str
    rank: float
    low: float
    high: float
    loss: float
    calibration: float
    seconds: float
    finished: int
    planned: int
    without: int
    converged: ConvergedSplits
    mark: str
    verdicts: Mapping[str, int]
    accepted: int
    tuning: str

    @property
    def label(self) -> str:
        """Return the name of the method with its mark."""
        return self.method + self.mark

    @property
    def finished_text(self) -> str:
        """Return finished and planned splits; those that ended without this score are named."""
        return f"{self.finished}/{self.planned}" + (f", {self.without} without this score" if self.without else "")

    @property
    def verdict_text(self) -> str:
        """Return the verdicts in words, with the number of worse values that are accepted."""
        more = {"worse": f" ({self.accepted} explained)" if self.accepted else ""}
        return ", ".join(f"{count} {verdict}{more.get(verdict, '')}" for verdict, count in self.verdicts.items())


@dataclass(frozen=True)
class Leaderboard:
    """Methods by average rank, then those that are not complete on the data sets of the subset."""

    score: Score
    datasets: tuple[str, ...]
    splits: tuple[int, ...]  # of each of the data sets
    rows: tuple[LeaderboardRow, ...]

    @property
    def ranked(self) -> list[LeaderboardRow]:
        """Return the ranked methods."""
        return [row for row in self.rows if not math.isnan(row.rank)]

    @property
    def best(self) -> LeaderboardRow | None:
        """Return the method of the lowest average rank, None if it has a dagger or nothing is ranked."""
        lowest = min((row.rank for row in self.ranked), default=math.nan)
        return next((row for row in self.ranked if row.rank == lowest and row.mark != DAGGER), None)

    @property
    def is_single(self) -> bool:
        """Return whether there is one data set only, so that ranks are no averages."""
        return len(self.datasets) == 1


def leaderboard(
    merged: MergedStudies,
    table: ScoreTable,
    checks: pd.DataFrame,
    methods: Sequence[str] = (),
    sets: Sequence[str] = (),
) -> Leaderboard:
    """Return the leaderboard of one score; ``methods`` and ``sets`` restrict it to some methods and data sets.

    ``checks`` is the comparison with published numbers (``published_checks.merged_check``).
    """
    rows = [i for i, name in enumerate(table.datasets) if not sets or name in sets]
    columns = [j for j, name in enumerate(table.methods) if not methods or name in methods]
    candidates = table.ranked_rows(rows)
    subset = significance.largest_complete_subset(table.complete[np.ix_(candidates, columns)])
    places = [candidates[i] for i in subset.datasets]  # of the ranked data sets in the table
    datasets = tuple(table.datasets[i] for i in places)
    ranked = [table.methods[columns[j]] for j in subset.methods]
    cells = summary.pivot(merged, table.score)
    scores = [cells.loc[name, ranked].to_numpy(dtype=float) for name in datasets]
    means = np.array([block.mean(axis=0) for block in scores]).reshape(len(datasets), len(ranked))
    tests = [table.tests[i] for i in places]
    numbers = _ranks(scores, means, table.score, tests) | _further(merged, datasets, ranked)
    bounded = [name not in table.unbounded for name in datasets]
    valid = np.array([[table.converged[i][columns[j]].mark != DAGGER for j in subset.methods] for i in places])
    numbers["loss"] = _losses(means[bounded], valid.reshape(means.shape)[bounded], table.score)
    facts = _facts(merged, table, checks, rows, places, ranked)
    found = [_row(table.methods[j], ranked, numbers, facts) for j in columns]
    found.sort(key=_place)
    return Leaderboard(table.score, datasets, tuple(len(block) for block in scores), tuple(found))


def _place(row: LeaderboardRow) -> tuple[float, ...]:
    """Return a key: by rank, methods that have converged before those that have not; then what is not ranked."""
    if math.isnan(row.rank):
        return 2.0, -row.finished / max(row.planned, 1)
    return float(row.mark == DAGGER), row.rank


def _row(
    method: str, ranked: Sequence[str], numbers: Mapping[str, Array], facts: Mapping[str, dict[str, Any]]
) -> LeaderboardRow:
    place = ranked.index(method) if method in ranked else -1
    own: dict[str, Any] = {name: float(values[place]) if place >= 0 else math.nan for name, values in numbers.items()}
    return LeaderboardRow(method, **own, **facts[method])


def _ranks(scores: Sequence[Array], means: Array, score: Score, tests: Sequence[PairedTest]) -> dict[str, Array]:
    """Return average ranks (M,) of means (D, M) and their intervals by bootstrap of the scores, D arrays (J, M).

    A single split has no spread: without a resampling of data sets, the intervals are NaN then.
    """
    if not scores:
        return dict.fromkeys(("rank", "low", "high"), np.array([]))
    higher = score.better == "higher"
    rank = block_ranks(means, higher_is_better=higher).mean(axis=0)
    if min(len(block) for block in scores) < 2 and len(scores) < FEWEST_BLOCKS:
        return {"rank": rank} | dict.fromkeys(("low", "high"), np.full(len(rank), math.nan))
    rng = np.random.default_rng(0)
    drawn = np.empty((RESAMPLES, *means.shape))
    for i, (block, test) in enumerate(zip(scores, tests, strict=True)):
        weights = rng.multinomial(len(block), np.full(len(block), 1.0 / len(block)), RESAMPLES) / len(block)
        resampled = means[i] + _widening(len(block), test) * (weights @ block - means[i])
        drawn[:, i] = block_ranks(resampled, higher_is_better=higher)
    tail = 0.5 - CENTRAL / 2.0
    if (D := len(scores)) >= FEWEST_BLOCKS:
        chosen = rng.integers(D, size=(RESAMPLES, D))
        drawn = np.take_along_axis(drawn, chosen[:, :, None], axis=1)
        tail = float(stats.norm.cdf(math.sqrt(D / (D - 1)) * stats.t.ppf(tail, D - 1)))
    low, high = np.quantile(drawn.mean(axis=1), [tail, 1.0 - tail], axis=0)
    return {"rank": rank, "low": np.minimum(low, rank), "high": np.maximum(high, rank)}


def _widening(J: int, test: PairedTest) -> float:
    """Return the ratio of the standard deviation of the mean of J splits to that of the bootstrap's means."""
    ratio = 0.0 if test.independent else test.ratio
    return math.sqrt((1.0 + ratio * J) * J / (J - 1)) if J > 1 else 0.0


def _losses(means: Array, valid: NDArray[np.bool_], score: Score) -> Array:
    """Return the mean loss (M,) against the best valid mean of each data set (D, M), NaN without data sets.

    The best mean of a data set without valid ones is the best of all.
    Ratios to a best error of 0 do not exist: such data sets are omitted.
    """
    if not means.size:
        return np.full(means.shape[1], math.nan)
    higher = score.better == "higher"
    chosen = valid | ~valid.any(axis=1, keepdims=True)
    worst = -math.inf if higher else math.inf
    best = (np.max if higher else np.min)(np.where(chosen, means, worst), axis=1, keepdims=True)
    if higher:
        return np.asarray((best - means).mean(axis=0))
    used = (best[:, 0] > 0.0) & (means > 0.0).all(axis=1)
    if not used.any():
        return np.full(means.shape[1], math.nan)
    return np.asarray(np.exp(np.log(means[used] / best[used]).mean(axis=0)) - 1.0)


def _further(merged: MergedStudies, datasets: Sequence[str], methods: Sequence[str]) -> dict[str, Array]:
    """Return calibration error and CPU time (M,) of methods on data sets."""
    rows = merged.ok()
    rows = rows[rows["dataset"].isin(list(datasets))]
    errors = rows.groupby(["method", "dataset"])["pit_error"].mean().groupby("method").mean()
    seconds = rows.assign(seconds=cpu_seconds(rows)).groupby("method")["seconds"].median()
    return {
        name: np.array([float(found.get(method, math.nan)) for method in methods])
        for name, found in (("calibration", errors), ("seconds", seconds))
    }


def _facts(
    merged: MergedStudies,
    table: ScoreTable,
    checks: pd.DataFrame,
    rows: Sequence[int],
    ranked_rows: Sequence[int],
    ranked: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """Return what does not depend on ranks, by method: finished splits, convergence, verdicts and tuning.

    Splits are those of the data sets ``rows`` of the table; the ``ranked`` methods have ranks on ``ranked_rows``.
    """
    verdicts: dict[str, Counter[str]] = {}
    checks = published.counted_once(checks)
    explained = checks["reason"].str.startswith(published.ACCEPTED) & (checks["verdict"] == "worse")
    accepted = Counter(checks.loc[explained & (checks["n_splits"] > 0), "method"].astype(str))
    for method, verdict in checks.loc[checks["n_splits"] > 0, ["method", "verdict"]].itertuples(index=False):
        verdicts.setdefault(str(method), Counter())[str(verdict)] += 1
    tuning = tuning_budgets(merged)
    return {
        method: {
            "finished": int(table.n[rows, j].sum()),
            "planned": int(table.planned[rows, j].sum()),
            "without": int(table.without[rows, j].sum()),
            "converged": _converged(table, rows, j),
            "mark": _converged(table, ranked_rows if method in ranked else rows, j).mark,
            "verdicts": {v: verdicts[method][v] for v in published.VERDICTS if verdicts.get(method, Counter())[v]},
            "accepted": accepted[method],
            "tuning": tuning.get(method, "none"),
        }
        for j, method in enumerate(table.methods)
    }


def _converged(table: ScoreTable, rows: Sequence[int], column: int) -> ConvergedSplits:
    return sum((table.converged[i][column] for i in rows), ConvergedSplits())


def tuning_budgets(merged: MergedStudies) -> dict[str, str]:
    """Return the search for options of each method in words: by ``tune``, and by its fits on validation points."""
    found: dict[str, str] = {}
    for study, tag in zip(merged.studies, merged.tags, strict=True):
        for label, entry in study.lock.get("methods", {}).items():
            words = [f"{tune['trials']} trials per split"] if (tune := entry.get("tune")) else []
            words += [f"{chosen} on validation points"] if (chosen := entry.get("validated")) else []
            if words:
                found[merged.names.get((tag, label), label)] = "; ".join(words)
    return found
