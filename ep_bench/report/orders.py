"""Orders of two methods over many data sets, and how many pairs of methods the tests decide.

Each data set counts once, with its mean score over splits. A pair of methods is compared on the data sets on which both
are complete, by Wilcoxon's signed-rank test; Holm's correction is over the pairs that are compared together. Scores in
units of the target are compared by their logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ep_bench.report import significance
from ep_bench.report.significance import ALPHA
from ep_bench.report.summary import DATASETS, Ranking, ScoreTable, comparable

MANY = 12  # data sets from which a report has the section of orders
DRAWS = 20  # random subsets of the data sets


class Order(NamedTuple):
    """Two methods on their common data sets.

    Attributes
    ----------
    differences : by data set, positive where the first method is better
    p : Holm-corrected p-value, NaN without a common data set
    """

    first: str
    second: str
    differences: pd.Series[float]
    p: float

    @property
    def wins(self) -> int:
        """Return the number of data sets on which the first method is better."""
        return int((self.differences > 0.0).sum())

    @property
    def verdict(self) -> str:
        """Return whether the first method is better: ``holds``, ``reversed``, or ``open`` if the test does not decide.

        The signed ranks decide about the side, as in the test.
        """
        if not self.p < ALPHA:
            return "open"
        ranks = self.differences.abs().rank()
        return "holds" if float((ranks * np.sign(self.differences)).sum()) > 0.0 else "reversed"


def set_means(table: ScoreTable) -> pd.DataFrame:
    """Return mean scores (D, M) of which higher is better, on the ranked data sets; NaN if an entry is not complete."""
    rows = table.ranked_rows(range(len(table.datasets)))
    means = np.where(table.complete, table.mean, math.nan)[rows]
    frame = pd.DataFrame(means, [table.datasets[i] for i in rows], list(table.methods))
    return comparable(frame, table.score) * (1.0 if table.score.better == "higher" else -1.0)


def orders(means: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> list[Order]:
    """Return the orders of pairs of methods by their means, of which higher is better."""
    known = [(first, second) for first, second in pairs if {first, second} <= set(means.columns)]
    gaps = [(means[first] - means[second]).dropna() for first, second in known]
    p = np.array([float(significance.signed_rank_p(gap.to_numpy()[None])[0]) if len(gap) else math.nan for gap in gaps])
    p[~np.isnan(p)] = significance.holm(p[~np.isnan(p)])
    return [Order(*pair, gap, float(value)) for pair, gap, value in zip(known, gaps, p, strict=True)]


def restricted(ranking: Ranking, names: Collection[str]) -> Ranking:
    """Return a ranking over data sets on those of them with the given names."""
    kept = [name for name in ranking.datasets if name in names]
    return replace(ranking, scores=ranking.scores.loc[kept], datasets=tuple(kept))


def decided(ranking: Ranking, n: int) -> tuple[float, float]:
    """Return how many pairs Nemenyi's and Wilcoxon's tests decide on n of the data sets, means over random subsets."""
    rng = np.random.default_rng(0)
    subsets = [np.arange(ranking.n)] if n == ranking.n else [rng.permutation(ranking.n)[:n] for _ in range(DRAWS)]
    counts = [(_nemenyi(ranking, subset), _wilcoxon(ranking, subset)) for subset in subsets]
    nemenyi, wilcoxon = np.mean(counts, axis=0)
    return float(nemenyi), float(wilcoxon)


def _nemenyi(ranking: Ranking, subset: NDArray[np.int64]) -> int:
    mean = ranking.ranks.to_numpy()[subset].mean(axis=0)
    cd = significance.critical_difference(ranking.q, len(mean), len(subset))
    return int((np.abs(mean[:, None] - mean) > cd).sum()) // 2


def _wilcoxon(ranking: Ranking, subset: NDArray[np.int64]) -> int:
    p = significance.wilcoxon_p(comparable(ranking.scores.iloc[subset], ranking.score))
    return int((p.to_numpy() < ALPHA).sum()) // 2


def with_crps(ll: ScoreTable, crps: ScoreTable, like: Ranking) -> Ranking | None:
    """Return the ranking ``like`` with the data sets on which the log-likelihood has no upper bound, ranked by CRPS.

    None if there is no such data set with the scores of all methods.
    """
    methods = list(like.scores.columns)
    frame = pd.DataFrame(np.where(crps.complete, -crps.mean, math.nan), list(crps.datasets), list(crps.methods))
    names = [name for name in crps.datasets if name in ll.unbounded and name not in ll.unranked]
    more = frame.reindex(names, columns=methods).dropna()
    if more.empty:
        return None
    datasets = (*like.datasets, *map(str, more.index))
    return replace(like, scores=pd.concat([like.scores, more]), datasets=datasets, blocks=DATASETS, incomplete=0)
