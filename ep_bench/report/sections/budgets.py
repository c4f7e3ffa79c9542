"""Methods at equal budgets: a study whose entries differ only in the number of trials of one search.

Such entries are a family; one without a search has the budget 1, its options. Ranks are those of the single splits,
averaged over the splits of each data set and then over the data sets. Their intervals resample data sets, and splits
within them. Gains are tested as in ``ep-bench compare``: on one data set by the corrected resampled t-test, over all by
a t-test of the means of the data sets. Entries that are recalibrated are compared with the same entry without.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ep_bench.plotting.axes import line_legend, log_axis, small_multiples
from ep_bench.plotting.numbers import with_minus
from ep_bench.plotting.page import Item, Picture, Section, Table, item
from ep_bench.plotting.style import STYLE, finish
from ep_bench.report import pairwise, significance
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import MergedStudies, cpu_seconds, listed
from ep_bench.report.sections import rank_groups
from ep_bench.report.significance import ALPHA, block_ranks, largest_complete_subset
from ep_bench.types import Array

ORDER = 47
SCORES = {"ll": "log-likelihood", "crps": "CRPS"}
DRAWS = 1000
FEWEST = 3  # budgets of a family that is shown
ALLOWED = (1.0, 10.0, 60.0, 300.0)  # CPU seconds of search and fit

Family = Mapping[int, str]  # labels of the entries by their numbers of trials


class BudgetRanks:
    """Ranks of all entries of the families that are complete, by one score.

    ``ranks`` has one row per split of a data set and one column per entry, 1 the best.
    """

    def __init__(self, merged: MergedStudies, families: Mapping[str, Family], score: str) -> None:
        self.score = score
        rows = merged.ok()
        left_out = pairwise.facts(merged, score)["left_out"]
        if set(rows["dataset"]) - set(left_out):
            rows = rows[~rows["dataset"].isin(left_out)]
        scores = rows.pivot_table(score, ["dataset", "split"], "method")
        known = {name: f for name, f in families.items() if set(f.values()) <= set(scores.columns)}
        whole = np.array([scores[list(f.values())].notna().all(axis=1) for f in known.values()]).T
        blocks, places = largest_complete_subset(whole) if len(known) > 1 else ((), ())
        names = list(known)
        self.families = {names[place]: known[names[place]] for place in places}
        self.missing = [name for name in families if name not in self.families]
        labels = [label for f in self.families.values() for label in f.values()]
        kept = scores.iloc[list(blocks)][labels]
        self.values = kept
        self.seconds = rows.assign(cpu=cpu_seconds).groupby("method")["cpu"].mean()

    @cached_property
    def datasets(self) -> list[str]:
        return [str(name) for name in self.values.index.unique("dataset")]

    @cached_property
    def blocks(self) -> str:
        """The data sets and their numbers of splits in words."""
        counts = self.values.groupby(level="dataset").size()
        low, high = counts.min(), counts.max()
        return f"{listed(self.datasets)}, {low if low == high else f'{low} to {high}'} splits each"

    def average(self, labels: Sequence[str]) -> pd.DataFrame:
        """Return the average ranks of entries among each other, with ``low`` and ``high`` of the 95 % interval."""
        ranks = block_ranks(self.values[list(labels)].to_numpy(), higher_is_better=self.score == "ll")
        of_set = [ranks[self.values.index.get_level_values("dataset") == name] for name in self.datasets]
        rng = np.random.default_rng(0)
        drawn = np.array([one[rng.integers(len(one), size=(DRAWS, len(one)))].mean(axis=1) for one in of_set])
        chosen = rng.integers(len(of_set), size=(DRAWS, len(of_set)))
        means = drawn[chosen, np.arange(DRAWS)[:, None]].mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975], axis=0)
        rank = np.mean([one.mean(axis=0) for one in of_set], axis=0)
        return pd.DataFrame({"rank": rank, "low": low, "high": high}, index=list(labels))

    @cached_property
    def joint(self) -> pd.DataFrame:
        """The average ranks of all entries among each other."""
        return self.average(list(self.values.columns))

    def best_within(self, limit: float, names: Collection[str]) -> str:
        """Return the entry of the best joint rank, of some families and with at most so many CPU seconds, if any."""
        labels = [label for name in self.families if name in names for label in self.families[name].values()]
        ranks = self.joint.loc[[label for label in labels if self.seconds[label] <= limit], "rank"]
        return str(ranks.idxmin()) if len(ranks) else ""


def sections(report: ReportContext) -> list[Section]:
    """Return the section, empty for studies without several methods at three budgets or more."""
    families, ranked = found_families(report.entries), ranks_by_score(report)
    if not ranked:
        return []
    tables = [rank_table(one) for one in ranked]
    tables += [gain_table(report.merged, families), *order_tables(report, families)]
    tables += [*recalibration_tables(report.merged, report.entries), within_table(ranked)]
    notes = [f"Without {SCORES[one.score]}, or not complete: {listed(one.missing)}." for one in ranked if one.missing]
    return [Section("budgets", "Equal budgets", pictures=[figure(report, ranked)], tables=tables, notes=notes)]


def ranks_by_score(report: ReportContext) -> list[BudgetRanks]:
    """Return the ranks by each score by which several families can be ranked."""
    families = found_families(report.entries)
    ranked = [BudgetRanks(report.merged, families, score) for score in SCORES if len(families) > 1]
    return [one for one in ranked if len(one.families) > 1]


def found_families(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Family]:
    """Return the families of at least ``FEWEST`` budgets, by the label of the smallest one."""
    searches: dict[str, dict[int, str]] = {}
    for label, entry in entries.items():
        if tune := entry.get("tune"):
            key = _key(entry, {name: value for name, value in tune.items() if name != "trials"})
            searches.setdefault(key, {})[int(tune["trials"])] = label
    fixed = {_key(entry, None): label for label, entry in entries.items() if not entry.get("tune")}
    found: dict[str, Family] = {}
    for one in searches.values():
        entry = entries[next(iter(one.values()))]
        default = fixed.get(_key(entry, None))
        family = dict(sorted(({1: default} if default else {}).items() | one.items()))
        if len(family) >= FEWEST:
            found[next(iter(family.values()))] = family
    return found


def _key(entry: Mapping[str, Any], tune: Any) -> str:
    return json.dumps([entry.get("use"), entry.get("options"), entry.get("recalibrate"), tune], sort_keys=True)


def _budgets(families: Mapping[str, Family]) -> list[int]:
    """Return the budgets that all families have."""
    return sorted(set.intersection(*(set(family) for family in families.values())))


def rank_table(ranks: BudgetRanks) -> Table:
    """Return the ranks of the families at each budget, and the CPU seconds."""
    budgets = _budgets(ranks.families)
    found = {n: ranks.average([family[n] for family in ranks.families.values()]) for n in budgets}
    names = sorted(
        ranks.families, key=lambda name: float(found[budgets[-1]]["rank"][ranks.families[name][budgets[-1]]])
    )
    rows: list[list[str | Item]] = []
    for name in names:
        family = ranks.families[name]
        items = (_rank_items(found[n], family[n], float(ranks.seconds[family[n]])) for n in budgets)
        rows.append([name, *(one for pair in items for one in pair)])
    head = ["method", *(title for n in budgets for title in (_trials(n), "CPU s"))]
    caption = (
        f"Average ranks by {SCORES[ranks.score]} among the methods at the same budget, with 95 % intervals over "
        f"resamples of data sets and splits ({ranks.blocks}), and mean CPU seconds of search and fit"
    )
    return Table(head, rows, caption)


def _trials(n: int) -> str:
    return "defaults" if n == 1 else f"{n} trials"


def _rank_items(found: pd.DataFrame, label: str, seconds: float) -> Iterator[Item]:
    rank, low, high = (float(found[name][label]) for name in ("rank", "low", "high"))
    yield item(f"{rank:.1f}", rank, small=f"{low:.1f} to {high:.1f}")
    yield item(f"{seconds:.2g}" if seconds < 100.0 else f"{seconds:.0f}", float(seconds))


class Gain(NamedTuple):
    """Difference of two entries over data sets, positive if the first is better; NaN without a test."""

    difference: float
    p: float
    better: int  # data sets on which the corrected test finds the first one better
    worse: int
    sets: int

    @property
    def verdict(self) -> str:
        """Return whether the first entry is better over the data sets: ``holds``, ``reversed`` or ``open``."""
        return "open" if not self.p < ALPHA else "holds" if self.difference > 0.0 else "reversed"


def gain(merged: MergedStudies, first: str, second: str, score: str) -> Gain | None:
    """Return the gain of the first entry over the second one, None if no split has both scores."""
    rows = merged.rows[merged.rows["method"].isin([first, second])]
    done = rows[(rows["status"] == "ok") & rows[score].notna()]
    if done.groupby(["dataset", "split"])["method"].nunique().max() != 2:
        return None
    table = pairwise.compare(rows, first, second, score=score, **pairwise.facts(merged, score))
    single = table[(table["dataset"] != pairwise.ALL) & (table["blocks"] > 0)]
    whole = table.iloc[-1]
    sign = 1.0 if score == "ll" else -1.0
    decided = np.sign(sign * single["difference"])[single["p_holm"] < ALPHA]
    better, worse = int((decided > 0).sum()), int((decided < 0).sum())
    return Gain(sign * float(whole["difference"]), float(whole["p"]), better, worse, len(single))


def gain_table(merged: MergedStudies, families: Mapping[str, Family]) -> Table:
    """Return what the searches gain over the options of the entry, by method."""
    budgets = _budgets(families)
    rows: list[list[str | Item]] = []
    for name, family in families.items():
        pairs = [(score, n) for score in SCORES for n in budgets[1:]]
        gains = [gain(merged, family[n], family[budgets[0]], score) for score, n in pairs]
        if any(gains):
            rows.append([name, *map(_gain_item, gains)])
    rows.sort(key=lambda row: 0.0 if isinstance(row[-1], str) else -row[-1]["value"])
    head = ["method", *(f"{title}, {_trials(n)}" for title in ("LL", "CRPS") for n in budgets[1:])]
    caption = (
        f"Gain over the {_trials(budgets[0])}, positive if the search is better: mean over data sets of the difference "
        "in nats, and of the logarithm of the ratio for the CRPS, with the p-value; data sets on which the corrected "
        "t-test finds the search better (+) and worse (−)"
    )
    return Table(head, rows, caption)


def _gain_item(one: Gain | None) -> Item | str:
    if one is None:
        return ""
    p = "" if math.isnan(one.p) else "p < 0.001, " if one.p < 0.001 else f"p = {one.p:.2g}, "
    small = f"{p}{one.better} + and {one.worse} − of {one.sets}"
    return item(with_minus(f"{round(one.difference, 3) + 0.0:+.3f}"), one.difference, strong=one.p < ALPHA, small=small)


def order_tables(report: ReportContext, families: Mapping[str, Family]) -> list[Table]:
    """Return the orders that the studies list with the key ``ranks``, tested at each budget."""
    pairs = [pair for pair in rank_groups.listed_pairs(report.merged) if set(pair) <= families.keys()]
    if not pairs:
        return []
    budgets = _budgets(families)
    columns = {
        (score, n): _corrected([gain(report.merged, families[a][n], families[b][n], score) for a, b in pairs])
        for score in SCORES for n in budgets
    }  # fmt: skip
    rows: list[list[str | Item]] = []
    for place, (first, second) in enumerate(pairs):
        for score, title in SCORES.items():
            found = [columns[score, n][place] for n in budgets]
            if any(found):
                rows.append([f"{first} above {second}", title, *(_order_item(one) for one in found)])
    caption = (
        "Orders of the study at equal budgets: whether the difference of the means over the data sets is significant "
        "at level 0.05, with Holm's correction over the orders at a budget; differences as in the table of gains"
    )
    return [Table(["order", "score", *map(_trials, budgets)], rows, caption)]


def _corrected(gains: Sequence[Gain | None]) -> list[Gain | None]:
    """Return gains with Holm-corrected p-values; those without a test stay as they are."""
    p = significance.holm(np.array([math.nan if one is None else one.p for one in gains]))
    return [one and one._replace(p=value) for one, value in zip(gains, p.tolist(), strict=True)]


def recalibrated_pairs(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Family]:
    """Return the labels of entries without (0) and with (1) recalibration that differ in nothing else, by the first."""
    plain = {_key(entry, entry.get("tune")): label for label, entry in entries.items() if not entry.get("recalibrate")}
    again = {label: entry for label, entry in entries.items() if entry.get("recalibrate")}
    found = {label: plain.get(_key({**one, "recalibrate": None}, one.get("tune"))) for label, one in again.items()}
    return {first: {0: first, 1: label} for label, first in found.items() if first}


def recalibration_tables(merged: MergedStudies, entries: Mapping[str, Mapping[str, Any]]) -> list[Table]:
    """Return what recalibration gains, and the ranks among all such entries before and after it."""
    pairs = recalibrated_pairs(entries)
    ranked = [BudgetRanks(merged, pairs, score) for score in SCORES]
    rows: list[list[str | Item]] = []
    for name, pair in pairs.items():
        items = [one for ranks in ranked for one in _recalibration_items(merged, ranks, pair)]
        if any(items):
            rows.append([name, str(entries[pair[1]]["recalibrate"]["method"]), *items])
    if not rows:
        return []
    rows.sort(key=lambda row: math.inf if isinstance(row[2], str) else -float(row[2]["value"]))
    head = ["entry", "recalibration"]
    head += [text for title in ("LL", "CRPS") for text in (title, "rank before", "rank after")]
    blocks = "; ".join(f"{SCORES[ranks.score]}: {ranks.blocks}" for ranks in ranked if len(ranks.families) > 1)
    caption = (
        "Gain by recalibration, as in the table of gains, and average ranks among these entries, all without and all "
        "with it" + (f" ({blocks})" if blocks else "")
    )
    return [Table(head, rows, caption)]


def _recalibration_items(merged: MergedStudies, ranks: BudgetRanks, pair: Family) -> list[Item | str]:
    """Return the gain of an entry by one score, and its ranks among the entries without and with recalibration."""
    items: list[Item | str] = [_gain_item(gain(merged, pair[1], pair[0], ranks.score))]
    for when, label in pair.items():
        if len(ranks.families) > 1 and pair in ranks.families.values():
            among = ranks.average([one[when] for one in ranks.families.values()])
            items.append(item(f"{among['rank'][label]:.1f}", float(among["rank"][label])))
        else:
            items.append("")
    return items


def _order_item(one: Gain | None) -> Item | str:
    shown = _gain_item(one)
    if one is None or isinstance(shown, str):
        return ""
    return shown | {"text": f"{one.verdict}, {shown['text']}"}


def within_table(ranked: Sequence[BudgetRanks]) -> Table:
    """Return the entry of the best average rank among those whose search and fit take at most some CPU seconds."""
    rows = []
    for limit in ALLOWED:
        row: list[Item | str] = [f"{limit:g} s"]
        for one in ranked:
            best = one.best_within(limit, one.families)
            small = f"rank {one.joint['rank'][best]:.1f}, {one.seconds[best]:.2g} s" if best else ""
            row.append(item(best, best, small=small, kind="word") if best else "")
        rows.append(row)
    caption = "The entry of the best average rank among all entries with at most so many CPU seconds per split"
    return Table(["limit", *(SCORES[one.score] for one in ranked)], rows, caption)


def figure(report: ReportContext, ranked: Sequence[BudgetRanks]) -> Picture:
    """Return average ranks against CPU seconds, one panel per score, the budgets of a method joined by a line."""
    with mpl.rc_context(STYLE):
        drawn, axes = small_multiples(len(ranked))
        width, height = drawn.get_size_inches()
        drawn.set_size_inches(1.3 * width, 2.0 * height)  # for the lines of many methods
        for one, ax in zip(ranked, axes, strict=True):
            _panel(ax, one, report)
        line_legend(drawn, axes, "CPU seconds of search and fit", "average rank, better \N{UPWARDS ARROW}")
    caption = (
        "Average ranks of all entries among each other, with 95 % intervals over resamples of data sets and splits, "
        "against mean CPU seconds of search and fit. A line joins the budgets of a method, from left to right."
    )
    return finish(drawn, "ranks-against-budgets", caption)


def _panel(ax: Axes, ranks: BudgetRanks, report: ReportContext) -> None:
    for name, family in ranks.families.items():
        labels, style = list(family.values()), report.styles[name]
        found = ranks.joint.loc[labels]
        x: Array = ranks.seconds[labels].to_numpy()
        ax.vlines(x, found["low"], found["high"], color=style.colour, linewidth=0.6, alpha=0.5)
        ax.plot(x, found["rank"], style.marker + "-", color=style.colour, markersize=3.5, linewidth=0.9, label=name)
    log_axis(ax)
    ax.invert_yaxis()
    ax.set_title(SCORES[ranks.score])
