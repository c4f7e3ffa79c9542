"""What many data sets decide: pairs of methods, orders that papers state, and where two methods differ.

The section is in reports of ``MANY`` data sets or more. Its pairs are those that the studies list with the key
``ranks``, or else the best methods against one another.

Each data set counts once, with its mean score over splits. A pair of methods is compared on the data sets on which both
are complete, by Wilcoxon's signed-rank test; Holm's correction is over the pairs that are compared together. If a fit
of one of them failed, this is the largest loss. Scores in units of the target are compared by their logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from ep_bench.plotting.axes import line_legend, small_multiples
from ep_bench.plotting.numbers import with_minus
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.plotting.style import LOOKS, STYLE, finish
from ep_bench.report import significance, summary
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import MergedStudies, listed, same_data
from ep_bench.report.sections import rank_groups
from ep_bench.report.significance import ALPHA
from ep_bench.report.summary import DATASETS, RankedScore, Ranking, ScoreTable, comparable
from ep_bench.types import Array

ORDER = 45
MANY = 12  # data sets from which a report has this section
DRAWS = 20  # random subsets of the data sets
PANELS = 15
COUNTS = (5, 9, 15, 20, 25)  # data sets of the random subsets
TITLES = {"ll": "log-likelihood", "rmse": "RMSE", "crps": "CRPS"}
FEW = 6  # data sets, below which no trend is tested
LINEAR = 0.1  # differences up to which the axis of a figure is linear
TICKS = (-100.0, -10.0, -1.0, -0.1, 0.0, 0.1, 1.0, 10.0, 100.0)
DECADES = [10**power for power in range(1, 9)]
GREY = "0.6"
TESTS = ("Nemenyi", "Wilcoxon, Holm")


class Order(NamedTuple):
    """Two methods on their common data sets.

    Attributes
    ----------
    differences : by data set, positive where the first method is better, infinite where a fit of one failed
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


