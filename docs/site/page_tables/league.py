"""Tables of the league: methods at equal budgets of a search, and Bayesian methods against boosted trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from ep_bench.plotting.page import Item, Table
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import cpu_seconds, merge_studies
from ep_bench.report.sections import budgets
from ep_bench.report.sections.budgets import BudgetRanks, Gain
from ep_bench.results import store

from .forms import NONE, table
from .stored import RESULTS

FOLDER = RESULTS / "league"
LARGE = RESULTS / "league-large"
ABSENT = table(["Results"], [["not computed yet: `ep-bench run configs/league.yaml`"]])
LIMITS = (1, 10, 60, 300)  # CPU seconds of search and fit
TREES = ("NGBoost", "CatBoost", "LightGBM", "XGBoost", "Quantile forest", "Extra trees")
OPTIMISED = ("BP", "MVE", "Ensemble")
TITLES = {"ll": "log-likelihood", "crps": "CRPS"}


@cache
def _report(folder: Path) -> ReportContext | None:
    """Return the league as a report has it, None without results."""
    is_there = (folder / store.RESULTS).is_file()
    return ReportContext(merge_studies([store.read_intact(folder)])) if is_there else None


def ranks(score: str, folder: Path = FOLDER) -> list[str]:
    """Return average ranks at each budget by one score."""
    return _first(folder, lambda report: (budgets.rank_table(one) for one in _ranked(report) if one.score == score))


def orders(folder: Path = FOLDER) -> list[str]:
    """Return orders that papers state, tested at each budget."""
    return _first(folder, lambda report: budgets.order_tables(report, budgets.found_families(report.entries)))


def within(folder: Path = FOLDER) -> list[str]:
    """Return the best entries of three groups within limits of CPU time, and the difference of two of them."""
    report = _report(folder)
    if report is None or not (ranked := _ranked(report)):
        return ABSENT
    body = [_within(report, one, limit) for limit in LIMITS for one in ranked]
    return table(["CPU limit", "Score", "Best Bayesian", "Best other network", "Best trees", "Bayesian − trees"], body)


def large(folder: Path = LARGE) -> list[str]:
    """Return scores at the defaults and after the longest search by data set, the lowest mean rank by CRPS first."""
    report = _report(folder)
    if report is None:
        return ABSENT
    families = {
        name: (family[1], family[max(family)]) for name, family in budgets.found_families(report.entries).items()
    }
    rows = report.merged.ok().assign(cpu=cpu_seconds)
    means = rows.groupby(["method", "dataset"])[["ll", "crps", "cpu"]].mean()
    datasets = sorted(set(rows["dataset"]))
    complete = {
        name: pair for name, pair in families.items() if all((p, d) in means.index for p in pair for d in datasets)
    }
    last = pd.DataFrame({name: means["crps"][pair[1]][datasets] for name, pair in complete.items()})
    order = last.rank(axis=1).mean().sort_values(kind="stable").index
    body = [[name, *(cell for d in datasets for cell in _scores(means, complete[name], d))] for name in order]
    head = ("LL", "LL, searched", "CRPS", "CRPS, searched", "CPU s")
    return table(["Method", *(f"{d}: {title}" if title == "LL" else title for d in datasets for title in head)], body)


def _scores(means: pd.DataFrame, pair: tuple[str, str], dataset: str) -> list[str]:
    """Return log-likelihood and CRPS at the defaults and after the search, and the CPU seconds of the latter."""
    first, second = (means.loc[(label, dataset)] for label in pair)
    scores = [NONE if np.isnan(one[name]) else f"{one[name]:.3f}" for name in ("ll", "crps") for one in (first, second)]
    return [*scores, f"{second['cpu']:.0f}"]


def _within(report: ReportContext, ranked: BudgetRanks, limit: int) -> list[str]:
    bayesian = ranked.families.keys() - {*TREES, *OPTIMISED}
    best = [ranked.best_within(limit, names) for names in (bayesian, OPTIMISED, TREES)]
    found = budgets.gain(report.merged, best[0], best[2], ranked.score) if best[0] and best[2] else None
    return [f"{limit} s", TITLES[ranked.score], *(label or NONE for label in best), _difference(found)]


def _difference(found: Gain | None) -> str:
    if found is None:
        return NONE
    return f"{found.difference:+.2f} (p = {found.p:.2g}, {found.better} + and {found.worse} − of {found.sets})"


def _ranked(report: ReportContext) -> list[BudgetRanks]:
    return budgets.ranks_by_score(report)


def _first(folder: Path, make: Callable[[ReportContext], Sequence[Table] | Iterator[Table]]) -> list[str]:
    """Return the lines of the first table that is made from the results; without any, a table that says so."""
    report = _report(folder)
    found = next(iter(make(report)), None) if report else None
    return ABSENT if found is None else table(list(found.head), [list(map(_text, row)) for row in found.rows])


def _text(value: str | Item) -> str:
    """Return the text of an item, with the smaller one in parentheses."""
    if isinstance(value, str):
        return value or NONE
    return value["text"] + (f" ({value['small']})" if value.get("small") else "")


TABLES: Mapping[str, Callable[[], list[str]]] = {
    "league-ranks-ll": lambda: ranks("ll"),
    "league-ranks-crps": lambda: ranks("crps"),
    "league-orders": orders,
    "league-within": within,
    "league-large": large,
}
