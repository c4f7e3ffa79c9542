"""The cells of a report as compact JSON, which the script of the page reads.

Methods, data sets, reasons and statuses are lists; entries refer to them by their indices. Numbers have six digits.
Leaderboards and tests of named subsets (``presets``) are computed here: the script computes ranks, but no tests.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ep_bench.convergence import judge
from ep_bench.plotting.method_style import DEEP, FAMILIES, NETWORKS, PROCESSES, family_of
from ep_bench.report import cell_times, ranks, summary, withheld_diagrams
from ep_bench.report import leaderboard as boards
from ep_bench.report.context import ReportContext
from ep_bench.report.dataset_facts import independent_draws, same_data
from ep_bench.report.leaderboard import Leaderboard
from ep_bench.report.page_traces import page_traces
from ep_bench.report.summary import Ranking, ScoreTable
from ep_bench.report.withheld_diagrams import FEWEST_BLOCKS

SMALL = 2000  # data sets with fewer data points are small
COLUMNS = ("rmse", "ll", "crps", "error_rate", "brier", "pit_error", "coverage95")
CONVERGENCE = ("unknown", "converged", "nearly", "not")
BUI, AS_IN_BUI = "bui2015", "as in Bui et al."
FEWEST_TO_RANK = 2  # methods


def page_data(report: ReportContext) -> str:
    """Return the JSON of a report, empty if there are fewer than two methods or no ranked score."""
    tables = [report.table_of(board.score) for board in report.leaderboards]
    if not tables or len(report.merged.methods) < FEWEST_TO_RANK:
        return ""
    content = _Content(report).as_dict(tables)
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class _Index:
    """Indices of texts, in the order of their first use."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))