class Fact(NamedTuple):
    """A property of data sets, with the bounds of its three groups."""

    name: str
    of_sets: Mapping[str, float]
    low: float
    high: float

    def groups(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the title of each group with its data sets."""
        bounds = (-math.inf, self.low, self.high, math.inf)
        titles = (f"below {self.low:g}", f"{self.low:g} to {self.high:g}", f"{self.high:g} or more")
        for title, (low, high) in zip(titles, pairwise(bounds), strict=True):
            yield f"{self.name} {title}", [name for name, value in self.of_sets.items() if low <= value < high]


def sections(report: ReportContext) -> list[Section]:
    """Return the section, empty for fewer than ``MANY`` data sets, and if some contain the same data points."""
    scores = {one.score.source: one for one in report.scores if one.score.name in TITLES}
    datasets = report.merged.datasets
    if "ll" not in scores or len(datasets) < MANY or same_data(report.merged, datasets):
        return []
    pairs = pairs_of(report)
    found = {name: orders(with_losses(set_means(one.table), report.merged), pairs) for name, one in scores.items()}
    properties = facts(report)
    tables = [decided_table(report, scores), order_table(found), fact_table(found["ll"], properties)]
    tables += [trend_table(found, properties)]
    tables += rank_tables(scores)
    pictures = [figure(report, scores["ll"].table, found["ll"])] if found["ll"] else []
    return [Section("many-sets", "Many data sets", pictures=pictures, tables=tables, tables_first=True)]


def pairs_of(report: ReportContext) -> list[tuple[str, str]]:
    """Return the pairs of the groups of the studies, or else the best method by log-likelihood against others."""
    listed_pairs = [pair for group in rank_groups.collect(report.merged) for pair in group.pairs]
    boards = [board for board in report.leaderboards if board.score.source == "ll"]
    best = [row.method for board in boards for row in board.ranked][:5]
    return list(dict.fromkeys(listed_pairs)) or [(best[0], other) for other in best[1:]]


def decided_table(report: ReportContext, scores: Mapping[str, RankedScore]) -> Table:
    """Return how many pairs of methods the tests decide on some of the data sets and on all."""
    ranked = [("all methods", one.headline) for one in scores.values() if one.headline is not None]
    ranked += [
        (group.name, one.ours)
        for group in rank_groups.collect(report.merged)
        for one in group.ranks
        if one.ours.score.source in scores
    ]
    ranked = [(name, one) for name, one in ranked if one.blocks == DATASETS and one.n > 1]
    counts = [n for n in COUNTS if n < max((one.n for _, one in ranked), default=0)]
    rows = []
    for name, ranking in ranked:
        first = [f"{ranking.score.title}, {name}", item(str(k := ranking.test.k), k), item(str(k * (k - 1) // 2))]
        found = {n: decided(ranking, n) for n in (*(n for n in counts if n < ranking.n), ranking.n)}
        for place, test in enumerate(TESTS):
            numbers = [item(f"{found[n][place]:.0f}", found[n][place]) if n in found else "" for n in counts]
            last = item(f"{found[ranking.n][place]:.0f}", small=f"N = {ranking.n}", strong=True)
            rows.append([*first, test, *numbers, last, ""])
        means = with_losses(set_means(scores[ranking.score.source].table), report.merged)
        rows[-1][-1] = _each_pair(orders(means, all_pairs(ranking)))
    caption = (
        "Pairs of methods that tests distinguish at level 0.05, by the number of data sets: means over "
        f"{DRAWS} random subsets, all data sets on which these methods are complete, and for each pair those on which "
        "both are, or one lost by a failed fit"
    )
    return Table(
        ["score", "methods", "pairs", "test", *(f"N = {n}" for n in counts), "all", "each pair"], rows, caption
    )


def all_pairs(ranking: Ranking) -> list[tuple[str, str]]:
    """Return all pairs of the ranked methods."""
    return list(combinations(map(str, ranking.scores.columns), 2))


def _each_pair(found: Sequence[Order]) -> Item:
    sizes = [len(one.differences) for one in found]
    number = sum(one.verdict != "open" for one in found)
    return item(str(number), number, small=f"N = {min(sizes)} to {max(sizes)}")


def order_table(found: Mapping[str, Sequence[Order]]) -> Table:
    """Return what the data sets decide about each pair."""
    by_pair: dict[tuple[str, str], dict[str, Order]] = {}
    for score, ordered in found.items():
        for one in ordered:
            by_pair.setdefault((one.first, one.second), {})[score] = one
    rows = [
        [f"{first} above {second}", *(_verdict(by_score.get(score)) for score in found)]
        for (first, second), by_score in by_pair.items()
    ]
    caption = (
        "Orders of methods on the data sets on which both are complete, or one is and a fit of the other failed, which "
        "is a loss: Wilcoxon's signed-rank test with Holm's correction over the rows; data sets on which the first "
        "method is better, and the p-value"
    )
    return Table(["order", *(TITLES[score] for score in found)], rows, caption)


def _verdict(one: Order | None) -> Item | str:
    if one is None or not len(one.differences):
        return ""
    p = "p < 0.001" if one.p < 0.001 else f"p = {one.p:.2g}"
    return item(f"{one.verdict}, {one.wins} of {len(one.differences)}", one.p, small=p, kind="word")


def facts(report: ReportContext) -> list[Fact]:
    """Return size, inputs and noise of the data sets; noise is the lowest RMSE in standard deviations of the target."""
    merged = report.merged
    inputs = {name: float(entry["d"]) for name, entry, _ in merged.dataset_entries()}
    found = [Fact("N", {name: float(n) for name, n in merged.sizes.items()}, 500, 5000), Fact("inputs", inputs, 8, 16)]
    rows = merged.ok()
    if rows["target_std"].notna().any():
        relative = (rows["rmse"] / rows["target_std"]).groupby([rows["dataset"], rows["method"]]).mean()
        lowest = relative.groupby(level="dataset").min().dropna()
        found.append(Fact("noise", {str(name): float(value) for name, value in lowest.items()}, 0.25, 0.6))
    return found


def fact_table(found: Sequence[Order], properties: Sequence[Fact]) -> Table:
    """Return wins and median differences of each pair in groups of data sets."""
    groups = [group for fact in properties for group in fact.groups()]
    rows = []
    for one in found:
        parts = [one.differences[one.differences.index.isin(names)] for _, names in groups]
        rows.append([f"{one.first} − {one.second}", *(_wins(part) for part in parts)])
    caption = (
        "Log-likelihood by size, number of inputs and noise (lowest RMSE in standard deviations of the target): data "
        "sets on which the first method is better, and the median difference in nats"
    )
    return Table(["pair", *(title for title, _ in groups)], rows, caption)


def trend_table(found: Mapping[str, Sequence[Order]], properties: Sequence[Fact]) -> Table:
    """Return by score and pair the trend of the difference with each property."""
    rows: list[list[str | Item]] = []
    for score, ordered in found.items():
        trends = iter(_trends(ordered, properties))
        rows += [
            [f"{one.first} − {one.second}", TITLES[score], *(_trend(*next(trends)) for _ in properties)]
            for one in ordered
        ]
    caption = (
        "Trends: Spearman's rank correlation, over the data sets, of the difference with size, number of inputs and "
        "noise, with Holm's correction over the trends by a score; positive where the first method gains"
    )
    return Table(["pair", "score", *(fact.name for fact in properties)], rows, caption)


def _trends(found: Sequence[Order], properties: Sequence[Fact]) -> list[tuple[float, float]]:
    """Return rank correlations and corrected p-values, by pair and property; NaN with fewer than ``FEW`` data sets."""
    from scipy.stats import spearmanr

    tested = []
    for one in found:
        for fact in properties:
            joined = pd.DataFrame({"difference": one.differences, "of_set": pd.Series(dict(fact.of_sets))}).dropna()
            enough = len(joined) >= FEW and float(np.ptp(joined["of_set"])) > 0.0
            whole = spearmanr(*joined.to_numpy().T) if enough else (math.nan, math.nan)
            tested.append((float(whole[0]), float(whole[1])))
    p = significance.holm(np.array([one[1] for one in tested]))
    return [(one[0], float(corrected)) for one, corrected in zip(tested, p, strict=True)]


def _trend(correlation: float, p: float) -> Item | str:
    if math.isnan(p):
        return ""
    small = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
    return item(with_minus(f"{correlation:+.2f}"), correlation, small=small, strong=p < ALPHA)


def _wins(part: pd.Series[float]) -> Item | str:
    if part.empty:
        return ""
    wins, median = int((part > 0.0).sum()), float(part.median())
    return item(f"{wins} of {len(part)}", median, small=with_minus(f"{median:+.2f}"))


def rank_tables(scores: Mapping[str, RankedScore]) -> list[Table]:
    """Return average ranks with the data sets on which the log-likelihood has no upper bound, ranked by CRPS."""
    ranking = scores["ll"].headline
    if ranking is None or "crps" not in scores:
        return []
    whole = with_crps(scores["ll"].table, scores["crps"].table, ranking)
    if whole is None:
        return []
    added = [scores["ll"].table.unbounded[name] for name in whole.datasets[ranking.n :]]
    rows = [
        [str(name), *(item(f"{one.mean_ranks[str(name)]:.2f}", one.mean_ranks[str(name)]) for one in (whole, ranking))]
        for name in whole.average.index
    ]
    limits = [f"CD = {one.cd:.2f}, {decided(one, one.n)[0]:.0f} pairs decided" for one in (whole, ranking)]
    caption = (
        f"Average ranks by log-likelihood, and by CRPS on {listed(added)}, on which it has no upper bound "
        f"({limits[0]} by Nemenyi's test); without these ({limits[1]})"
    )
    return [Table(["method", f"all, N = {whole.n}", f"without, N = {ranking.n}"], rows, caption)]


def figure(report: ReportContext, table: ScoreTable, found: Sequence[Order]) -> Picture:
    """Return one panel per pair: the difference on each data set against its number of data points."""
    shown = list(found)[:PANELS]
    cells = summary.pivot(report.merged, table.score)
    with mpl.rc_context(STYLE):
        drawn, axes = small_multiples(len(shown))
        for one, ax in zip(shown, axes, strict=True):
            gaps = (cells[one.first] - cells[one.second]).dropna()
            drawable = one.differences[np.isfinite(one.differences)]
            p = [float(table.test_of(name).p(gaps.loc[name].to_numpy())) for name in drawable.index]
            _panel(ax, one._replace(differences=drawable), np.array(p), report.merged.sizes)
        line_legend(drawn, axes, "data points", "difference of log-likelihoods (nats)")
    caption = (
        "Difference of two methods in mean test log-likelihood on each data set, against its number of data points. "
        "Filled markers: the corrected t-test over the splits distinguishes them at level 0.05, with no correction for "
        f"the number of data sets. The vertical axis is linear within ±{LINEAR:g}."
    )
    return finish(drawn, "differences-by-size", caption)


def _panel(ax: Axes, one: Order, p: Array, sizes: Mapping[str, int]) -> None:
    x = np.array([sizes[str(name)] for name in one.differences.index], dtype=float)
    y = one.differences.to_numpy(dtype=float)
    ax.axhline(0.0, color=GREY, linewidth=0.8)
    for label, side, (colour, marker) in (("first better", y > 0.0, LOOKS[0]), ("second better", y < 0.0, LOOKS[1])):
        for fill, chosen in ((colour, p < ALPHA), ("none", ~(p < ALPHA))):
            place = side & chosen
            ax.plot(x[place], y[place], marker, color=colour, markersize=3.5, markerfacecolor=fill,
                    linestyle="none", label=label + ", not distinguished" * (fill == "none"))  # fmt: skip
    ax.set_yscale("symlog", linthresh=LINEAR, linscale=0.6)
    low, high = ax.get_ylim()
    ax.set_yticks(ticks := [tick for tick in TICKS if low <= tick <= high], [with_minus(f"{tick:g}") for tick in ticks])
    ax.set_xscale("log")
    ax.set_xlim(min(sizes.values()) / 1.5, max(sizes.values()) * 1.5)
    ax.set_xticks(places := [tick for tick in DECADES if ax.get_xlim()[0] < tick < ax.get_xlim()[1]], map(str, places))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
    ax.set_title(f"{one.first}\n− {one.second}", fontsize=7)


# Orders of pairs, and how many pairs the tests decide


def set_means(table: ScoreTable) -> pd.DataFrame:
    """Return mean scores (D, M) of which higher is better, on the ranked data sets; NaN if an entry is not complete."""
    rows = table.ranked_rows(range(len(table.datasets)))
    means = np.where(table.complete, table.mean, math.nan)[rows]
    frame = pd.DataFrame(means, [table.datasets[i] for i in rows], list(table.methods))
    return comparable(frame, table.score) * (1.0 if table.score.better == "higher" else -1.0)


def with_losses(means: pd.DataFrame, merged: MergedStudies) -> pd.DataFrame:
    """Return means in which an entry with a failed fit has -inf, so that it loses against every complete one."""
    failed = merged.rows.loc[merged.rows["status"] != "ok", ["dataset", "method"]].drop_duplicates()
    found = means.copy()
    for dataset, method in failed.itertuples(index=False):
        if dataset in found.index and method in found.columns:
            found.loc[dataset, method] = -math.inf
    return found


def orders(means: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> list[Order]:
    """Return the orders of pairs of methods by their means, of which higher is better."""
    known = [(first, second) for first, second in pairs if {first, second} <= set(means.columns)]
    gaps = [(means[first] - means[second]).dropna() for first, second in known]
    p = np.array([float(significance.signed_rank_p(gap.to_numpy()[None])[0]) if len(gap) else math.nan for gap in gaps])
    return [Order(*pair, gap, float(value)) for pair, gap, value in zip(known, gaps, significance.holm(p), strict=True)]


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
