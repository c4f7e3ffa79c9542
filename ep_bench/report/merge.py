"""Merges results folders into one table of cells, and lists missing cells and remarks.

A report of several folders shows their methods next to each other. A label that occurs in two studies is one column if
the studies agree on every common cell; a cell (identified by its hash) counts once per column. Labels with different
meanings get the study's name appended.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ep_bench.convergence import ConvergedSplits
from ep_bench.report import converged_splits
from ep_bench.results import curves, row_scores, store
from ep_bench.results.writers import sole_writer
from ep_bench.types import MEASURED_COLUMNS, SCORE_COLUMNS, Task

Place = tuple[str, int]  # data set, split
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
TOLERANCE = 1e-9  # relative difference of equal scores
COMPARED = tuple(column for column in SCORE_COLUMNS if column not in MEASURED_COLUMNS)


@dataclass
class MethodColumn:
    """One method of the report: its planned cells by place, each with its hash and, if finished, its row."""

    label: str
    studies: list[str]
    cells: dict[Place, tuple[str, store.Row | None]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # label of the method by study


@dataclass
class MergedStudies:
    """All cells of a report.

    ``rows`` has one line per finished cell, with the labels of the report, and ``wall_times`` where wall times replace
    CPU times that an older version did not store; ``planned`` is the number of cells by
    (method, dataset).
    """

    studies: list[store.StudyResults]
    tags: list[str]  # unique names of the studies
    methods: list[str]
    datasets: list[str]
    rows: pd.DataFrame
    planned: dict[tuple[str, str], int]
    notes: list[str]
    names: dict[tuple[str, str], str] = field(default_factory=dict)  # label in the report, by study and its label
    dataset_names: dict[tuple[str, str], str] = field(default_factory=dict)  # the same of data sets with new names
    wall_times: list[str] = field(default_factory=list)  # methods with rows that have wall times, but no CPU times

    def ok(self) -> pd.DataFrame:
        """Return the rows of the cells that ended ``ok``."""
        return self.rows[self.rows["status"] == "ok"] if len(self.rows) else self.rows

    @property
    def processors(self) -> list[str]:
        """Return the processors on which cells of the studies ran, as the locks name them."""
        environments = [one for study in self.studies for one in (study.lock.get("environments") or {}).values()]
        found = (str((one.get("machine") or {}).get("processor") or "") for one in environments)
        return sorted(set(found) - {""})

    @cached_property
    def curves(self) -> curves.Curves:
        """The curves of all studies. Their hashes of cells identify them, since labels may differ."""
        found = [curves.collect(study.folder, study.rows) for study in self.studies]
        kinds = range(len(curves.Curves._fields))
        return curves.Curves(*([entry for one in found for entry in one[kind]] for kind in kinds))

    @cached_property
    def convergence(self) -> dict[tuple[str, str], ConvergedSplits]:
        """The converged splits by (method, data set)."""
        rows = self.judged_rows
        return converged_splits.count(rows[rows["status"] == "ok"])

    @cached_property
    def judged_rows(self) -> pd.DataFrame:
        """The rows, with what ``curves.json`` has on convergence where an older version did not store it in the row."""
        return converged_splits.completed(self.rows, self.curves, [study.lock for study in self.studies])

    def tasks(self) -> dict[str, Task]:
        """Return the task of each data set with finished cells, from the lock file or, in older ones, the scores."""
        classes = set(self.rows.loc[self.rows["error_rate"].notna(), "dataset"]) | {
            self.dataset_names.get((tag, label), label)
            for study, tag in zip(self.studies, self.tags, strict=True)
            for label, entry in (study.lock.get("datasets") or {}).items()
            if entry.get("task") == "classification"
        }
        return {name: "classification" if name in classes else "regression" for name in self.rows["dataset"].unique()}

    def changed_trees(self) -> dict[str, list[str]]:
        """Return the methods with cells from source code with uncommitted changes, and the revisions of that code."""
        found: dict[str, list[str]] = {}
        origins = {key: origin for study in reversed(self.studies) for key, origin in study.finished.origins.items()}
        for method, cell in self.rows[["method", "cell"]].itertuples(index=False):
            origin = origins.get(cell)
            if origin is not None and origin.changed_tree and origin.revision not in found.setdefault(method, []):
                found[method].append(origin.revision)
        return found

    def published_columns(self) -> dict[str, tuple[str, ...]]:
        """Return the published columns that correspond to each method in some study."""
        found: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for study, tag in zip(self.studies, self.tags, strict=True):
            for label, entry in (study.lock.get("methods") or {}).items():
                found[self.names.get((tag, label), label)] |= dict.fromkeys(entry.get("published") or ())
        return {method: tuple(columns) for method, columns in found.items()}

    @cached_property
    def cells(self) -> dict[tuple[str, str], dict[int, str]]:
        """The hashes of the finished cells by (method, data set) and split."""
        return curves.finished(self.rows[["method", "dataset", "split", "status", "cell"]].to_dict("records"))


def merge(folders: Sequence[Path]) -> MergedStudies:
    """Return the cells of all folders as one table. Raises UserError if a folder has no results."""
    return merge_studies(read(folders))


def read(folders: Sequence[Path]) -> list[store.StudyResults]:
    """Return the results of different folders, whose files are first updated from cell files."""
    different = dict.fromkeys(Path(folder).resolve() for folder in folders)
    stamps = {folder: store.stamps(folder) for folder in different}
    studies = [store.read_intact(folder) for folder in different]
    for study in studies:
        if not stamps[study.folder]:
            continue  # without cell files, the folder has no other curves and scores than those that it stores
        with contextlib.suppress(OSError), sole_writer(study.folder):  # a read-only folder can still be reported
            if store.stamps(study.folder) == stamps[study.folder]:  # otherwise a run will update them, from more cells
                curves.update(study.folder, study.rows)
                row_scores.update(study.folder, study.lock, study.rows)
    return studies


def merge_studies(studies: Sequence[store.StudyResults]) -> MergedStudies:
    """Return the cells of studies as one table. If two studies disagree on a hash, the row of the first is used."""
    notes: list[str] = []
    tags = _tags(studies)
    names = _dataset_names(studies, tags, notes)
    columns: list[MethodColumn] = []
    for study, tag in zip(studies, tags, strict=True):
        for column in _columns(study, tag, names):
            _merge_column(columns, column, notes)
    _disambiguate(columns, notes)
    rows = [
        {
            **row,
            "method": column.label,
            "dataset": place[0],
            "split": place[1],
            "wall_times": _with_cpu_times(row) != row,
        }
        for column in columns
        for place, (_, row) in column.cells.items()
        if row is not None
    ]
    planned = Counter((column.label, dataset) for column in columns for dataset, _ in column.cells)
    return MergedStudies(
        studies=list(studies),
        tags=tags,
        methods=[column.label for column in columns],
        datasets=list(dict.fromkeys(dataset for column in columns for dataset, _ in column.cells)),
        rows=_frame([_with_cpu_times(row) for row in rows]),
        planned=dict(planned),
        notes=notes,
        names={(tag, label): column.label for column in columns for tag, label in column.labels.items()},
        dataset_names=names,
        wall_times=list(dict.fromkeys(row["method"] for row in rows if row["wall_times"])),
    )


def _with_cpu_times(row: store.Row) -> store.Row:
    """Return a row with its wall times as CPU times, where an older version stored no CPU times."""
    wall = {what: row.get(f"{what}_seconds") for what in ("fit", "predict", "tune")}
    return {f"{what}_cpu_seconds": seconds for what, seconds in wall.items() if seconds is not None} | row


def _frame(rows: Iterable[store.Row]) -> pd.DataFrame:
    """Return rows as a table with all score columns, as floats."""
    frame = pd.DataFrame(list(rows))
    for column in ("study", "method", "dataset", "split", "status", "cell", "reason", "n_train", "n_test"):
        if column not in frame:
            frame[column] = pd.Series(dtype=object)
    scores = frame.reindex(columns=list(SCORE_COLUMNS)).astype(float)
    return pd.concat([frame.drop(columns=[c for c in SCORE_COLUMNS if c in frame]), scores], axis=1)


def _tags(studies: Sequence[store.StudyResults]) -> list[str]:
    """Return unique names of the studies: names that occur more than once are followed by the folder."""
    counts = Counter(study.name for study in studies)
    above = Counter((study.name, study.folder.resolve().parent.name) for study in studies)
    tags = []
    for study in studies:
        folder = study.folder.resolve()
        near = f"{folder.parent.name}/{folder.name}"
        unique = near if above[study.name, folder.parent.name] == 1 else str(folder)
        tags.append(study.name if counts[study.name] == 1 else f"{study.name} in {unique}")
    return tags


def _dataset_names(
    studies: Sequence[store.StudyResults], tags: Sequence[str], notes: list[str]
) -> dict[tuple[str, str], str]:
    """Return new names of data sets whose data or splits differ between studies, by (study, label).

    The name of the first study with the same data and splits is appended.
    """
    meanings: dict[str, dict[str, str]] = {}
    for study, tag in zip(studies, tags, strict=True):
        for label, entry in study.lock.get("datasets", {}).items():
            meanings.setdefault(label, {})[tag] = _meaning(entry, study.lock.get("splits", {}))
    renamed: dict[tuple[str, str], str] = {}
    for label, by_study in meanings.items():
        if len(set(by_study.values())) > 1:
            first = {meaning: tag for tag, meaning in reversed(by_study.items())}
            renamed |= {(tag, label): f"{label} [{first[meaning]}]" for tag, meaning in by_study.items()}
            notes.append(
                f"{label} has different data points, inputs or splits in the studies {', '.join(by_study)}: "
                "shown as separate data sets."
            )
    return renamed


def _meaning(entry: Mapping[str, Any], splits: Mapping[str, Any]) -> str:
    """Return a hash of a data set's content and split scheme."""
    data = {key: value for key, value in entry.items() if key not in {"n", "d", "csv", "label", "target_values"}}
    return store.factor_hash({"data": data, "splits": {k: v for k, v in splits.items() if k != "count"}})


