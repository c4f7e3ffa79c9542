"""Tables of the study of many data sets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache

import pandas as pd

from ep_bench.report.context import ReportContext
from ep_bench.report.sections import many_sets, rank_groups
from ep_bench.report.sections.many_sets import Order
from ep_bench.report.sections.missing_cells import gaps
from ep_bench.report.summary import Ranking, ScoreTable

from .forms import NAMES, NONE, table
from .stored import FIVE, LARGE, merged

NINE = (*FIVE, *LARGE)
SCORES = ("ll", "rmse")
SIZES = (("below 300", 0, 300), ("300 to 2,000", 300, 2000), ("2,000 to 10,000", 2000, 10000), ("more", 10000, 10**9))
Lines = list[str]
Place = tuple[str, str]  # method and data set


@cache
def _report() -> ReportContext:
    return ReportContext(merged("breadth"))


def _table(score: str) -> ScoreTable:
    return next(one.table for one in _report().scores if one.score.name == score)


def decided() -> Lines:
    """Return how many pairs of the methods of the papers tests decide on nine data sets and on all."""
    (group,) = rank_groups.collect(_report().merged)
    body = []
    for one in group.ranks:
        found = _table(one.ours.score.name)
        ranking, means = one.ours, _with_losses(found)
        pairs = many_sets.all_pairs(ranking)
        body.append([
            NAMES[found.score.name], str(len(pairs)), *map(_nemenyi, (_of_papers(ranking), ranking)),
            *(_wilcoxon(many_sets.orders(part, pairs)) for part in (means[means.index.isin(NINE)], means)),
        ])  # fmt: skip
    tests = ["Nemenyi, sets of the papers", "Nemenyi, all", "Each pair, sets of the papers", "Each pair, all"]
    return table(["Score", "Pairs", *tests], body)


def _with_losses(found: ScoreTable) -> pd.DataFrame:
    return many_sets.with_losses(many_sets.set_means(found), _report().merged)


def _of_papers(ranking: Ranking) -> Ranking:
    kept = [name for name in ranking.datasets if name in NINE]
    return replace(ranking, scores=ranking.scores.loc[kept], datasets=tuple(kept))


def _nemenyi(ranking: Ranking) -> str:
    return f"{many_sets.decided(ranking, ranking.n)[0]:.0f} (N = {ranking.n})"


def _wilcoxon(found: Sequence[Order]) -> str:
    sizes = [len(one.differences) for one in found]
    counts = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else min(sizes)
    return f"{sum(one.verdict != 'open' for one in found)} (N = {counts})"


def by_size() -> Lines:
    """Return the best methods by average rank, of those that are complete on the data sets of a range of sizes."""
    sizes, body = _report().merged.sizes, []
    for title, low, high in SIZES:
        row = [title]
        for means in (many_sets.set_means(_table(score)) for score in SCORES):
            part = means[[low <= sizes[str(name)] < high for name in means.index]].dropna(axis=1)
            ranks = part.rank(axis=1, ascending=False).mean().sort_values()
            best = ", ".join(f"{method} ({rank:.1f})" for method, rank in ranks.head(4).items())
            row += [f"{len(part)}, {len(part.columns)}", best]
        body.append(row)
    head = ["Data points", *(text for s in SCORES for text in ("Sets, methods", f"Best by {NAMES[s]}"))]
    return table(head, body)


def coverage() -> Lines:
    """Return on how many data sets of each range of sizes all splits are finished; a row per group of methods."""
    merged_study, sizes = _report().merged, _report().merged.sizes
    unfinished = {(gap["method"], gap["dataset"]): gap["detail"] for gap in gaps(merged_study)}
    finished = [place for place in merged_study.planned if place not in unfinished]
    failed = [place for place, detail in unfinished.items() if "failed" in detail]
    ranges = [[name for name, n in sizes.items() if low <= n < high] for _, low, high in SIZES]
    rows: dict[tuple[str, ...], list[str]] = {}
    for method in sorted(merged_study.methods, key=lambda one: -_count(finished, one, sizes)):
        counts = [[_count(places, method, names) for places in (finished, failed)] for names in (*ranges, sizes)]
        text = tuple(f"{done}, {not_ok} with failures" if not_ok else str(done) for done, not_ok in counts)
        rows.setdefault(text, []).append(method)
    heads = [
        *(f"{title} ({len(names)})" for (title, *_), names in zip(SIZES, ranges, strict=True)),
        f"All ({len(sizes)})",
    ]
    return table(["Methods", *heads], [[", ".join(row), *text] for text, row in rows.items()])


def _count(places: Iterable[Place], method: str, names: Collection[str]) -> int:
    return sum(found == method and name in names for found, name in places)


def stated_orders() -> Lines:
    """Return what nine data sets and all decide about the orders that papers state; by CRPS, all only."""
    pairs, heads, columns = many_sets.pairs_of(_report()), [], []
    for score in (*SCORES, "crps"):
        means = _with_losses(_table(score))
        parts = {"sets of the papers": means[means.index.isin(NINE)]} if score in SCORES else {}
        for title, part in {**parts, "all": means}.items():
            heads.append(f"{NAMES[score]}, {title}")
            columns.append(many_sets.orders(part, pairs))
    body = [[f"{row[0].first} above {row[0].second}", *map(_verdict, row)] for row in zip(*columns, strict=True)]
    return table(["Order", *heads], body)


def _verdict(one: Order) -> str:
    return f"{one.verdict}, {one.wins} of {len(one.differences)}" if len(one.differences) else NONE


TABLES: dict[str, Callable[[], Lines]] = {
    "breadth-coverage": coverage,
    "breadth-decided": decided,
    "breadth-orders": stated_orders,
    "breadth-sizes": by_size,
}
