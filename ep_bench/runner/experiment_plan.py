"""The plan of an experiment: its parts, which run as cells do, and the results that they are combined to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ep_bench.errors import UserError
from ep_bench.experiments import SUMMARY, storage
from ep_bench.experiments.parts import combined
from ep_bench.experiments.storage import ExperimentSetup
from ep_bench.experiments.study_folder import relative_to
from ep_bench.results import store
from ep_bench.results.files import sole_writer
from ep_bench.runner.jobs import INFRASTRUCTURE, PARTS, VALUE, AnyJob, BasePlan, PartJob, PlannedCell
from ep_bench.spec import Study
from ep_bench.types import Cell, Record


@dataclass
class ExperimentPlan(BasePlan):
    """Every part of an experiment."""

    setup: ExperimentSetup = field(kw_only=True)
    is_computed: bool = False  # whether the folder has the results

    unit: ClassVar[str] = "parts"
    table: ClassVar[str] = SUMMARY

    def to_run(self, *, retry_failed: bool = False) -> list[AnyJob]:
        """Return the unfinished jobs, the longest first. Raises UserError if failed parts are not stored any more."""
        if retry_failed and self.is_computed and not self.finished.rows and storage.failures(self.folder):
            raise UserError(
                "the parts of this experiment are not stored, so failed parts cannot be computed alone; remove "
                f"{self.folder / store.LOCK} and run again to compute all parts"
            )
        return super().to_run(retry_failed=retry_failed)

    def warnings(self) -> list[str]:
        """Return a warning about results of other options or versions."""
        if self.is_computed or not (self.folder / store.LOCK).exists():
            return []
        place = self.folder / storage.SUPERSEDED
        return [f"warning: {self.folder} has results of other options or versions; a run keeps them in {place}"]

    def statuses(self) -> Counter[str]:
        """Return the number of parts by status, or ``missing``."""
        if not self.is_computed or self.finished.rows:
            return super().statuses()
        failed = len(storage.failures(self.folder))
        return +Counter(ok=len(self.cells) - failed, failed=failed)

    def begin(self, jobs: Sequence[AnyJob]) -> None:
        """Move results of other options or versions away if there are jobs.

        Raises UserError if a stored part shows that no further part is worth computing.
        """
        store.set_aside(self.finished.damaged)
        with relative_to(self.study.path.parent), sole_writer(self.folder):
            if jobs and not self.setup.is_computed(self.folder):
                storage.keep_earlier(self.folder)
        for record in store.each_record(self.folder, []):
            if record.key in self.finished.rows:
                self.check(record)

    def save(self, *, with_curves: bool = True) -> None:
        """Store the results if all parts are finished; of stored results, update the comparison with published ones."""
        if not with_curves:
            return
        study = self.study
        about = {"study": study.name, **({"accept": accepted} if (accepted := study.accept_items()) else {})}
        with relative_to(study.path.parent), sole_writer(self.folder):
            is_computed = self.is_computed or self.setup.is_computed(self.folder)  # by another run, meanwhile
            if is_computed and (not self.is_computed or store.stamps(self.folder) == self.stamps):
                storage.update_comparison(self.folder, about)
            elif (values := (self.whole or self).values()) is not None:
                seconds = sum(float(row.get("fit_seconds", 0.0)) for row in self.finished.rows.values())
                computed = combined(self.setup.experiment, self.setup.config, values)
                storage.write(self.setup, self.folder, computed, about, seconds)

    def values(self) -> list[Any] | None:
        """Return the values of all parts, None if one of them has none."""
        found, lost = [], self.setup.experiment.optional("lost")
        for planned in self.cells:
            key = planned.job.cell.key
            record = store.read_record(self.folder / store.CELLS / f"{key}.json")
            if record is not None and VALUE in record.notes:
                found.append(json.loads(record.notes[VALUE]))
            elif record is not None and lost is not None:
                found.append(lost(record.row["reason"]))
            else:
                return None
        return found

    def check(self, record: Record) -> None:
        """Raise UserError if the value of a part shows that no further part is worth computing."""
        check = self.setup.experiment.optional("check")
        if check is not None and VALUE in record.notes:
            check(json.loads(record.notes[VALUE]))


def plan_of_experiment(study: Study, folder: Path) -> ExperimentPlan:
    """Return the plan of a study that is an experiment; its results are in ``folder``.

    Raises UserError if two parts are the same.
    """
    setup = ExperimentSetup(str(study.experiment), study.options, study.seed)
    with relative_to(study.path.parent):
        is_computed = setup.is_computed(folder)
        calls, estimates = (setup.experiment.optional(name) for name in ("calls", "estimates"))
        parts = [_factors(setup, call) for call in (calls(setup.config, setup.seed) if calls else [None])]
        seconds: Sequence[float | None] = estimates(setup.config) if estimates else [None] * len(parts)
    finished, stamps = store.FinishedRows(), store.stamps(folder)
    jobs = {}
    for place, factors in enumerate(parts):
        key = store.factor_hash(factors)
        cell = Cell(setup.name, PARTS, place, setup.seed, factors, key)
        limits = study.limits
        jobs[key] = PartJob(
            cell, study.name, setup.name, study.options, setup.seed, str(study.path.parent.resolve()),
            limits.seconds, limits.memory_gb, limits.cpu_seconds, seconds[place],
        )  # fmt: skip
    if len(jobs) < len(parts):
        problem = "options: a part is named twice; remove repeated values, such as a split"
        raise UserError(problem, where=str(study.path))
    for record in store.each_record(folder, finished.damaged):
        if record.key in jobs:  # the others are of other options or versions
            finished.add(record)
    cells = [_planned(job, finished.rows.get(key), is_computed) for key, job in jobs.items()]
    return ExperimentPlan(study, folder, cells, stamps, finished, setup=setup, is_computed=is_computed)


def _factors(setup: ExperimentSetup, call: Sequence[Any] | None) -> dict[str, Any]:
    """Return what determines a part: the arguments of its call and the versions of the methods that these name.

    Parts that a study had before it got more data sets, splits or methods are therefore not computed again.
    """
    versions = setup.newest_versions()
    if call is None:
        return {**setup.factors, "method_versions": versions}
    text = json.dumps(call).replace("\\", "")  # entries are JSON inside JSON
    named = {name: version for name, version in versions.items() if f'"{name}"' in text}
    factors = {"experiment": setup.name, "version": setup.experiment.version, "seed": setup.seed, "call": list(call)}
    return {**factors, "method_versions": named or versions}


def _planned(job: PartJob, row: Mapping[str, Any] | None, is_computed: bool) -> PlannedCell:
    """Return the state of a part from the row of its cell file."""
    if row is None:
        return PlannedCell(job, "done" if is_computed else "missing")
    if row["reason"].startswith(INFRASTRUCTURE):
        return PlannedCell(job, "missing", row["reason"])
    return PlannedCell(job, "done") if row["status"] == "ok" else PlannedCell(job, "failed", row["reason"])


def of_stored(study: store.StudyResults, folder: Path) -> ExperimentPlan:
    """Return the plan that computes the stored results of an experiment again, in another folder."""
    again = Study(
        name=study.name, path=Path.cwd() / "study.yaml", seed=study.lock["seed"],
        experiment=str(study.lock["experiment"]), options=study.lock["options"],
    )  # fmt: skip
    return plan_of_experiment(again, folder)
