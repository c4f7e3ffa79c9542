"""Merges results folders into one table of cells, and lists missing cells and remarks.

A report of several folders shows their methods next to each other. A label that occurs in two studies is one column if
the studies agree on every common cell; a cell (identified by its hash) counts once per column. Labels with different
meanings get the study's name appended.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ep_bench import convergence
from ep_bench.convergence import ConvergedSplits
from ep_bench.resources import read_yaml, shipped_folder
from ep_bench.results import curves, store
from ep_bench.results.selection import require_matches, restricted, selection
from ep_bench.results.submission import origin, read_submission
from ep_bench.types import MEASURED_COLUMNS, SCORE_COLUMNS, Task

Place = tuple[str, int]  # data set, split
INDEPENDENT = "holdout"  # scheme whose splits are draws from one distribution, without common data points
CPU_TIMES = ("tune_cpu_seconds", "fit_cpu_seconds", "predict_cpu_seconds")
TOLERANCE = 1e-9  # relative difference of equal scores
NAMED = 6  # names that a sentence lists
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

    ``rows`` has one line per finished cell, with the labels of the report; ``planned`` is the number of cells by
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
    pivots: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False)  # known results of ``summary.pivot``

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
        return curves.joined([curves.read(study.folder) for study in self.studies])

    @cached_property
    def convergence(self) -> dict[tuple[str, str], ConvergedSplits]:
        """The converged splits of the cells that ended ``ok``, by (method, data set)."""
        rows = self.ok().reindex(columns=["method", "dataset", "reason", "converged", "r_hat"])
        groups = rows.groupby(["method", "dataset"], sort=False)
        return {(str(m), str(d)): convergence.count(part.to_dict("records")) for (m, d), part in groups}

    def converged(self, methods: Iterable[str], datasets: Iterable[str]) -> ConvergedSplits:
        """Return the converged splits of some methods on some data sets together."""
        places = [(method, dataset) for dataset in datasets for method in methods]
        return sum((self.convergence.get(place, ConvergedSplits()) for place in places), ConvergedSplits())

    def method_entries(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the name in the report and the entry of each method of each study."""
        for study, tag in zip(self.studies, self.tags, strict=True):
            for label, entry in (study.lock.get("methods") or {}).items():
                yield self.names.get((tag, label), label), entry

    def labels(self) -> dict[str, str]:
        """Return the label in the report by it, and by the labels of studies that name the same cells differently."""
        others: dict[str, set[str]] = {}
        for (_, label), name in self.names.items():
            others.setdefault(label, set()).add(name)
        unique = {label: name for label, (name, *more) in others.items() if not more}
        return unique | {name: name for name in self.methods}

    @cached_property
    def source(self) -> str:
        """Where the numbers come from: studies, a hash of the cells with their scores, version and its date."""
        about = read_yaml(shipped_folder("CITATION.cff").read_text(encoding="utf-8"))
        stored = {tag: study.lock for tag, study in zip(self.tags, self.studies, strict=True)}
        cells = store.factor_hash({tag: [lock.get("provenance"), lock.get("files")] for tag, lock in stored.items()})
        names = ", ".join(self.tags[:NAMED]) + (f" and {len(self.tags) - NAMED} more" if len(self.tags) > NAMED else "")
        date = about.get("date-released", "not released")
        return f"{names}; cells {cells[:12]}; ep-bench {about['version']} ({date})"

    @cached_property
    def submissions(self) -> dict[str, str]:
        """By whom methods were submitted and verified, in words; those that the package computed are left out."""
        pairs = ((tag, study) for study, tag in zip(self.studies, self.tags, strict=True))
        submitted = ((tag, study) for tag, study in pairs if read_submission(study.folder))
        return {
            self.names.get((tag, label), label): origin(study.folder)
            for tag, study in submitted
            for label in study.lock.get("methods") or {}
        }

    def dataset_entries(self) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
        """Yield the name in the report, the entry and the lock of each data set of each study."""
        for study, tag in zip(self.studies, self.tags, strict=True):
            for label, entry in (study.lock.get("datasets") or {}).items():
                yield self.dataset_names.get((tag, label), label), entry, study.lock

    def tasks(self) -> dict[str, Task]:
        """Return the task of each data set with finished cells."""
        classes = {name for name, entry, _ in self.dataset_entries() if entry.get("task") == "classification"}
        return {name: "classification" if name in classes else "regression" for name in self.rows["dataset"].unique()}

    def published_columns(self) -> dict[str, tuple[str, ...]]:
        """Return the published columns that correspond to each method in some study."""
        found: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for name, entry in self.method_entries():
            found[name] |= dict.fromkeys(entry.get("published") or ())
        return {method: tuple(columns) for method, columns in found.items()}

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The number of data points of each data set with finished cells."""
        rows = self.ok()
        total = (rows["n_train"].astype(float) + rows["n_test"].astype(float)).groupby(rows["dataset"]).max()
        return {str(name): int(value) for name, value in total.dropna().items()}

    @cached_property
    def cells(self) -> dict[tuple[str, str], dict[int, str]]:
        """The hashes of the finished cells by (method, data set) and split."""
        return curves.finished(self.rows[["method", "dataset", "split", "status", "cell"]].to_dict("records"))


def merge(folders: Sequence[Path], select: Sequence[str] = ()) -> MergedStudies:
    """Return the cells of all folders as one table, of those that match ``key=glob`` patterns as if no others existed.

    Raises UserError if a folder has no results, for an invalid pattern, or one that no cell matches.
    """
    different = dict.fromkeys(Path(folder).resolve() for folder in folders)
    studies = [store.read_intact(folder) for folder in different]
    return selected(studies, select) if select else merge_studies(studies)


def selected(studies: Sequence[store.StudyResults], select: Sequence[str]) -> MergedStudies:
    """Return the cells of studies that match ``key=glob`` patterns."""
    wanted = selection(select)
    require_matches(wanted, (cell for study in studies for cell in store.lock_cells(study.lock)))
    kept = [study for study in (restricted(study, wanted) for study in studies) if study.lock.get("groups")]
    found = merge_studies(kept)
    found.notes.append(f"Only the cells that match {' '.join(select)}.")
    if without := [study.name for study in studies if not study.lock.get("groups")]:
        found.notes.append(f"Without cells, and not shown: {', '.join(without)}.")
    return found


def cpu_seconds(rows: pd.DataFrame) -> pd.Series[float]:
    """Return the CPU seconds of tuning, fit and prediction of each row together, NaN without any."""
    return rows[list(CPU_TIMES)].sum(axis=1, min_count=1)


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
        {**row, "method": column.label, "dataset": place[0], "split": place[1]}
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
        rows=_frame(rows),
        planned=dict(planned),
        notes=notes,
        names={(tag, label): column.label for column in columns for tag, label in column.labels.items()},
        dataset_names=names,
    )


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
    data = {
        key: value for key, value in entry.items() if key not in {"n", "d", "csv", "label", "target_values", "unranked"}
    }
    return store.factor_hash({"data": data, "splits": {k: v for k, v in splits.items() if k != "count"}})


def _columns(study: store.StudyResults, tag: str, names: Mapping[tuple[str, str], str]) -> list[MethodColumn]:
    """Return a study's methods in the order of its plan, or of its rows if there is no plan."""
    rows = {row["cell"]: row for row in study.rows}
    columns: dict[str, MethodColumn] = {}
    for cell in store.lock_cells(study.lock) or study.rows:
        column = columns.setdefault(cell["method"], MethodColumn(cell["method"], [tag], labels={tag: cell["method"]}))
        place = names.get((tag, cell["dataset"]), cell["dataset"]), int(cell["split"])
        row = rows.get(cell["cell"])
        if row is not None or place not in column.cells:  # the rows are those of the first seed
            column.cells[place] = (cell["cell"], row)
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
            column.cells[place] = (key, row if kept is None else kept)
        for dataset, splits in differing.items():
            what = next(iter(splits.values()))
            notes.append(
                f"{column.label} on {dataset}: the same cells disagree in {what} (splits {split_ranges(splits)}). "
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
    """Return in which columns two rows of one cell differ, empty if they agree; times and memory may differ."""
    differing = [column for column in COMPARED if not _equal(first.get(column), second.get(column))]
    return ", ".join(["status"] * (first["status"] != second["status"]) + differing)


def _equal(a: float | None, b: float | None) -> bool:
    """Return whether two scores are equal up to rounding; missing ones are NaN or None."""
    first, second = (math.nan if score is None else float(score) for score in (a, b))
    return math.isclose(first, second, rel_tol=TOLERANCE) or (math.isnan(first) and math.isnan(second))


def _disambiguate(columns: Sequence[MethodColumn], notes: list[str]) -> None:
    counts = Counter(column.label for column in columns)
    for label in [label for label, count in counts.items() if count > 1]:
        notes.append(f"{label} is configured differently in several studies: the study's name is appended.")
        for column in columns:
            if column.label == label:
                column.label = f"{label} [{column.studies[0]}]"


def split_ranges(numbers: Iterable[int]) -> str:
    """Return split numbers as ranges, such as ``0-3, 7``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words; of many, the first ones and the number of the others."""
    names = list(names)
    if len(names) > NAMED + 1:
        names = [*names[:NAMED], f"{len(names) - NAMED} others"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


# Facts that decide how scores are compared, from the lock files


def independent_draws(merged: MergedStudies) -> frozenset[str]:
    """Return the data sets whose splits have no data points in common. Splits of all other schemes overlap."""
    return frozenset(
        name for name, _, lock in merged.dataset_entries() if (lock.get("splits") or {}).get("scheme") == INDEPENDENT
    )


def few_target_values(merged: MergedStudies) -> dict[str, tuple[int, int]]:
    """Return the numbers of target values and of data points of the data sets with few different target values."""
    return {
        name: (int(entry["target_values"]), int(entry["n"]))
        for name, entry, _ in merged.dataset_entries()
        if entry.get("target_values")
    }


def unranked(merged: MergedStudies) -> dict[str, str]:
    """Return why rankings leave data sets out, by data set."""
    return {name: entry["unranked"] for name, entry, _ in merged.dataset_entries() if entry.get("unranked")}


def same_data(merged: MergedStudies, datasets: Collection[str]) -> str:
    """Return the data sets that contain the same data points, in words; empty if there are none.

    Examples are one data set with two split schemes, or with different inputs.
    """
    return "; ".join(" and ".join(names) for names in _equal_data(merged, datasets))


def repeated_data(merged: MergedStudies, datasets: Collection[str]) -> list[str]:
    """Return the data sets that contain the same data points as an earlier one."""
    return [name for names in _equal_data(merged, datasets) for name in names[1:]]


def _equal_data(merged: MergedStudies, datasets: Collection[str]) -> list[list[str]]:
    """Return groups of two or more data sets with the same data points."""
    groups: dict[str, dict[str, None]] = {}
    for name, entry, _ in merged.dataset_entries():
        if name in datasets and entry.get("checksum"):
            groups.setdefault(entry["checksum"], {})[name] = None
    return [list(names) for names in groups.values() if len(names) > 1]