def _columns(study: store.StudyResults, tag: str, names: Mapping[tuple[str, str], str]) -> list[MethodColumn]:
    """Return a study's methods in the order of its plan, or of its rows if there is no plan."""
    rows = {row["cell"]: row for row in study.rows}
    columns: dict[str, MethodColumn] = {}
    for cell in store.lock_cells(study.lock) or study.rows:
        column = columns.setdefault(cell["method"], MethodColumn(cell["method"], [tag], labels={tag: cell["method"]}))
        dataset = names.get((tag, cell["dataset"]), cell["dataset"])
        column.cells[dataset, int(cell["split"])] = (cell["cell"], rows.get(cell["cell"]))
    return list(columns.values())


def _merge_column(columns: list[MethodColumn], new: MethodColumn, notes: list[str]) -> None:
    """Add a later study's method to the column that it continues, or append it as a new column."""
    for column in columns:
        if set(new.studies) & set(column.studies):
            continue  # two labels of one study are always two columns
        shared = [place for place in new.cells if place in column.cells]
        if any(new.cells[place][0] != column.cells[place][0] for place in shared):
            continue
        if not shared and column.label != new.label:
            continue
        differing: dict[str, dict[int, str]] = {}
        for place, (key, row) in new.cells.items():
            kept = column.cells.get(place, (key, None))[1]
            if kept is not None and row is not None and (differs := _disagreement(kept, row)):
                differing.setdefault(place[0], {})[place[1]] = differs
            column.cells[place] = (key, row if kept is None else kept if row is None else _united(kept, row))
        for dataset, splits in differing.items():
            notes.append(
                f"{column.label} on {dataset}: the same cells disagree, {_largest(splits)} (splits {_ranges(splits)}). "
                f"The report shows those of {column.studies[0]}, not of {new.studies[0]}."
            )
        if column.label != new.label:
            notes.append(
                f"{new.label} of {new.studies[0]} is the same configuration as {column.label}: shown as one method."
            )
        column.studies += new.studies
        column.labels |= new.labels
        return
    columns.append(new)