class _Content:
    """Parts of the JSON of a report."""

    def __init__(self, report: ReportContext) -> None:
        self.report, self.merged = report, report.merged
        self.methods = {name: place for place, name in enumerate(self.merged.methods)}
        self.datasets = {name: place for place, name in enumerate(self.merged.datasets)}
        self.reasons = _Index()
        self.reasons("")
        self.traces = page_traces(report)
        self.uses, self.tasks, self.sizes = report.entries, report.merged.tasks(), _sizes(report)
        self._ratios = {
            name: 0.0 if test.independent else round(test.ratio, 6)
            for one in report.scores
            for name, test in zip(one.table.datasets, one.table.tests, strict=True)
        }

    def as_dict(self, tables: Sequence[ScoreTable]) -> dict[str, Any]:
        """Return the whole content."""
        columns = [name for name in COLUMNS if self.merged.rows[name].notna().any()]
        return {
            "title": self.report.title,
            "families": list(FAMILIES),
            "methods": [self._method(name) for name in self.methods],
            "datasets": [self._dataset(name) for name in self.datasets],
            "scores": [self._score(table) for table in tables],
            "entries": list(self._entries(columns, _by_score(tables))),
            "reasons": list(self.reasons.texts),
            "published": list(self._published()),
            "presets": list(self._presets(tables)),
        }

    def _method(self, name: str) -> dict[str, Any]:
        style, entry = self.report.styles[name], self.uses.get(name, {})
        facts = next((row for board in self.report.leaderboards for row in board.rows if row.method == name), None)
        return {
            "name": name,
            "mark": self.report.marks.get(name, ""),
            "family": FAMILIES.index(family_of(str(entry.get("use", "")))),
            "colour": style.colour,
            "marker": style.marker,
            "uses": str(entry.get("use", "")),
            "options": json.dumps(entry.get("options") or {}, ensure_ascii=False),
            "tuning": facts.tuning if facts else "none",
            "verdicts": facts.verdict_text if facts else "",
            "wall": name in self.merged.wall_times,
        }

    def _dataset(self, name: str) -> dict[str, Any]:
        planned = max(count for (_, dataset), count in self.merged.planned.items() if dataset == name)
        return {
            "name": name,
            "n": self.sizes.get(name),
            "task": self.tasks.get(name),
            "plan": planned,
            "ratio": self._ratios.get(name, 0.0),
        }

    @staticmethod
    def _score(table: ScoreTable) -> dict[str, Any]:
        score = table.score
        fields = {"key": score.name, "column": score.source, "title": score.title, "axis": score.axis}
        return fields | {"better": score.better, "task": score.task, "unbounded": list(table.unbounded)}

    def _entries(
        self, columns: Sequence[str], by_score: Mapping[tuple[str, str], dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """Yield the cells of each method on each data set.

        ``p`` is the number of planned splits; ``e`` has the scores by which the entry is the best of its data set or
        not distinguished from the best, and ``w`` the splits that ended without a score.
        """
        rows = self.merged.judged_rows
        rows = rows.assign(seconds=cell_times.total(rows))
        groups = dict(iter(rows.groupby(["method", "dataset"], sort=False)))
        for (method, dataset), planned in self.merged.planned.items():
            entry: dict[str, Any] = {"m": self.methods[method], "d": self.datasets[dataset], "p": planned}
            entry |= by_score.get((method, dataset), {})
            if traces := self.traces.get((method, dataset)):
                entry["t"] = traces
            part = groups.get((method, dataset))
            yield entry | (self._cells(part.sort_values("split"), columns) if part is not None else {"s": []})

    def _cells(self, part: pd.DataFrame, columns: Sequence[str]) -> dict[str, Any]:
        """Return the splits of one entry with their scores, seconds, seeds, convergence and reasons."""
        found = self.merged.convergence.get((part["method"].iloc[0], part["dataset"].iloc[0]))
        ok = (part["status"] == "ok").to_numpy()
        cells: dict[str, Any] = {"s": [int(split) for split in part["split"]]}
        for name in (*columns, "seconds"):
            values = [_short(v) if good else None for v, good in zip(part[name].tolist(), ok.tolist(), strict=True)]
            if any(value is not None for value in values):
                cells[name] = values
        if "seed" in part:
            cells["seed"] = [None if pd.isna(seed) else int(seed) for seed in part["seed"]]
        if found is not None:
            counts = [found.converged, found.judged + found.unstated, found.unconverged, found.unstated]
            cells["c"] = counts + [found.by_median] * (found.by_median > 0)
        rows = part.to_dict("records")
        states = [CONVERGENCE.index(judge(row)) for row in rows]
        if any(states):
            cells["v"] = states
        notes = [_note(row) for row in rows]
        return cells | ({"r": [self.reasons(note) for note in notes]} if any(notes) else {})

    def _published(self) -> Iterator[list[Any]]:
        """Yield method, data set, column, source, printed mean and error, our mean, verdict and reason."""
        checks = self.report.checks
        for row in checks[checks["n_splits"] > 0].to_dict("records"):
            if row["method"] in self.methods and row["dataset"] in self.datasets:
                numbers = [_short(row[name]) for name in ("published_mean", "published_stderr", "mean")]
                place = [self.methods[row["method"]], self.datasets[row["dataset"]], row["metric"]]
                reason = row["reason"] if isinstance(row["reason"], str) else ""
                yield [*place, f"{row['source']}, {row['table']}", *numbers, row["verdict"], reason]

    def _presets(self, tables: Sequence[ScoreTable]) -> Iterator[dict[str, Any]]:
        """Yield the named subsets with their leaderboards and tests by score."""
        seen: list[Any] = []
        for name, methods, datasets in self._subsets():
            if len(methods) < FEWEST_TO_RANK or not datasets or (methods, datasets) in seen:
                continue
            seen.append((methods, datasets))
            found = {table.score.name: self._preset(table, methods, datasets) for table in tables}
            indices = {"methods": [self.methods[m] for m in methods], "sets": [self.datasets[d] for d in datasets]}
            yield {"name": name, **indices, "scores": {key: value for key, value in found.items() if value}}

    def _subsets(self) -> Iterator[tuple[str, list[str], list[str]]]:
        methods, datasets = list(self.methods), list(self.datasets)
        family = {name: family_of(str(self.uses.get(name, {}).get("use", ""))) for name in methods}
        yield "all", methods, datasets
        yield "networks", [name for name in methods if family[name] == NETWORKS], datasets
        yield "Gaussian processes", [name for name in methods if family[name] in {PROCESSES, DEEP}], datasets
        yield "small sets", methods, [name for name in datasets if self.sizes.get(name, SMALL) < SMALL]
        groups = [one for group in self.report.rank_groups if group.source == BUI for one in group.standings]
        if groups:  # the largest group of methods that the paper ranks
            largest = max(groups, key=lambda one: len(one.own) * len(one.datasets.datasets))
            yield AS_IN_BUI, [m for m in methods if m in largest.own], list(largest.datasets.datasets)

    def _preset(self, table: ScoreTable, methods: Sequence[str], datasets: Sequence[str]) -> dict[str, Any] | None:
        board = self._board(table, methods, datasets)
        if not board.ranked:
            return None
        rows = [[self.methods[row.method], _short(row.rank), _short(row.low), _short(row.high)] for row in board.ranked]
        sets = [self.datasets[name] for name in board.datasets]
        return {"sets": sets, "rows": rows} | subset_test(self.report, table, board)

    def _board(self, table: ScoreTable, methods: Sequence[str], datasets: Sequence[str]) -> Leaderboard:
        whole = (methods, datasets) == (list(self.methods), list(self.datasets))
        known = (board for board in self.report.leaderboards if whole and board.score == table.score)
        found = next(known, None)
        return found or boards.leaderboard(self.merged, table, self.report.checks, methods, datasets)


def subset_test(report: ReportContext, table: ScoreTable, board: Leaderboard) -> dict[str, Any]:
    """Return the p-values of all pairs by Wilcoxon's tests with Holm's correction or Nemenyi's, or why there are none.

    The blocks are data sets or, if these are too few, splits that are independent draws. If the blocks are too few for
    a rejection by Wilcoxon's tests, Nemenyi's are used.
    """
    if repeated := same_data(report.merged, board.datasets):
        return {"test": f"Not tested: {repeated} contain the same data points."}
    methods = [row.method for row in board.ranked]
    cells = summary.pivot(report.merged, table.score)[methods]
    cells = cells[cells.index.get_level_values("dataset").isin(list(board.datasets))].dropna()
    means = cells.groupby(level="dataset", sort=False).mean()
    draws = set(board.datasets) <= independent_draws(report.merged)
    found = partial(summary.ranking_of, score=table.score, datasets=board.datasets)
    rankings = [found(means, summary.DATASETS), *([found(cells, summary.DRAWS)] if draws else [])]
    for ranking in (one for one in rankings if one.n >= FEWEST_BLOCKS):
        if not ranking.test.p_decisive < ranks.ALPHA:
            return {"test": f"Not tested by pairs: Friedman's test over {ranking.count} does not reject equal ranks."}
        name, p = _pairwise_p(ranking)
        if p is not None:
            values = [[float(f"{value:.3g}") for value in row] for row in p.to_numpy().tolist()]
            return {"test": f"{name} over {ranking.count}.", "p": values}
    return {"test": "Not tested: too few independent blocks for a test of all pairs."}


def _pairwise_p(ranking: Ranking) -> tuple[str, pd.DataFrame | None]:
    """Return the first test of all pairs that is not withheld, with its p-values; None without one."""
    if not withheld_diagrams.wilcoxon(ranking):
        return "Wilcoxon's signed-rank tests with Holm's correction", ranking.wilcoxon
    return "Nemenyi's tests", None if withheld_diagrams.nemenyi(ranking) else ranking.nemenyi


def _by_score(tables: Sequence[ScoreTable]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the keys ``e`` and ``w`` of the entries, by method and data set."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for table in tables:
        for i, j in np.argwhere(table.marked).tolist():
            found.setdefault((table.methods[j], table.datasets[i]), {}).setdefault("e", []).append(table.score.name)
        for i, j in np.argwhere(table.without > 0).tolist():
            splits = found.setdefault((table.methods[j], table.datasets[i]), {}).setdefault("w", {})
            splits[table.score.name] = int(table.without[i, j])
    return found


def _sizes(report: ReportContext) -> dict[str, int]:
    """Return the number of data points of each data set, from its rows."""
    rows = report.merged.ok()
    total = (rows["n_train"].astype(float) + rows["n_test"].astype(float)).groupby(rows["dataset"]).max()
    return {str(name): int(value) for name, value in total.dropna().items()}


def _note(row: Mapping[Any, Any]) -> str:
    """Return status and reason of a cell, empty if it is ok without a remark."""
    reason = row["reason"] if isinstance(row["reason"], str) else ""
    return reason if row["status"] == "ok" else f"{row['status']}: {reason}".rstrip(": ")


def _short(value: Any) -> float | int | None:
    """Return a number with six digits, None if it is missing or not finite."""
    if value is None or not math.isfinite(float(value)):
        return None
    number = float(f"{float(value):.6g}")
    return int(number) if number == round(number) and abs(number) < 1e6 else number
