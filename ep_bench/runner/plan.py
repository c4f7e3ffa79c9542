"""The plan of a study: its cells, which are done, which are stale and why, and an estimate of the remaining time."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from ep_bench import adapters, data, estimator, methods, recalibration
from ep_bench.errors import UserError, joined
from ep_bench.results import curves, row_scores, store
from ep_bench.results.files import sole_writer
from ep_bench.results.selection import Wanted, matches
from ep_bench.runner.earlier_results import EarlierResults, slot, take_over
from ep_bench.runner.experiment_plan import plan_of_experiment
from ep_bench.runner.jobs import AnyJob, BasePlan, Job, PlannedCell, with_longer_search
from ep_bench.spec import MethodEntry, Study
from ep_bench.types import TASKS, Cell, DatasetInfo, DatasetRef, SplitScheme, Task

_SCORED: Mapping[str, Task] = {  # scores of a single task
    "rmse": "regression", "crps": "regression", "pinball": "regression", "error_rate": "classification",
}  # fmt: skip


@dataclass
class Plan(BasePlan):
    """Every cell of a study, in the order of the study file."""

    infos: dict[str, DatasetInfo] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=list)
    places: Wanted = field(default_factory=dict)  # selected methods and data sets; all without a key
    removed: int = 0  # finished cells in the folder that are of no entry of the study

    def absent(self, *, retry_failed: bool = False) -> list[str]:
        """Return the data sets of cells to run whose files are missing on this machine."""
        refs = {job.dataset for job in self.to_run(retry_failed=retry_failed) if isinstance(job, Job)}
        return sorted({ref.name for ref in refs if not self.infos[ref.label].present})

    def altered(self) -> list[str]:
        """Return the data sets whose files do not match their cards."""
        cards = {ref.label: data.card(ref.name) for ref in self.study.datasets if not ref.csv}
        return [label for label, card in cards.items() if card.sha256 and self.infos[label].checksum != card.sha256]

    def warnings(self) -> list[str]:
        """Return warnings about altered files of selected data sets, damaged results, and another study of the name."""
        selected = {planned.job.cell.dataset for planned in self.cells}
        altered = [
            f"warning: the file of {label} does not match its card; results are stored under the checksum of the file "
            f"and are not comparable with the papers; run `ep-bench data verify {label}`"
            for label in self.altered()
            if label in selected
        ]
        warnings = store.damage_warning(self.finished.damaged), store.suspect_warning(self.finished.suspect)
        return [*altered, *filter(None, warnings), *self._removal_warning()]

    def _removal_warning(self) -> list[str]:
        """Return a warning if the folder has finished cells that are of no entry of the study."""
        if not self.removed:
            return []
        count = "1 finished cell is" if self.removed == 1 else f"{self.removed} finished cells are"
        moved = f"{count} of no entry of this study; `run` removes the rows from results.csv"
        advice = "if they are the results of another study, choose another name in `study:`"
        return [f"warning: {self.folder}: {moved}; {advice}"]

    def _restricted(self, kept: list[PlannedCell], wanted: Wanted) -> Self:
        places = {key: globs for key, globs in wanted.items() if key != "split"}
        return replace(self, cells=kept, whole=self, places=places)

    def begin(self, jobs: Sequence[AnyJob]) -> None:  # noqa: ARG002
        """Write the lock file of the whole study, and set damaged files aside.

        Raises UserError if the folder is not writable or a derived file in it cannot be read.
        """
        curves.read(self.folder)  # raise an error for an unreadable file before the run, not after hours
        row_scores.read(self.folder)
        store.remove_drafts(self.folder)
        store.keep_damaged_table(self.folder, self.finished)
        with sole_writer(self.folder):
            store.write_lock(self.folder, (self.whole or self).lock())
        store.set_aside(self.finished.damaged)

    def take_over(self, *, failed: bool) -> Counter[str]:
        """Copy finished cells of other studies; return their number by the name of the folder.

        Without ``failed``, only those with status ok are copied, and the others can be run again.
        """
        chosen = [planned for planned in self.cells if failed or planned.state == "elsewhere"]
        return take_over(self.folder, chosen, self.finished, self.lock())

    def save(self, *, with_curves: bool = True) -> None:
        """Write the rows of this plan, of new cell files and of the tables; with ``with_curves`` also what is derived.

        Known cell files are not read again, which would take seconds for large studies.
        """
        with sole_writer(self.folder):
            self.finished.add_unknown(store.finished_rows(self.folder, with_cell_files=False))
            for key, stamp in store.stamps(self.folder).items():
                if key not in self.finished.rows or (with_curves and stamp != self.stamps.get(key)):
                    self._read(key)
            rows = store.export(self.folder, self.finished)
            if with_curves:
                lock = store.read_lock(self.folder) or {}
                rows, _ = store.by_seed(lock, rows)
                curves.update(self.folder, rows)
                row_scores.update(self.folder, lock, rows)

    def _read(self, key: str) -> None:
        record = store.record_since(self.folder, key, self.stamps.get(key))
        if record is not None:
            self.finished.add(record)

    def lock(self) -> dict[str, Any]:
        """Return the content of ``study.lock.json``: the plan with its factors, and the checksum of each row."""
        study = self.study
        altered = self.altered()
        datasets = {
            ref.label: ({"altered_file": True} if ref.label in altered else {})
            | {"name": ref.name, **ref.options(), "n": info.n, "d": info.d, "checksum": info.checksum}
            | ({"task": info.task} if info.task != "regression" else {})
            | {key: value for key in ("target_values", "unranked") if (value := getattr(info, key))}
            for ref in study.datasets
            for info in [self.infos[ref.label]]
        }
        entries = {
            entry.label: {"use": entry.use, "options": dict(entry.options), "published": published_columns(entry)}
            | ({"tune": entry.tune.model_dump(mode="json")} if entry.tune else {})
            | ({"recalibrate": entry.recalibrate.model_dump(mode="json")} if entry.recalibrate else {})
            | ({"validated": words} if (words := validated_options(entry, study.path.parent)) else {})
            for entry in study.methods
        }
        return {
            "study": study.name,
            "seed": study.seed,
            **({"seeds": study.seeds} if study.seeds > 1 else {}),
            "splits": {**study.splits.factors(), **({"count": study.splits.count} if study.splits.count else {})},
            "datasets": datasets,
            "methods": entries,
            **({"compare": compared} if (compared := study.compare.model_dump(exclude_none=True)) else {}),
            **({"ranks": [group.model_dump(exclude_none=True) for group in study.ranks]} if study.ranks else {}),
            "accept": [dict(item) for item in study.accept_items()],
            **({"left_out": left_out} if (left_out := self._left_out()) else {}),
            "groups": self.groups,
            **self.finished.lock_entries({cell for group in self.groups for cell in group["cells"].values()}),
        }

    def left_out(self) -> list[dict[str, str]]:
        """Return the selected combinations of method and data set that the study leaves out, with reasons."""
        return [each for each in self._left_out() if matches(each, self.places)]

    def _left_out(self) -> list[dict[str, str]]:
        return [
            {"method": entry.label, "dataset": ref.label, "reason": reason}
            for ref in self.study.datasets
            for entry in self.study.methods
            if (reason := self.study.reason_left_out(entry, ref))
        ]


def make_plan(study: Study, results: Path) -> BasePlan:
    """Return the plan of a study, compared with its results folder. Runs nothing.

    Raises UserError if the folder has results of the other kind, or if the study does not fit its data sets.
    """
    if study.experiment is not None:
        return plan_of_experiment(study, results / study.name)
    return plan_of_cells(study, results)


def plan_of_cells(study: Study, results: Path) -> Plan:
    """Return the plan of a study with methods; see ``make_plan``."""
    folder = results / study.name
    past = EarlierResults(folder)
    store.refuse_other_kind(folder, past.lock, experiment=False)
    infos, schemes = {}, {}
    for ref in study.datasets:
        with _locate_errors(study, ref):
            infos[ref.label] = past.describe(ref)
            schemes[ref.label] = _scheme(study, ref, infos[ref.label])
    require_tasks(study, infos)
    require_accepted(study, infos)
    grouped: list[tuple[dict[str, Any], DatasetInfo, list[Job]]] = []
    for ref, entry, seed in itertools.product(study.datasets, study.methods, study.all_seeds()):
        if not study.reason_left_out(entry, ref):
            factors, options = _factors(study, ref, entry, infos[ref.label], schemes[ref.label], seed)
            jobs = _jobs(study, ref, entry, options, factors, infos[ref.label], schemes[ref.label])
            grouped.append((factors, infos[ref.label], with_longer_search(jobs, entry.tune, folder)))
    if not grouped:
        raise UserError("all cells are left out", where=str(study.path), field="left_out")
    past.find_neighbours(results, {job.cell.key for _, _, jobs in grouped for job in jobs})
    cells, groups = [], []
    for factors, info, jobs in grouped:
        estimate = past.estimate(factors, info, searched=jobs[0].longer_search is not None)
        cells += [past.classify(replace(job, estimate=estimate)) for job in jobs]
        hashes = {str(job.cell.split): job.cell.key for job in jobs}
        cell = jobs[0].cell
        groups.append({"method": cell.method, "dataset": cell.dataset, "factors": factors, "cells": hashes})
    removed = _removed_cells(past, cells)
    return Plan(study, folder, cells, past.stamps, past.finished, infos=infos, groups=groups, removed=removed)


def _removed_cells(past: EarlierResults, cells: Sequence[PlannedCell]) -> int:
    """Return the number of finished cells in the folder whose method, data set, split or seed the study does not have.

    Stale cells do not count, because the plan lists them.
    """
    kept = {slot(vars(planned.job.cell)) for planned in cells}
    keys = {planned.job.cell.key for planned in cells}  # an entry with a new label has the same cells
    return sum(cell["cell"] in past.rows and cell["cell"] not in keys and slot(cell) not in kept for cell in past.cells)


def require_tasks(study: Study, infos: Mapping[str, DatasetInfo]) -> None:
    """Raise UserError if a method does not support the task of a data set, or is tuned by a score of another task."""
    base, errors = study.path.parent, []
    for entry in study.methods:
        supported = adapters.tasks(entry.use, base) if adapters.is_target(entry.use) else methods.get(entry.use).tasks
        score = entry.tune.score if entry.tune else "ll"
        place = {"where": study.places.get(f"methods/{entry.label}", str(study.path)), "field": "methods"}
        for task in TASKS:
            labels = ", ".join(label for label, info in infos.items() if info.task == task)
            if not labels:
                continue
            if task not in supported:
                problem = f"{entry.label} supports {supported[0]} only; data sets for {task}: {labels}"
                errors.append(UserError(problem, allowed=_methods_for(task), **place))
            elif entry.recalibrate is not None and task != "regression":
                errors.append(UserError(f"{entry.label} is recalibrated, which needs regression: {labels}", **place))
            elif _SCORED.get(score, task) != task:
                problem = f"{entry.label} is tuned by {score}, which does not apply to {task}: {labels}"
                errors.append(UserError(problem, **place))
            elif score not in (possible := _tuning_scores(entry, base, task)):
                problem = f"{entry.label} is tuned by {score}, which its predictions do not have; set tune.score"
                errors.append(UserError(problem, allowed=possible, **place))
    if errors:
        raise joined(errors)


def _tuning_scores(entry: MethodEntry, base: Path, task: Task) -> Collection[str]:
    """Return the scores by which an entry can be tuned; all if its model cannot be constructed without the search."""
    if entry.tune is not None and adapters.is_target(entry.use):
        with contextlib.suppress(Exception):  # a class may raise anything
            return adapters.tuning_scores(adapters.build_model(entry.use, entry.options, base), task)
    return ("ll", *_SCORED)


def require_accepted(study: Study, infos: Mapping[str, DatasetInfo]) -> None:
    """Raise UserError if a method of the study does not accept the missing inputs that a data set passes to it."""
    errors = []
    for ref, entry in itertools.product(study.datasets, study.methods):
        inputs = infos[ref.label].inputs_with_missing
        if inputs and not study.reason_left_out(entry, ref) and not _accepts_missing(study, ref, entry):
            errors.append(
                UserError(
                    f"{entry.label} accepts no missing inputs; {ref.label} keeps those of {', '.join(inputs)}",
                    where=study.places.get(f"methods/{entry.label}", str(study.path)),
                    field="methods",
                    allowed="`missing: median` or most_frequent, or a method that declares `accepts_missing`",
                )
            )
    if errors:
        raise joined(errors)


def _accepts_missing(study: Study, ref: DatasetRef, entry: MethodEntry) -> bool:
    if not adapters.is_target(entry.use):
        return methods.get(entry.use).accepts_missing
    try:
        return adapters.accepts_missing(
            adapters.build_model(entry.use, study.options_for(entry, ref), study.path.parent)
        )
    except Exception:  # noqa: BLE001 the class may raise any exception; its cells record it
        return False


def _methods_for(task: Task) -> str:
    """Return the methods for a task, in words."""
    names = [name for name in methods.REGISTRY if task in methods.get(name).tasks]
    external = {
        "regression": "an external regressor",
        "classification": "an external classifier such as sklearn.linear_model:LogisticRegression",
    }
    return ", ".join([*names, external[task]])


def published_columns(entry: MethodEntry) -> list[str]:
    """Return the columns of published tables for a method entry; a tuned or recalibrated one has only what it names."""
    if entry.published:
        return [entry.published]
    if adapters.is_target(entry.use) or entry.tune is not None or entry.recalibrate is not None:
        return []
    method = methods.get(entry.use)
    own, _ = estimator.split_common(entry.options)
    return list(method.published(estimator.parse_options(method, own))) if method.published else []


def validated_options(entry: MethodEntry, base: Path) -> str:
    """Return the options that a fit itself chooses on validation points, as its method or class declares, in words."""
    if adapters.is_target(entry.use):
        words = vars(adapters.resolve(entry.use, base)).get("validated", "")
        return words if isinstance(words, str) and len(words.splitlines()) == 1 else ""
    method = methods.get(entry.use)
    own, _ = estimator.split_common(entry.options)
    return method.validated(estimator.parse_options(method, own)) if method.validated else ""


def cell_seed(seed: int, dataset: Mapping[str, Any], splits: Mapping[str, Any], split: int) -> int:
    """Return the seed of a split, a hash of these factors without the method, so that comparisons are paired."""
    named = {
        "seed": seed,
        "dataset": {k: v for k, v in dataset.items() if k != "checksum"},
        "splits": splits,
        "split": split,
    }
    return int(hashlib.sha256(store.factor_hash(named).encode()).hexdigest()[:8], 16)


@contextlib.contextmanager
def _locate_errors(study: Study, ref: DatasetRef) -> Iterator[None]:
    """Add the place of the data set in the study to a UserError."""
    try:
        yield
    except UserError as error:
        where = study.places.get(f"datasets/{ref.label}", str(study.path))
        place = f"datasets: {ref.label}"
        causes = error.causes or (error,)
        raise joined([each.within(where, place, (ref.label, ref.name)) for each in causes]) from None


def _scheme(study: Study, ref: DatasetRef, info: DatasetInfo) -> SplitScheme:
    """Return the split scheme with the defaults of a data set. Raises UserError if it has too few data points."""
    card = None if ref.csv else data.card(ref.name)
    data.check_scheme(study.splits, info.n, card, ref.train_points)
    return data.resolve_scheme(study.splits, card)


def _factors(
    study: Study, ref: DatasetRef, entry: MethodEntry, info: DatasetInfo, scheme: SplitScheme, seed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the factors of one method on one data set with one seed, and its resolved options."""
    given = study.options_for(entry, ref)
    tune = {} if entry.tune is None else {"tune": entry.tune.model_dump(mode="json")}
    recalibrate = {}
    if entry.recalibrate is not None:
        recalibrate["recalibrate"] = {**entry.recalibrate.model_dump(mode="json"), "version": recalibration.VERSION}
    if adapters.is_target(entry.use):
        version = adapters.version(entry.use, study.path.parent, given | tune)
        resolved = estimator.ResolvedOptions(given, given, version)
    else:
        resolved = estimator.resolve(entry.use, given, tuned=entry.tune is not None)
    factors: dict[str, Any] = {
        "method": entry.use,
        "version": resolved.version,
        "options": resolved.factors,
        "dataset": {"name": ref.name, **ref.options(), "checksum": info.checksum},
        "splits": scheme.factors(),
        "seed": seed,
        **tune,
        **recalibrate,
    }
    return factors, resolved.options


@lru_cache(maxsize=64)  # the same for all methods
def _split_seeds(ref: DatasetRef, scheme: SplitScheme, seed: int, count: int) -> list[int]:
    dataset, splits = {"name": ref.name, **ref.options()}, scheme.factors()
    return [cell_seed(seed, dataset, splits, split) for split in range(count)]


def _jobs(
    study: Study,
    ref: DatasetRef,
    entry: MethodEntry,
    options: Mapping[str, Any],
    factors: Mapping[str, Any],
    info: DatasetInfo,
    scheme: SplitScheme,
) -> list[Job]:
    jobs, base, limits = [], str(study.path.parent.resolve()), study.limits
    for split, seed in enumerate(_split_seeds(ref, scheme, factors["seed"], data.split_count(scheme, info))):
        complete = {**factors, "split": split}
        cell = Cell(entry.label, ref.label, split, seed, complete, store.factor_hash(complete))
        jobs.append(
            Job(
                cell, study.name, ref, scheme, entry.use, dict(options), base,
                limits.seconds, limits.memory_gb, limits.cpu_seconds, factors.get("tune"), factors.get("recalibrate"),
            )
        )  # fmt: skip
    return jobs