def _disagreement(first: store.Row, second: store.Row) -> str:
    """Return how two rows of one cell differ, empty if they agree; times and memory may differ."""
    if first["status"] != second["status"]:
        return f"{first['status']} and {second['status']}"
    differing = [column for column in COMPARED if not _equal(first.get(column), second.get(column))]
    if not differing:
        return ""
    name = max(("rmse", "ll", *differing), key=lambda column: (column in differing, column in {"rmse", "ll"}))
    return f"{name} {' and '.join(_distinct(first.get(name, math.nan), second.get(name, math.nan)))}"


def _equal(a: float | None, b: float | None) -> bool:
    """Return whether two scores are equal up to rounding, or one row was stored without this score."""
    return _missing(a) or _missing(b) or math.isclose(float(a or 0.0), float(b or 0.0), rel_tol=TOLERANCE)


def _missing(score: float | None) -> bool:
    return score is None or math.isnan(score)


def _united(first: store.Row, second: store.Row) -> store.Row:
    """Return the first row, with the scores of the second that it was stored without."""
    return second | {key: value for key, value in first.items() if key not in SCORE_COLUMNS or not _missing(value)}


def _distinct(a: float, b: float) -> tuple[str, str]:
    """Return two numbers with four digits, or as many as it takes to see the difference."""
    texts = ((f"{a:.{digits}g}", f"{b:.{digits}g}") for digits in range(4, 18))
    return next((pair for pair in texts if pair[0] != pair[1]), (str(a), str(b)))


