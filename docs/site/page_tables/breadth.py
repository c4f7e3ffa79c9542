"""Tables of the studies of many data sets, of learning curves, and of gaps and tails; empty without their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial, wraps

import pandas as pd

from ep_bench.report import orders
from ep_bench.report.context import ReportContext
from ep_bench.report.orders import Order
from ep_bench.report.sections import learning_curves, many_sets, rank_groups
from ep_bench.report.summary import Ranking, ScoreTable

from .forms import NAMES, NONE, table
from .stored import FIVE, LARGE, RESULTS, merged

NINE = (*FIVE, *LARGE)
SMALL = 2000  # data points
SCORES = ("ll", "rmse")
SHIFTS = {"gap": "gap-public", "tails": "tails"}
Lines = list[str]


def of(*folders: str) -> Callable[[Callable[[], Lines]], Callable[[], Lines]]:
    """Make a table empty if one of the folders has no results."""

    def wrap(make: Callable[[], Lines]) -> Callable[[], Lines]:
        @wraps(make)
        def made() -> Lines:
            return make() if all((RESULTS / folder).is_dir() for folder in folders) else []

        return made

    return wrap


@cache
def _report(folder: str) -> ReportContext:
    return ReportContext(merged(folder))


def _table(score: str, folder: str = "breadth") -> ScoreTable:
    return next(one.table for one in _report(folder).scores if one.score.name == score)


@of("breadth")
def coverage() -> Lines:
    """Return on how many of the data sets each method is complete."""
    found, sizes = _table("rmse"), _report("breadth").merged.sizes
    others = [name for name in found.datasets if name not in NINE]
    groups = [
        list(NINE),
        [name for name in others if sizes[name] < SMALL],
        [name for name in others if sizes[name] >= SMALL],
        list(found.datasets),
    ]
    whole = pd.DataFrame(found.complete, found.datasets, found.methods)
    body = [[method, *(f"{whole.loc[part, method].sum()} of {len(part)}" for part in groups)] for method in whole]
    return table(["Method", "Sets of the papers", "Others below 2,000 points", "Others above", "All"], body)


@of("breadth")
def decided() -> Lines:
    """Return how many pairs of the methods of the papers tests decide on nine data sets and on all."""
    (group,) = rank_groups.collect(_report("breadth").merged)
    body = []
    for one in group.ranks:
        found = _table(one.ours.score.name)
        ranking, means = many_sets.bounded(one.ours, found), orders.set_means(found)
        pairs = many_sets.all_pairs(ranking)
        body.append([
            NAMES[found.score.name], str(len(pairs)), *map(_nemenyi, (orders.restricted(ranking, NINE), ranking)),
            *(_wilcoxon(orders.orders(part, pairs)) for part in (means[means.index.isin(NINE)], means)),
        ])  # fmt: skip
    tests = ["Nemenyi, sets of the papers", "Nemenyi, all", "Each pair, sets of the papers", "Each pair, all"]
    return table(["Score", "Pairs", *tests], body)


def _nemenyi(ranking: Ranking) -> str:
    return f"{orders.decided(ranking, ranking.n)[0]:.0f} (N = {ranking.n})"


def _wilcoxon(found: Sequence[Order]) -> str:
    sizes = [len(one.differences) for one in found]
    return f"{sum(one.verdict != 'open' for one in found)} (N = {min(sizes)} to {max(sizes)})"


@of("breadth")
def stated_orders() -> Lines:
    """Return what nine data sets and all decide about the orders that papers state."""
    pairs = many_sets.pairs_of(_report("breadth"))
    columns = []
    for means in (orders.set_means(_table(score)) for score in SCORES):
        columns += [orders.orders(part, pairs) for part in (means[means.index.isin(NINE)], means)]
    body = [[f"{row[0].first} above {row[0].second}", *map(_verdict, row)] for row in zip(*columns, strict=True)]
    return table(["Order", *(f"{NAMES[s]}, {which}" for s in SCORES for which in ("sets of the papers", "all"))], body)


def _verdict(one: Order) -> str:
    return f"{one.verdict}, {one.wins} of {len(one.differences)}" if len(one.differences) else NONE


@of("small-n")
def small_n() -> Lines:
    """Return the best methods by data set and number of training points."""
    report, body, numbers = _report("small-n"), [], []
    for score in SCORES:
        best = learning_curves.best_table(_table(score, "small-n"), learning_curves.curves_of(report))
        numbers = list(best.head[1:])
        body += [[row[0], NAMES[score], *(entry["text"] if entry else NONE for entry in row[1:])] for row in best.rows]
    finished = [row for row in body if set(row[2:]) != {NONE}]
    return table(["Data set", "Score", *numbers], sorted(finished, key=lambda row: row[0]))


@of(*SHIFTS.values())
def shifts(column: str = "coverage95") -> Lines:
    """Return the coverage of 95 % intervals in gaps and in tails."""
    means = {
        name: merged(folder).ok().groupby(["method", "dataset"], sort=False)[column].mean()
        for name, folder in SHIFTS.items()
    }
    places = pd.MultiIndex.from_tuples([place for one in means.values() for place in one.index])
    datasets = [name for name in merged("tails").datasets if name in places.unique(1)]
    body = [
        [method, *(" / ".join(_percent(one.get((method, name))) for one in means.values()) for name in datasets)]
        for method in merged("tails").methods
        if method in places.unique(0)
    ]
    return table(["Gap / tails", *datasets], body)


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.0%}"


TABLES: dict[str, Callable[[], Lines]] = {
    "breadth-coverage": coverage,
    "breadth-decided": decided,
    "breadth-orders": stated_orders,
    "small-n": small_n,
    "gap-tails": partial(shifts),
}
