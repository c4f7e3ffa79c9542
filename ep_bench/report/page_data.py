"""The cells of a report as compact JSON, which the script of the page reads.

Methods, data sets, reasons and statuses are lists; entries refer to them by their indices. Numbers have six digits.
Leaderboards and tests of named subsets (``presets``) are computed here: the script computes ranks, but no tests.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ep_bench.convergence import judge
from ep_bench.plotting.method_style import DEEP, FAMILIES, NETWORKS, PROCESSES, family_of
from ep_bench.report import leaderboard as boards
from ep_bench.report import significance, summary
from ep_bench.report.context import ReportContext
from ep_bench.report.leaderboard import Leaderboard
from ep_bench.report.merge import cpu_seconds, same_data
from ep_bench.report.sections.training_curves import trace_order, trace_words
from ep_bench.report.significance import FEWEST_BLOCKS
from ep_bench.report.summary import ScoreTable
from ep_bench.results import curves

SMALL = 2000  # data sets with fewer data points are small
COLUMNS = ("rmse", "ll", "crps", "error_rate", "brier", "pit_error", "coverage95")
KEPT = ("method", "dataset", "split", "status", "reason", "seed", "seconds", "r_hat", "converged")
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


class _Content:
    """Parts of the JSON of a report."""

    def __init__(self, report: ReportContext) -> None:
        self.report, self.merged = report, report.merged
        self.methods = {name: place for place, name in enumerate(self.merged.methods)}
        self.datasets = {name: place for place, name in enumerate(self.merged.datasets)}
        self.reasons = {"": 0}
        self.traces = page_traces(report)
        self.uses, self.tasks, self.sizes = report.entries, report.merged.tasks(), _sizes(report)

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
            "reasons": list(self.reasons),
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
        }

    def _dataset(self, name: str) -> dict[str, Any]:
        planned = max(count for (_, dataset), count in self.merged.planned.items() if dataset == name)
        return {
            "name": name,
            "n": self.sizes.get(name),
            "task": self.tasks.get(name),
            "plan": planned,
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
        rows = self.merged.rows.assign(seconds=cpu_seconds(self.merged.rows)).sort_values("split")
        groups: defaultdict[tuple[str, str], list[dict[Any, Any]]] = defaultdict(list)
        for row in rows.reindex(columns=[*KEPT, *columns]).to_dict("records"):
            groups[row["method"], row["dataset"]].append(row)
        for (method, dataset), planned in self.merged.planned.items():
            entry: dict[str, Any] = {"m": self.methods[method], "d": self.datasets[dataset], "p": planned}
            entry |= by_score.get((method, dataset), {})
            if traces := self.traces.get((method, dataset)):
                entry["t"] = traces
            part = groups[method, dataset]
            yield entry | (self._cells(part, columns) if part else {"s": []})

    def _cells(self, rows: Sequence[Mapping[Any, Any]], columns: Sequence[str]) -> dict[str, Any]:
        """Return the splits of one entry with their scores, seconds, seeds, convergence and reasons."""
        found = self.merged.convergence.get((rows[0]["method"], rows[0]["dataset"]))
        cells: dict[str, Any] = {"s": [int(row["split"]) for row in rows]}
        for name in (*columns, "seconds"):
            values = [_short(row[name]) if row["status"] == "ok" else None for row in rows]
            if any(value is not None for value in values):
                cells[name] = values
        if any(row["seed"] == row["seed"] for row in rows):
            cells["seed"] = [int(row["seed"]) if row["seed"] == row["seed"] else None for row in rows]
        if found is not None:
            cells["c"] = [found.converged, found.judged, found.unconverged]
        states = [CONVERGENCE.index(judge(row)) for row in rows]
        if any(states):
            cells["v"] = states
        notes = [_note(row) for row in rows]
        return cells | ({"r": [self._place(note) for note in notes]} if any(notes) else {})

    def _place(self, reason: str) -> int:
        """Return the index of a reason, in the order of their first use."""
        return self.reasons.setdefault(reason, len(self.reasons))

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
        return {"sets": sets, "rows": rows, "test": subset_test(self.report, table, board)}

    def _board(self, table: ScoreTable, methods: Sequence[str], datasets: Sequence[str]) -> Leaderboard:
        whole = (methods, datasets) == (list(self.methods), list(self.datasets))
        known = (board for board in self.report.leaderboards if whole and board.score == table.score)
        found = next(known, None)
        return found or boards.leaderboard(self.merged, table, self.report.checks, methods, datasets)


def subset_test(report: ReportContext, table: ScoreTable, board: Leaderboard) -> str:
    """Return the result of Friedman's test of a leaderboard in one sentence, or why there is none.

    The blocks are data sets or, if these are too few, splits that are independent draws.
    """
    if repeated := same_data(report.merged, board.datasets):
        return f"Not tested: {repeated} contain the same data points."
    cells = summary.pivot(report.merged, table.score)[[row.method for row in board.ranked]]
    cells = cells[cells.index.get_level_values("dataset").isin(list(board.datasets))].dropna()
    for ranking in summary.rankings_of(report.merged, table.score, cells, cells):
        if ranking.independent and ranking.n >= FEWEST_BLOCKS:
            rejects = ranking.test.p_decisive < significance.ALPHA
            return f"Friedman's test over {ranking.count} {'rejects' if rejects else 'does not reject'} equal ranks."
    return "Not tested: too few independent blocks."


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


POINTS = 20  # of a trace


def page_traces(report: ReportContext) -> dict[tuple[str, str], list[list[Any]]]:
    """Return lists of title, unit, steps and medians over splits of each quantity, by method and data set.

    Quantities without a title are internal and are omitted.
    """
    cells, entries = report.merged.cells, curves.index(report.curves.traces)
    found: dict[tuple[str, str], list[list[Any]]] = {}
    for place, mine in cells.items():
        entry = curves.find(entries, mine) if mine else None
        if entry is not None:
            names = sorted(filter(trace_words, entry["traces"]), key=trace_order)
            traces = [_trace(name, entry["traces"][name]) for name in names]
            found[place] = [trace for trace in traces if len(trace[2]) > 1]
    return found


def _trace(name: str, summary: dict[str, Any]) -> list[Any]:
    title, unit = trace_words(name) or (name, "")
    epochs = np.asarray(summary["epoch"], dtype=float)
    medians = np.asarray(summary["median"], dtype=float)
    kept = np.unique(np.linspace(0, len(epochs) - 1, POINTS).round().astype(int))
    kept = kept[np.isfinite(medians[kept])]
    return [title, "" if name == "objective" else unit, epochs[kept].astype(int).tolist(),
            [float(f"{value:.4g}") for value in medians[kept].tolist()]]  # fmt: skip