def _largest(splits: Mapping[int, str]) -> str:
    """Return the disagreement of the first split and the number of disagreements."""
    first = next(iter(splits.values()))
    return first if len(splits) == 1 else f"{len(splits)} of them, the first with {first}"


def _disambiguate(columns: Sequence[MethodColumn], notes: list[str]) -> None:
    counts = Counter(column.label for column in columns)
    for label in [label for label, count in counts.items() if count > 1]:
        notes.append(f"{label} is configured differently in several studies: the study's name is appended.")
        for column in columns:
            if column.label == label:
                column.label = f"{label} [{column.studies[0]}]"


# Missing cells and remarks


def gaps(merged: MergedStudies) -> list[dict[str, Any]]:
    """Return every (method, dataset) with cells that are not ok, with the counts by status."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for method, dataset, status in merged.rows[["method", "dataset", "status"]].itertuples(index=False):
        counts.setdefault((method, dataset), Counter())[status] += 1
    found = []
    for (method, dataset), planned in merged.planned.items():
        states = counts.get((method, dataset), Counter())
        states["missing"] = planned - states.total()
        if states["ok"] < planned:
            parts = [f"{count} {status}" for status, count in sorted(states.items()) if status != "ok" and count]
            done = f"{states['ok']} of {planned} splits"
            found.append({"method": method, "dataset": dataset, "done": done, "detail": ", ".join(parts)})
    return found


def left_out(merged: MergedStudies) -> list[tuple[str, str, str]]:
    """Return method, data set and reason of each combination that a study leaves out and no other study has."""
    found: dict[tuple[str, str], str] = {}
    for tag, study in zip(merged.tags, merged.studies, strict=True):
        for each in study.lock.get("left_out") or ():
            method = merged.names.get((tag, each["method"]), each["method"])
            found.setdefault(
                (method, merged.dataset_names.get((tag, each["dataset"]), each["dataset"])), each["reason"]
            )
    return [(*place, reason) for place, reason in found.items() if place not in merged.planned]


def remarks(merged: MergedStudies) -> list[dict[str, Any]]:
    """Return the reasons of failures and warnings, by method, data set and status.

    Reasons that differ only in numbers are combined, and the numbers are replaced by their range.
    """
    grouped: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for row in merged.rows[["method", "dataset", "status", "reason", "split"]].to_dict("records"):
        reason = row["reason"] if isinstance(row["reason"], str) else ""
        if reason or row["status"] != "ok":
            key = (str(row["method"]), str(row["dataset"]), str(row["status"]), _NUMBER.sub("\0", reason))
            grouped.setdefault(key, []).append((reason, int(row["split"])))
    keys = ("method", "dataset", "status")
    return [
        dict(zip(keys, key, strict=False))
        | {"reason": _joined_reasons([reason for reason, _ in found]), "splits": _ranges(split for _, split in found)}
        for key, found in grouped.items()
    ]


def _joined_reasons(reasons: Sequence[str]) -> str:
    """Combine reasons that differ only in numbers: "2.09 to 2.87" replaces these."""
    columns = zip(*(_NUMBER.findall(reason) for reason in reasons), strict=True)
    spans = iter([min(column, key=float) + _up_to(column) for column in columns])
    return _NUMBER.sub(lambda _: next(spans), reasons[0])


def _up_to(numbers: Sequence[str]) -> str:
    return f" to {max(numbers, key=float)}" if len(set(numbers)) > 1 else ""


def _ranges(numbers: Iterable[int]) -> str:
    """Return split numbers as ranges, such as ``0-3, 7``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
